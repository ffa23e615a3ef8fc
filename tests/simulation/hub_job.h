// A job of a simulated cluster with a hub, as its trainers' libraries make one and push to it. Its
// functions throw std::runtime_error where the cluster does not do what it must.
#ifndef GRADCUBE_TESTS_SIMULATION_HUB_JOB_H_
#define GRADCUBE_TESTS_SIMULATION_HUB_JOB_H_

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#include "control/checkpoint/hub_key.h"
#include "tests/simulation/trainers.h"
#include "tests/unit/dataplane/daemon/hub_table_bytes.h"

#include "gradcube/gradcube_hub.h"

namespace gradcube::simulation {

class HubJob {
 public:
  HubJob(SimulatedCluster& cluster, std::vector<control::HubKey> keys, const std::string& optimizer,
         const std::string& algorithm = "", std::vector<std::uint32_t> aggregators = {},
         unsigned trainers = 1, std::uint64_t chunk_bytes = 4096, std::size_t lanes = 1,
         bool accumulates = false, std::vector<bcube::ServerId> members = {})
      : cluster_(cluster),
        keys_(std::move(keys)),
        optimizer_(optimizer),
        aggregators_(std::move(aggregators)),
        chunk_bytes_(chunk_bytes),
        accumulates_(accumulates) {
    for (const control::HubKey& key : keys_) {
      offsets_.push_back(heap_end_);
      heap_end_ += (key.bytes() + 63) / 64 * 64;
    }
    weights_ = heap_end_ - shared::kHeapOffset - kTable;
    const bool are_all = members.empty();
    for (bcube::ServerId server = 0; are_all && server < cluster.servers(); ++server) {
      if (std::ranges::find(aggregators_, server) == aggregators_.end()) members.push_back(server);
    }
    for (const bcube::ServerId server : members) {
      dataplane::TrainerRequest request{"hub", 1000 + server, 1000,
                                        heap_end_ - shared::kHeapOffset};
      request.options.members = members;
      request.options.lanes.assign(lanes, {algorithm, 0});
      request.options.trainers = trainers;
      for (unsigned local = 0; local < trainers; ++local) {
        trainers_.push_back(cluster.join(server, request));
      }
    }
  }

  Trainers& trainers() { return trainers_; }

