// When a server probes its parallel paths to which others, and what came of it (BCube source
// routing: BCube, section 4.1). Which path a flow then takes is said in path_choice.h.
//
// Rounds. About once in an interval the owner says to which servers its flows send. They are probed
// one after the other: over all paths to one of them at once, until all have answered or kPatience
// is over. Then the owner decides, while the news is fresh. No more than kMostInARound servers are
// probed in an interval; who is left over is first in the next one. So there are at most
// kMostInARound * kMostPaths probes in an interval, however many flows there are.
//
// Jitter. Rounds and pauses are longer or shorter by up to half, and a flow moves only one time in
// two that another path is better (coin()). So servers that see the same load do not all move their
// flows to the same link at the same time. After a move nothing is probed for an interval: what
// ports carry is an average (dataplane/links/port_loads.h).
//
// Numbers of probes are drawn, so that an old answer, or a guess, is hardly taken for a new one.
//
// Time and the seed of its randomness are handed in. Single-threaded, no I/O. Allocates where it
// learns of other servers, not per answer: where there is no memory for what it is asked, nothing
// is lost by asking again.
#ifndef GRADCUBE_BCUBE_FORWARDING_PATH_PROBER_H_
#define GRADCUBE_BCUBE_FORWARDING_PATH_PROBER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "bcube_forwarding/address.h"
#include "bcube_forwarding/path_choice.h"
#include "bcube_forwarding/route.h"

namespace gradcube::bcube {

class PathProber {
 public:
  // Times are in nanoseconds.
  using Time = std::int64_t;
  static constexpr Time kNever = std::numeric_limits<Time>::max();
  static constexpr std::size_t kMostPaths = 8;
  static constexpr std::size_t kMostInARound = 8;
  // An answer is waited for so long: far longer than it takes where pollers share cores.
  static constexpr Time kPatience = 20'000'000;
  // Of the servers that somebody has asked about, so many are remembered.
  static constexpr std::size_t kMostAsked = 16;

  struct News {
    ServerId server = 0;
    std::vector<PathNews> paths;
  };

  // interval: between two rounds; 0: there are none, and only what is asked for is probed.
  PathProber(Time interval, std::uint64_t seed) : interval_(interval), random_(seed) {}

  // Whether it is time for begin_round(). It need not follow at once: without flows there is
  // nothing to probe.
  bool round_due(Time now) const { return interval_ != 0 && now >= next_round_; }
  void begin_round(std::vector<ServerId> servers, Time now);
  // Somebody wants to know the paths to this server: it is probed next. What was known of them is
  // forgotten.
  void ask(ServerId server);

  // Whose turn it is until the owner calls begin() for it. None while others are waited for.
  std::optional<ServerId> next(Time now);
  // Probes leave over these paths, kMostPaths of them at most. Returns their numbers, in the same
  // order.
  std::span<const std::uint32_t> begin(ServerId server, std::span<const Route> paths, Time now);
  // False: it answers nothing that was asked.
  bool on_answer(ServerId from, std::uint32_t number, std::uint64_t bits_per_second_left, Time now);
  // What has come of it, once, when all have answered or nobody is waited for any longer; else
  // null. Valid until the next call of begin().
  const News* take_result(Time now);
  // A flow has moved.
  void on_move(Time now);
  // One time in two.
  bool coin() { return random_() % 2 != 0; }

  // The paths to a server that ask() was called for; null while their answers are awaited.
  const News* asked(ServerId server) const;

  // When next(), take_result() or round_due() have something new to say, as long as there are flows
  // (`sends`); else only for what was asked.
  Time next_event(bool sends) const;

 private:
  Time jittered(Time time) {
    return time / 2 + static_cast<Time>(random_() % static_cast<std::uint64_t>(time + 1));
  }
  bool all_answered() const;
  // Whose first it is the turn of.
  std::deque<ServerId>& queue() { return wanted_.empty() ? turns_ : wanted_; }

  Time interval_;
  std::mt19937_64 random_;
  Time next_round_ = 0;
  Time next_turn_ = 0;
  std::deque<ServerId> turns_;   // of this round
  std::deque<ServerId> wanted_;  // asked for, and not probed yet
  // What is being probed, until waits_until_.
  bool probing_ = false;
  Time began_ = 0;
  Time waits_until_ = 0;
  News current_;
  std::vector<std::uint32_t> numbers_;  // by path
  struct Asked {
    News news;
    bool known = false;
  };
  std::deque<Asked> asked_;  // the newest last
};

}  // namespace gradcube::bcube

#endif  // GRADCUBE_BCUBE_FORWARDING_PATH_PROBER_H_
