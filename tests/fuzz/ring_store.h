// A trainer's store into the rings that it shares with the daemon: how an input says it, and how it
// is carried out in the memory of a session.
#ifndef GRADCUBE_TESTS_FUZZ_RING_STORE_H_
#define GRADCUBE_TESTS_FUZZ_RING_STORE_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dataplane/engine/session/session.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/unit/dataplane/engine/submission_entry.h"

namespace gradcube::fuzz {

// One store: a byte that says where, in the rings of which trainer, and the value.
constexpr std::size_t kStoreBytes = 1 + sizeof(std::uint64_t);
enum class Where : std::uint8_t {
  submission_tail,
  completion_head,
  request,
  offset,
  count,
  dtype,
  type,
  operation,
  kind,
  root,
  lane,
  tag,
  peer,
  paths,
  place,
  direction,
  key,
  hub,
  rate,
  steps,
  digest,
  push_kind,
  plane,
  places,
};
inline constexpr auto kPlaces = static_cast<unsigned>(Where::places);

inline void store(dataplane::Session& session, unsigned local, Where where, std::uint64_t value) {
  shared::RegionHeader& header = session.region(local).header();
  // The entry that the session looks at next.
  shared::Submission& submission =
      dataplane::submission_entry(session.region(local), header.submission_head.load());
  switch (where) {
    case Where::submission_tail:
      header.submission_tail.store(value);
      break;
    case Where::completion_head:
      header.completion_head.store(value);
      break;
    case Where::request:
      submission.request = value;
      break;
    case Where::offset:
      submission.offset = value;
      break;
    case Where::count:
      submission.count = value;
      break;
    case Where::dtype:
      submission.dtype = static_cast<std::uint8_t>(value);
      break;
    case Where::type:
      submission.type = static_cast<std::uint8_t>(value);
      break;
    case Where::operation:
      submission.collective.op = static_cast<std::uint8_t>(value);
      break;
    case Where::kind:
      submission.collective.kind = static_cast<std::uint8_t>(value);
      break;
    case Where::root:
      submission.collective.root = static_cast<std::uint32_t>(value);
      break;
    case Where::lane:
      submission.collective.lane = static_cast<std::uint8_t>(value);
      break;
    case Where::tag:
      submission.message.tag = value;
      break;
    case Where::peer:
      submission.message.peer = static_cast<std::uint32_t>(value);
      break;
    case Where::paths:
      submission.message.paths = static_cast<std::uint32_t>(value);
      break;
    case Where::place:
      submission.message.place = static_cast<std::uint32_t>(value);
      break;
    case Where::direction:
      submission.message.direction = static_cast<std::uint8_t>(value);
      break;
    case Where::key:
      submission.push.key = static_cast<std::uint32_t>(value);
      break;
    case Where::hub:
      submission.push.hub = static_cast<std::uint32_t>(value);
      break;
    case Where::rate:
      submission.push.rate = std::bit_cast<double>(value);
      break;
    case Where::steps:
      submission.push.steps = value;
      break;
    case Where::digest:
      submission.push.digest = static_cast<std::uint32_t>(value);
      break;
    case Where::push_kind:
      submission.push.kind = static_cast<std::uint8_t>(value);
      break;
    case Where::plane:
      submission.push.plane = static_cast<std::uint8_t>(value);
      break;
    case Where::places:
      break;
  }
}

inline void append(Bytes& bytes, unsigned local, Where where, std::uint64_t value) {
  bytes.push_back(static_cast<std::uint8_t>(local * kPlaces + static_cast<unsigned>(where)));
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof value);
  std::memcpy(&bytes[at], &value, sizeof value);
}

}  // namespace gradcube::fuzz

#endif  // GRADCUBE_TESTS_FUZZ_RING_STORE_H_
