// Joins trainers to the nodes of a process that plays the trainers itself, under the system's
// clock, and keeps what they were admitted with. Nobody is told anything else.
//
// Ownership: the trainers' ends of the doorbells, until its end. Single-threaded.
#ifndef GRADCUBE_TESTS_SUPPORT_ADMISSIONS_H_
#define GRADCUBE_TESTS_SUPPORT_ADMISSIONS_H_

#include <map>
#include <string>
#include <unistd.h>
#include <vector>

#include "dataplane/daemon/node/node_group.h"
#include "dataplane/daemon/process/attended_clock.h"

namespace gradcube::dataplane {

class Admissions final : private TrainerChannel {
 public:
  explicit Admissions(NodeGroup& nodes) : nodes_(nodes) { nodes_.around().channel = this; }
  ~Admissions() override {
    nodes_.around().channel = nullptr;
    for (const auto& [trainer, session] : sessions_) close(session.trainer_doorbell);
  }
  Admissions(const Admissions&) = delete;
  Admissions& operator=(const Admissions&) = delete;

  // One trainer on every server, in the order of the servers. Throws std::runtime_error if one is
  // not admitted.
  std::vector<TrainerId> join_all(const TrainerRequest& request) {
    std::vector<TrainerId> trainers;
    for (const bcube::ServerId server : nodes_.servers()) {
      trainers.push_back(nodes_.at(server).join(request, now()));
    }
    nodes_.run(now());
    for (const TrainerId trainer : trainers) {
      if (!sessions_.contains(trainer)) throw std::runtime_error("a trainer was not admitted");
    }
    return trainers;
  }
  control::Instant now() {
    clock_.advance();
    return clock_.now();
  }
  const JoinedSession& session(TrainerId trainer) const { return sessions_.at(trainer); }
  // The daemon's own mapping serves as the trainer's: both are this process.
  std::uint8_t* memory(TrainerId trainer) { return nodes_.at(trainer.server).region_base(trainer); }

 private:
  void admit(TrainerId trainer, const JoinedSession& session) override {
    sessions_[trainer] = session;
  }
  void refuse(TrainerId, std::int32_t, const std::string&) override {}
  void notify(TrainerId, const shared::Notice&) override {}
  void give_hub(TrainerId, const shared::Notice&, int) override {}
  void evict(TrainerId, std::int32_t, const std::string&) override {}
  void record(const std::string&) override {}

  NodeGroup& nodes_;
  AttendedClock clock_;
  std::map<TrainerId, JoinedSession> sessions_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_SUPPORT_ADMISSIONS_H_
