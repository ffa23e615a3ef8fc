// Finds out which of a server's links work, and keeps telling the neighbours that it is there.
//
// Once in an interval each neighbour is owed a greeting. It has a number, and the last one that was
// heard of the neighbour. A greeting that comes back with one of this server's last numbers is
// FRESH: it shows that its sender lives and hears this server, and is a sign of life. One that does
// not is STALE: somebody may have recorded it, or its sender has not heard this server, or not yet.
// It is answered at once, with its number, and changes nothing else: only who lives can make a
// fresh one of the answer. The first fresh one after a pause is answered, too. So neighbours that
// start know each other as soon as they have heard each other. New frames that came over a link in
// the interval, of any engine's, are a sign of life as well (bcube_forwarding/link_watch.h). What
// follows is published in ServerLinks, for all engines.
//
// Nothing that comes over a link is a sign of life while it does not carry frames of full length
// both ways, as greetings that are padded to it show (full_frames.h). A neighbour that is heard
// gets a padded one when it asks, and else one in kPaddedEvery intervals, because a way may change
// while it is in use. What they take of a port is bounded: neighbours that have to wait stay due,
// and get theirs in turn.
//
// A port may also announce about once a second which one it is, to whoever hears it: for ports that
// may be cabled to others than their neighbours. An announcement is no sign of life. It answers the
// last that its port has heard and should not have. Of greetings that do not belong behind the port
// the last fresh one is kept, to be put into words (daemon/cabling.h).
//
// It sends nothing itself: the engine asks which ports owe greetings, and has them written into its
// packets. Each engine has one; that of one engine of each server has an interval. Allocates at the
// start.
#ifndef GRADCUBE_DATAPLANE_LINKS_LINK_KEEPER_H_
#define GRADCUBE_DATAPLANE_LINKS_LINK_KEEPER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bcube_forwarding/link_watch.h"
#include "bcube_forwarding/neighbours.h"
#include "dataplane/links/full_frames.h"
#include "dataplane/links/server_links.h"
#include "dataplane/links/wrong_greeting.h"
#include "protocol/index_set.h"
#include "protocol/mac.h"
#include "protocol/time.h"
#include "protocol/wire.h"

namespace gradcube::dataplane {

struct GreetingSettings {
  // 0: it neither greets nor hears greetings.
  protocol::Nanoseconds interval = 0;
  // What greetings say of the settings. Neighbours with another fingerprint are not heard.
  protocol::SettingsDigest digest{};
  bool announces = false;
  // The number of the first interval's greetings: another one each time that a server is started.
  std::uint64_t first_number = 1;
  // That pass until an answer can be there, by the delay of the links.
  std::uint64_t intervals_on_the_way = 0;
  // Of the longest frame, with its Ethernet header; 0: none is padded, and links are taken to carry
  // what there is.
  std::uint32_t padded_bytes = 0;
  // Of a padded greeting, how many sixteenths a port may send in that time, which is an interval
  // at most; 0: in an interval. It may save up one, or what it may send in that time.
  unsigned padded_sixteenths = 64;
  protocol::Nanoseconds padded_time = 0;
  const protocol::ServerKeys* keys = nullptr;  // of greetings; null: they have a CRC
};

// What a greeting turned out to be.
enum class GreetingVerdict : std::uint8_t {
  fits,
  stale,          // nothing shows that its sender lives
  wrong_link,     // comes over another link than it names, or nobody listens to it
  wrong_cluster,  // of a server with other settings
  wrong_length,   // padded, and not to the longest frame
};

// A link over which small frames pass and full ones do not.
struct LossyLength {
  bcube::ServerId neighbour = 0;
  bool from = false;  // the neighbour's do not come
  bool to = false;    // those of this server do not come there

  bool operator==(const LossyLength&) const = default;
};

// What a greeting has in its packet: headers, and how much padding belongs behind them.
struct GreetingBytes {
  std::size_t headers = 0;
  std::size_t padding = 0;
};

class LinkKeeper {
 public:
  // A greeting that answers one of so many intervals, this one among them, is fresh; and of those
  // that a round trip takes.
  static constexpr std::uint64_t kFreshIntervals = 5;
  // That wait at a port; to what comes beyond that there is none.
  static constexpr std::size_t kMostAnswers = 32;
  static constexpr std::uint64_t kPaddedEvery = 16;

  // The references must outlive it.
  LinkKeeper(const GreetingSettings& settings, const bcube::NeighbourTable& neighbours,
             ServerLinks& links);

