// What attached flows cost an engine that has nothing to do for them: the time of one iteration of
// an engine with 8 flows that work, when only these are attached, and when 63 idle jobs with 10,080
// flows are attached beside them.
//
//   bench_iteration [--json]
//
// Eleven engines, one for each server of star:11, exchange packets over wires that are lists; the
// bench turns them by hand, under a clock that it sets. An idle job has eight lanes and a trainer
// on every server; the job that works has one lane, and five servers. Measured is the engine of
// server 0 while the job makes all-reduces. Both sides take turns; the figures are medians.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include "aggregation/kernels.h"
#include "bcube_forwarding/neighbours.h"
#include "control/plan/algorithms.h"
#include "dataplane/daemon/fabric_sizing.h"
#include "dataplane/engine/engine.h"
#include "dataplane/fabric/frame_fields.h"
#include "dataplane/host/eal.h"
#include "tests/unit/dataplane/engine/whole_region.h"

namespace gradcube {
namespace {

using dataplane::Engine;
using dataplane::EngineJob;
using dataplane::PacketPool;
using dataplane::Session;
using dataplane::SessionRegion;

constexpr unsigned kServers = 11;
constexpr unsigned kMembers = 5;  // of the job that works: 4 neighbours in 2 stages
constexpr unsigned kIdleJobs = 63;
constexpr protocol::JobId kWorkingJob = 1000;
constexpr std::uint64_t kBytes = 1 << 20;
constexpr unsigned kTurns = 15;
constexpr unsigned kAllReduces = 20;  // per turn
constexpr std::int64_t kStep = 1'000;

// A server's port. What is sent waits until the bench delivers it.
class Wire final : public dataplane::Port {
 public:
  Wire() : Port(1, 9000) {}
  ~Wire() override {
    for (rte_mbuf* packet : arriving) rte_pktmbuf_free(packet);
    for (rte_mbuf* packet : sent) rte_pktmbuf_free(packet);
  }

  std::uint16_t receive(std::uint16_t, rte_mbuf** packets, std::uint16_t count) override {
    std::uint16_t received = 0;
    for (; received < count && !arriving.empty(); ++received) {
      packets[received] = arriving.front();
      arriving.pop_front();
    }
    return received;
  }
  std::uint16_t transmit(std::uint16_t, rte_mbuf** packets, std::uint16_t count) override {
    sent.insert(sent.end(), packets, packets + count);
    return count;
  }
  std::uint16_t transmit_room(std::uint16_t) const override { return 64; }

  std::deque<rte_mbuf*> arriving;
  std::deque<rte_mbuf*> sent;
};

class NoEvents final : public dataplane::EventSink {
 public:
  bool report(const dataplane::EngineEvent&) override {
    throw std::runtime_error("an engine reports a disagreement");
  }
};

// A trainer's session, and its engine's part of the job.
struct Membership {
  std::unique_ptr<Session> session;
  std::unique_ptr<EngineJob> job;
};

struct Server {
  explicit Server(const std::string& pool) : packets(std::make_unique<PacketPool>(options(pool))) {}

  static dataplane::PacketPoolOptions options(const std::string& name) {
    dataplane::PacketPoolOptions options;
    options.name = name;
    options.count = 2047;
    options.cache = 0;
    return options;
  }

