#include "control/plan/plan_cost.h"

#include <algorithm>
#include <cmath>

#include "control/plan/base/topology_links.h"

namespace gradcube::control {
namespace {

// A message that needs credit goes after a request and its answer.
constexpr double kTripsWithCredit = 3;
// What a hop beyond the first takes, of the latency between two neighbours: a good part of that is
// spent in the engines at its ends, and a relay passes frames on at once.
constexpr double kRelayedHop = 0.5;

}  // namespace

// What has gone unasked may be on its way still when the next round begins.
double PlanCost::Chain::asking_rounds(double bytes, const CostParameters& parameters) const {
  if (bytes == 0) return 0;
  const double unasked = std::floor(parameters.unasked_bytes / (message * bytes));
  return rounds - std::min<double>(rounds, unasked);
}

// Counts what links and servers do. What all of them do alike stands once: the steps of most plans
// are over one level, and need no look at each server.
class PlanCost::Walk {
 public:
  explicit Walk(const Plan& plan)
      : plan_(plan),
        levels_(plan.topology().link_levels()),
        links_(plan.topology()),
        all_loads_(links_.count()),
        all_alike_(levels_),
        handled_by_(plan.space().addresses(),
                    HandledSteps(std::size_t{plan.threads()} * plan.steps())),
        handled_alike_(std::size_t{plan.threads()} * plan.steps()) {
    for (unsigned t = 0; t < plan.threads(); ++t) weights_ += plan.thread(t).weight;
  }

  LevelLoads step(Stage stage, unsigned index) {
    loads_.assign(links_.count(), Load{});
    alike_.assign(levels_, Load{});
    for (unsigned thread = 0; thread < plan_.threads(); ++thread) {
      if (index < plan_.steps(thread)) walk(thread, stage, plan_.mirrored(thread, stage, index));
    }
    for (std::size_t i = 0; i < loads_.size(); ++i) all_loads_[i].add(loads_[i]);
    for (unsigned l = 0; l < levels_; ++l) all_alike_[l].add(alike_[l]);
    return busiest(loads_, alike_);
  }

  LevelLoads all() const { return busiest(all_loads_, all_alike_); }

  // Of the servers, each kind once.
  std::vector<HandledSteps> handled() const {
    std::vector<HandledSteps> kinds = handled_by_;
    std::sort(kinds.begin(), kinds.end());
    kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
    for (HandledSteps& kind : kinds) add(kind, handled_alike_);
    return kinds;
  }

