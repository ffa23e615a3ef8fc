// Where a test writes as a trainer does, past the trainer's library.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_SUBMISSION_ENTRY_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_SUBMISSION_ENTRY_H_

#include <cstdint>

#include "dataplane/engine/memory/session_region.h"

namespace gradcube::dataplane {

// The ring's entry where a trainer writes its submission number `index`, counted from 0.
inline shared::Submission& submission_entry(const SessionRegion& region, std::uint64_t index) {
  return reinterpret_cast<shared::Submission*>(
      region.base() + shared::kSubmissions)[index % shared::kSubmissionEntries];
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_SUBMISSION_ENTRY_H_