  // All trainers wish for it, until all have it or one is told why there is none. What is made
  // takes the time of the host, not of the cluster. Hub 1 at first.
  void make(std::uint32_t number = 1) {
    number_ = number;
    for (const auto& trainer : trainers_) ask(*trainer);
    for (const auto& trainer : trainers_) await(*trainer);
  }
  // One trainer alone.
  void ask(SimulatedTrainer& trainer) {
    const std::string table =
        dataplane::hub_table(keys_, optimizer_, chunk_bytes_, aggregators_, accumulates_);
    require(table.size() <= kTable, "the table is too long");
    std::memcpy(trainer.at(shared::kHeapOffset), table.data(), table.size());
    shared::MakeHub wish{};
    wish.type = shared::MessageType::make_hub;
    wish.number = number_;
    wish.offset = shared::kHeapOffset;
    wish.bytes = table.size();
    require(cluster_.nodes().at(trainer.server()).ask_hub(trainer.id(), wish),
            "the wish is refused");
  }
  shared::Notice await(const SimulatedTrainer& trainer) {
    for (unsigned turn = 0; turn < 20'000 && answer(trainer).code == 1; ++turn) {
      cluster_.run_for(20 * kMillisecond);
      usleep(1'000);
    }
    const shared::Notice notice = answer(trainer);
    require(notice.code == 0, notice.text);
    require(notice.request == weights_, "the hub has another length");
    return notice;
  }
  void end() {
    for (const auto& trainer : trainers_) {
      cluster_.nodes().at(trainer->server()).end_hub(trainer->id(), number_);
    }
  }

  // With which what is applied is scaled: no product is rounded.
  static constexpr float kScale = 0.5F;

  // Of a key of float32.
  template <typename Value>  // value(rank, key, element)
  std::uint64_t push(SimulatedTrainer& trainer, std::uint32_t key, shared::PushKind kind,
                     const Value& value, double rate = shared::kOwnRate) {
    auto* values = reinterpret_cast<float*>(trainer.at(offsets_[key]));
    for (std::uint64_t i = 0; i < keys_[key].elements; ++i)
      values[i] = value(trainer.rank(), key, i);
    shared::Submission entry{};
    entry.type = static_cast<std::uint8_t>(shared::SubmissionType::push);
    entry.push.kind = static_cast<std::uint8_t>(kind);
    entry.offset = offsets_[key];
    entry.count = keys_[key].elements;
    entry.dtype = static_cast<std::uint8_t>(keys_[key].type);
    entry.push.key = key;
    entry.push.hub = number_;
    if (shared::has_rate(kind)) entry.push.rate = rate;
    if (kind == shared::PushKind::applied) {
      entry.push.digest = std::bit_cast<std::uint32_t>(kScale);
    }
    return trainer.submit(entry);
  }
  // Of all keys.
  template <typename Value>
  void push_all(shared::PushKind kind, const Value& value) {
    for (const auto& trainer : trainers_) {
      // Each in an order of its own.
      for (std::size_t i = 0; i < keys_.size(); ++i) {
        push(*trainer, static_cast<std::uint32_t>((i + trainer->rank()) % keys_.size()), kind,
             value);
      }
    }
    require(cluster_.run_until([&] { return all_idle(trainers_); }, 60 * kSecond),
            "pushes do not end");
    std::vector<std::uint64_t> same;
    for (const auto& trainer : trainers_) {
      std::vector<std::uint64_t> told;
      for (const shared::Completion& end : trainer->take_completions()) {
        require(end.code == 0, "a push has failed");
        told.push_back(end.bytes);
      }
      std::ranges::sort(told);
      if (same.empty()) same = told;
      require(told == same, "trainers are told different norms");
      require((told.front() != 0) == (kind == shared::PushKind::accumulated), "a norm of 0");
    }
  }

  std::vector<std::uint8_t> weights(const SimulatedTrainer& trainer) const {
    std::vector<std::uint8_t> bytes(weights_);
    read(trainer, 0, bytes.data(), bytes.size());
    return bytes;
  }
  // Of a key of float32.
  std::vector<float> weights(const SimulatedTrainer& trainer, std::uint32_t key) const {
    std::vector<float> values(keys_[key].elements);
    read(trainer, offsets_[key] - shared::kHeapOffset - kTable, values.data(),
         values.size() * sizeof(float));
    return values;
  }
  shared::HubHeader state(const SimulatedTrainer& trainer) const {
    shared::HubHeader state{};
    read(trainer, weights_, &state, sizeof(state));
    return state;
  }

 private:
  static constexpr std::uint64_t kTable = 4096;

  static void require(bool right, const std::string& what) {
    if (!right) throw std::runtime_error(what);
  }
  void read(const SimulatedTrainer& trainer, std::uint64_t at, void* to, std::size_t bytes) const {
    require(pread(cluster_.hub_of(trainer), to, bytes, static_cast<off_t>(at)) ==
                static_cast<ssize_t>(bytes),
            "the hub's memory cannot be read");
  }
  shared::Notice answer(const SimulatedTrainer& trainer) {
    for (const Told& told : cluster_.told(trainer)) {
      if (told.notice.type == shared::MessageType::hub_made && told.notice.number == number_) {
        return told.notice;
      }
    }
    shared::Notice none{};
    none.code = 1;
    return none;
  }

  SimulatedCluster& cluster_;
  std::vector<control::HubKey> keys_;  // in the order of their names
  std::string optimizer_;
  std::vector<std::uint32_t> aggregators_;
  std::uint64_t chunk_bytes_;
  bool accumulates_;
  std::vector<std::uint64_t> offsets_;  // of each key, in the heap
  std::uint64_t heap_end_ = shared::kHeapOffset + kTable;
  std::uint64_t weights_ = 0;  // bytes
  std::uint32_t number_ = 1;
  Trainers trainers_;
};

// Numbers whose sum shows the order in which they were added.
inline float hub_number(unsigned rank, std::uint32_t key, std::uint64_t element, unsigned round) {
  const std::uint64_t mixed =
      (rank * 31 + key * 7 + element * 13 + round * 101 + 1) * 0x9e3779b97f4a7c15U;
  return static_cast<float>(static_cast<double>(mixed >> 40) / 1e7 - 0.8);
}

// The first weights, which are the same at all.
inline void push_first(HubJob& job) {
  job.push_all(shared::PushKind::weights, [](unsigned, std::uint32_t key, std::uint64_t element) {
    return hub_number(0, key, element, 0);
  });
}

// Of a round from 1 on.
inline void push_gradients(HubJob& job, unsigned round) {
  job.push_all(shared::PushKind::gradients,
               [round](unsigned rank, std::uint32_t key, std::uint64_t element) {
                 return hub_number(rank, key, element, round);
               });
}

// The same, accumulated, and applied then.
inline void accumulate_and_apply(HubJob& job, unsigned round) {
  job.push_all(shared::PushKind::accumulated,
               [round](unsigned rank, std::uint32_t key, std::uint64_t element) {
                 return hub_number(rank, key, element, round);
               });
  job.push_all(shared::PushKind::applied,
               [](unsigned, std::uint32_t, std::uint64_t) { return 0.0F; });
}

}  // namespace gradcube::simulation

#endif  // GRADCUBE_TESTS_SIMULATION_HUB_JOB_H_
