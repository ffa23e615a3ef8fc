// Which daemon speaks for each other server.
//
// A daemon is told from the one before it on its server by its incarnation, a random number: no
// clock says which of two is the younger. The first that is heard of is believed. Any other must
// answer a challenge first, which only a daemon that lives can do: neither what a dead one has left
// on its way nor a frame forged by somebody who sees none of them puts a daemon out of its place.
// What a daemon says before it is believed is lost; whoever waits for an answer repeats it.
//
// A daemon that was wrongly believed, as the first, gives way in the same manner.
//
// Holds a few numbers for each server heard of. Single-threaded, no I/O, no clock.
#ifndef GRADCUBE_CONTROL_JOBS_INTRODUCTIONS_H_
#define GRADCUBE_CONTROL_JOBS_INTRODUCTIONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <random>

#include "control/jobs/job_actions.h"
#include "control/jobs/node_message.h"

namespace gradcube::control {

class Introductions {
 public:
  // One challenge to a server in this time, however much strangers send in its name.
  static constexpr Instant kChallengeInterval = std::chrono::milliseconds(20);

  // seed: nobody on another host can guess it.
  Introductions(bcube::ServerId server, std::uint64_t seed) : server_(server), nonces_(seed) {}

  // Whether the sender is who speaks for its server, and says something for others than this.
  // `out`: what must be sent, a challenge or the answer to one.
  bool admits(const NodeMessage& message, Instant now, NodeMessages& out);
  // 0: none was heard of.
  Incarnation speaker(bcube::ServerId server) const;

 private:
  struct Asked {
    std::optional<std::uint64_t> nonce;  // nothing: it was sent back
    Instant again{};                     // not before
  };

  bcube::ServerId server_;
  std::mt19937_64 nonces_;
  std::map<bcube::ServerId, Incarnation> speakers_;
  std::map<bcube::ServerId, Asked> asked_;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_INTRODUCTIONS_H_
