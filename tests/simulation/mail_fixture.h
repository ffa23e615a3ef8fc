// Messages between the trainers of a simulated cluster: what they submit, and what comes of it.
#ifndef GRADCUBE_TESTS_SIMULATION_MAIL_FIXTURE_H_
#define GRADCUBE_TESTS_SIMULATION_MAIL_FIXTURE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/work.h"

namespace gradcube::simulation {

// Bytes that tell a message, and a place in it, from all others.
inline std::uint8_t letter_byte(std::uint64_t salt, std::uint64_t place) {
  const std::uint64_t mixed = (salt + 1) * 0x9e3779b97f4a7c15 ^ (place + 1) * 0xc2b2ae3d27d4eb4f;
  return static_cast<std::uint8_t>(mixed >> 40 ^ mixed >> 17);
}

// A job whose trainers, by rank, each have one buffer for each message that they take part in.
class MailJob {
 public:
  MailJob(SimulatedCluster& cluster, std::uint64_t heap_bytes, std::uint32_t per_server = 1,
          const std::string& name = "mail")
      : cluster_(cluster), heap_bytes_(heap_bytes) {
    for (bcube::ServerId server = 0; server < cluster.servers(); ++server) {
      for (std::uint32_t local = 0; local < per_server; ++local) {
        dataplane::TrainerRequest request{name, 1000 + server, 1000, heap_bytes};
        request.options.trainers = per_server;
        request.options.lanes.resize(1);
        trainers_.push_back(cluster.join(server, request));
      }
    }
    EXPECT_TRUE(cluster.run_until([&] { return trainers_.back()->admitted(); }, kSecond));
    used_.resize(trainers_.size(), shared::kHeapOffset);
  }

  Trainers& trainers() { return trainers_; }

  struct Message {
    unsigned from;
    unsigned to;
    std::uint64_t tag;
    std::uint64_t bytes;
    std::uint32_t paths = 0;
    std::optional<std::uint64_t> room = {};  // of the receive, if not as long
  };

  // The name of the request.
  std::uint64_t send(const Message& message, std::uint64_t salt) {
    const std::uint64_t offset = take(message.from, message.bytes);
    for (std::uint64_t i = 0; i < message.bytes; ++i) {
      trainers_[message.from]->at(offset)[i] = letter_byte(salt, i);
    }
    return submit(shared::Direction::send, message.from, message.to, message, offset,
                  message.bytes);
  }
  struct Receipt {
    std::uint64_t name;
    std::uint64_t offset;
  };
  Receipt receive(const Message& message) {
    const std::uint64_t room = message.room.value_or(message.bytes);
    const std::uint64_t offset = take(message.to, room);
    return {submit(shared::Direction::receive, message.to, message.from, message, offset, room),
            offset};
  }
  void expect_here(const Message& message, const Receipt& receipt, std::uint64_t salt) {
    std::uint64_t wrong = 0;
    const std::uint8_t* bytes = trainers_[message.to]->at(receipt.offset);
    for (std::uint64_t i = 0; i < message.bytes; ++i)
      wrong += bytes[i] == letter_byte(salt, i) ? 0 : 1;
    EXPECT_EQ(wrong, 0u) << "bytes of " << message.bytes << " from " << message.from << " to "
                         << message.to << ", tag " << message.tag;
  }

  // Until all that was submitted has ended. How long it took.
  std::int64_t finish(std::int64_t limit = 60 * kSecond) {
    const std::int64_t begin = cluster_.now();
    EXPECT_TRUE(cluster_.run_until([&] { return all_idle(trainers_); }, limit));
    return cluster_.now() - begin;
  }
  // Ends everything; all well.
  std::int64_t finish_well(std::int64_t limit = 60 * kSecond) {
    const std::int64_t taken = finish(limit);
    for (const auto& trainer : trainers_) {
      for (const shared::Completion& completion : trainer->take_completions()) {
        EXPECT_EQ(completion.code, 0) << "at rank " << trainer->rank();
      }
    }
    return taken;
  }

 private:
  std::uint64_t take(unsigned rank, std::uint64_t bytes) {
    const std::uint64_t offset = used_[rank];
    EXPECT_LE(offset + bytes, shared::kHeapOffset + heap_bytes_);
    used_[rank] +=
        (bytes + shared::kBufferAlignment) / shared::kBufferAlignment * shared::kBufferAlignment;
    return offset;
  }
  std::uint64_t submit(shared::Direction direction, unsigned rank, unsigned peer,
                       const Message& message, std::uint64_t offset, std::uint64_t bytes) {
    shared::Submission asked{};
    asked.type = static_cast<std::uint8_t>(shared::SubmissionType::message);
    asked.message.direction = static_cast<std::uint8_t>(direction);
    asked.message.peer = peer;
    asked.message.tag = message.tag;
    asked.count = bytes;
    asked.offset = offset;
    asked.message.paths = direction == shared::Direction::send ? message.paths : 0;
    return trainers_[rank]->submit(asked);
  }

  SimulatedCluster& cluster_;
  std::uint64_t heap_bytes_;
  Trainers trainers_;
  std::vector<std::uint64_t> used_;
};

}  // namespace gradcube::simulation

#endif  // GRADCUBE_TESTS_SIMULATION_MAIL_FIXTURE_H_
