#include "protocol/message_assembler.h"

#include <algorithm>

namespace gradcube::protocol {

std::optional<std::vector<std::uint8_t>> MessageAssembler::add(const MessageFragment& fragment,
                                                               Nanoseconds now) {
  while (!partials_.empty() && now - partials_.front().begun >= limits_.expiry) {
    give_up(partials_.front());
  }
  if (is_refused(fragment)) {
    ++counters_.refused;
    return std::nullopt;
  }
  Source& source = sources_[fragment.routing.source];
  const MessageHeader& header = fragment.header;
  if (source.has_delivered(header)) {
    ++counters_.duplicates;
    return std::nullopt;
  }
  Partial* partial = partial_of(source, fragment, now);
  if (partial == nullptr || !takes(source, *partial, fragment)) return std::nullopt;
  if (partial->arrived.size() == partial->fragments) return finish(*partial);
  while (held_bytes_ > limits_.total_bytes) give_up_of_the_greatest();
  return std::nullopt;
}

void MessageAssembler::accept(const MessageFragment& fragment) {
  Source& source = sources_[fragment.routing.source];
  const MessageHeader& header = fragment.header;
  if (header.incarnation != source.incarnation) {
    const std::vector<Partials::iterator> begun = source.partials;
    for (const Partials::iterator each : begun) {
      if (each->incarnation != header.incarnation) give_up(*each);
    }
    source.incarnation = header.incarnation;
    source.delivered = {};
  }
  source.delivered[source.next_delivered] = header.number;
  source.next_delivered = (source.next_delivered + 1) % kRemembered;
}

bool MessageAssembler::is_refused(const MessageFragment& fragment) const {
  return fragment.routing.source >= servers_ || fragment.bytes.empty() ||
         fragment.bytes.size() > limits_.message_bytes ||
         fragment.header.index >= fragment.header.fragments;
}

bool MessageAssembler::Source::has_delivered(const MessageHeader& header) const {
  return header.incarnation == incarnation &&
         std::find(delivered.begin(), delivered.end(), header.number) != delivered.end();
}

// What has arrived of the fragment's message; begins it if that is nothing. Null if others come
// first.
MessageAssembler::Partial* MessageAssembler::partial_of(Source& source,
                                                        const MessageFragment& fragment,
                                                        Nanoseconds now) {
  const MessageHeader& header = fragment.header;
  // What strangers begin takes no place of what the source does.
  const bool is_accepted = header.incarnation == source.incarnation;
  unsigned rivals = 0;
  const Partial* last = nullptr;  // of the rivals
  for (const Partials::iterator known : source.partials) {
    if (known->incarnation == header.incarnation && known->number == header.number) return &*known;
    if ((known->incarnation == source.incarnation) != is_accepted) continue;
    ++rivals;
    if (last == nullptr || (is_accepted && known->number < last->number)) last = &*known;
  }
  if (rivals >= limits_.per_source) {
    if (is_accepted && header.number < last->number) {
      ++counters_.given_up;
      return nullptr;
    }
    give_up(*last);
  }
  // A partial that its source does not know could never be forgotten: the second may not fail.
  source.partials.reserve(source.partials.size() + 1);
  partials_.push_back({.source = fragment.routing.source,
                       .incarnation = header.incarnation,
                       .number = header.number,
                       .fragments = header.fragments,
                       .begun = now,
                       .arrived = {}});
  source.partials.push_back(std::prev(partials_.end()));
  return &partials_.back();
}

bool MessageAssembler::takes(Source& source, Partial& partial, const MessageFragment& fragment) {
  const MessageHeader& header = fragment.header;
  if (header.fragments != partial.fragments ||
      partial.bytes + fragment.bytes.size() > limits_.message_bytes) {
    ++counters_.refused;
    return false;
  }
  const auto [place, is_new] =
      partial.arrived.try_emplace(header.index, fragment.bytes.begin(), fragment.bytes.end());
  if (!is_new) {
    ++counters_.duplicates;
    return false;
  }
  partial.bytes += fragment.bytes.size();
  held_bytes_ += fragment.bytes.size() + kFragmentCost;
  source.held_bytes += fragment.bytes.size() + kFragmentCost;
  return true;
}

MessageAssembler::Bytes MessageAssembler::finish(const Partial& partial) {
  Bytes message;
  message.reserve(partial.bytes);
  for (const auto& [index, bytes] : partial.arrived) {
    message.insert(message.end(), bytes.begin(), bytes.end());
  }
  ++counters_.messages;
  forget(partial);
  return message;
}

void MessageAssembler::give_up(const Partial& partial) {
  ++counters_.given_up;
  forget(partial);
}

void MessageAssembler::give_up_of_the_greatest() {
  const auto greatest =
      std::max_element(sources_.begin(), sources_.end(), [](const auto& one, const auto& other) {
        return one.second.held_bytes < other.second.held_bytes;
      });
  give_up(*greatest->second.partials.front());
}

void MessageAssembler::forget(const Partial& partial) {
  Source& source = sources_.at(partial.source);
  held_bytes_ -= partial.cost();
  source.held_bytes -= partial.cost();
  auto& siblings = source.partials;
  const auto place = std::find_if(siblings.begin(), siblings.end(),
                                  [&](Partials::iterator each) { return &*each == &partial; });
  const Partials::iterator gone = *place;
  siblings.erase(place);
  partials_.erase(gone);
}

}  // namespace gradcube::protocol
