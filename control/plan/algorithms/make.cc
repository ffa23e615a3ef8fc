// The makers of plans, one algorithm after the other. The comment above each says what its plan is.
#include "control/plan/algorithms/make.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "control/base/errors.h"
#include "control/plan/algorithms/cut_threads.h"
#include "control/plan/algorithms/requirements.h"
#include "control/plan/algorithms/rotated_levels.h"
#include "control/plan/algorithms/server_cycle.h"
#include "control/plan/algorithms/thread_shares.h"
#include "control/plan/base/step_pattern.h"

namespace gradcube::control {
namespace {

// Digit 0 is the root's; the others follow by ascending number, and then the bystanders but the
// root. Null: so they are.
std::shared_ptr<const DigitOrder> beginning_with(Rank root, std::uint32_t ranks,
                                                 std::span<const Rank> bystanders = {}) {
  if (root == 0 && bystanders.empty()) return nullptr;
  auto order = std::make_shared<DigitOrder>();
  order->set(0, root);
  unsigned digit = 0;
  unsigned last = ranks;
  for (Rank rank = 0; rank < ranks; ++rank) {
    if (rank == root) continue;
    const bool is_last = std::ranges::find(bystanders, rank) != bystanders.end();
    order->set(is_last ? --last : ++digit, rank);
  }
  return order;
}

// Several roots share what is sent to them: each is the root of threads of its own.
void require_few_threads(const std::string& name, std::size_t threads) {
  if (threads <= kMostCutThreads) return;
  throw MisfitError(
      fmt::format("algorithm {}: its roots have threads of their own, {} of them, "
                  "and a plan has at most {}",
                  name, threads, kMostCutThreads));
}

// These threads, once for each root of step w.
std::vector<PlanThread> rooted_at_each(const std::vector<PlanThread>& threads, std::size_t w,
                                       unsigned roots) {
  std::vector<PlanThread> all;
  for (const PlanThread& thread : threads) {
    for (Rank root = 0; root < roots; ++root) {
      PlanStep& step = all.emplace_back(thread).steps[w];
      step.order = beginning_with(root, step.radix);
    }
  }
  return all;
}

}  // namespace

// BML: gradient synchronization on BCube(n,k) in 2(N-1)/(kN) of the time that a link takes for the
// whole gradient (BML, section 3.2, Algorithm 1). docs/bml.md explains it by example.
//
// The gradient has k shares, one for each of k threads: equal ones, unless the topology's levels
// have different rates (thread_shares.h). Thread t visits the levels t, t+1, ..., t+k-1 (mod k), so
// at every step each level is used by exactly one thread. On a part of the servers k counts the
// levels at which they have more than one digit: those under one switch have one thread, of one
// step.
Plan make_bml_plan(const Topology& topology, const Placement& placement) {
  require_switches("bml", topology, "every server sends to every other under one switch");
  require_company("bml", placement);
  require_grid("bml", topology, placement);
  const std::vector<Pattern> meshes(placement.dimensions().size(), Pattern::mesh);
  std::vector<PlanThread> threads = rotated_threads(placement, meshes);
  std::vector<LevelLinks> levels;
  for (const GridDimension& dimension : placement.dimensions()) {
    levels.push_back({dimension.radix, topology.share_bps(dimension.level)});
  }
  const std::vector<unsigned> weights = balanced_weights(levels);
  for (std::size_t t = 0; t < threads.size(); ++t) threads[t].weight = weights[t];
  return Plan("bml", topology, placement, std::move(threads), use_of_rotated(topology));
}

// HiPS: synchronization in stages, one for each level of the topology (HiPS, section 3.2, Algorithm
// 1). In a stage the servers under one switch exchange by a pattern, which may be another in each
// stage. h processes run in parallel, process t from level t on (section 3.3): they are the threads
// of the plan. With the pattern mesh in every stage the exchanges are those of BML. On a torus, the
// group of a stage is a ring; where a stage has the pattern ring, there are 2h threads, a pair from
// each level on, which go round in opposite directions (section 4.2).
//
// A stage of the pattern root may have several roots in each group (PSS with any number of
// parameter servers, section 2.2): those with the digits 0, 1, ..., each of which has an equal
// part. Every process then has a thread for each of them.
//
// A process visits its stages in the order 0..h-1 in the aggregation stage of the plan (the paper's
// Sync1) and backwards in the broadcast stage (Sync2). h counts the levels at which the servers
// have more than one digit.
Plan make_hips_plan(const std::string& name, const Topology& topology, const Placement& placement,
                    std::span<const StagePattern> patterns) {
  require_company(name, placement);
  require_grid(name, topology, placement);
  const std::size_t stages = placement.dimensions().size();
  std::vector<Pattern> of_stages;
  for (const StagePattern& of_stage : patterns) of_stages.push_back(of_stage.pattern);
  if (of_stages.size() == 1) of_stages.resize(stages, of_stages.front());
  if (of_stages.size() != stages) {
    throw UsageError(
        fmt::format("algorithm {} on {} servers: it lists {} patterns; expected 1 for all stages{}",
                    name, placement.ranks(), patterns.size(),
                    stages == 1 ? ", of which there is one here"
                                : fmt::format(", or {}: one for each level at which the servers "
                                              "have several digits",
                                              stages)));
  }
  const bool cabled = topology.space().cabled();
  const auto rings = std::count(of_stages.begin(), of_stages.end(), Pattern::ring);
  const bool adjacent_alone =
      static_cast<std::size_t>(rings) == stages && are_whole_rings(topology, placement);
  std::vector<PlanThread> threads = cabled && rings > 0
                                        ? counter_rotating_threads(placement, of_stages)
                                        : rotated_threads(placement, of_stages);
  LinkUse use = use_of_rotated(topology);
  if (cabled) use = adjacent_alone ? LinkUse::exclusive : LinkUse::shared;
  for (std::size_t w = 0; w < stages; ++w) {
    const unsigned roots = patterns[patterns.size() == 1 ? 0 : w].roots;
    if (roots == 1) continue;
    for (const GridDimension& level : placement.dimensions()) {
      if (roots <= level.radix) continue;
      throw UsageError(
          fmt::format("algorithm {}: {} roots in groups of {} servers", name, roots, level.radix));
    }
    require_few_threads(name, threads.size() * roots);
    threads = rooted_at_each(threads, w, roots);
    use = LinkUse::shared;
  }
  return Plan(name, topology, placement, std::move(threads), use);
}

// Recursive doubling, for short buffers: the all-reduce of small messages in MPI (Thakur et al.,
// 2005), and a row of MG-WFBP's Table II. There a rank exchanges all that it has with one other in
// each step, and the ranks that have the same sum double.
//
// Here a step is a level of the logical grid, level 0 first: each rank sends all that it has to all
// others under its switch, and adds theirs to its own. So in each step the ranks that have the same
// sum become as many times more as the level has digits, and in the end all have the sum of all. An
// all-reduce takes as many exchanges, one after the other, as there are levels; `bml` takes twice
// as many, each of a part of the buffer. Under one switch everyone sends to everyone once.
//
// Every rank adds the same values in the same order: those of a step by ascending digit. So all end
// with the same bits.
Plan make_recursive_doubling_plan(const Topology& topology, const Placement& placement) {
  require_switches("recursive_doubling", topology,
                   "every server sends all to every other under one switch");
  require_company("recursive_doubling", placement);
  require_grid("recursive_doubling", topology, placement);
  PlanThread thread;
  for (const GridDimension& level : placement.dimensions()) {
    thread.steps.push_back({level.radix, level.stride, Pattern::doubling});
  }
  return Plan("recursive_doubling", topology, placement, {thread}, use_of_rotated(topology));
}

// Recursive halving and doubling over all ranks (Thakur et al., 2005; BlueConnect, section 2.2, Eq.
// 2). With N = 2^q ranks there is one thread of q steps. At step w of the aggregation stage each
// rank exchanges with the one whose number differs from its own in bit q-1-w alone: half of what
// both still work on goes each way. The broadcast stage doubles what each has, the bits in
// ascending order.
//
// Every step is a mesh over a digit of radix 2. As N is a power of two, so is the number of digits
// that the servers have at each level: each step lies within one level, and all peers are
// neighbours.
Plan make_halving_doubling_plan(const Topology& topology, const Placement& placement) {
  require_company("halving_doubling", placement);
  const std::uint32_t ranks = placement.ranks();
  if (!std::has_single_bit(ranks)) {
    throw MisfitError(
        fmt::format("algorithm halving_doubling on {} servers: every step halves them, down from a "
                    "power of two",
                    ranks));
  }
  PlanThread thread;
  for (std::uint32_t stride = ranks / 2; stride != 0; stride /= 2) {
    thread.steps.push_back({2, stride, Pattern::mesh});
  }
  // In a ring, and where servers are missing, the two are not always neighbours.
  const bool one_hop = placement.is_grid() && !topology.space().cabled();
  const LinkUse use = one_hop ? LinkUse::exclusive : LinkUse::shared;
  return Plan("halving_doubling", topology, placement, {thread}, use);
}

// Ring: the flat ring of all servers (HiPS's RS; BML, section 2.2). There is one thread and one
// step of the pattern ring, over a cycle on which consecutive servers are neighbours
// (server_cycle.h): on a star the order of the servers. It is what the papers compare with: on
// BCube it uses one port of each server to send and one to receive (HiPS, section 4.1).
Plan make_ring_plan(const Topology& topology, const Placement& placement) {
  require_company("ring", placement);
  const std::uint32_t ranks = placement.ranks();
  require_one_step("ring", ranks);
  auto order = std::make_shared<DigitOrder>();
  auto backwards = std::make_shared<DigitOrder>();
  unsigned place = 0;
  for (const Rank rank : server_cycle(placement)) {
    order->set(place, rank);
    backwards->set((ranks - place) % ranks, rank);
    ++place;
  }
  std::vector<PlanThread> threads = {{1, {{ranks, 1, Pattern::ring, std::move(order)}}}};
  if (!topology.space().cabled()) {
    return Plan("ring", topology, placement, std::move(threads),
                placement.is_grid() ? LinkUse::exclusive : LinkUse::shared);
  }
  threads.push_back({1, {{ranks, 1, Pattern::ring, std::move(backwards)}}});
  return Plan("ring", topology, placement, std::move(threads),
              are_whole_rings(topology, placement) ? LinkUse::exclusive : LinkUse::shared);
}

// Mesh: the flat parameter server of peers (BML, section 2.2: P2P). Every server is the parameter
// server of one N-th of the gradient, and exchanges with all others directly. There is one thread
// and one step; on BCube most peers are several hops apart, and relays lead there. It is what the
// papers compare with.
//
// Level by level the routes load every link alike, but in one round several of them share a link.
Plan make_mesh_plan(const Topology& topology, const Placement& placement) {
  require_company("mesh", placement);
  const std::uint32_t ranks = placement.ranks();
  require_one_step("mesh", ranks);
  return Plan("mesh", topology, placement, {{1, {{ranks, 1, Pattern::mesh}}}}, LinkUse::shared);
}

unsigned root_threads(const Topology& topology, ServerId server) {
  return topology.space().rails() > 1 ? topology.space().ports(server) : 1;
}

// The parameter server: one server receives the gradients of all others, adds them and sends all of
// them the sum (PHub, section 2; BML, section 2.1). There is one thread and one step of the pattern
// root; of a root with several ports on the switch a thread for each, whose messages come and go by
// it (PHub, section 3.2.4: Key by Interface). Several servers each have threads of which they are
// the root, all threads with an equal share. On BCube most servers are several hops from a root,
// and relays lead there.
//
// Beside a hub's trainers each of the servers has a part in its own threads alone.
//
// It is what the papers compare with, where its one link limits all. In mesh every server is the
// parameter server of one N-th of the gradient.
Plan make_parameter_server_plan(const std::string& name, const Topology& topology,
                                const Placement& placement, std::span<const ServerId> servers,
                                RootsPlace place) {
  require_company(name, placement);
  const std::uint32_t ranks = placement.ranks();
  require_one_step(name, ranks);
  std::vector<Rank> roots;
  if (servers.empty()) throw UsageError(fmt::format("algorithm {}: it names no server", name));
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const ServerId server = servers[i];
    if (std::ranges::count(servers.first(i), server) != 0) {
      throw UsageError(
          fmt::format("algorithm {}: it names {} twice", name, topology.space().text(server)));
    }
    const std::optional<Rank> root = placement.rank(server);
    if (!root) {
      throw UsageError(fmt::format(
          "algorithm {}: {} is none of the job's servers; expected one of "
          "them, for example ps alone, which takes the first, or the one whose ports have most",
          name, topology.space().text(server)));
    }
    roots.push_back(*root);
  }
  std::vector<Rank> bystanders;
  if (place == RootsPlace::beside_the_trainers && roots.size() > 1) bystanders = roots;
  std::vector<PlanThread> threads;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    PlanStep step{ranks, 1, Pattern::root, beginning_with(roots[i], ranks, bystanders)};
    if (!bystanders.empty()) step.bystanders = static_cast<unsigned>(roots.size() - 1);
    const unsigned ports = root_threads(topology, servers[i]);
    for (unsigned port = 0; port < ports; ++port) threads.push_back({1, {step}, port});
  }
  require_few_threads(name, threads.size());
  const bool one_hop = placement.dimensions().size() == 1 && !topology.space().cabled();
  const LinkUse use = one_hop && threads.size() == 1 ? LinkUse::exclusive : LinkUse::shared;
  return Plan(name, topology, placement, std::move(threads), use);
}

