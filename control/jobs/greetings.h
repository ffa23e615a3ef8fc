// Who is alive: greets other servers from time to time, and finds out which of them are silent.
//
// A link may be broken one way. The server that hears nothing gives the other up; the other must
// find out too, though it hears everything. So a greeting says whether its sender hears the
// receiver, and nothing from a server that does not counts as a sign of its life. After a partition
// of either kind both servers are silent to each other within 2 * silent_after and the time that a
// greeting takes.
//
// A server is silent when it is watched and has given no sign of life for silent_after; at the
// earliest silent_after after it became watched, or after it was restarted. It is reported, and
// again each silent_after without a sign of life: what began since with a message that was long
// under way has to learn of it, too.
//
// Single-threaded, no I/O, no clock.
#ifndef GRADCUBE_CONTROL_JOBS_GREETINGS_H_
#define GRADCUBE_CONTROL_JOBS_GREETINGS_H_

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "control/jobs/job_actions.h"
#include "control/jobs/node_message.h"

namespace gradcube::control {

struct GreetingTiming {
  Instant interval = std::chrono::milliseconds(100);
  Instant silent_after = std::chrono::seconds(1);
};

class Greetings {
 public:
  using Servers = std::vector<bcube::ServerId>;

  Greetings(bcube::ServerId server, Incarnation incarnation, const GreetingTiming& timing)
      : server_(server), incarnation_(incarnation), timing_(timing) {}

  // Both ascending, without this server. Who becomes greeted is greeted with the next on_time().
  void set_peers(const Servers& greeted, const Servers& watched, Instant now);

  bool greets(bcube::ServerId server) const { return greeted_.contains(server); }
  // Of the daemon that speaks for the server (introductions.h).
  void on_greeting(bcube::ServerId from, const Greeting& greeting, Instant now);
  // Anything else came from it: messages, data. Of this incarnation.
  void on_sign_of_life(bcube::ServerId from, Instant now);
  // What to send, and who has become silent.
  void on_time(Instant now, std::vector<NodeMessage>& messages, Servers& silent);
  std::optional<Instant> deadline() const;

  // Anything at all, whether or not a sign of life; nothing if never.
  std::optional<Instant> last_heard(bcube::ServerId server) const;

 private:
  void on_life(bcube::ServerId from, Instant now);

  bcube::ServerId server_;
  Incarnation incarnation_;
  GreetingTiming timing_;
  std::set<bcube::ServerId> greeted_;
  std::map<bcube::ServerId, Instant> due_;  // of the watched: the report, if nothing is heard
  std::map<bcube::ServerId, Incarnation> incarnations_;  // of the last greeting
  std::map<bcube::ServerId, Instant> heard_;
  std::set<bcube::ServerId> deaf_;  // whose newest greeting said that it does not hear this server
  Instant next_{};                  // greetings of all
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_GREETINGS_H_
