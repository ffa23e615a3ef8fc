// Finds out which of a server's links work, and keeps telling the neighbours that it is there.
//
// Once in an interval each neighbour is owed a greeting, which says whether this server hears it.
// What came over a link in the interval, of any engine's frames, is a sign of life as well
// (bcube_forwarding/link_watch.h). What follows is published in ServerLinks, for all engines.
//
// A port may also announce about once a second which one it is, to whoever hears it: for ports that
// may be cabled to others than their neighbours. An announcement is no sign of life: it does not
// say whether its sender hears this server. Of greetings that do not belong behind the port the
// last one is kept, to be put into words (daemon/cabling.h).
//
// It sends nothing itself: the engine asks which ports owe greetings, and has them written into its
// packets. Each engine has one; that of one engine of each server has an interval. Allocates at the
// start.
#ifndef GRADCUBE_DATAPLANE_LINKS_LINK_KEEPER_H_
#define GRADCUBE_DATAPLANE_LINKS_LINK_KEEPER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bcube_forwarding/link_watch.h"
#include "bcube_forwarding/neighbours.h"
#include "dataplane/links/server_links.h"
#include "dataplane/links/wrong_greeting.h"
#include "protocol/index_set.h"
#include "protocol/time.h"
#include "protocol/wire.h"

namespace gradcube::dataplane {

struct GreetingSettings {
  // 0: it neither greets nor hears greetings.
  protocol::Nanoseconds interval = 0;
  // What greetings say of the settings. Neighbours with another fingerprint are not heard.
  protocol::SettingsDigest digest{};
  bool announces = false;
};

// What a greeting turned out to be.
enum class GreetingVerdict : std::uint8_t {
  fits,
  wrong_link,     // comes over another link than it names, or nobody listens to it
  wrong_cluster,  // of a server with other settings
};

class LinkKeeper {
 public:
  // The references must outlive it.
  LinkKeeper(const GreetingSettings& settings, const bcube::NeighbourTable& neighbours,
             ServerLinks& links);

  // Each iteration, after what has arrived: a sign of life counts before its absence does.
  void keep(protocol::Nanoseconds now) {
    if (now >= next_greeting_) end_interval(now);
  }
  protocol::Nanoseconds next_greeting() const { return next_greeting_; }

  bool owes(unsigned port) const { return !owed_[port].empty(); }
  // The next greeting that the port owes, which is then owed no more. Returns its length.
  std::size_t write_owed(unsigned port, std::span<std::uint8_t> out);

  // A greeting, or an announcement, that came through the port.
  GreetingVerdict take(const protocol::ParsedFrame& greeting, unsigned port,
                       protocol::Nanoseconds now);
  // What the port has heard lately and should not.
  WrongGreeting wrong_greeting(unsigned port, protocol::Nanoseconds now) const;

 private:
  void end_interval(protocol::Nanoseconds now);
  template <typename Function>
  void for_each_link(const Function& function) const;

  GreetingSettings settings_;
  const bcube::NeighbourTable& neighbours_;
  ServerLinks& links_;
  bcube::LinkWatch watch_;
  protocol::Nanoseconds next_greeting_ = 0;
  protocol::Nanoseconds next_announcement_ = 0;
  std::vector<protocol::IndexSet> owed_;  // by port: neighbours' digits; the own one: announces
  std::vector<std::vector<std::uint64_t>> frames_;  // by level and digit, one interval ago
  std::vector<WrongGreeting> wrong_greetings_;      // by port; the last of each
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_LINKS_LINK_KEEPER_H_
