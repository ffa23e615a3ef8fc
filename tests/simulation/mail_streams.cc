#include "tests/simulation/mail_streams.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

#include "dataplane/host/clock.h"

#include "gradcube/gradcube.h"

namespace gradcube::simulation {

namespace {

// A message begins with its number, and goes on with bytes that no other one has.
constexpr std::uint64_t kLeastBytes = sizeof(std::uint64_t);

std::uint8_t byte_of(std::uint64_t from, std::uint64_t to, std::uint64_t tag, std::uint64_t number,
                     std::uint64_t place) {
  const std::uint64_t message = ((from * 31 + to) * 31 + tag) * 1009 + number;
  const std::uint64_t mixed = (message + 1) * 0x9e3779b97f4a7c15 ^ (place + 1) * 0xc2b2ae3d27d4eb4f;
  return static_cast<std::uint8_t>(mixed >> 40 ^ mixed >> 17);
}

}  // namespace

std::int64_t MailStreams::act(unsigned rank, std::int64_t now) {
  Trader& trader = traders_[rank];
  if (trader.actions == kActions) return dataplane::kNever;
  if (now < trader.acts_at) return trader.acts_at;
  ++trader.actions;
  trader.acts_at = now + static_cast<std::int64_t>(random_.below(400'000));
  const bool is_full = trader.in_flight.size() == kSlots;
  if (!trader.in_flight.empty() && (is_full || random_.below(3) == 0)) {
    auto some = trader.in_flight.begin();
    std::advance(some, static_cast<std::ptrdiff_t>(random_.below(trader.in_flight.size())));
    withdraw(trader, some->first);
  } else {
    submit(rank, trader);
  }
  return trader.actions == kActions ? dataplane::kNever : trader.acts_at;
}

void MailStreams::submit(unsigned rank, Trader& trader) {
  Message message;
  message.sends = random_.below(2) == 0;
  const auto other =
      static_cast<unsigned>(random_.below(std::min<std::size_t>(traders_.size(), 3)));
  message.stream =
      message.sends ? Stream{rank, other, random_.below(2)} : Stream{other, rank, random_.below(2)};
  const auto slot = std::find(trader.used.begin(), trader.used.end(), false);
  *slot = true;
  message.slot = static_cast<unsigned>(slot - trader.used.begin());
  shared::Submission asked{};
  asked.request = ++names_;
  asked.type = static_cast<std::uint8_t>(shared::SubmissionType::message);
  asked.message.direction = static_cast<std::uint8_t>(message.sends ? shared::Direction::send
                                                                    : shared::Direction::receive);
  asked.dtype = GRADCUBE_BYTES;
  asked.message.peer = other;
  asked.message.tag = message.stream.tag;
  asked.offset = offset_of(message.slot);
  asked.count = kMostBytes;
  std::uint8_t* bytes = trader.trainer->at(asked.offset);
  if (message.sends) {
    message.number = sent_[message.stream]++;
    asked.count = kLeastBytes + random_.below(kMostBytes - kLeastBytes + 1);
    std::memcpy(bytes, &message.number, kLeastBytes);
    for (std::uint64_t i = kLeastBytes; i < asked.count; ++i) {
      bytes[i] = byte_of(rank, other, message.stream.tag, message.number, i);
    }
  } else {
    std::memset(bytes, 0xee, kMostBytes);
  }
  trader.in_flight[asked.request] = messages_.size();
  messages_.push_back(message);
  trader.trainer->submit(asked);
}

void MailStreams::withdraw(Trader& trader, std::uint64_t name) {
  messages_[trader.in_flight.at(name)].withdrawn = true;
  trader.trainer->withdraw(name);
}

void MailStreams::finish(unsigned rank) {
  Trader& trader = traders_[rank];
  trader.actions = kActions;
  if (trader.gone) return;
  for (const auto& [name, place] : trader.in_flight) {
    if (!messages_[place].withdrawn) withdraw(trader, name);
  }
}

bool MailStreams::has_ended() const {
  return std::all_of(traders_.begin(), traders_.end(), [](const auto& one) {
    return one.second.gone || one.second.in_flight.empty();
  });
}

void MailStreams::take(unsigned rank, const shared::Completion& completion) {
  Trader& trader = traders_[rank];
  const auto found = trader.in_flight.find(completion.request);
  if (found == trader.in_flight.end()) {
    complaints_.push_back("a message has ended twice, or was never submitted");
    return;
  }
  Message& message = messages_[found->second];
  message.code = completion.code;
  trader.in_flight.erase(found);
  trader.used[message.slot] = false;
  if (completion.code == 0 && !message.sends) {
    const std::string problem = read(*trader.trainer, message, completion.bytes);
    if (!problem.empty()) complaints_.push_back(problem);
  }
  if (completion.code == GRADCUBE_ECANCELED && !message.withdrawn) {
    complaints_.push_back("a message has ended as withdrawn, and nobody has withdrawn it");
  }
  const std::uint8_t* bytes = trader.trainer->at(offset_of(message.slot));
  if (completion.code == GRADCUBE_ECANCELED && !message.sends &&
      std::any_of(bytes, bytes + kMostBytes, [](std::uint8_t byte) { return byte != 0xee; })) {
    complaints_.push_back("something has landed in a receive that was withdrawn");
  }
}

std::string MailStreams::read(SimulatedTrainer& trainer, Message& message,
                              std::uint64_t bytes) const {
  const std::uint8_t* got = trainer.at(offset_of(message.slot));
  if (bytes < kLeastBytes || bytes > kMostBytes)
    return fmt::format("a message has {} bytes", bytes);
  std::memcpy(&message.number, got, kLeastBytes);
  const auto& [from, to, tag] = message.stream;
  for (std::uint64_t i = kLeastBytes; i < bytes; ++i) {
    if (got[i] == byte_of(from, to, tag, message.number, i)) continue;
    return fmt::format("byte {} of message {} from rank {} to {}, tag {}, is wrong", i,
                       message.number, from, to, tag);
  }
  return "";
}

std::vector<std::string> MailStreams::judge(bool may_fail) const {
  std::vector<std::string> complaints = complaints_;
  std::map<Stream, std::array<std::vector<const Message*>, 2>> streams;
  for (const Message& message : messages_) {
    streams[message.stream][message.sends ? 0 : 1].push_back(&message);
    if (message.code.has_value() && *message.code != 0 && *message.code != GRADCUBE_ECANCELED &&
        !(may_fail && *message.code == GRADCUBE_EPEER)) {
      complaints.push_back(fmt::format("a message has ended with code {}", *message.code));
    }
  }
  for (const auto& [stream, both] : streams) judge(stream, both[0], both[1], complaints);
  return complaints;
}

// A receive whose end is not known, or that has failed with its job, may have taken one.
void MailStreams::judge(const Stream& stream, const std::vector<const Message*>& sends,
                        const std::vector<const Message*>& receives,
                        std::vector<std::string>& complaints) const {
  const auto complain = [&](const std::string& what) {
    complaints.push_back(fmt::format("messages from rank {} to {}, tag {}: {}", stream.from,
                                     stream.to, stream.tag, what));
  };
  std::uint64_t next = 0;     // that no receive has passed
  std::uint64_t unknown = 0;  // receives that may have taken one of those that were left out
  for (const Message* receive : receives) {
    if (receive->code != 0) {
      if (receive->code != GRADCUBE_ECANCELED) ++unknown;
      continue;
    }
    if (receive->number >= sends.size()) return complain("one was received that was not sent");
    if (receive->number < next) return complain("one was received twice, or behind a later one");
    if (sends[receive->number]->code == GRADCUBE_ECANCELED) {
      complain(fmt::format("{} was received, and was withdrawn", receive->number));
    }
    for (; next < receive->number; ++next) {
      const Message& left_out = *sends[next];
      // A trainer that has gone did not read how it ended.
      if (left_out.code.value_or(left_out.withdrawn ? GRADCUBE_ECANCELED : 0) ==
          GRADCUBE_ECANCELED) {
        continue;
      }
      if (unknown == 0) return complain(fmt::format("{} was left out", next));
      --unknown;
    }
    ++next;
  }
  for (; next < sends.size(); ++next) {
    if (sends[next]->code != 0) continue;
    if (unknown == 0) return complain(fmt::format("{} has ended well, and nobody has it", next));
    --unknown;
  }
}

}  // namespace gradcube::simulation