  std::unique_ptr<PacketPool> packets;
  dataplane::PacketShare share{1U << 30};  // the pool is the limit
  protocol::PortCredit credit{{}};
  std::unique_ptr<Wire> wire = std::make_unique<Wire>();
  std::deque<Membership> jobs;
  std::unique_ptr<Engine> engine;  // goes first
};

std::uint64_t number_of(const bcube::LinkAddress& address) {
  std::uint64_t number = 0;
  for (const std::uint8_t byte : address.mac) number = number << 8 | byte;
  return number;
}

class Cluster {
 public:
  Cluster(const std::string& name, unsigned idle_jobs) {
    control::ClusterSettings settings;
    settings.topology = control::parse_topology("star:11", "topology");
    const dataplane::FabricParameters parameters = dataplane::fabric_parameters(settings);
    for (unsigned id = 0; id < kServers; ++id) {
      Server& server = servers_.emplace_back(name + std::to_string(id));
      dataplane::EngineSettings engine;
      engine.server = id;
      engine.threads = {0};
      engine.segment_bytes = parameters.segment_bytes;
      engine.block_bytes = parameters.block_bytes;
      engine.window = parameters.window;
      engine.flows = parameters.flows;
      server.engine = std::make_unique<Engine>(
          engine, settings.topology.space(),
          std::vector<dataplane::EnginePort>{{server.wire.get(), &server.credit}},
          dataplane::EnginePools{*server.packets, *server.packets}, events_);
      servers_by_mac_[number_of(bcube::embedded_link_address(0, id))] = id;
    }
    std::vector<control::ServerId> all(kServers);
    std::iota(all.begin(), all.end(), 0U);
    for (unsigned job = 0; job < idle_jobs; ++job) attach(settings, job + 1, all, 8, 4096);
    attach(settings, kWorkingJob, {all.begin(), all.begin() + kMembers}, 1, kBytes);
    // The flows tell each other of their credit, and idle jobs begin to doze.
    for (unsigned i = 0; i < 2000; ++i) iterate(20 * kStep);
    for (unsigned i = 0; i < 3; ++i) allreduce();
  }
  ~Cluster() {
    // Packets point into the memory of sessions.
    for (Server& server : servers_) {
      server.engine.reset();
      server.wire.reset();
    }
  }
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  std::size_t flows_of_first() const {
    std::size_t flows = 0;
    for (EngineJob* job : servers_.front().engine->jobs()) {
      for (auto& executor : job->executors()) flows += executor.flows().size();
    }
    return flows;
  }

  // Nanoseconds of an iteration of server 0's engine, over some all-reduces.
  double nanoseconds_per_iteration() {
    measured_ = {};
    iterations_ = 0;
    for (unsigned i = 0; i < kAllReduces; ++i) allreduce();
    return std::chrono::duration<double, std::nano>(measured_).count() / iterations_;
  }

 private:
  void attach(const control::ClusterSettings& settings, protocol::JobId id,
              const std::vector<control::ServerId>& members, unsigned lanes, std::uint64_t bytes) {
    const auto plan = std::make_shared<control::Plan>(
        control::make_plan("bml", settings.topology,
                           control::Placement::of(settings.topology, members, "job"), "plan"));
    const dataplane::LanePlans lane_plans(lanes, {plan, 0});
    const auto ranks = static_cast<unsigned>(members.size());
    for (const control::ServerId member : members) {
      Server& server = servers_[member];
      int ends[2];
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) {
        throw std::runtime_error("cannot make a socket pair");
      }
      close(ends[1]);  // nobody is woken
      Membership& membership = server.jobs.emplace_back();
      membership.session =
          std::make_unique<Session>(dataplane::whole_region(bytes), ends[0],
                                    dataplane::SessionShape{ranks, std::vector<unsigned>(lanes, 1)},
                                    std::vector<dataplane::Doorbell*>{});
      const unsigned window = server.engine->settings().window;
      const std::uint32_t flows = server.engine->check(lane_plans, bytes);
      membership.job = server.engine->prepare(id, *membership.session, lane_plans, 1,
                                              aggregation::select_kernels(512),
                                              {window, *server.share.reserve(flows * window)});
      server.engine->attach(*membership.job, 1);
      server.engine->start(id);
    }
  }

  // The working job was the last to be attached.
  Session& working(unsigned server) { return *servers_[server].jobs.back().session; }

