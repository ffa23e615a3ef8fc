// A trainer as the daemon sees one: a mapping of the session's memory and nothing else. It writes
// the shared rings as trainer/src/session.cc does, without its sockets, threads and waiting, so that a
// whole cluster can be driven from one thread.
//
// Ownership: the mapping and the trainer's end of the doorbell. Single-threaded.
#ifndef GRADCUBE_TESTS_SIMULATION_SIMULATED_TRAINER_H_
#define GRADCUBE_TESTS_SIMULATION_SIMULATED_TRAINER_H_

#include <cstdint>
#include <vector>

#include "aggregation/element.h"
#include "dataplane/daemon/job_coordinator.h"
#include "trainer/shared_layout.h"

namespace gradcube::simulation {

class SimulatedTrainer {
 public:
  explicit SimulatedTrainer(const dataplane::JoinedSession& joined);
  ~SimulatedTrainer();
  SimulatedTrainer(const SimulatedTrainer&) = delete;
  SimulatedTrainer& operator=(const SimulatedTrainer&) = delete;

  dataplane::MemberId member() const { return joined_.member; }
  unsigned rank() const { return joined_.rank; }
  shared::RegionHeader& header() { return *reinterpret_cast<shared::RegionHeader*>(base_); }
  shared::Submission& submission(std::uint64_t index);
  // From the start of the region: buffers begin at shared::kHeapOffset.
  std::uint8_t* at(std::uint64_t offset) { return base_ + offset; }

  // Completions not yet taken count as in flight, as in the trainer's library.
  std::uint64_t in_flight() const { return submitted_ - taken_; }
  std::uint64_t submit(std::uint64_t offset, std::uint64_t count, aggregation::DataType dtype,
                       aggregation::Operation operation);
  // What has ended since the last call, in the order of the ring.
  std::vector<shared::Completion> take_completions();

 private:
  dataplane::JoinedSession joined_;
  std::uint8_t* base_;
  std::uint64_t submitted_ = 0;
  std::uint64_t taken_ = 0;
};

}  // namespace gradcube::simulation

#endif
