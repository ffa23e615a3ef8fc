#include "trainer/src/hub/agreement.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

namespace gradcube::trainer {

namespace {

void require_one_step(const Session& session, const Said& own, const std::vector<Said>& said) {
  const auto other = std::find_if(said.begin(), said.end(), [&own](const Said& its) {
    return its.step != own.step || its.round != own.round;
  });
  if (other == said.end()) return;
  throw Failure(GRADCUBE_EMISMATCH, "the trainers of job \"" + session.job() +
                                        "\" are not in one call: rank " +
                                        std::to_string(other - said.begin()) +
                                        " has come to another one; leave the job");
}

}  // namespace

// The words lie in shared memory, which stays the all-gather's also where it comes too late.
std::vector<Said> gather(Session& session, const Said& own, const Deadline& deadline) {
  std::vector<Said> said(session.place().size);
  said[session.place().rank] = own;
  const std::size_t bytes = said.size() * sizeof(own);
  const auto give_back = [&session](std::byte* memory) {
    try {
      session.free(memory);
    } catch (const std::bad_alloc&) {  // it stays in use until the session ends
    }
  };
  const std::unique_ptr<std::byte, decltype(give_back)> owned(session.require_memory(bytes),
                                                              give_back);
  std::byte* const block = owned.get();
  session.require_touch(block, [&] { std::memcpy(block, said.data(), bytes); });
  gradcube_collective all_gather = GRADCUBE_COLLECTIVE_INIT;
  all_gather.kind = GRADCUBE_ALL_GATHER;
  all_gather.buffer = block;
  all_gather.count = sizeof(own) / sizeof(std::uint64_t);
  all_gather.dtype = GRADCUBE_INT64;
  session.require(session.run(all_gather, deadline, shared::Gathered::steps));
  session.require_touch(block, [&] { std::memcpy(said.data(), block, bytes); });
  require_one_step(session, own, said);
  return said;
}

void require_all(const Attempt& own, const std::vector<Said>& all, const std::string& what) {
  if (own.failure.has_value()) throw Failure(*own.failure);
  const auto failed = std::find_if(all.begin(), all.end(),
                                   [](const Said& said) { return said.code != GRADCUBE_OK; });
  if (failed == all.end()) return;
  throw Failure(static_cast<int>(failed->code), what + ": rank " +
                                                    std::to_string(failed - all.begin()) +
                                                    " could not; that trainer's message says why");
}

std::vector<Said> agree(Session& session, const Attempt& own, const std::string& what,
                        const Deadline& deadline) {
  std::vector<Said> all = gather(session, own.said, deadline);
  require_all(own, all, what);
  return all;
}

}  // namespace gradcube::trainer
