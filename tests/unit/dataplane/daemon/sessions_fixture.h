// The session server with real sockets, in one thread, over nodes without engines: trainers
// join and ask, and nothing is reduced.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_DAEMON_SESSIONS_FIXTURE_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_DAEMON_SESSIONS_FIXTURE_H_

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <stdexcept>

#include "control/plan/base/topology.h"
#include "dataplane/daemon/process/session_server.h"
#include "dataplane/engine/event_queue.h"
#include "tests/unit/dataplane/daemon/session_trainer.h"

namespace gradcube::dataplane {
inline std::filesystem::path make_directory() {
  std::string name = std::filesystem::temp_directory_path() / "gradcube-test-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a directory");
  return name;
}

inline constexpr std::uint64_t kSessionQuota = std::uint64_t{80} << 20;

class Sessions : public testing::Test {
 protected:
  Sessions() {
    for (const bcube::ServerId server : {0U, 1U}) {
      nodes_.add(server, 1,
                 std::make_unique<NodeEngines>(topology_.space(), server, std::vector<Port*>(),
                                               std::vector<protocol::CreditSettings>(),
                                               std::vector<EnginePlace>(), events_));
    }
    looks_on_tick();
  }
  ~Sessions() override { std::filesystem::remove_all(directory_); }

  void looks_on_tick() {
    loop_.on_tick([this] {
      clock_.advance();
      Trainer::answer_offers();
      if (each_round) each_round();
      server_.tick(SessionServer::SteadyClock::now());
      clock_.advance();
      nodes_.run(clock_.now());
      nodes_.look(clock_.now());
      ++rounds_;
      if (done_ && done_()) loop_.stop();
      if (rounds_ >= last_round_) loop_.stop();
    });
  }
  // Rounds of the loop, until `done` or for at most `most`; returns their number.
  unsigned run(unsigned most, std::function<bool()> done = {}) {
    const unsigned before = rounds_;
    last_round_ = rounds_ + most;
    done_ = std::move(done);
    loop_.run();
    return rounds_ - before;
  }
  unsigned trainers() const { return nodes_.at(0).trainers() + nodes_.at(1).trainers(); }

  std::function<void()> each_round;

  std::filesystem::path directory_ = make_directory();
  std::map<bcube::ServerId, std::filesystem::path> paths_{{0, directory_ / "0.sock"},
                                                          {1, directory_ / "1.sock"}};
  control::Topology topology_ = control::parse_topology("star:2", "here");
  EventQueue events_;
  ControlLoop loop_;
  // So that the nodes take nobody for silent, however long the rounds take.
  AttendedClock::SteadyClock::time_point time_{};
  AttendedClock clock_{[this] { return time_ += std::chrono::milliseconds(10); }};
  MemoryQuota quota_{kSessionQuota};
  NodeGroup nodes_{topology_, aggregation::select_kernels(0), {}};
  std::vector<std::string> logged_;
  SessionServer server_{
      loop_,  nodes_,
      clock_, topology_.space(),
      paths_, quota_,
      {},     ClientLog([this](const std::string& line) { logged_.push_back(line); })};
  unsigned rounds_ = 0;
  unsigned last_round_ = 0;
  std::function<bool()> done_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_DAEMON_SESSIONS_FIXTURE_H_
