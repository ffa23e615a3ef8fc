// A trainer as the daemon sees it: a mapping of the session's memory. It writes the shared rings as
// trainer/src/session/session.cc does, but without sockets, threads and waits, so that one thread
// can drive a whole cluster.
//
// It has a session once its job has admitted it. Until then only id(), admitted() and refusal() may
// be called.
//
// Ownership: the mapping and the trainer's end of the doorbell. Single-threaded.
#ifndef GRADCUBE_TESTS_SIMULATION_SIMULATED_TRAINER_H_
#define GRADCUBE_TESTS_SIMULATION_SIMULATED_TRAINER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "aggregation/element.h"
#include "dataplane/daemon/trainers/trainer_channel.h"
#include "trainer/shared_layout.h"

namespace gradcube::simulation {

class SimulatedTrainer {
 public:
  explicit SimulatedTrainer(dataplane::TrainerId id) : id_(id) {}
  ~SimulatedTrainer();
  SimulatedTrainer(const SimulatedTrainer&) = delete;
  SimulatedTrainer& operator=(const SimulatedTrainer&) = delete;

  // What became of its wish to join.
  void admit(const dataplane::JoinedSession& joined);
  void refuse(const std::string& message) { refusal_ = message; }
  bool admitted() const { return base_ != nullptr; }
  const std::optional<std::string>& refusal() const { return refusal_; }

  dataplane::TrainerId id() const { return id_; }
  bcube::ServerId server() const { return id_.server; }
  unsigned rank() const { return joined_.rank; }
  unsigned size() const { return joined_.size; }
  shared::RegionHeader& header() { return *reinterpret_cast<shared::RegionHeader*>(base_); }
  shared::Submission& submission(std::uint64_t index);
  // `offset` counts from the start of the region; buffers begin at shared::kHeapOffset.
  std::uint8_t* at(std::uint64_t offset) { return base_ + offset; }

  // Completions that have not been taken count as in flight, as in the trainer's library.
  std::uint64_t in_flight() const { return submitted_ - withdrawals_ - taken_; }
  // Whether all that it has submitted has ended, taken or not.
  bool idle() { return header().completion_tail.load() == submitted_ - withdrawals_; }
  // Submits what the entry says, under its name; without one under the next number. Returns the
  // name.
  std::uint64_t submit(const shared::Submission& asked);
  // Withdraws the message of this name, which may have ended.
  void withdraw(std::uint64_t name);
  // An all-reduce in lane 0.
  std::uint64_t submit(std::uint64_t offset, std::uint64_t count, aggregation::DataType dtype,
                       aggregation::Operation operation);
  // The completions since the last call, in the order of the ring.
  std::vector<shared::Completion> take_completions();
  // How often its doorbell has rung since the last call; it rings for one that says it sleeps.
  std::size_t take_rings();

 private:
  void publish();

  dataplane::TrainerId id_;
  std::optional<std::string> refusal_;
  dataplane::JoinedSession joined_;
  std::uint8_t* base_ = nullptr;
  std::uint64_t submitted_ = 0;
  std::uint64_t withdrawals_ = 0;
  std::uint64_t names_ = 0;
  std::uint64_t taken_ = 0;
  std::map<std::uint64_t, std::uint32_t> places_;  // of messages in flight, by their names
  std::set<std::uint32_t> free_places_;            // that have been used
};

}  // namespace gradcube::simulation

#endif  // GRADCUBE_TESTS_SIMULATION_SIMULATED_TRAINER_H_