// The two-level scheme (BlueConnect, section 2.3; PHub, section 3.4): the servers under each switch
// of the lowest level send to one of them, these do an all-reduce among themselves, and each sends
// the sum to those under its switch. The others of a group do nothing meanwhile, which is what
// BlueConnect improves on.
//
// There is one thread. Its first step has the pattern root; then follows the all-reduce of the
// papers: halving and doubling for a power of two of groups, else a ring, the cheaper by
// BlueConnect's Eq. 3. The ring goes from neighbour to neighbour (server_cycle.h).
Plan make_two_level_plan(const Topology& topology, const Placement& placement) {
  require_switches("two-level", topology, "a group are the servers under one switch");
  require_company("two-level", placement);
  require_grid("two-level", topology, placement);
  const std::span<const GridDimension> levels = placement.dimensions();
  if (levels.size() < 2) {
    throw UsageError(
        fmt::format("algorithm two-level on {} servers: all are under one switch; expected servers "
                    "of several groups, or ps, whose one group they are",
                    placement.ranks()));
  }
  const unsigned group = levels.front().radix;
  const unsigned groups = placement.ranks() / group;
  PlanThread thread{1, {{group, 1, Pattern::root}}};
  if (std::has_single_bit(groups)) {
    for (unsigned half = groups / 2; half != 0; half /= 2) {
      thread.steps.push_back({2, group * half, Pattern::mesh});
    }
  } else {
    require_one_step("two-level", groups, "groups");
    auto order = std::make_shared<DigitOrder>();
    unsigned place = 0;
    for (const Rank rank : server_cycle(placement, levels.subspan(1)))
      order->set(place++, rank / group);
    thread.steps.push_back({groups, group, Pattern::ring, std::move(order)});
  }
  return Plan("two-level", topology, placement, {std::move(thread)});
}

}  // namespace gradcube::control
