// A channel of a trainer's server to another one, without an engine and without packets: what the
// trainer submits, and segments as if the other server had sent them.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_MAIL_CHANNEL_FIXTURE_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_MAIL_CHANNEL_FIXTURE_H_

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include "dataplane/engine/engine_job.h"
#include "dataplane/engine/messages/mailroom.h"
#include "protocol/bytes.h"
#include "tests/unit/dataplane/engine/engine_fixture.h"
#include "tests/unit/protocol/arrive.h"

namespace gradcube::dataplane {

inline constexpr std::uint32_t kSegment = 128;

class MailChannelTest : public testing::Test {
 protected:
  MailChannelTest() {
    room_.set_opener([](MailChannel&) {});
    channel_ = room_.channel_to(3);
  }

  // The number of what a trainer submits.
  std::uint32_t submit(shared::Direction direction, std::uint64_t bytes, std::uint64_t tag = 7,
                       std::uint32_t peer = 3, std::uint32_t paths = 0) {
    take(direction, bytes, tag, peer, paths);
    room_.work();
    return static_cast<std::uint32_t>(submitted_ - 1);
  }
  void take(shared::Direction direction, std::uint64_t bytes, std::uint64_t tag, std::uint32_t peer,
            std::uint32_t paths = 0) {
    shared::Submission& entry = submission_entry(session_->region(), submitted_);
    entry = {};
    entry.request = ++submitted_;
    entry.message.place = static_cast<std::uint32_t>(submitted_ - 1);
    entry.dtype = static_cast<std::uint8_t>(dtype_);
    entry.type = static_cast<std::uint8_t>(shared::SubmissionType::message);
    entry.message.direction = static_cast<std::uint8_t>(direction);
    entry.offset = shared::kHeapOffset + offset_;
    entry.count = bytes;
    entry.message.peer = peer;
    entry.message.tag = tag;
    entry.message.paths = paths;
    session_->region().header().submission_tail.store(submitted_);
    EXPECT_EQ(session_->take(), Session::Take::taken);
  }

  // A receive whose want has been sent.
  std::uint32_t receive(std::uint64_t bytes, std::uint64_t tag = 7) {
    const std::uint32_t number = submit(shared::Direction::receive, bytes, tag);
    EXPECT_TRUE(channel_->next_segment(flow()).has_value());
    flow().send.record_send(0);
    return number;
  }

  Contribution segment(MailKind kind, std::uint32_t number, std::uint32_t count, bool last,
                       std::size_t bytes) {
    payload_.assign(std::max<std::size_t>(bytes, 1), 9);
    return {nullptr,
            payload_.data(),
            0,
            static_cast<std::uint16_t>(bytes),
            {number, count, static_cast<std::uint16_t>(last ? 1 : 0),
             static_cast<std::uint8_t>(kind), 0}};
  }
  Contribution want(std::uint8_t from, std::uint8_t to, std::uint64_t tag, std::uint64_t room) {
    Contribution segment = this->segment(MailKind::want, 40, 0, false, kWantBytes);
    payload_[0] = from;
    payload_[1] = to;
    protocol::store_little(&payload_[2], tag);
    protocol::store_little(&payload_[10], room);
    payload_[18] = static_cast<std::uint8_t>(aggregation::DataType::bytes);
    return segment;
  }

  Flow& flow(unsigned path = 0) { return channel_->flows()[path]; }
  bool fits(const Contribution& segment, unsigned path = 0) {
    return !channel_->accept(flow(path), 0, segment).refused.has_value();
  }
  // As the engine does when it has come for the first time.
  void arrive(const Contribution& segment, unsigned path = 0) {
    const auto accepted = channel_->accept(flow(path), next_[path], segment);
    ASSERT_FALSE(accepted.refused.has_value());
    protocol::arrive(flow(path).receive, next_[path]);
    channel_->take(flow(path), next_[path]++, segment, accepted);
  }
  const shared::Completion& completion(std::uint64_t index) {
    room_.publish_ends();
    EXPECT_GT(session_->region().header().completion_tail.load(), index);
    return session_->region().completion(index);
  }

  TestSession session_{1, 1 << 19, 1, 4};
  EngineJob job_{1, *session_, {}, 1, true, {16, {}}};
  Mailroom room_{job_,
                 *session_,
                 job_.rank_order,
                 control::Placement::all(control::parse_topology("bcube:2,2", "test")),
                 0,
                 kSegment,
                 16,
                 {},
                 1};
  MailChannel* channel_ = nullptr;
  // Of what was submitted so-and-so-manieth.
  void withdraw(std::uint64_t request) {
    shared::Submission& entry = submission_entry(session_->region(), submitted_++);
    entry = {};
    entry.type = static_cast<std::uint8_t>(shared::SubmissionType::withdrawal);
    entry.request = request;
    entry.message.place = static_cast<std::uint32_t>(request - 1);
    session_->region().header().submission_tail.store(submitted_);
    EXPECT_EQ(session_->take(), Session::Take::taken);
    room_.work();
  }
  std::uint64_t ended() {
    room_.publish_ends();
    return session_->region().header().completion_tail.load();
  }
  // What the channel sends next over its first path; none: 0.
  MailKind next_kind() {
    const auto segment = channel_->next_segment(flow());
    if (!segment.has_value()) return MailKind{0};
    flow().send.record_send(0);
    last_ = *segment;
    return static_cast<MailKind>(segment->signature.kind);
  }

  aggregation::DataType dtype_ = aggregation::DataType::bytes;  // of what is submitted
  OutgoingSegment last_{};
  std::vector<std::uint8_t> payload_;
  std::uint64_t offset_ = 0;  // of the next buffer, in the heap
  std::uint64_t submitted_ = 0;
  std::uint64_t next_[2] = {};
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_MAIL_CHANNEL_FIXTURE_H_