  // Each iteration, after what has arrived: a sign of life counts before its absence does.
  void keep(protocol::Nanoseconds now) {
    if (now >= next_greeting_) end_interval(now);
    if (now >= next_padded_) owe_padded(now);
  }
  protocol::Nanoseconds next_greeting() const { return std::min(next_greeting_, next_padded_); }

  bool owes(unsigned port) const {
    const Port& its = ports_[port];
    return !its.padded_owed.empty() || !its.owed.empty() || !its.answers.empty();
  }
  // Whether the next one is padded.
  bool owes_padded(unsigned port) const { return !ports_[port].padded_owed.empty(); }
  // The next greeting that the port owes, which is then owed no more.
  GreetingBytes write_owed(unsigned port, std::span<std::uint8_t> out);

  // A greeting, or an announcement, that came through the port.
  GreetingVerdict take(const protocol::ParsedFrame& greeting, unsigned port,
                       protocol::Nanoseconds now);
  // One whose MAC is wrong came through the port.
  void note_other_key(const protocol::LinkHeader& greeting, unsigned port,
                      protocol::Nanoseconds now) {
    ports_[port].other_key = {GreetingFault::other_key, greeting.level, greeting.server,
                              greeting.settings, now};
  }
  // The port's links that are down though the neighbour is heard: what comes over them is too
  // short. Allocates.
  std::vector<LossyLength> lossy_lengths(unsigned port) const;
  // What the port has heard lately and should not. Anybody can make it hear another key, so that is
  // told of beside what is known to be wrong.
  WrongGreeting wrong_greeting(unsigned port, protocol::Nanoseconds now) const {
    return if_lately(ports_[port].wrong_greeting, now);
  }
  WrongGreeting other_key(unsigned port, protocol::Nanoseconds now) const {
    return if_lately(ports_[port].other_key, now);
  }

 private:
  // In the last fresh greeting of a neighbour.
  struct Heard {
    std::uint64_t number = 0;    // that is sent back
    std::uint64_t interval = 0;  // in which it came, by the number of its greetings
  };
  struct Link {
    bcube::LinkWatch watch;
    Heard heard;
    FullFrames full;
    std::uint64_t frames = 0;  // that had come over it when the last interval ended
  };

  // To a stale greeting, the first fresh one, or the padded one that was missing.
  struct Answer {
    std::size_t digit = 0;     // of the neighbour
    std::uint64_t number = 0;  // the greeting's

    bool operator==(const Answer&) const = default;
  };

  struct Port {
    protocol::IndexSet owed;         // digits of neighbours; the own one: announces
    protocol::IndexSet padded_owed;  // digits of neighbours
    protocol::IndexSet padded_due;   // the same, of who waits for one
    std::size_t padded_next = 0;     // the digit whose turn is next
    unsigned padded_saved = 0;       // in sixteenths of a padded greeting
    std::vector<Answer> answers;
    std::uint64_t wrong_number = 0;  // of the last greeting that should not be heard
    WrongGreeting wrong_greeting;    // the last one
    WrongGreeting other_key;         // the same
  };

  struct Owed {
    std::size_t digit = 0;   // of the neighbour; the own one: announces
    std::uint64_t echo = 0;  // the number that it answers
    bool padded = false;
  };

  void end_interval(protocol::Nanoseconds now);
  void find_due(unsigned port);
  void owe_padded(protocol::Nanoseconds now);
  void owe_padded(Port& port);
  Owed next_owed(Port& port, unsigned level);
  bool is_heard(bcube::Hop link) const;
  Link& at(bcube::Hop link) { return of_links_[link.level][link.digit]; }
  const Link& at(bcube::Hop link) const { return of_links_[link.level][link.digit]; }
  WrongGreeting if_lately(const WrongGreeting& heard, protocol::Nanoseconds now) const;
  bool is_fresh(std::uint64_t echo, std::uint64_t intervals) const;
  const bcube::Neighbour* sender_of(const protocol::LinkHeader& greeting, unsigned port) const;
  void answer(const bcube::Neighbour& to, std::uint64_t number);
  GreetingVerdict take_wrong(GreetingFault fault, const protocol::ParsedFrame& greeting,
                             unsigned port, protocol::Nanoseconds now);
  template <typename Function>
  void for_each_link(const Function& function) const;

  GreetingSettings settings_;
  const bcube::NeighbourTable& neighbours_;
  ServerLinks& links_;
  protocol::Nanoseconds next_greeting_ = 0;
  protocol::Nanoseconds next_announcement_ = 0;
  protocol::Nanoseconds next_padded_ = 0;
  std::uint64_t number_;                     // of this interval's greetings
  std::vector<std::vector<Link>> of_links_;  // by level and the neighbour's digit
  std::vector<Port> ports_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_LINKS_LINK_KEEPER_H_
