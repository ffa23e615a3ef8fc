#include "control/plan/plan_cost.h"

#include <algorithm>

namespace gradcube::control {
namespace {

// A relayed message goes after a request for credit and its answer.
constexpr double kTripsOfRelayed = 3;

}  // namespace

// Counts what links and servers do. What all of them do alike stands once: the steps of most plans
// are over one level, and need no look at each server.
class PlanCost::Walk {
 public:
  explicit Walk(const Plan& plan)
      : plan_(plan),
        levels_(plan.topology().levels()),
        ports_(plan.space().ports()),
        all_links_(std::size_t{plan.servers()} * ports_ * 2),
        all_alike_(levels_),
        messages_of_(plan.servers()) {
    for (unsigned t = 0; t < plan.threads(); ++t) weights_ += plan.thread(t).weight;
  }

  LevelLoads step(Stage stage, unsigned index) {
    links_.assign(all_links_.size(), Load{});
    alike_.assign(levels_, Load{});
    for (unsigned thread = 0; thread < plan_.threads(); ++thread) {
      if (index < plan_.steps(thread)) walk(thread, stage, plan_.mirrored(thread, stage, index));
    }
    for (std::size_t i = 0; i < links_.size(); ++i) all_links_[i].add(links_[i]);
    for (unsigned l = 0; l < levels_; ++l) all_alike_[l].add(alike_[l]);
    return busiest(links_, alike_);
  }

  LevelLoads all() const { return busiest(all_links_, all_alike_); }

  double server_messages() const {
    return messages_alike_ + *std::max_element(messages_of_.begin(), messages_of_.end());
  }

  Chain chain(unsigned thread, unsigned w) const {
    const PlanStep& step = plan_.step(thread, w);
    Chain chain{step.rounds(), sent(thread, w)};
    const auto level = plan_.level(thread, w);
    if (level && !plan_.space().cabled()) {
      if (!step.is_ring()) chain.load = times(chain.load, step.radix - 1);
      chain.ways.push_back({});
      chain.ways.back()[*level] = 1;
      return chain;
    }
    for_each_transfer(thread, Stage::aggregation, w, [&](Rank from, Rank to) {
      Way way{};
      for (const Hop& hop : plan_.route(from, to)) ++way[hop.level];
      if (std::find(chain.ways.begin(), chain.ways.end(), way) == chain.ways.end()) {
        chain.ways.push_back(way);
      }
    });
    return chain;
  }

 private:
  LevelLoads busiest(const std::vector<Load>& links, const LevelLoads& alike) const {
    LevelLoads most(levels_);
    for (std::size_t i = 0; i < links.size(); ++i) {
      Load& of_level = most[plan_.space().level_of_port(static_cast<unsigned>(i / 2 % ports_))];
      of_level.share = std::max(of_level.share, links[i].share);
      of_level.messages = std::max(of_level.messages, links[i].messages);
    }
    for (unsigned l = 0; l < levels_; ++l) most[l].add(alike[l]);
    return most;
  }

  static Load times(const Load& load, double count) {
    return {load.share * count, load.messages * count};
  }

  // What one rank sends to one peer in the step.
  Load sent(unsigned thread, unsigned w) const {
    double share = plan_.thread(thread).weight / weights_;
    for (unsigned u = 0; u <= w; ++u) share /= plan_.step(thread, u).parts();
    const unsigned rounds = plan_.step(thread, w).rounds();
    return {share * rounds, static_cast<double>(rounds)};
  }

  void walk(unsigned thread, Stage stage, unsigned w) {
    const Load load = sent(thread, w);
    const PlanStep& step = plan_.step(thread, w);
    const auto level = plan_.level(thread, w);
    // On cables a rank uses one of the level's two ports, or both.
    if (level && !plan_.has_root_step() && !plan_.space().cabled()) {
      const double peers = step.is_ring() ? 1 : step.radix - 1;
      alike_[*level].add(times(load, peers));
      messages_alike_ += 2 * load.messages * peers;
      return;
    }
    for_each_transfer(thread, stage, w, [&](Rank from, Rank to) {
      ServerId at = plan_.placement().server(from);
      for (const Hop& hop : plan_.route(from, to)) {
        const ServerId next = plan_.space().with_digit(at, hop.level, hop.digit);
        pass(at, next, hop.level, 0, load);
        pass(next, at, hop.level, 1, load);
        at = next;
      }
    });
  }

