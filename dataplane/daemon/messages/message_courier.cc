#include "dataplane/daemon/messages/message_courier.h"

#include <memory>
#include <utility>

#include "bcube_forwarding/neighbours.h"
#include "control/jobs/message_codec.h"
#include "protocol/bytes.h"
#include "protocol/message_frame.h"

namespace gradcube::dataplane {

namespace {

constexpr std::size_t kFingerprintBytes = 4;

struct FreePacket {
  void operator()(rte_mbuf* packet) const { rte_pktmbuf_free(packet); }
};

protocol::RoutingHeader routing_of(bcube::ServerId source, bcube::ServerId destination,
                                   const bcube::Route& route) {
  protocol::RoutingHeader routing;
  routing.source = static_cast<std::uint16_t>(source);
  routing.destination = static_cast<std::uint16_t>(destination);
  routing.hop_count = static_cast<std::uint8_t>(route.size());
  for (std::size_t i = 0; i < route.size(); ++i) {
    routing.hops[i] = {route[i].level, route[i].digit};
  }
  return routing;
}

// Of the link that the route begins with.
protocol::LinkAddresses addresses_of(const bcube::AddressSpace& space, bcube::ServerId from,
                                     const bcube::Hop& hop) {
  const bcube::ServerId to = space.with_digit(from, hop.level, hop.digit);
  const auto own = bcube::embedded_link_address(space.port_of(from, hop.level, hop.digit), from);
  const unsigned back = space.digit_back(from, hop.level, hop.digit);
  const auto next = bcube::embedded_link_address(space.port_of(to, hop.level, back), to);
  return {own.mac, next.mac, own.ip, next.ip};
}

// The incarnation that the message says is its sender's; nothing if it says none.
std::optional<control::Incarnation> said_by(const control::NodeMessage& message) {
  if (const auto* greeting = std::get_if<control::Greeting>(&message.body)) {
    return greeting->incarnation;
  }
  if (const auto* told = std::get_if<control::JobMessage>(&message.body)) {
    return told->from.incarnation;
  }
  return std::nullopt;
}

}  // namespace

MessageCourier::MessageCourier(NodeEngines& engines, control::Incarnation incarnation,
                               control::Introductions& introductions, const MessageFrames& frames)
    : engines_(engines),
      incarnation_(incarnation),
      introductions_(introductions),
      frames_(frames),
      assembler_(engines.space().addresses()) {}

void MessageCourier::send(const control::NodeMessage& message) {
  const auto encoded = control::encode_message(message, engines_.space());
  if (encoded.empty() || engines_.all().empty()) return;
  std::vector<std::uint8_t> bytes(kFingerprintBytes);
  protocol::store_little<std::uint32_t>(bytes.data(), frames_.fingerprint);
  bytes.insert(bytes.end(), encoded.begin(), encoded.end());
  departing_.push_back({message.to, ++numbers_[message.to], std::move(bytes)});
}

void MessageCourier::flush() {
  if (departing_.empty()) return;
  const EngineAt& at = engines_.all().front();
  // The engine stands still meanwhile, and paths around links that are down take long to find: once
  // for each server, and not for messages that have no frames.
  at.poller->call([&] {
    std::map<bcube::ServerId, std::vector<bcube::Route>> paths;
    for (const Departing& message : departing_) {
      const auto [to, is_new] = paths.try_emplace(message.to);
      if (is_new) to->second = at.engine->paths_to(message.to);
      if (!put(message, to->second, *at.engine)) break;
    }
  });
  departing_.clear();
}

// While the engine stands still. paths: that work, as far as it knows. False if the pool is empty.
bool MessageCourier::put(const Departing& message, const std::vector<bcube::Route>& paths,
                         Engine& engine) {
  const bcube::AddressSpace& space = engines_.space();
  // Links that lose much only seem to be down.
  const bcube::Route route =
      paths.empty() ? bcube::shortest_route(space, engines_.server(), message.to)
                    : paths[paths.front().size() == 1 ? 0 : message.number % paths.size()];
  if (route.size() == 0) return true;  // it is too far away
  const protocol::MessageSplitter splitter(addresses_of(space, engines_.server(), route[0]),
                                           routing_of(engines_.server(), message.to, route),
                                           frames_.bytes, incarnation_, message.number,
                                           message.bytes, frames_.keys);
  for (unsigned i = 0; i < splitter.fragments(); ++i) {
    rte_mbuf* frame = frames_.pool->allocate();
    if (frame == nullptr) return false;
    const std::size_t length =
        splitter.write(i, {rte_pktmbuf_mtod(frame, std::uint8_t*), frames_.bytes});
    frame->data_len = static_cast<std::uint16_t>(length);
    frame->pkt_len = static_cast<std::uint32_t>(length);
    engine.post(space.port_of(engines_.server(), route[0].level, route[0].digit), frame);
  }
  return true;
}

std::optional<control::NodeMessage> MessageCourier::receive(control::Instant now,
                                                            unsigned& frames) {
  while (frames != 0) {
    --frames;
    const std::unique_ptr<rte_mbuf, FreePacket> frame(engines_.inbox()->take());
    if (frame == nullptr) return std::nullopt;
    auto message = take_frame(*frame, now);
    if (message.has_value()) return message;
  }
  return std::nullopt;
}

// The message that the frame completes, if it is one that its sender may send.
std::optional<control::NodeMessage> MessageCourier::take_frame(const rte_mbuf& frame,
                                                               control::Instant now) {
  const auto refuse = [this](auto reason) {
    dropped_.drop(reason);
    return std::nullopt;
  };
  if (frame.nb_segs != 1) return refuse(DropReason::scattered_payload);
  protocol::MessageFragment fragment;
  const std::span<const std::uint8_t> bytes{rte_pktmbuf_mtod(&frame, const std::uint8_t*),
                                            frame.data_len};
  const protocol::FrameError error = protocol::read_message_frame(bytes, fragment, frames_.keys);
  if (error != protocol::FrameError::none) return refuse(error);
  // What was recorded takes no place from what is new.
  if (frames_.keys != nullptr && fragment.header.fragments != 1 &&
      engines_.space().contains(fragment.routing.source) &&
      !introductions_.may_wait(fragment.routing.source, fragment.header.incarnation,
                               fragment.header.number)) {
    return std::nullopt;
  }
  const auto whole = assembler_.add(fragment, std::chrono::nanoseconds(now).count());
  if (!whole.has_value()) return std::nullopt;
  if (whole->size() < kFingerprintBytes ||
      protocol::load_little<std::uint32_t>(whole->data()) != frames_.fingerprint) {
    return refuse(DropReason::wrong_cluster);
  }
  auto message =
      control::decode_message(std::span(*whole).subspan(kFingerprintBytes), engines_.space());
  const control::Incarnation sender = fragment.header.incarnation;
  if (!message.has_value() || message->to != engines_.server() ||
      message->from != fragment.routing.source || said_by(*message).value_or(sender) != sender) {
    return refuse(DropReason::bad_message);
  }
  message->sender = sender;
  if (frames_.keys != nullptr) message->number = fragment.header.number;
  const control::Incarnation speaker = introductions_.speaker(message->from);
  const bool is_first = speaker == 0 && frames_.keys == nullptr;
  if (is_first || speaker == sender) {
    assembler_.accept(fragment);
  } else if (speaker != 0) {
    dropped_.drop(DropReason::stale_message);
  }
  return message;
}

FrameDrops MessageCourier::dropped() const {
  FrameDrops all = dropped_;
  const protocol::AssemblerCounters& assembler = assembler_.counters();
  all.drop(DropReason::bad_fragment, assembler.refused);
  all.drop(DropReason::incomplete_message, assembler.given_up);
  all.drop(DropReason::stale_message, introductions_.repeated());
  return all;
}

}  // namespace gradcube::dataplane
