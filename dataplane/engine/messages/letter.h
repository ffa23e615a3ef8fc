// How far a piece of mail has come that one of this server's trainers has submitted: what is to be
// sent of it, or what has arrived. Its number is that of its place in the session's MailTable.
//
// A message travels in segments of the same length, but for the last, numbered from 0. Each says
// which receive it is for and which segment it is, so any flow may carry it. The lengths and the
// fields are those of docs/messages.md, "On the wire".
#ifndef GRADCUBE_DATAPLANE_ENGINE_MESSAGES_LETTER_H_
#define GRADCUBE_DATAPLANE_ENGINE_MESSAGES_LETTER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bcube_forwarding/address.h"
#include "dataplane/engine/messages/mail_matcher.h"
#include "dataplane/engine/session/linked_queue.h"
#include "dataplane/engine/session/mail_request.h"

namespace gradcube::dataplane {

// The parallel paths that mail between two servers takes at most.
inline constexpr unsigned kMostMailPaths = 8;

// In the place of the kind of a collective in a segment header.
enum class MailKind : std::uint8_t {
  want = 16,     // a receive waits for its send
  data = 17,     // a segment of a message
  refusal = 18,  // the message does not fit its receive, and is not sent
  // 19 to 21 are a hub's.
  withdrawal = 22,  // a receive is to take no message, if its want has not met one
  withdrawn = 23,   // nor will it
  absence = 24,     // the sender has left and has sent no such message
};
inline constexpr std::size_t kWantBytes = 19;
inline constexpr std::size_t kRefusalBytes = 9;

// Where the fields of a want's payload lie; the number is that of the segment header.
inline constexpr std::size_t kWantFrom = 0;
inline constexpr std::size_t kWantTo = 1;
inline constexpr std::size_t kWantTag = 2;
inline constexpr std::size_t kWantRoom = 10;
inline constexpr std::size_t kWantDtype = 18;
static_assert(kWantDtype + 1 == kWantBytes);
// And of a refusal's, behind the message's length.
inline constexpr std::size_t kRefusalDtype = 8;
static_assert(kRefusalDtype + 1 == kRefusalBytes);

struct Letter {
  MailRequest request;
  bcube::ServerId peer = 0;  // the other trainer's server
  MailAddress address;
  bool open = false;  // it has not ended

  // Of a send that has met its receive.
  std::uint32_t number = 0;      // of the receive, at its server
  std::uint32_t segments = 0;    // in all
  std::uint32_t taken = 0;       // by the flows; the next one to be taken
  std::uint32_t unanswered = 0;  // of those, how many are not acknowledged
  aggregation::DataType peer_dtype{};
  bool refused = false;
  unsigned paths = 0;        // that it takes
  std::uint64_t turn = 0;    // when a flow has last taken one, in turns of its channel
  std::uint64_t copied = 0;  // bytes, where both trainers are of this server

  bool deserted = false;  // the other trainer has left: it ends when it is known why (mailroom.h)

  // Of a receive.
  std::uint32_t arrived = 0;   // segments
  std::uint32_t expected = 0;  // segments; 0: not known yet
  std::uint64_t length = 0;    // of the message, where `expected` is known
  std::uint32_t end = 0;       // one more than the highest segment that has arrived
  std::uint64_t bits = 0;      // in ArrivedSegments
  // The sequence of its want; nothing can answer it before this was sent.
  std::uint64_t asked = UINT64_MAX;
  // The same of its withdrawal.
  enum class Withdrawal : std::uint8_t { none, untold, told } withdrawal = Withdrawal::none;
  std::uint64_t withdrawal_asked = UINT64_MAX;

  // What tells of it, or of its refusal: packets point to this.
  std::array<std::uint8_t, kWantBytes> notice{};

  std::uint32_t next = 0;  // in the one queue that it stands in
  std::uint32_t previous = 0;
};

// By number. Never longer than its capacity, so a letter stays where it is.
using Letters = std::vector<Letter>;

// Each letter stands in one at most.
using LetterQueue = LinkedQueue<Letters>;

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_MESSAGES_LETTER_H_
