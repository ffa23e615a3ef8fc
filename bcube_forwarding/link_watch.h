// Which of a server's links work, by what comes over them.
//
// Neighbours greet each other over each link once in an interval. The caller says what is a sign of
// life: what shows that the neighbour lives and hears this server, so that both ends of a link that
// is broken one way find out. A link is down after kSilentIntervals without any. It is up again
// when there was one in kCalm intervals without a silence between them; in twice as many each time
// that it goes down again within kForget intervals, so that a link that flaps is left alone. At
// first every link is taken to be up.
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

  // One came over the link in this interval.
  void on_sign_of_life(Hop link) { at(link).heard = true; }
  // An interval has ended. Whether the state of any link has changed.
  bool end_interval();

  // Whether one came lately.
  bool hears(Hop link) const { return at(link).silent < kSilentIntervals; }
  bool up(Hop link) const { return at(link).up; }

 private:
  struct Link {
    bool up = true;
    bool heard = false;         // in this interval
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
