// How far a piece of mail has come that one of this server's trainers has submitted: what is to be
// sent of it, or what has arrived. Its number is that of its place in the session's MailTable.
//
// A message travels in segments of the same length, but for the last, numbered from 0. Each says
// which receive it is for and which segment it is, so any flow may carry it. The lengths and the
// fields are those of docs/messages.md, "On the wire".
#ifndef GRADCUBE_DATAPLANE_ENGINE_LETTER_H_
#define GRADCUBE_DATAPLANE_ENGINE_LETTER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bcube_forwarding/address.h"
#include "dataplane/engine/mail_matcher.h"
#include "dataplane/engine/mail_request.h"

namespace gradcube::dataplane {

// The parallel paths that mail between two servers takes at most.
inline constexpr unsigned kMostMailPaths = 8;

// In the place of the kind of a collective in a segment header.
enum class MailKind : std::uint8_t {
  want = 16,     // a receive waits for its send
  data = 17,     // a segment of a message
  refusal = 18,  // the message is too long for its receive, and is not sent
  absence = 20,  // the sender has left and has sent no such message
};
inline constexpr std::size_t kWantBytes = 18;
inline constexpr std::size_t kRefusalBytes = 8;

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

  // What tells of it, or of its refusal: packets point to this.
  std::array<std::uint8_t, kWantBytes> notice{};

  std::uint32_t next = 0;  // in the one queue that it stands in
};

// By number. Never longer than its capacity, so a letter stays where it is.
using Letters = std::vector<Letter>;

// Letters in a row; each stands in one at most.
class LetterQueue {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  std::uint32_t front() const { return first_; }
  void push(Letters& letters, std::uint32_t number) {
    (empty() ? first_ : letters[last_].next) = number;
    last_ = number;
    ++size_;
  }
  std::uint32_t pop(const Letters& letters) {
    const std::uint32_t number = first_;
    first_ = letters[number].next;
    --size_;
    return number;
  }

 private:
  std::uint32_t first_ = 0;
  std::uint32_t last_ = 0;
  std::size_t size_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_LETTER_H_
