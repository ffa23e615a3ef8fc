// Nodes without engines, under a clock that the test moves, and what their trainers are told.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_DAEMON_NODES_FIXTURE_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_DAEMON_NODES_FIXTURE_H_

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

#include "control/plan/base/topology.h"
#include "dataplane/daemon/node/node_group.h"
#include "dataplane/engine/event_queue.h"
#include "tests/support/message_queue.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

using control::Instant;
using std::chrono::milliseconds;
using std::chrono::seconds;

inline constexpr std::uint64_t kSeed = 20240607;

// What a trainer has been told.
struct Told {
  std::optional<JoinedSession> admitted;
  std::int32_t refusal = 0;  // its code
  std::string why_refused;
  std::vector<shared::Notice> notices;

  // The text of the newest notice of this type; empty if there is none.
  std::string last(shared::MessageType type) const {
    for (auto notice = notices.rbegin(); notice != notices.rend(); ++notice) {
      if (notice->type == type) return notice->text;
    }
    return "";
  }
  std::string failure() const { return last(shared::MessageType::failure); }
  std::string report() const { return last(shared::MessageType::report); }
};

class Recorder final : public TrainerChannel {
 public:
  void admit(TrainerId trainer, const JoinedSession& session) override {
    EXPECT_FALSE(told[trainer].admitted.has_value()) << "a trainer is admitted once";
    told[trainer].admitted = session;
    close(session.trainer_doorbell);
  }
  void refuse(TrainerId trainer, std::int32_t code, const std::string& message) override {
    EXPECT_FALSE(told[trainer].admitted.has_value()) << message;
    told[trainer].refusal = code;
    told[trainer].why_refused = message;
  }
  void notify(TrainerId trainer, const shared::Notice& notice) override {
    EXPECT_TRUE(told[trainer].admitted.has_value()) << notice.text;
    told[trainer].notices.push_back(notice);
  }
  void give_hub(TrainerId trainer, const shared::Notice& notice, int) override {
    told[trainer].notices.push_back(notice);
  }
  void evict(TrainerId, std::int32_t, const std::string& message) override {
    ADD_FAILURE() << message;
  }
  void record(const std::string& line) override { log.push_back(line); }

  std::map<TrainerId, Told> told;
  std::vector<std::string> log;
};

class Nodes : public testing::Test {
 protected:
  explicit Nodes(const std::vector<bcube::ServerId>& servers = {0, 1, 2}) {
    nodes_.around().channel = &recorder_;
    for (const bcube::ServerId server : servers) start(server, 1);
  }

  void start(bcube::ServerId server, control::Incarnation incarnation) {
    nodes_.add(server, incarnation,
               std::make_unique<NodeEngines>(topology_.space(), server, std::vector<Port*>(),
                                             std::vector<protocol::CreditSettings>(),
                                             std::vector<EnginePlace>(), events_));
  }
  // Its daemon is killed and started anew. A new daemon counts its trainers from 1 again.
  void restart(bcube::ServerId server, control::Incarnation incarnation) {
    nodes_.remove(server);
    std::erase_if(recorder_.told, [&](const auto& each) { return each.first.server == server; });
    start(server, incarnation);
  }

  static TrainerRequest request(bcube::ServerId server) {
    TrainerRequest request;
    request.job = "mnist";
    request.pid = 100 + server;
    request.heap_bytes = 4096;
    return request;
  }
  TrainerId join(bcube::ServerId server) { return join(server, request(server)); }
  TrainerId join(bcube::ServerId server, const TrainerRequest& request) {
    return nodes_.at(server).join(request, now_);
  }
  // On every server; the job runs.
  std::vector<TrainerId> join_all() {
    std::vector<TrainerId> trainers;
    for (const bcube::ServerId server : nodes_.servers()) trainers.push_back(join(server));
    run_for(milliseconds(100));
    for (const TrainerId trainer : trainers) EXPECT_TRUE(told(trainer).admitted.has_value());
    return trainers;
  }
  void leave(TrainerId trainer, Departure departure = Departure::orderly) {
    nodes_.at(trainer.server).leave(trainer, departure, "broke a rule", now_);
  }
  // The answer to a question about the first collective.
  std::string ask(TrainerId trainer) {
    nodes_.at(trainer.server).inquire(trainer, ++asked_, {0, 1}, now_);
    run_for(control::JobTiming{}.answer + milliseconds(20));
    return told(trainer).report();
  }

  // Runs what is due at its time, and looks every 20 ms.
  void run_for(Instant duration) {
    const Instant end = now_ + duration;
    unsigned idle_turns = 0;
    while (now_ < end) {
      queue_.run(nodes_, now_);
      nodes_.look(now_);
      const Instant before = now_;
      now_ = std::min({end, now_ + milliseconds(20), nodes_.deadline().value_or(end),
                       queue_.next().value_or(end)});
      now_ = std::max(now_, before);
      idle_turns = now_ == before ? idle_turns + 1 : 0;
      ASSERT_LT(idle_turns, 10u) << "a deadline does not move";
    }
    queue_.run(nodes_, now_);
  }
  // From now on messages go through the queue.
  void divert_messages() { queue_.divert(nodes_); }
  void stop(bcube::ServerId server) {
    divert_messages();
    queue_.stop(server);
    nodes_.stop(server);
  }
  void go_on(bcube::ServerId server) {
    queue_.go_on(server);
    nodes_.go_on(server);
  }
  const Told& told(TrainerId trainer) { return recorder_.told[trainer]; }
  // All trainers have left, and nothing of any job is kept: an idle process has nothing to do.
  void expect_nothing_left() {
    run_for(seconds(30));
    EXPECT_TRUE(nodes_.idle());
    EXPECT_FALSE(nodes_.deadline().has_value());
    EXPECT_FALSE(nodes_.run(now_));
    EXPECT_TRUE(nodes_.jobs(now_).empty());
    EXPECT_EQ(nodes_.trainer_bytes(), 0u);
  }

  control::Topology topology_ = control::parse_topology("star:3", "here");
  EventQueue events_;
  Recorder recorder_;
  NodeGroup nodes_{topology_, aggregation::select_kernels(0), {}};
  MessageQueue queue_{kSeed};  // of messages that were diverted to it
  Instant now_ = seconds(1'000);
  std::uint64_t asked_ = 0;
};

// Only some servers' nodes live in this process.
class NodesWithoutTheLowest : public Nodes {
 protected:
  NodesWithoutTheLowest() : Nodes({1, 2}) {}
};

inline void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    EXPECT_NE(text.find(word), std::string::npos) << "no \"" << word << "\" in: " << text;
  }
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_DAEMON_NODES_FIXTURE_H_
