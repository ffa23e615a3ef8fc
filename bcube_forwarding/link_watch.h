// Which of a server's links work, by what comes over them.
//
// Neighbours greet each other over each link once in an interval. A greeting says whether its
// sender hears the receiver, so both ends of a link that is broken one way find out. Data counts as
// a sign of life too. A link is down after kSilentIntervals without anything, or as soon as the
// neighbour says that it does not hear this server. It is up again when the neighbour has been
// heard, and hears this server, in kCalm intervals without a silence between them; in twice as many
// each time that it goes down again within kForget intervals, so that a link that flaps is left
// alone. At first every link is taken to be up.
//
// Time is counted in the caller's intervals: while the caller itself stands still, nobody falls
// silent.
//
// Single-threaded, no I/O, no clock. Trusts its arguments to be links of the server.
#ifndef GRADCUBE_BCUBE_FORWARDING_LINK_WATCH_H_
#define GRADCUBE_BCUBE_FORWARDING_LINK_WATCH_H_

#include <cstdint>
#include <vector>

#include "bcube_forwarding/address.h"
#include "bcube_forwarding/route.h"

namespace gradcube::bcube {

class LinkWatch {
 public:
  static constexpr unsigned kSilentIntervals = 3;
  static constexpr unsigned kCalm = 3;
  static constexpr unsigned kMostCalm = 48;
  static constexpr unsigned kForget = 100;

  LinkWatch(const AddressSpace& space, ServerId self);

  // Something came over the link in this interval.
  void on_frame(Hop link) { at(link).heard = true; }
  void on_greeting(Hop link, bool hears_me) {
    at(link).heard = true;
    at(link).hears_me = hears_me;
  }
  // An interval has ended. Whether the state of any link has changed.
  bool end_interval();

  // Whether something came lately: what a greeting over the link says.
  bool hears(Hop link) const { return at(link).silent < kSilentIntervals; }
  bool up(Hop link) const { return at(link).up; }

 private:
  struct Link {
    bool up = true;
    bool heard = false;  // in this interval
    bool hears_me = true;
    unsigned silent = 0;        // intervals
    unsigned calm = 0;          // intervals in which it was heard, since it was silent
    unsigned needed = kCalm;    // of them until it is up
    unsigned steady = kForget;  // intervals since it came up
  };

  Link& at(Hop link) { return links_[link.level][link.digit]; }
  const Link& at(Hop link) const { return links_[link.level][link.digit]; }
  static bool end_interval(Link& link);

  AddressSpace space_;
  ServerId self_;
  std::vector<std::vector<Link>> links_;  // by level and the neighbour's digit
};

}  // namespace gradcube::bcube

#endif  // GRADCUBE_BCUBE_FORWARDING_LINK_WATCH_H_