  void submit(Session& session) {
    const SessionRegion& region = session.region();
    auto* ring = reinterpret_cast<shared::Submission*>(region.base() + shared::kSubmissions);
    shared::Submission entry{};
    entry.request = submitted_ + 1;
    entry.offset = shared::kHeapOffset;
    entry.count = kBytes / sizeof(float);
    ring[submitted_ % shared::kSubmissionEntries] = entry;
    region.header().submission_tail.store(submitted_ + 1, std::memory_order_release);
  }

  bool is_done(Session& session) const {
    shared::RegionHeader& header = session.region().header();
    const std::uint64_t completed = header.completion_tail.load(std::memory_order_acquire);
    header.completion_head.store(completed, std::memory_order_release);
    return completed == submitted_;
  }

  void allreduce() {
    for (unsigned member = 0; member < kMembers; ++member) submit(working(member));
    ++submitted_;
    const std::int64_t limit = now_ + 1'000'000'000;
    for (bool done = false; !done;) {
      iterate();
      if (now_ > limit) throw std::runtime_error("an all-reduce has not ended");
      done = true;
      for (unsigned member = 0; member < kMembers; ++member) done &= is_done(working(member));
    }
  }

  void iterate(std::int64_t step = kStep) {
    now_ += step;
    for (Server& server : servers_) {
      const auto begin = std::chrono::steady_clock::now();
      server.engine->poll(now_);
      if (&server == &servers_.front()) {
        measured_ += std::chrono::steady_clock::now() - begin;
        ++iterations_;
      }
    }
    for (Server& server : servers_) deliver(*server.wire);
  }

  void deliver(Wire& wire) {
    for (rte_mbuf* packet : wire.sent) {
      const auto to = servers_by_mac_.find(dataplane::destination_mac(packet));
      if (to == servers_by_mac_.end()) throw std::runtime_error("a frame to nobody");
      servers_[to->second].wire->arriving.push_back(packet);
    }
    wire.sent.clear();
  }

  NoEvents events_;
  std::deque<Server> servers_;
  std::map<std::uint64_t, unsigned> servers_by_mac_;
  std::uint64_t submitted_ = 0;
  std::int64_t now_ = 1'000'000;
  std::chrono::steady_clock::duration measured_{};
  double iterations_ = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int run(int argc, char** argv) {
  const bool as_json = argc == 2 && std::strcmp(argv[1], "--json") == 0;
  if (argc > 1 && !as_json) {
    std::fprintf(stderr, "usage: bench_iteration [--json]\n");
    return 2;
  }
  dataplane::EalOptions options;
  options.cores = {dataplane::usable_cores().front()};
  const dataplane::Eal eal(options);
  Cluster few("few", 0);
  Cluster many("many", kIdleJobs);
  std::vector<double> of_few;
  std::vector<double> of_many;
  for (unsigned turn = 0; turn < kTurns; ++turn) {
    of_few.push_back(few.nanoseconds_per_iteration());
    of_many.push_back(many.nanoseconds_per_iteration());
  }
  const double value = median(of_many);
  const double peer = median(of_few);
  const std::string figure = "iteration of an engine, 8 flows work, " +
                             std::to_string(many.flows_of_first()) + " are attached";
  const std::string peer_name = std::to_string(few.flows_of_first()) + " attached";
  if (as_json) {
    const nlohmann::ordered_json row = {{"figure", figure},       {"value", value},
                                        {"unit", "ns"},           {"peer", peer},
                                        {"peer_name", peer_name}, {"ratio", value / peer}};
    std::printf("%s\n", nlohmann::ordered_json{{"rows", {row}}}.dump().c_str());
  } else {
    std::printf("%s: %.0f ns, %s: %.0f ns, ratio %.3f\n", figure.c_str(), value, peer_name.c_str(),
                peer, value / peer);
  }
  return 0;
}

}  // namespace
}  // namespace gradcube

int main(int argc, char** argv) {
  try {
    return gradcube::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_iteration: %s\n", error.what());
    return 1;
  }
}
