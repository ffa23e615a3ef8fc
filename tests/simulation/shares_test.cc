// How jobs that all have much to send share the ports: in bytes, over a window of virtual time.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/work.h"

namespace gradcube::simulation {
namespace {

// Bytes sent per job, by server and port. Resends do not count.
using Sent = std::map<std::pair<bcube::ServerId, unsigned>, std::map<protocol::JobId, double>>;

class Shares : public testing::Test {
 protected:
  Shares() : cluster_(settings_of({{"topology", "star:3"}, {"rate", "200mbit"}})) {}

  // Adds a job of this weight, and submits an all-reduce of so many elements.
  void add(unsigned weight, std::uint64_t elements) {
    Collective collective;
    collective.count = elements;
    control::JobOptions options;
    options.weight = weight;
    Trainers& trainers = jobs_.emplace_back();
    for (bcube::ServerId server = 0; server < cluster_.servers(); ++server) {
      dataplane::TrainerRequest request{"job-" + std::to_string(jobs_.size()), 1000 + server};
      request.heap_bytes = heap_for(collective);
      request.options = options;
      trainers.push_back(cluster_.join(server, request));
    }
    collectives_.push_back(collective);
  }

  void submit_all() {
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      for (const auto& trainer : jobs_[i]) fill_and_submit(*trainer, collectives_[i]);
    }
  }

  Sent sent() {
    Sent sent;
    for (const dataplane::EngineAt& at : cluster_.cluster().engines()) {
      for (dataplane::EngineJob* job : at.engine->jobs()) {
        for (dataplane::PlanExecutor& executor : job->executors()) {
          for (dataplane::Flow& flow : executor.flows()) {
            sent[{at.engine->settings().server, flow.out->number}][job->id()] +=
                static_cast<double>(flow.send.next()) * at.engine->settings().segment_bytes;
          }
        }
      }
    }
    return sent;
  }

  // What each job has sent in this time.
  Sent sent_within(std::int64_t nanoseconds) {
    const Sent before = sent();
    cluster_.run_for(nanoseconds);
    Sent within = sent();
    for (auto& [port, by_job] : within) {
      for (auto& [job, bytes] : by_job) bytes -= before.at(port).at(job);
    }
    return within;
  }

  std::map<protocol::JobId, unsigned> weights() {
    std::map<protocol::JobId, unsigned> weights;
    for (const dataplane::EngineAt& at : cluster_.cluster().engines()) {
      for (dataplane::EngineJob* job : at.engine->jobs()) weights[job->id()] = job->weight();
    }
    return weights;
  }

  // Every job has sent its share of every port's bytes, up to this fraction of the share.
  void expect_shared(const Sent& within, double tolerance) {
    const std::map<protocol::JobId, unsigned> weights = this->weights();
    double all_weights = 0;
    for (const auto& [job, weight] : weights) all_weights += weight;
    for (const auto& [port, by_job] : within) {
      double all_bytes = 0;
      for (const auto& [job, bytes] : by_job) all_bytes += bytes;
      for (const auto& [job, bytes] : by_job) {
        const double share = all_bytes * weights.at(job) / all_weights;
        EXPECT_NEAR(bytes / share, 1, tolerance)
            << "job " << job << " of weight " << weights.at(job) << ", server " << port.first
            << ", port " << port.second << ", which sent " << all_bytes << " bytes";
      }
    }
  }

  // Bytes of segments that a port of this rate sends in this time, at least.
  void expect_busy(const Sent& within, double bits_per_second, std::int64_t nanoseconds) {
    for (const auto& [port, by_job] : within) {
      double all_bytes = 0;
      for (const auto& [job, bytes] : by_job) all_bytes += bytes;
      const double most = bits_per_second / 8 * static_cast<double>(nanoseconds) * 1e-9;
      EXPECT_GT(all_bytes, 0.9 * most) << "server " << port.first;
    }
  }

  void finish() {
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      ASSERT_TRUE(cluster_.run_until([&] { return all_idle(jobs_[i]); }, 60 * kSecond));
      expect_right(cluster_, jobs_[i], collectives_[i]);
    }
    for (const Trainers& trainers : jobs_) leave_all(cluster_, trainers);
  }

  SimulatedCluster cluster_;
  std::vector<Trainers> jobs_;
  std::vector<Collective> collectives_;
};

TEST_F(Shares, AreAsTheWeightsOfTheJobs) {
  add(1, 1'200'000);
  add(2, 1'200'000);
  submit_all();
  cluster_.run_for(50 * kMillisecond);
  const Sent within = sent_within(150 * kMillisecond);
  expect_busy(within, 200e6, 150 * kMillisecond);
  // The heavy job does not always have something to send, because results wait for sums.
  expect_shared(within, 0.1);
  finish();
}

TEST_F(Shares, OfEightEqualJobsAreEqual) {
  for (unsigned i = 0; i < 8; ++i) add(1, 300'000);
  submit_all();
  cluster_.run_for(50 * kMillisecond);
  const Sent within = sent_within(150 * kMillisecond);
  expect_busy(within, 200e6, 150 * kMillisecond);
  expect_shared(within, 0.05);
  finish();
}

}  // namespace
}  // namespace gradcube::simulation
