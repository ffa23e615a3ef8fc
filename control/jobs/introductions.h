// Which daemon speaks for each other server.
//
// A daemon is told from the one before it on its server by its incarnation, a random number: no
// clock says which of two is the younger. It must answer a challenge before it is believed, which
// only a daemon that lives can do: neither what a dead one has left on its way nor a frame forged
// by somebody who sees none of them puts a daemon out of its place. What a daemon says before it is
// believed is lost; whoever waits for an answer repeats it.
//
// Where frames carry a MAC, that also tells what somebody has recorded of a daemon and sends again
// from what it says: its messages count from its answer on, each once, by their numbers
// (replay_window.h). Of its fragments it tells that before they take a place until the rest of
// their message is there: so recorded ones take none from others. Elsewhere the first daemon that
// is heard of is believed at once, as anybody could answer for it, and gives way in the same manner
// if it was wrong.
//
// Holds a few numbers for each server heard of. Single-threaded, no I/O, no clock.
#ifndef GRADCUBE_CONTROL_JOBS_INTRODUCTIONS_H_
#define GRADCUBE_CONTROL_JOBS_INTRODUCTIONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "control/jobs/job_actions.h"
#include "control/jobs/node_message.h"
#include "control/jobs/replay_window.h"

namespace gradcube::control {

class Introductions {
 public:
  // One challenge to a server in this time, however much strangers send in its name.
  static constexpr Instant kChallengeInterval = std::chrono::milliseconds(20);
  // And one answer to the same challenge: it can be recorded.
  static constexpr Instant kAnswerInterval = std::chrono::milliseconds(10);

  enum class First : std::uint8_t { believed, challenged };

  // seed: nobody on another host can guess it. first: what becomes of the first that is heard of.
  Introductions(bcube::ServerId server, std::uint64_t seed, First first = First::believed)
      : server_(server), first_(first), nonces_(seed) {}

  // Whether the sender is who speaks for its server, and says something for others than this.
  // `out`: what must be sent, a challenge or the answer to one.
  bool admits(const NodeMessage& message, Instant now, NodeMessages& out);
  // Where frames carry a MAC: whether a fragment of a message that has others may wait for them. It
  // may not if the message has come, or is of a stranger, whom challenge_strangers() then asks.
  bool may_wait(bcube::ServerId from, Incarnation sender, std::uint64_t number);
  void challenge_strangers(Instant now, NodeMessages& out);
  // 0: none was heard of.
  Incarnation speaker(bcube::ServerId server) const;
  // Messages that had come before, and fragments of such.
  std::uint64_t repeated() const { return repeated_; }

 private:
  struct Speaker {
    Incarnation incarnation = 0;
    ReplayWindow messages;
  };
  struct Said {
    std::optional<std::uint64_t> nonce;  // nothing: it was sent back
    Instant again{};                     // not before
  };

  void challenge(bcube::ServerId server, Instant now, NodeMessages& out);

  bcube::ServerId server_;
  First first_;
  std::mt19937_64 nonces_;
  std::uint64_t repeated_ = 0;
  std::map<bcube::ServerId, Speaker> speakers_;
  std::map<bcube::ServerId, Said> asked_;
  std::map<bcube::ServerId, Said> answered_;  // the last of each
  std::set<bcube::ServerId> strangers_;       // that speak for these, and were not challenged
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_INTRODUCTIONS_H_