  HandledSteps average_handled() const {
    HandledSteps all(handled_alike_.size());
    for (const HandledSteps& of_server : handled_by_) add(all, of_server);
    for (Handled& each : all) {
      each.near /= plan_.servers();
      each.relayed /= plan_.servers();
    }
    const double working = static_cast<double>(plan_.ranks()) / plan_.servers();
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].near += handled_alike_[i].near * working;
    }
    return all;
  }

  Chain chain(unsigned thread, unsigned w) const {
    const PlanStep& step = plan_.step(thread, w);
    const Load load = sent(thread, w);
    Chain chain{message(thread, w), step.rounds(), LevelLoads(levels_)};
    const auto level = plan_.level(thread, w);
    if (level && each_has_links_of_its_own()) {
      chain.loads[*level] = step.is_ring() ? load : times(load, step.participants() - 1);
      chain.ways.push_back({});
      chain.ways.back()[*level] = 1;
      return chain;
    }
    const bool own_links = plan_.topology().is_tree() || plan_.topology().has_own_ports();
    std::vector<Load> on_links(own_links ? links_.count() : 0);
    for_each_transfer(thread, Stage::aggregation, w, [&](Rank from, Rank to) {
      const Route route = plan_.route(from, to, thread);
      const Way way = way_of(plan_.placement().server(from), route);
      if (std::find(chain.ways.begin(), chain.ways.end(), way) == chain.ways.end()) {
        chain.ways.push_back(way);
      }
      if (on_links.empty()) return;
      links_.for_each(plan_.placement().server(from), route,
                      [&](auto link) { on_links[link].add(load); });
    });
    if (!on_links.empty()) {
      chain.loads = busiest(on_links, LevelLoads(levels_));
      return chain;
    }
    for (const Way& way : chain.ways) {
      for (unsigned l = 0; l < levels_; ++l) {
        if (way[l] > 0) chain.loads[l] = load;
      }
    }
    return chain;
  }

 private:
  LevelLoads busiest(const std::vector<Load>& links, const LevelLoads& alike) const {
    LevelLoads most(levels_);
    for (std::size_t i = 0; i < links.size(); ++i) {
      if (links[i].messages == 0) continue;
      Load& of_level = most[links_.level(i)];
      const Load load = times(links[i], links_.slowness(i));
      of_level.share = std::max(of_level.share, load.share);
      of_level.messages = std::max(of_level.messages, load.messages);
    }
    for (unsigned l = 0; l < levels_; ++l) most[l].add(alike[l]);
    return most;
  }

  // Then a step over one level loads each server's port to that level, and no others.
  bool each_has_links_of_its_own() const {
    return !plan_.space().cabled() && !plan_.topology().is_tree() &&
           !plan_.topology().has_own_ports();
  }

  Way way_of(ServerId from, const Route& route) const {
    Way way{};
    ServerId at = from;
    for (const Hop& hop : route) {
      const ServerId next = plan_.space().with_digit(at, hop.level, hop.digit);
      ++way[plan_.topology().link_level(at, next, hop.level)];
      at = next;
    }
    return way;
  }

  static Load times(const Load& load, double count) {
    return {load.share * count, load.messages * count};
  }

  static void add(HandledSteps& to, const HandledSteps& handled) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += handled[i];
  }

  // Of what one rank sends to one peer in the step, in one round.
  double message(unsigned thread, unsigned w) const {
    double share = plan_.thread(thread).weight / weights_;
    for (unsigned u = 0; u <= w; ++u) share /= plan_.step(thread, u).parts();
    return share;
  }

  // What one rank sends to one peer in the step.
  Load sent(unsigned thread, unsigned w) const {
    const unsigned rounds = plan_.step(thread, w).rounds();
    return {message(thread, w) * rounds, static_cast<double>(rounds)};
  }

  void walk(unsigned thread, Stage stage, unsigned w) {
    const Load load = sent(thread, w);
    const PlanStep& step = plan_.step(thread, w);
    const auto level = plan_.level(thread, w);
    const std::size_t place = std::size_t{thread} * plan_.steps() + w;
    // On cables a rank uses one of the level's two ports, or both.
    if (level && !plan_.has_root_step() && each_has_links_of_its_own()) {
      const double peers = step.is_ring() ? 1 : step.radix - 1;
      alike_[*level].add(times(load, peers));
      handled_alike_[place].near += 2 * load.messages * peers;
      return;
    }
    for_each_transfer(thread, stage, w, [&](Rank from, Rank to) {
      ServerId at = plan_.placement().server(from);
      const Route route = plan_.route(from, to, thread);
      Handled handled;
      (route.size() > 1 ? handled.relayed : handled.near) = load.messages;
      for (const Hop& hop : route) {
        const ServerId next = plan_.space().with_digit(at, hop.level, hop.digit);
        handled_by_[at][place] += handled;
        handled_by_[next][place] += handled;
        at = next;
      }
      links_.for_each(plan_.placement().server(from), route,
                      [&](auto link) { loads_[link].add(load); });
    });
  }

  // Calls visit(from, to) for each pair of ranks of which one sends to the other in the step.
  template <typename Visit>
  void for_each_transfer(unsigned thread, Stage stage, unsigned w, Visit&& visit) const {
    const PlanStep& step = plan_.step(thread, w);
    for (Rank rank = 0; rank < plan_.ranks(); ++rank) {
      if (!plan_.works(rank, thread, w)) continue;
      const unsigned own = step.digit(rank);
      if (step.is_root()) {
        if (own == 0 || !step.takes_part(rank)) continue;
        const Rank root = step.with_digit(rank, 0);
        visit(stage == Stage::aggregation ? rank : root, stage == Stage::aggregation ? root : rank);
      } else if (step.is_ring()) {
        visit(rank, step.with_digit(rank, (own + 1) % step.radix));
      } else {
        for (unsigned digit = 0; digit < step.radix; ++digit) {
          if (digit != own) visit(rank, step.with_digit(rank, digit));
        }
      }
    }
  }

  const Plan& plan_;
  unsigned levels_;
  TopologyLinks links_;
  double weights_ = 0;
  // Of the step at hand, and of all: by link, and what every link of a level carries beside that.
  std::vector<Load> loads_;
  LevelLoads alike_;
  std::vector<Load> all_loads_;
  LevelLoads all_alike_;
  std::vector<HandledSteps> handled_by_;  // [server]
  HandledSteps handled_alike_;            // of every server with a rank, beside that
};

PlanCost::PlanCost(const Plan& plan)
    : ranks_(plan.ranks()),
      has_root_step_(plan.has_root_step()),
      stages_(plan.doubles() ? 1 : kStages),
      one_port_(plan.topology().ports() == 1),
      chains_(plan.threads()) {
  Walk walk(plan);
  for (unsigned stage = 0; stage < stages_; ++stage) {
    for (unsigned index = 0; index < plan.steps(); ++index) {
      steps_.push_back(walk.step(static_cast<Stage>(stage), index));
    }
  }
  for (unsigned thread = 0; thread < plan.threads(); ++thread) {
    for (unsigned w = 0; w < plan.steps(thread); ++w) {
      chains_[thread].push_back(walk.chain(thread, w));
    }
  }
  all_ = walk.all();
  servers_ = walk.handled();
  average_ = walk.average_handled();
}

