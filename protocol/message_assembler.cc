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
  if (header.incarnation < source.incarnation) {
    ++counters_.stale;
    return std::nullopt;
  }
  if (header.incarnation > source.incarnation) {
    while (!source.partials.empty()) give_up(*source.partials.front());
    source = Source{};
    source.incarnation = header.incarnation;
  }
  if (source.has_delivered(header.number)) {
    ++counters_.duplicates;
    return std::nullopt;
  }
  Partial& partial = partial_of(source, fragment, now);
  if (!takes(partial, fragment)) return std::nullopt;
  if (partial.arrived.size() == partial.fragments) return finish(source, partial);
  while (held_bytes_ > limits_.total_bytes) give_up(partials_.front());
  return std::nullopt;
}

bool MessageAssembler::is_refused(const MessageFragment& fragment) const {
  return fragment.routing.source >= servers_ || fragment.bytes.empty() ||
         fragment.bytes.size() > limits_.message_bytes ||
         fragment.header.index >= fragment.header.fragments;
}

bool MessageAssembler::Source::has_delivered(std::uint32_t number) const {
  return std::find(delivered.begin(), delivered.end(), number) != delivered.end();
}

// What has arrived of the fragment's message; begins it if that is nothing.
MessageAssembler::Partial& MessageAssembler::partial_of(Source& source,
                                                        const MessageFragment& fragment,
                                                        Nanoseconds now) {
  for (const Partials::iterator known : source.partials) {
    if (known->number == fragment.header.number) return *known;
  }
  if (source.partials.size() >= limits_.per_source) give_up(*source.partials.front());
  partials_.push_back({.source = fragment.routing.source,
                       .number = fragment.header.number,
                       .fragments = fragment.header.fragments,
                       .begun = now,
                       .arrived = {}});
  source.partials.push_back(std::prev(partials_.end()));
  return partials_.back();
}

bool MessageAssembler::takes(Partial& partial, const MessageFragment& fragment) {
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
  return true;
}

MessageAssembler::Bytes MessageAssembler::finish(Source& source, const Partial& partial) {
  Bytes message;
  message.reserve(partial.bytes);
  for (const auto& [index, bytes] : partial.arrived) {
    message.insert(message.end(), bytes.begin(), bytes.end());
  }
  source.delivered[source.next_delivered] = partial.number;
  source.next_delivered = (source.next_delivered + 1) % kRemembered;
  ++counters_.messages;
  forget(partial);
  return message;
}

void MessageAssembler::give_up(const Partial& partial) {
  ++counters_.given_up;
  forget(partial);
}

void MessageAssembler::forget(const Partial& partial) {
  held_bytes_ -= partial.cost();
  auto& siblings = sources_.at(partial.source).partials;
  const auto place = std::find_if(siblings.begin(), siblings.end(),
                                  [&](Partials::iterator each) { return &*each == &partial; });
  const Partials::iterator gone = *place;
  siblings.erase(place);
  partials_.erase(gone);
}

}  // namespace gradcube::protocol
