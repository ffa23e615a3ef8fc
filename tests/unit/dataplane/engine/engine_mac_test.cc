// An engine in a cluster with a key: what it sends is authenticated, and nothing else is heeded.

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <vector>

#include "protocol/link_frame.h"
#include "protocol/message_frame.h"
#include "tests/unit/dataplane/engine/engine_alone.h"

namespace gradcube::dataplane {
namespace {

using Bytes = std::vector<std::uint8_t>;
using protocol::FrameError;

const ClusterKeys kKeys{control::Secret{1, 2, 3}};
constexpr std::uint64_t kOnce = std::uint64_t{1} << 32;  // around the sequences on the wire

class EngineWithKey : public EngineAlone {
 protected:
  EngineWithKey() : EngineAlone(protocol::CreditSettings::kUnlimited, 1, &kKeys) {
    keys_.set_epoch(kEpoch);
  }

  static Bytes sealed(Frame frame, const protocol::FrameKey& key,
                      const protocol::MacContext& context = {}) {
    frame.routing.authenticated = true;
    Bytes bytes(protocol::kMaxHeaderBytes);
    bytes.resize(protocol::encode_frame(bytes, {}, frame.routing, frame.transport,
                                        frame.is_segment ? &frame.segment : nullptr));
    Bytes payload;
    if (frame.is_segment) {
      const std::vector<float> values(frame.segment.length / sizeof(float), frame.value);
      const auto* begin = reinterpret_cast<const std::uint8_t*>(values.data());
      payload.assign(begin, begin + frame.segment.length);
    }
    key.seal(bytes, payload, context);
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    return bytes;
  }
  std::uint64_t malformed(FrameError error) const {
    return engine_->counters().malformed[static_cast<std::size_t>(error)];
  }
  void expect_wrong(const Bytes& bytes, const char* what) {
    const std::uint64_t before = malformed(FrameError::bad_mac);
    const std::uint64_t received = engine_->counters().segments_received;
    arrive(bytes);
    EXPECT_EQ(malformed(FrameError::bad_mac), before + 1) << what;
    EXPECT_EQ(engine_->counters().segments_received, received) << what;
    EXPECT_EQ(packets_in_use(frames_), 0u) << what;
  }
  Flow& flow_of_contributions() {
    for (Flow& flow : job_->executors().front().flows()) {
      if (flow.stage == protocol::Stage::aggregation) return flow;
    }
    throw std::runtime_error("no such flow");
  }

