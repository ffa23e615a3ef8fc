// The mailrooms of two servers with two trainers each, and a wire between them that keeps segments
// for as long as a test wants: they are delivered in any order, more than once, and built anew by
// their channel as for a resend. No engine, no clock.
//
// After each step what has ended is compared with MailModel, and so are the bytes: a receive that
// has ended well holds its message, and one that has not is untouched.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_MAIL_PAIR_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_MAIL_PAIR_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <set>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include "dataplane/engine/engine_job.h"
#include "dataplane/engine/messages/mailroom.h"
#include "tests/unit/dataplane/engine/mail_model.h"
#include "tests/unit/dataplane/engine/submission_entry.h"
#include "tests/unit/dataplane/engine/whole_region.h"
#include "tests/unit/protocol/arrive.h"

namespace gradcube::dataplane {

class MailPair {
 public:
  static constexpr std::uint32_t kSegmentBytes = 128;
  static constexpr std::uint64_t kMostBytes = 3 * kSegmentBytes;
  static constexpr unsigned kTrainers = 4;
  static constexpr unsigned kSlots = 16;  // messages of a trainer in flight
  static constexpr unsigned kPaths = 2;

  MailPair() = default;
  MailPair(const MailPair&) = delete;
  MailPair& operator=(const MailPair&) = delete;

  // What trainers do ----------------------------------------------------------

  bool has_room(unsigned trainer) const { return trainers_[trainer].slots.size() < kSlots; }
  std::size_t post(const MailModel::Post& post) {
    Trainer& trainer = trainers_[post.trainer];
    unsigned slot = 0;
    while (trainer.slots.contains(slot)) ++slot;
    const std::size_t which = model_.post(post);
    trainer.slots.insert(slot);
    slots_.push_back(slot);
    if (post.sends) {
      for (std::uint64_t i = 0; i < post.bytes; ++i) bytes_of(which)[i] = byte(which, i);
    } else {
      std::memset(bytes_of(which), kUntouched, kMostBytes);
    }
    shared::Submission entry{};
    entry.request = which + 1;
    entry.message.place = slot;
    entry.dtype = GRADCUBE_BYTES;
    entry.type = static_cast<std::uint8_t>(shared::SubmissionType::message);
    entry.message.direction = static_cast<std::uint8_t>(post.sends ? shared::Direction::send
                                                                   : shared::Direction::receive);
    entry.offset = shared::kHeapOffset + slot * kMostBytes;
    entry.count = post.bytes;
    entry.message.peer = rank_of(post.peer);
    entry.message.tag = post.tag;
    submit(post.trainer, entry);
    // The last mail with this number.
    server_of(post.trainer).session->mail().for_each([&](std::uint32_t number) {
      if (server_of(post.trainer).session->mail().at(number).request == which + 1) {
        server_of(post.trainer).names[number] = which;
      }
    });
    work();
    return which;
  }
  void withdraw(std::size_t which) {
    model_.withdraw(which);
    const MailModel::Post& post = model_.item(which).post;
    shared::Submission entry{};
    entry.type = static_cast<std::uint8_t>(shared::SubmissionType::withdrawal);
    entry.request = which + 1;
    entry.message.place = slots_[which];
    submit(post.trainer, entry);
    work();
  }
  void leave(unsigned trainer) {
    model_.leave(trainer);
    depart(MailModel::server_of(trainer), trainer);
  }
  // The other server, too, is told that it has left.
  void tell(unsigned trainer) {
    model_.tell(1 - MailModel::server_of(trainer), trainer);
    depart(1 - MailModel::server_of(trainer), trainer);
  }
  void explain(unsigned server) {
    model_.explain(server);
    Server& it = *servers_[server];
    for (const auto& [peer, locals] : it.room->deserters(SIZE_MAX)) {
      it.room->end_deserted(peer, 5);
    }
    work();
  }

  // What the wire does --------------------------------------------------------

