// How all trainers of a job go through the steps of one call together: each says which step this
// is, how it went and what it is about, in an all-gather on lane 0, and a failure of one is a
// failure of all. Trainers in different steps fail together: one of them has left a call early, and
// what they say would be taken for something else.
//
// Any thread, one call at a time. All that throws throws Failure.
#ifndef GRADCUBE_TRAINER_SRC_HUB_AGREEMENT_H_
#define GRADCUBE_TRAINER_SRC_HUB_AGREEMENT_H_

#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "trainer/src/base/deadline.h"
#include "trainer/src/base/failure.h"
#include "trainer/src/hub/said.h"
#include "trainer/src/session/session.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

// What this rank does of a call, and what it says to the others of how that went.
struct Attempt {
  template <typename Act>  // act(said)
  Attempt(const Said& about, const Act& act) : said(about) {
    try {
      act(said);
    } catch (const Failure& its) {
      failure = its;
    } catch (const std::exception& its) {
      failure = Failure(GRADCUBE_ENOMEM, its.what());
    }
    if (failure.has_value()) said.code = failure->code();
  }
  Said said;
  std::optional<Failure> failure;
};

// What each rank says. GRADCUBE_EMISMATCH where one is in another step, or another round of it.
std::vector<Said> gather(Session& session, const Said& own, const Deadline& deadline);

// Throws the first failure that a rank has told. what: "the checkpoint was not made".
void require_all(const Attempt& own, const std::vector<Said>& all, const std::string& what);

// Both.
std::vector<Said> agree(Session& session, const Attempt& own, const std::string& what,
                        const Deadline& deadline);

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_HUB_AGREEMENT_H_