  JobKeys keys_{control::Secret{}};  // as of the job's secret, which the fixture leaves empty
};

TEST_F(EngineWithKey, TakesFramesOfTheJobAndItsEpoch) {
  submit(1.0F);
  arrive(sealed(contribution(), keys_.of_epoch()));
  EXPECT_EQ(engine_->counters().segments_received, 1u);
  EXPECT_EQ(first_of_unit(0), 3.0F);
}

TEST_F(EngineWithKey, SendsNothingThatIsNotAuthenticated) {
  arrive(sealed(without_segment(), keys_.of_epoch()));
  submit(1.0F);
  poll();
  unsigned segments = 0;
  for (const rte_mbuf* packet : port_.sent) {
    Bytes bytes(packet->pkt_len);
    const void* whole = rte_pktmbuf_read(packet, 0, packet->pkt_len, bytes.data());
    if (whole != bytes.data()) std::memcpy(bytes.data(), whole, bytes.size());
    protocol::ParsedFrame frame;
    ASSERT_EQ(protocol::parse_frame(bytes, bytes.size(), frame), FrameError::none);
    EXPECT_TRUE(keys_.of_epoch().is_right(std::span(bytes).first(frame.header_bytes),
                                          std::span(bytes).subspan(frame.header_bytes)));
    segments += frame.is_segment ? 1 : 0;
  }
  EXPECT_EQ(segments, 1u);
}

TEST_F(EngineWithKey, RefusesWhatWasNotMadeForThisJobAndEpoch) {
  submit(1.0F);
  JobKeys of_other_job(control::Secret{9});
  of_other_job.set_epoch(kEpoch);
  expect_wrong(sealed(contribution(), of_other_job.of_epoch()), "of another job");
  JobKeys of_other_epoch(control::Secret{});
  of_other_epoch.set_epoch(kEpoch + 0x10000);
  expect_wrong(sealed(contribution(), of_other_epoch.of_epoch()), "of 65,536 epochs later");
  expect_wrong(sealed(contribution(), kKeys.of_servers().own()), "by the key of messages");
  expect_wrong(sealed(contribution(), keys_.of_mail()), "by the key of mail");
  Frame plain = contribution();
  arrive(plain);
  EXPECT_EQ(malformed(FrameError::bad_mac), 5u) << "without a MAC";
  EXPECT_EQ(first_of_unit(0), 1.0F);
}

TEST_F(EngineWithKey, RefusesAFrameWithAnyBitFlippedBehindTheOuterHeaders) {
  submit(1.0F);
  const Bytes good = sealed(contribution(), keys_.of_epoch());
  for (std::size_t byte = protocol::kOuterHeaderBytes; byte < good.size(); ++byte) {
    Bytes bad = good;
    bad[byte] ^= 0x10;
    arrive(bad);
  }
  EXPECT_EQ(engine_->counters().segments_received, 0u);
  EXPECT_GE(malformed(FrameError::bad_mac), control::kUnitBytes);
  arrive(good);
  EXPECT_EQ(first_of_unit(0), 3.0F) << "and none of them has taken its place";
}

TEST_F(EngineWithKey, HeedsNoForgedAcknowledgement) {
  submit(1.0F);
  poll();
  sent();
  const Flow& flow = flow_of_contributions();
  const std::uint64_t limit = flow.send.limit();
  Frame grant = without_segment();
  grant.transport.credit = 100;
  grant.transport.acknowledged = 1;
  expect_wrong(sealed(grant, kKeys.of_servers().own()), "an acknowledgement");
  EXPECT_EQ(flow.send.cumulative(), 0u);
  EXPECT_EQ(flow.send.limit(), limit);
}

TEST_F(EngineWithKey, ChangesNothingForAFrameThatComesAgain) {
  submit(1.0F);
  const Bytes segment = sealed(contribution(), keys_.of_epoch());
  Frame grant = without_segment(protocol::Stage::broadcast);
  const Bytes acknowledgement = sealed(grant, keys_.of_epoch());
  arrive(segment);
  arrive(acknowledgement);
  const std::uint64_t limit = flow_of_contributions().send.limit();
  for (unsigned i = 0; i < 100; ++i) {
    arrive(segment);
    arrive(acknowledgement);
  }
  EXPECT_EQ(engine_->counters().segments_received, 1u);
  EXPECT_EQ(engine_->counters().duplicates, 100u);
  EXPECT_EQ(flow_of_contributions().send.limit(), limit);
  EXPECT_EQ(first_of_unit(0), 3.0F);
}

TEST_F(EngineWithKey, RefusesAFrameOfBeforeItsSequenceHasWrappedAround) {
  submit(1.0F);
  Flow& flow = flow_of_contributions();
  flow.receive = protocol::ReceiveWindow(32, kOnce);
  expect_wrong(sealed(contribution(), keys_.of_epoch()), "of the first round");
  flow.receive = protocol::ReceiveWindow(32, 0);
  expect_wrong(sealed(contribution(), keys_.of_epoch(), {kOnce}), "of a later one");
  expect_wrong(sealed(contribution(), keys_.of_epoch(), {0, kOnce}), "as an acknowledgement");
  expect_wrong(sealed(contribution(), keys_.of_epoch(), {0, 0, 1}), "of a hub");
}

TEST_F(EngineWithKey, OpensNoChannelForForgedMail) {
  Frame mail = contribution();
  mail.transport.thread = protocol::kMailThread;
  mail.transport.epoch = 0;
  expect_wrong(sealed(mail, keys_.of_epoch()), "mail");
  unsigned channels = 0;
  job_->mailroom()->for_each_channel([&](MailChannel&) { ++channels; });
  EXPECT_EQ(channels, 0u);
  arrive(sealed(mail, keys_.of_mail()));
  job_->mailroom()->for_each_channel([&](MailChannel&) { ++channels; });
  EXPECT_EQ(channels, 1u);
}

TEST_F(EngineWithKey, TakesGreetingsOfTheClusterAlone) {
  protocol::RoutingHeader routing;
  routing.source = 1;
  const auto greeting = [&](const protocol::ServerKeys* keys) {
    Bytes bytes(protocol::kMaxHeaderBytes);
    bytes.resize(protocol::write_link_frame(bytes, protocol::FrameType::greeting, {}, routing, 1,
                                            {1, 0, 0, 1, 1}, keys));
    return bytes;
  };
  const protocol::ServerKeys of_epoch(keys_.of_epoch());
  expect_wrong(greeting(nullptr), "without a MAC");
  expect_wrong(greeting(&of_epoch), "by another key");
  arrive(greeting(&kKeys.of_servers()));
  EXPECT_EQ(malformed(FrameError::bad_mac), 2u);
}

TEST_F(EngineWithKey, TakesNoPaddingThatIsNotUnderTheMac) {
  protocol::RoutingHeader routing;
  routing.source = 1;
  const Bytes zeros(100);
  Bytes bytes(protocol::kMaxHeaderBytes);
  bytes.resize(protocol::write_link_frame(bytes, protocol::FrameType::greeting, {}, routing, 1,
                                          {1, 0, 0, 1, 1}, &kKeys.of_servers(), zeros));
  bytes.insert(bytes.end(), zeros.begin(), zeros.end());
  Bytes forged = bytes;
  forged.back() ^= 1;
  expect_wrong(forged, "its padding is another");
  const Bytes without_padding(bytes.begin(), bytes.end() - 100);
  arrive(without_padding);
  EXPECT_EQ(malformed(FrameError::bad_length), 1u) << "it promises bytes that are not there";
  arrive(bytes);
  EXPECT_EQ(malformed(FrameError::bad_mac), 1u);
}

// Made before the engine, which it outlives.
struct Inbox {
  MessageInbox inbox;
};

class EngineWithKeyAndInbox : private Inbox, public EngineAlone {
 protected:
  EngineWithKeyAndInbox()
      : EngineAlone(protocol::CreditSettings::kUnlimited, 1, &kKeys, &this->inbox) {}

