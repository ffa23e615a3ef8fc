// Puts the fragments of messages together again (message_frame.h). One for all that a server
// receives.
//
// Fragments may be lost, doubled and reordered, and may be hostile: what one source sends costs
// bounded memory, and so does what all send.
//
//   - A source has at most `per_source` messages that have not arrived in full: those with the
//     greatest numbers, as lower ones may be recorded. Of incarnations that are not accepted it has
//     as many: the newest to begin. Once `total_bytes` are held, the source that holds the most
//     gives up its oldest. What is not complete after `expiry` is given up with the next fragment
//     that comes. Whoever sends messages repeats them until they are answered.
//   - Besides, some 250 bytes are kept for each server heard of.
//   - An incarnation of a source is accepted with a message that its receiver has found to be
//     right: a fragment alone may be of anyone. Then what others have begun is given up.
//   - Where two fragments contradict each other, the first counts.
//   - A message that comes again is dropped if it is one of the last kRemembered that were accepted
//     of its source. Later it is delivered again: receivers must tolerate that.
//
// Time is handed in. Single-threaded. Allocates per fragment.
#ifndef GRADCUBE_PROTOCOL_MESSAGE_ASSEMBLER_H_
#define GRADCUBE_PROTOCOL_MESSAGE_ASSEMBLER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <vector>

#include "protocol/message_frame.h"
#include "protocol/time.h"

namespace gradcube::protocol {

struct AssemblerLimits {
  std::size_t message_bytes = kMaxMessageBytes;
  unsigned per_source = 4;
  std::size_t total_bytes = std::size_t{8} << 20;  // held_bytes()
  Nanoseconds expiry = 1000 * kMillisecond;        // after the first fragment
};

struct AssemblerCounters {
  std::uint64_t messages = 0;    // delivered
  std::uint64_t duplicates = 0;  // fragments, of partial or delivered messages
  // Fragments that are empty, have no place in their message, come from nobody in the cluster,
  // contradict an earlier one or would make the message too long.
  std::uint64_t refused = 0;
  std::uint64_t given_up = 0;  // messages: too old, or others needed the room
};

class MessageAssembler {
 public:
  static constexpr std::size_t kRemembered = 16;
  // What a fragment is counted as besides its bytes.
  static constexpr std::size_t kFragmentCost = 256;

  // `servers`: of the cluster; no other source is heard.
  explicit MessageAssembler(std::uint32_t servers, const AssemblerLimits& limits = {})
      : servers_(servers), limits_(limits) {}

  // The message, if the fragment completes it. Nobody has checked its sender and incarnation, which
  // are the fragment's.
  std::optional<std::vector<std::uint8_t>> add(const MessageFragment& fragment, Nanoseconds now);
  // The message that add() has just returned for this fragment is right: its incarnation is its
  // source's from now on.
  void accept(const MessageFragment& fragment);

  // Of messages that have arrived in part. Never more than `total_bytes` between two calls.
  std::size_t held_bytes() const { return held_bytes_; }
  const AssemblerCounters& counters() const { return counters_; }

 private:
  using Bytes = std::vector<std::uint8_t>;

  // Has arrived in part.
  struct Partial {
    std::uint16_t source = 0;
    std::uint64_t incarnation = 0;
    std::uint64_t number = 0;
    std::uint8_t fragments = 0;
    Nanoseconds begun = 0;
    std::size_t bytes = 0;
    std::map<std::uint8_t, Bytes> arrived;  // by index; never empty

    std::size_t cost() const { return bytes + arrived.size() * kFragmentCost; }
  };
  using Partials = std::list<Partial>;

  struct Source {
    std::uint64_t incarnation = 0;             // accepted last
    std::vector<Partials::iterator> partials;  // the oldest first
    std::size_t held_bytes = 0;
    // Of this incarnation: numbers, in a ring.
    std::array<std::optional<std::uint64_t>, kRemembered> delivered;
    std::size_t next_delivered = 0;

    bool has_delivered(const MessageHeader& header) const;
  };

  bool is_refused(const MessageFragment& fragment) const;
  Partial* partial_of(Source& source, const MessageFragment& fragment, Nanoseconds now);
  bool takes(Source& source, Partial& partial, const MessageFragment& fragment);
  Bytes finish(const Partial& partial);
  void forget(const Partial& partial);
  void give_up(const Partial& partial);
  void give_up_of_the_greatest();

  std::uint32_t servers_;
  AssemblerLimits limits_;
  std::map<std::uint16_t, Source> sources_;
  Partials partials_;  // the oldest first
  std::size_t held_bytes_ = 0;
  AssemblerCounters counters_;
};

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_MESSAGE_ASSEMBLER_H_
