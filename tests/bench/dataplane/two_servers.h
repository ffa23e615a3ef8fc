// Two servers of an embedded star:2 whose links have no rate, a trainer on each, and the switch
// between them, on the thread that calls: what the segment path is measured with. Both trainers
// all-reduce one buffer of float32 in place, in segments of one length.
#ifndef GRADCUBE_TESTS_BENCH_DATAPLANE_TWO_SERVERS_H_
#define GRADCUBE_TESTS_BENCH_DATAPLANE_TWO_SERVERS_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <unistd.h>
#include <vector>

#include "aggregation/kernels.h"
#include "dataplane/daemon/local_cluster.h"
#include "dataplane/engine/event_queue.h"
#include "dataplane/host/clock.h"
#include "protocol/wire.h"
#include "tests/simulation/simulated_trainer.h"
#include "tests/support/admissions.h"
#include "trainer/shared_mapping.h"

namespace gradcube {

class TwoServers {
 public:
  // Lengths in bytes: of a segment's payload, and of each trainer's buffer. With a key frames carry
  // a MAC. The clock outlives the servers.
  TwoServers(dataplane::Clock& clock, std::uint32_t segment, std::uint64_t buffer, bool with_key)
      : cluster_(options(segment, with_key), clock, aggregation::select_kernels(512), events_),
        admissions_(cluster_.nodes()),
        bytes_(buffer) {
    for (const auto id : admissions_.join_all({"bench", 1, 1, buffer + 4096})) {
      trainers_.push_back(std::make_unique<simulation::SimulatedTrainer>(id));
      dataplane::JoinedSession session = admissions_.session(id);
      session.trainer_doorbell = dup(session.trainer_doorbell);
      trainers_.back()->admit(session);
      // As a trainer's library does for a large block.
      shared::take_huge_pages(
          std::as_writable_bytes(std::span(trainers_.back()->at(shared::kHeapOffset), buffer)));
      auto* elements = reinterpret_cast<float*>(trainers_.back()->at(shared::kHeapOffset));
      std::fill_n(elements, buffer / sizeof(float), 0.0F);
    }
  }

  // Without a key: whether frames carry a CRC32C.
  void set_checksums(bool on) {
    for (bcube::ServerId server = 0; server < 2; ++server) {
      cluster_.engines(server).front().engine->set_checksums(on, on);
    }
  }

  // What one all-reduce sends: half of the buffer each way in each stage.
  std::uint64_t payload() const { return 2 * bytes_; }
  std::uint8_t* buffer(unsigned server) { return trainers_[server]->at(shared::kHeapOffset); }

  // An all-reduce of the buffers. To be called when none is on its way.
  void submit() {
    for (auto& trainer : trainers_) {
      trainer->submit(shared::kHeapOffset, bytes_ / sizeof(float), aggregation::DataType::float32,
                      aggregation::Operation::sum);
    }
  }
  // Whether it is still on its way. Throws where it has failed.
  bool is_busy() {
    for (auto& trainer : trainers_) {
      if (!trainer->idle()) return true;
    }
    for (auto& trainer : trainers_) {
      for (const shared::Completion& completion : trainer->take_completions()) {
        if (completion.code != 0) throw std::runtime_error("an all-reduce has failed");
      }
    }
    return false;
  }

  // Both engines and the switch, once.
  void iterate() { cluster_.pollers().front()->iterate(); }

 private:
  static dataplane::LocalClusterOptions options(std::uint32_t segment, bool with_key) {
    dataplane::LocalClusterOptions options;
    options.settings.topology = control::parse_topology("star:2", "topology");
    options.settings.mtu =
        segment + protocol::header_bytes(protocol::FrameType::segment, 1, true) - 14;
    if (with_key) options.key = control::Secret{1, 2, 3};
    options.lcores = {{1, -1}};
    return options;
  }

  dataplane::EventQueue events_;
  dataplane::LocalCluster cluster_;
  dataplane::Admissions admissions_;
  std::vector<std::unique_ptr<simulation::SimulatedTrainer>> trainers_;
  std::uint64_t bytes_;
};

}  // namespace gradcube

#endif  // GRADCUBE_TESTS_BENCH_DATAPLANE_TWO_SERVERS_H_
