// Which paths to other servers work, as far as one engine knows: its server's own links from
// ServerLinks, those of relays from what they have told lately.
//
// Owned and used by one engine. What gives routes allocates: it is asked when links fail, not when
// frames come.
#ifndef GRADCUBE_DATAPLANE_LINKS_WORKING_PATHS_H_
#define GRADCUBE_DATAPLANE_LINKS_WORKING_PATHS_H_

#include <cstdint>
#include <vector>

#include "bcube_forwarding/neighbours.h"
#include "bcube_forwarding/route.h"
#include "dataplane/links/failed_hops.h"
#include "dataplane/links/server_links.h"
#include "protocol/time.h"
#include "protocol/wire.h"

namespace gradcube::dataplane {

class WorkingPaths {
 public:
  // Both must outlive it.
  WorkingPaths(const bcube::NeighbourTable& neighbours, const ServerLinks& links)
      : neighbours_(neighbours), links_(links) {}

  // A relay's notice. False: it tells of a link that there is not, or of another server's.
  bool take_failure(const protocol::ParsedFrame& notice, protocol::Nanoseconds now);
  // Whether something works that did not, or the other way round, since it last said so; what
  // relays tell counts once in a millisecond at most.
  bool have_changed(protocol::Nanoseconds now);
  // What followed from that could not be done: so it is said again, soon.
  void ask_again() { next_change_ = changed_at_ + kBetweenChanges; }
  // When to ask next; kNever if only for what others tell.
  protocol::Nanoseconds next_change() const;

  bool works(bcube::ServerId from, bcube::Hop hop) const;
  bool works(const bcube::Route& route) const;
  // The parallel paths whose hops all work, the shortest first.
  std::vector<bcube::Route> to(bcube::ServerId server) const;
  // The planned one, or else the shortest of the parallel paths that works; first of those that
  // leave through another port, as the whole port may have failed here or at the other end. Where
  // none does, the planned one again if something is heard over its first link, else a path that
  // begins with a link over which something is: what relays have told may be over, and links that
  // lose much are not always down when they seem to be.
  bcube::Route best(const bcube::Route& planned, bcube::ServerId server) const;

 private:
  // So often at most what relays tell counts: whoever sends such notices takes little time.
  static constexpr protocol::Nanoseconds kBetweenChanges = protocol::kMillisecond;

  std::vector<bcube::Route> paths(bcube::ServerId server, const bcube::HopFilter& usable) const;
  unsigned port_of(const bcube::Route& route) const {
    return neighbours_.find(route[0].level, route[0].digit)->port;
  }

  const bcube::NeighbourTable& neighbours_;
  const ServerLinks& links_;
  std::uint32_t links_seen_ = 0;  // their version
  FailedHops failed_hops_;
  protocol::Nanoseconds changed_at_ = 0;
  protocol::Nanoseconds next_change_ = protocol::kNever;  // for what relays have told
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_LINKS_WORKING_PATHS_H_