  // A server sends the next segment over a path. False: it has none.
  bool send(unsigned server, unsigned path) {
    MailChannel& channel = servers_[server]->channel();
    Flow& flow = channel.flows()[path];
    grant(flow, flow.send.cumulative());
    if (!flow.send.may_send()) return false;
    const std::uint64_t sequence = flow.send.next();
    const auto segment = channel.next_segment(flow);
    if (!segment.has_value()) return false;
    flow.send.record_send(++now_);
    Sent sent{read(*segment), kind_of(*segment), 0, false};
    Server& receiver = kind_is_of_own(sent.kind) ? *servers_[server] : *servers_[1 - server];
    sent.receive = receiver.names.at(segment->signature.collective);
    EXPECT_TRUE(model_.send(server, sent.kind, sent.receive, segment->signature.count))
        << "kind " << static_cast<int>(sent.kind) << " of message " << sent.receive;
    servers_[server]->sent[path].push_back(sent);
    wire_.push_back({server, path, sequence, sent.bytes});
    return true;
  }
  std::size_t in_transit() const { return wire_.size(); }
  // One of those in transit, which may stay there.
  void deliver(std::size_t which, bool again = false) {
    const Packet packet = wire_[which];
    if (!again) wire_.erase(wire_.begin() + static_cast<std::ptrdiff_t>(which));
    take(packet);
  }
  void deliver_all() {
    while (!wire_.empty()) deliver(0);
  }
  // One that is not acknowledged is built again, and is the same unless it was delivered.
  void resend(unsigned server, unsigned path, std::uint64_t back) {
    Flow& flow = servers_[server]->channel().flows()[path];
    const std::uint64_t in_flight = flow.send.next() - flow.send.cumulative();
    if (in_flight == 0) return;
    const std::uint64_t sequence = flow.send.cumulative() + back % in_flight;
    const Bytes bytes = read(servers_[server]->channel().sent_segment(flow, sequence));
    const Sent& sent = servers_[server]->sent[path][sequence];
    EXPECT_TRUE(sent.delivered || bytes == sent.bytes) << "message " << sent.receive;
    wire_.push_back({server, path, sequence, bytes});
  }
  // The other server's word of what it has of this path.
  void acknowledge(unsigned server, unsigned path) {
    Flow& flow = servers_[server]->channel().flows()[path];
    const std::uint64_t before = flow.send.cumulative();
    const std::uint64_t all = servers_[1 - server]->channel().flows()[path].receive.cumulative();
    if (all == before) return;
    for (std::uint64_t sequence = before; sequence < all; ++sequence) {
      const Sent& sent = servers_[server]->sent[path][sequence];
      model_.acknowledge(sent.kind, sent.receive);
    }
    grant(flow, all);
    servers_[server]->channel().on_acknowledged(flow);
    compare();
  }
  // Until nothing more happens.
  void finish() {
    for (bool more = true; more;) {
      more = false;
      for (unsigned end = 0; end < 2 * kPaths; ++end) {
        while (send(end / kPaths, end % kPaths)) more = true;
      }
      deliver_all();
      for (unsigned end = 0; end < 2 * kPaths; ++end) acknowledge(end / kPaths, end % kPaths);
      explain(0);
      explain(1);
    }
    EXPECT_FALSE(model_.owes(0));
    EXPECT_FALSE(model_.owes(1));
  }

  const MailModel& model() const { return model_; }
  // That it has not ended: nothing.
  std::optional<std::int32_t> code(std::size_t which) const {
    const MailModel::Item& item = model_.item(which);
    if (item.state != MailModel::State::ended) return std::nullopt;
    return item.code;
  }

 private:
  static constexpr std::uint8_t kUntouched = 0xee;
  struct Bytes {
    CollectiveSignature signature;
    std::vector<std::uint8_t> payload;
    bool operator==(const Bytes&) const = default;
  };
  struct Sent {
    Bytes bytes;
    MailKind kind;
    std::size_t receive;
    bool delivered;
  };
  struct Packet {
    unsigned from;
    unsigned path;
    std::uint64_t sequence;
    Bytes bytes;
  };
  struct Server {
    explicit Server(bcube::ServerId its_id) : id(its_id) {
      const auto doorbell = [this](int local) {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) std::abort();
        bells[local] = ends[1];
        return ends[0];
      };
      session = std::make_unique<Session>(whole_region(1 << 14), doorbell(0),
                                          SessionShape{8, {1}, false, 2}, std::vector<Doorbell*>{},
                                          nullptr, 0);
      session->add(1, whole_region(1 << 14), doorbell(1));
      job = std::make_unique<EngineJob>(1, *session, LanePlans{}, 1, true, JobPackets{128, {}});
      room = std::make_unique<Mailroom>(
          *job, *session, job->rank_order,
          control::Placement::all(control::parse_topology("bcube:2,2", "test")), id, kSegmentBytes,
          128, FlowSettings{}, 1);
      room->set_opener([](MailChannel&) {});
    }
    ~Server() {
      for (const int bell : bells) close(bell);
    }
    // Made when it is asked for first.
    MailChannel& channel() { return *room->channel_to(3 - id); }

    bcube::ServerId id;
    int bells[2]{};
    std::unique_ptr<Session> session;
    std::unique_ptr<EngineJob> job;
    std::unique_ptr<Mailroom> room;
    std::map<std::uint32_t, std::size_t> names{};  // by number
    std::vector<Sent> sent[kPaths]{};              // by sequence
    std::uint64_t counted = 0;                     // of the other's first path, all below
  };
  struct Trainer {
    std::set<unsigned> slots;
    std::uint64_t submitted = 0;
  };