  // A message that leaves (direction 0) or enters (1) a server by its port to a neighbour.
  void pass(ServerId server, ServerId neighbour, unsigned level, unsigned direction,
            const Load& load) {
    const AddressSpace& space = plan_.space();
    const unsigned port = space.port_of(server, level, space.digit(neighbour, level));
    links_[(std::size_t{server} * ports_ + port) * 2 + direction].add(load);
    messages_of_[server] += load.messages;
  }

  // Calls visit(from, to) for each pair of ranks of which one sends to the other in the step.
  template <typename Visit>
  void for_each_transfer(unsigned thread, Stage stage, unsigned w, Visit&& visit) const {
    const PlanStep& step = plan_.step(thread, w);
    for (Rank rank = 0; rank < plan_.ranks(); ++rank) {
      if (!plan_.works(rank, thread, w)) continue;
      const unsigned own = step.digit(rank);
      if (step.is_root()) {
        if (own == 0) continue;
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
  unsigned ports_;
  double weights_ = 0;
  // Of the step at hand, and of all: [(server * ports + port) * 2 + direction], and what every
  // link of a level carries beside that.
  std::vector<Load> links_;
  LevelLoads alike_;
  std::vector<Load> all_links_;
  LevelLoads all_alike_;
  std::vector<double> messages_of_;  // [server]
  double messages_alike_ = 0;        // of every server, beside that
};

PlanCost::PlanCost(const Plan& plan)
    : ranks_(plan.ranks()), has_root_step_(plan.has_root_step()), chains_(plan.threads()) {
  Walk walk(plan);
  for (const Stage stage : {Stage::aggregation, Stage::broadcast}) {
    for (unsigned index = 0; index < plan.steps(); ++index) {
      steps_.push_back(walk.step(stage, index));
    }
  }
  for (unsigned thread = 0; thread < plan.threads(); ++thread) {
    for (unsigned w = 0; w < plan.steps(thread); ++w) {
      chains_[thread].push_back(walk.chain(thread, w));
    }
  }
  all_ = walk.all();
  server_messages_ = walk.server_messages();
}

// Of one stage: the longest of the threads, which run side by side.
double PlanCost::chain_seconds(const CostParameters& parameters) const {
  double longest = 0;
  for (const std::vector<Chain>& chains : chains_) {
    double seconds = 0;
    for (const Chain& chain : chains) {
      double slowest = 0;
      for (const Way& way : chain.ways) {
        double trip = 0;
        unsigned hops = 0;
        for (unsigned l = 0; l < parameters.levels.size(); ++l) {
          trip += way[l] * parameters.levels[l].latency;
          hops += way[l];
        }
        const bool relayed = hops > 1;
        slowest = std::max(slowest, relayed ? kTripsOfRelayed * trip : trip);
      }
      seconds += chain.rounds * slowest;
    }
    longest = std::max(longest, seconds);
  }
  return longest;
}

// What a link carries in a step, on the slowest of its ways.
double PlanCost::step_seconds(const Chain& chain, double bytes,
                              const CostParameters& parameters) const {
  double slowest = 0;
  for (const Way& way : chain.ways) {
    for (unsigned l = 0; l < parameters.levels.size(); ++l) {
      if (way[l] == 0) continue;
      slowest = std::max(slowest,
                         chain.load.seconds(bytes, parameters.frame_bytes, parameters.levels[l]));
    }
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
    for (std::size_t i = 0; i < 2 * chains.size(); ++i) {
      const Chain& chain = chains[i < chains.size() ? i : 2 * chains.size() - 1 - i];
      if (before != nullptr && before->rounds > 1) {
        const bool same_links = before->ways == chain.ways;
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
  time.latency = 2 * chain_seconds(parameters) + server_messages_ * parameters.overhead;
  if (is_rank_ordered(kind) && !has_root_step_) {
    time.transfer /= 2;
    time.latency /= 2;
  }
  return time;
}

}  // namespace gradcube::control