// Of one stage: the longest of the threads, which run side by side.
double PlanCost::chain_seconds(double bytes, const CostParameters& parameters) const {
  double longest = 0;
  for (const std::vector<Chain>& chains : chains_) {
    double seconds = 0;
    for (const Chain& chain : chains) {
      double slowest = 0;
      const double asking_rounds = chain.asking_rounds(bytes, parameters);
      for (const Way& way : chain.ways) {
        double trip = 0;
        unsigned hops = 0;
        for (unsigned l = 0; l < parameters.levels.size(); ++l) {
          trip += way[l] * parameters.levels[l].latency;
          hops += way[l];
        }
        if (hops > 1) trip *= (1 + (hops - 1) * kRelayedHop) / hops;
        const double asking = hops > 1 ? chain.rounds : asking_rounds;
        slowest = std::max(slowest, (chain.rounds + asking * (kTripsWithCredit - 1)) * trip);
      }
      seconds += slowest;
    }
    longest = std::max(longest, seconds);
  }
  return longest;
}

// That a server sends, receives and relays, with requests for credit and their answers. A long
// message is one of many segments.
double PlanCost::handled_messages(const HandledSteps& handled, double bytes,
                                  const CostParameters& parameters) const {
  const std::size_t steps = handled.size() / chains_.size();
  double messages = 0;
  for (std::size_t i = 0; i < handled.size(); ++i) {
    const auto& [near, relayed] = handled[i];
    if (near + relayed == 0) continue;
    const Chain& chain = chains_[i / steps][i % steps];
    const double segments = std::max(1.0, chain.message * bytes / parameters.segment_bytes);
    const double asking = relayed + near * chain.asking_rounds(bytes, parameters) / chain.rounds;
    messages += (near + relayed) * segments + asking * (kTripsWithCredit - 1);
  }
  return messages;
}

// Of the busiest core, of which each server has a part at least.
double PlanCost::core_messages(double bytes, const CostParameters& parameters) const {
  double most = parameters.servers_per_core * handled_messages(average_, bytes, parameters);
  for (const HandledSteps& server : servers_) {
    most = std::max(most, handled_messages(server, bytes, parameters));
  }
  return most;
}

double PlanCost::messages_on_a_core(double servers_per_core) const {
  return core_messages(0, {.levels = {}, .servers_per_core = servers_per_core});
}

// What the slowest link carries in a step.
double PlanCost::step_seconds(const Chain& chain, double bytes,
                              const CostParameters& parameters) const {
  double slowest = 0;
  for (unsigned l = 0; l < chain.loads.size(); ++l) {
    slowest = std::max(slowest,
                       chain.loads[l].seconds(bytes, parameters.frame_bytes, parameters.levels[l]));
  }
  return slowest;
}

// Where segments flow: the longest of the threads, of which each has its links for itself. What
// comes first out of a ring comes in its last round, and what enters it last goes through all
// rounds but the first after that.
double PlanCost::flow_seconds(double bytes, const CostParameters& parameters) const {
  double longest = 0;
  for (const std::vector<Chain>& chains : chains_) {
    double begin = 0;
    double end = 0;
    const Chain* before = nullptr;
    for (std::size_t i = 0; i < stages_ * chains.size(); ++i) {
      const Chain& chain = chains[i < chains.size() ? i : 2 * chains.size() - 1 - i];
      if (before != nullptr && before->rounds > 1) {
        const bool same_links = one_port_ || before->ways == chain.ways;
        begin = same_links ? end : begin + beyond_one_round(*before, bytes, parameters);
      }
      end = std::max(begin + step_seconds(chain, bytes, parameters),
                     end + beyond_one_round(chain, bytes, parameters));
      before = &chain;
    }
    longest = std::max(longest, end);
  }
  return longest;
}

PlanTime PlanCost::time(CollectiveKind kind, double bytes, const CostParameters& parameters) const {
  const auto seconds = [&](const LevelLoads& loads, unsigned level) {
    return loads[level].seconds(bytes, parameters.frame_bytes, parameters.levels[level]);
  };
  PlanTime time;
  for (unsigned l = 1; l < all_.size(); ++l) {
    if (seconds(all_, l) > seconds(all_, time.busiest)) time.busiest = l;
  }
  const double at_once = std::max(seconds(all_, time.busiest), flow_seconds(bytes, parameters));
  double in_turn = 0;
  for (const LevelLoads& step : steps_) {
    double slowest = 0;
    for (unsigned l = 0; l < step.size(); ++l) slowest = std::max(slowest, seconds(step, l));
    in_turn += slowest;
  }
  const double segments = std::max(1.0, bytes / ranks_ / parameters.segment_bytes);
  time.transfer = at_once + (in_turn - at_once) / segments;
  time.latency = stages_ * chain_seconds(bytes, parameters) +
                 core_messages(bytes, parameters) * parameters.overhead;
  if (is_rank_ordered(kind) && !has_root_step_) {
    time.transfer /= 2;
    time.latency /= 2;
  }
  return time;
}

}  // namespace gradcube::control