  static std::uint32_t rank_of(unsigned trainer) {
    return (MailModel::server_of(trainer) == 0 ? 0 : 6) + trainer / 2;
  }
  static std::uint8_t byte(std::size_t which, std::uint64_t place) {
    return static_cast<std::uint8_t>((which * 131 + place * 7 + 1) * 0x9e3779b1U >> 24);
  }
  static MailKind kind_of(const OutgoingSegment& segment) {
    return static_cast<MailKind>(segment.signature.kind);
  }
  // It is about a receive of its sender's.
  static bool kind_is_of_own(MailKind kind) {
    return kind == MailKind::want || kind == MailKind::withdrawal;
  }
  static Bytes read(const OutgoingSegment& segment) {
    return {segment.signature, {segment.payload, segment.payload + segment.bytes}};
  }
  Server& server_of(unsigned trainer) { return *servers_[MailModel::server_of(trainer)]; }
  std::uint8_t* bytes_of(std::size_t which) {
    const unsigned trainer = model_.item(which).post.trainer;
    return server_of(trainer).session->region(trainer / 2).base() + shared::kHeapOffset +
           slots_[which] * kMostBytes;
  }
  void submit(unsigned trainer, const shared::Submission& entry) {
    Session& session = *server_of(trainer).session;
    submission_entry(session.region(trainer / 2), trainers_[trainer].submitted) = entry;
    session.region(trainer / 2).header().submission_tail.store(++trainers_[trainer].submitted);
    ASSERT_EQ(session.take(), Session::Take::taken) << session.violation();
  }
  void depart(unsigned server, unsigned trainer) {
    servers_[server]->room->depart(server_of(trainer).id, trainer / 2);
    work();
  }
  void work() {
    for (const auto& server : servers_) {
      while (server->room->work() != 0) continue;
    }
    compare();
  }

  // The other server has all of its segments below this one, and room.
  void grant(Flow& flow, std::uint64_t all) {
    flow.send.on_acknowledgement(static_cast<std::uint32_t>(all), 0, 128, 0, ++now_);
  }

  // As the engine does.
  void take(const Packet& packet) {
    Server& server = *servers_[1 - packet.from];
    Flow& flow = server.channel().flows()[packet.path];
    if (flow.receive.received(packet.sequence)) return;
    Sent& sent = servers_[packet.from]->sent[packet.path][packet.sequence];
    Contribution segment{};
    segment.signature = packet.bytes.signature;
    segment.payload = packet.bytes.payload.data();
    segment.bytes = static_cast<std::uint16_t>(packet.bytes.payload.size());
    const auto accepted = server.channel().accept(flow, packet.sequence, segment);
    ASSERT_FALSE(accepted.refused.has_value())
        << "kind " << static_cast<int>(sent.kind) << " of message " << sent.receive;
    ASSERT_EQ(protocol::arrive(flow.receive, packet.sequence, ++now_), protocol::Arrival::fresh);
    sent.delivered = true;
    model_.arrive(sent.kind, sent.receive);
    for (; packet.path == 0 && server.counted < flow.receive.cumulative(); ++server.counted) {
      const Sent& counted = servers_[packet.from]->sent[0][server.counted];
      model_.count(counted.kind, counted.receive);
    }
    server.channel().take(flow, packet.sequence, segment, accepted);
    flow.receive.set_consumed(server.channel().consumed(flow), now_);
    compare();
  }

  void compare() {
    std::set<std::size_t> ended = model_.take_ended();
    for (unsigned trainer = 0; trainer < kTrainers; ++trainer) {
      Server& server = server_of(trainer);
      server.room->publish_ends();
      auto& header = server.session->region(trainer / 2).header();
      for (std::uint64_t i = header.completion_head; i < header.completion_tail; ++i) {
        const shared::Completion& completion = server.session->region(trainer / 2).completion(i);
        const std::size_t which = completion.request - 1;
        EXPECT_EQ(ended.erase(which), 1u)
            << "message " << which << " has ended too early, with " << completion.code;
        const MailModel::Item& item = model_.item(which);
        EXPECT_EQ(completion.code, item.code) << "message " << which;
        EXPECT_EQ(completion.bytes, item.bytes) << "message " << which;
        EXPECT_EQ(completion.notice != 0, item.code == GRADCUBE_EPEER);
        look(which);
        trainers_[trainer].slots.erase(slots_[which]);
      }
      header.completion_head.store(header.completion_tail);
    }
    for (const std::size_t which : ended) ADD_FAILURE() << "message " << which << " has not ended";
  }
  // At what its buffer holds.
  void look(std::size_t which) {
    const MailModel::Item& item = model_.item(which);
    if (item.post.sends) {
      std::memset(bytes_of(which), 0xdd, item.post.bytes);
      return;
    }
    for (std::uint64_t i = 0; i < kMostBytes; ++i) {
      const bool landed = item.code == 0 && i < item.bytes;
      ASSERT_EQ(bytes_of(which)[i], landed ? byte(item.other, i) : kUntouched)
          << "byte " << i << " of message " << which;
    }
  }

  std::unique_ptr<Server> servers_[2] = {std::make_unique<Server>(0), std::make_unique<Server>(3)};
  MailModel model_{kSegmentBytes};
  Trainer trainers_[kTrainers];
  std::vector<unsigned> slots_;  // by message
  std::vector<Packet> wire_;
  protocol::Nanoseconds now_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_MAIL_PAIR_H_
