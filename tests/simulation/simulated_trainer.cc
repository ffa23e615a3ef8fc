#include "tests/simulation/simulated_trainer.h"

#include <array>
#include <cerrno>
#include <sys/mman.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>

#include "trainer/shared_mapping.h"

namespace gradcube::simulation {

void SimulatedTrainer::admit(const dataplane::JoinedSession& joined) {
  void* mapping = shared::map_region(joined.region_descriptor, joined.region_bytes);
  if (mapping == nullptr) {
    close(joined.trainer_doorbell);
    throw std::system_error(errno, std::generic_category(), "cannot map a session's memory");
  }
  joined_ = joined;
  base_ = static_cast<std::uint8_t*>(mapping);
}

SimulatedTrainer::~SimulatedTrainer() {
  if (!admitted()) return;
  munmap(base_, joined_.region_bytes);
  close(joined_.trainer_doorbell);
}

shared::Submission& SimulatedTrainer::submission(std::uint64_t index) {
  return reinterpret_cast<shared::Submission*>(
      base_ + shared::kSubmissions)[index % shared::kSubmissionEntries];
}

std::uint64_t SimulatedTrainer::submit(const shared::Submission& asked) {
  shared::Submission& entry = submission(submitted_);
  entry = asked;
  if (entry.request == 0) entry.request = ++names_;
  const std::uint64_t name = entry.request;
  ++submitted_;
  if (entry.type == static_cast<std::uint8_t>(shared::SubmissionType::message)) {
    const auto fresh = static_cast<std::uint32_t>(places_.size());
    entry.message.place = free_places_.empty() ? fresh : *free_places_.begin();
    free_places_.erase(entry.message.place);
    places_[name] = entry.message.place;
  }
  publish();
  return name;
}

void SimulatedTrainer::withdraw(std::uint64_t name) {
  shared::Submission& entry = submission(submitted_);
  entry = {};
  entry.type = static_cast<std::uint8_t>(shared::SubmissionType::withdrawal);
  entry.request = name;
  const auto place = places_.find(name);
  entry.message.place = place == places_.end() ? 0 : place->second;
  ++withdrawals_;
  ++submitted_;
  publish();
}

void SimulatedTrainer::publish() {
  header().submission_tail.store(submitted_);
  if (header().daemon_asleep.load() == 0) return;
  const char bell = 0;
  (void)!send(joined_.trainer_doorbell, &bell, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

std::uint64_t SimulatedTrainer::submit(std::uint64_t offset, std::uint64_t count,
                                       aggregation::DataType dtype,
                                       aggregation::Operation operation) {
  shared::Submission asked{};
  asked.offset = offset;
  asked.count = count;
  asked.collective.kind = static_cast<std::uint8_t>(shared::CollectiveKind::all_reduce);
  asked.dtype = static_cast<std::uint8_t>(dtype);
  asked.collective.op = static_cast<std::uint8_t>(operation);
  return submit(asked);
}

std::size_t SimulatedTrainer::take_rings() {
  std::array<char, 64> bells;
  const ssize_t taken = recv(joined_.trainer_doorbell, bells.data(), bells.size(), MSG_DONTWAIT);
  return taken < 0 ? 0 : static_cast<std::size_t>(taken);
}

std::vector<shared::Completion> SimulatedTrainer::take_completions() {
  std::vector<shared::Completion> taken;
  const std::uint64_t tail = header().completion_tail.load(std::memory_order_acquire);
  const auto* ring = reinterpret_cast<const shared::Completion*>(base_ + shared::kCompletions);
  for (; taken_ < tail; ++taken_) {
    taken.push_back(ring[taken_ % shared::kRingEntries]);
    const auto place = places_.find(taken.back().request);
    if (place == places_.end()) continue;
    free_places_.insert(place->second);
    places_.erase(place);
  }
  header().completion_head.store(taken_, std::memory_order_release);
  return taken;
}

}  // namespace gradcube::simulation