  static Bytes message(const protocol::ServerKeys* keys) {
    protocol::RoutingHeader routing;
    routing.source = 1;
    const Bytes body{1, 2, 3};
    const protocol::MessageSplitter splitter({}, routing, 500, 1, 1, body, keys);
    Bytes bytes(500);
    bytes.resize(splitter.write(0, bytes));
    return bytes;
  }
  bool is_waiting() {
    rte_mbuf* frame = this->inbox.take();
    rte_pktmbuf_free(frame);
    return frame != nullptr;
  }
  std::uint64_t bad_macs() const {
    return engine_->counters().malformed[static_cast<std::size_t>(FrameError::bad_mac)];
  }
};

TEST_F(EngineWithKeyAndInbox, PutsNoMessageIntoItsInboxWhoseMacIsWrong) {
  const protocol::FrameKey another(control::Secret{9});
  const protocol::ServerKeys other(another);
  Bytes damaged = message(&kKeys.of_servers());
  damaged.back() ^= 1;
  arrive(message(nullptr));
  arrive(message(&other));
  arrive(damaged);
  EXPECT_FALSE(is_waiting());
  EXPECT_EQ(bad_macs(), 3u);
  arrive(message(&kKeys.of_servers()));
  EXPECT_TRUE(is_waiting());
  EXPECT_EQ(bad_macs(), 3u);
}

TEST_F(EngineWithKeyAndInbox, LeavesAPlaceForARightMessageHoweverManyForgedOnesCome) {
  const Bytes forged = message(nullptr);
  for (unsigned i = 0; i < 2 * MessageInbox::kCapacity; ++i) arrive(forged);
  EXPECT_EQ(dropped(DropReason::inbox_full), 0u);
  arrive(message(&kKeys.of_servers()));
  EXPECT_TRUE(is_waiting());
}

}  // namespace
}  // namespace gradcube::dataplane
