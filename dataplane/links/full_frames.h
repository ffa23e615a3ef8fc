// Whether a link carries frames of full length, those of the cluster's MTU, in both directions.
//
// A switch, router or interface on the way may drop long frames and pass short ones, and nobody
// tells the servers. So they find out, as IS-IS does: some greetings are padded to the longest
// frame. Behind each goes one without padding that tells of it (FullFrameNews::sent), so the
// receiver knows which ones it has missed, however seldom they come and whatever else is lost.
//
//   - After kMissed in a row it takes the direction for one that loses them, and tells the sender.
//     A single one may be lost as any frame; it asks for the next at once.
//   - One that comes shows that the direction carries them.
//   - After a link was down nothing is taken for granted: one has to come first.
//
// Each end counts what comes, and learns from the other what has become of its own. At first a link
// is taken to carry them, as it is taken to be up (link_watch.h).
//
// The caller passes in what was shown to be fresh. No I/O, no clock, no allocation; one thread.
#ifndef GRADCUBE_DATAPLANE_LINKS_FULL_FRAMES_H_
#define GRADCUBE_DATAPLANE_LINKS_FULL_FRAMES_H_

#include <cstdint>

#include "protocol/wire.h"

namespace gradcube::dataplane {

class FullFrames {
 public:
  static constexpr unsigned kMissed = 5;

  // Both directions: the link may be used.
  bool carried() const { return incoming_ != Incoming::unproven && !theirs_.unproven; }
  // Small frames pass from the neighbour, or to it, and full ones do not.
  bool lost_from() const { return missed_ == kMissed; }
  bool lost_to() const { return theirs_.lost; }

  // The neighbour asks for a padded greeting.
  bool wanted() const { return theirs_.wanted; }
  // One of this number has been sent.
  bool sent(std::uint64_t number) const { return sent_ == number; }
  void on_sent(std::uint64_t number) { sent_ = number; }
  // What a greeting of this number tells the neighbour.
  protocol::FullFrameNews news(std::uint64_t number) const {
    return {.sent = sent(number),
            .wanted = incoming_ != Incoming::shown || missed_ != 0,
            .unproven = incoming_ == Incoming::unproven,
            .lost = lost_from()};
  }

  // A fresh greeting of the neighbour. Its number is compared with the newest: one of the `older`
  // numbers before that was recorded, or overtaken, and changes nothing. True if this is the padded
  // one that was missing: the neighbour is to know at once.
  bool take(const protocol::LinkHeader& greeting, bool padded, std::uint64_t older) {
    const std::uint64_t behind = newest_ - greeting.number;
    if (behind != 0 && behind <= older) return false;
    newest_ = greeting.number;
    theirs_ = greeting.full_frames;
    if (padded) return take_padded();
    if (theirs_.sent && newest_ != padded_ && newest_ != counted_) {
      counted_ = newest_;
      if (missed_ != kMissed && ++missed_ == kMissed) incoming_ = Incoming::unproven;
    }
    return false;
  }
  void on_down() { incoming_ = Incoming::unproven; }

 private:
  enum class Incoming : std::uint8_t { assumed, shown, unproven };

  bool take_padded() {
    const bool was_missing = incoming_ != Incoming::shown || missed_ != 0;
    incoming_ = Incoming::shown;
    missed_ = 0;
    padded_ = newest_;
    return was_missing;
  }

  Incoming incoming_ = Incoming::assumed;
  unsigned missed_ = 0;             // in a row
  std::uint64_t newest_ = 0;        // number that was heard
  std::uint64_t padded_ = 0;        // the newest of a padded one that has come
  std::uint64_t counted_ = 0;       // the newest one that was missed
  std::uint64_t sent_ = 0;          // the newest of this server's padded ones
  protocol::FullFrameNews theirs_;  // in what was heard last
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_LINKS_FULL_FRAMES_H_
