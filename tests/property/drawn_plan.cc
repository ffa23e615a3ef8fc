#include "tests/property/drawn_plan.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <numeric>

#include "control/base/errors.h"
#include "control/plan/algorithms.h"
#include "control/plan/auto_plans.h"

namespace gradcube::property {

using control::Placement;
using control::Topology;

namespace {

constexpr unsigned kNames = 11;  // that drawn_name() tells apart

}  // namespace

unsigned DrawnPlan::parameter(std::size_t i, unsigned below) const {
  return parameters.empty() ? 0 : parameters[i % parameters.size()] % below;
}

std::vector<unsigned> DrawnPlan::level_radices() const {
  std::vector<unsigned> result;
  std::uint32_t servers = 1;
  if (torus) {
    const unsigned ring = 3 + (radices.empty() ? 0 : radices.front());
    do {
      result.push_back(ring);
      servers *= ring;
    } while (result.size() < radices.size() && servers * ring <= most_servers);
    return result;
  }
  for (const unsigned drawn : radices) {
    if (servers * (drawn + 2) > most_servers) continue;
    result.push_back(drawn + 2);
    servers *= drawn + 2;
  }
  if (result.empty()) result.push_back(2);
  return result;
}

control::LinkRates DrawnPlan::link_rates() const {
  if (rates.empty()) return {};
  std::vector<std::uint64_t> by_level;
  for (std::size_t level = 0; level < level_radices().size(); ++level) {
    by_level.push_back((1 + std::uint64_t{rates[level % rates.size()]}) * 10'000'000);
  }
  return control::LinkRates(by_level);
}

Topology DrawnPlan::topology() const {
  std::vector<unsigned> highest_first = level_radices();
  const bool is_tree = tree && !torus && highest_first.size() > 1;
  std::reverse(highest_first.begin(), highest_first.end());
  std::string spec = fmt::format("bcube:{}", fmt::join(highest_first, "x"));
  if (torus || highest_first.size() == 1) {
    spec = fmt::format("{}:{},{}", torus ? "torus" : "bcube", highest_first.front(),
                       highest_first.size());
  }
  if (is_tree) spec = fmt::format("tree:{}", fmt::join(level_radices(), "x"));
  const Topology topology = control::parse_topology(spec, "the drawn topology");
  return rates.empty() ? topology : link_rates().on(topology);
}

std::vector<bcube::ServerId> DrawnPlan::servers() const {
  const bcube::AddressSpace space = topology().grid_space();
  std::vector<bcube::ServerId> result;
  for (bcube::ServerId server = 0; server < space.servers(); ++server) {
    bool member = true;
    for (unsigned level = 0; level < space.levels() && level < members.size(); ++level) {
      const unsigned digits = members[level] % (1U << space.radix(level));
      member = member && (digits == 0 || (digits >> space.digit(server, level) & 1U) != 0);
    }
    if (member) result.push_back(server);
  }
  if (result.size() > 1) return result;
  result.resize(space.servers());
  std::iota(result.begin(), result.end(), 0U);
  return result;
}

Placement DrawnPlan::placement() const {
  return Placement::of(topology(), servers(), "the drawn servers")
      .with_trainers(1 + trainers, "the drawn trainers");
}

std::string DrawnPlan::drawn_name(const Placement& placement) const {
  static constexpr std::array kHips = {"mesh", "ring", "root", "2xroot"};
  static constexpr std::array kBlueConnect = {"ring", "halving_doubling"};
  const std::size_t stages = placement.dimensions().size();
  std::vector<std::string> patterns;
  switch (algorithm % kNames) {
    case 1:
      for (std::size_t w = 0; w < stages; ++w) patterns.emplace_back(kHips[parameter(w, 4)]);
      return fmt::format("hips:{}", fmt::join(patterns, ","));
    case 2: {
      std::vector<unsigned> factors;
      for (unsigned left = placement.ranks(); left > 1; left /= factors.back()) {
        factors.push_back(2 + parameter(factors.size(), left - 1));
        while (left % factors.back() != 0) ++factors.back();
        patterns.emplace_back(kBlueConnect[parameter(factors.size() + 1, 2)]);
      }
      return fmt::format("blueconnect:{}{}{}", fmt::join(factors, "x"),
                         parameter(0, 3) == 0 ? "" : ",",
                         parameter(0, 3) == 0 ? "" : fmt::format("{}", fmt::join(patterns, ",")));
    }
    case 3:
      return "ring";
    case 4:
      return "mesh";
    case 5:
      return "halving_doubling";
    case 6:
      return "two-level";
    case 7: {
      const std::vector<bcube::ServerId> all = servers();
      std::vector<bcube::ServerId> roots;
      for (unsigned i = 0; i <= parameter(3, 3); ++i) {
        roots.push_back(all[parameter(i, static_cast<unsigned>(all.size()))]);
      }
      std::sort(roots.begin(), roots.end());
      roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
      return "ps:" + control::addresses_text(topology().space(), roots);
    }
    case 8:
      return "blueconnect";
    case 9:
      return fmt::format("auto:{}us,{}us{}", 10 * parameter(1, 9), 10 * parameter(2, 9),
                         parameter(0, 2) == 0 ? "/8" : "");
    case 10:
      return "recursive_doubling";
    default:
      return "bml";
  }
}

std::string DrawnPlan::algorithm_name() const {
  const Placement place = placement();
  const std::string name = drawn_name(place);
  try {
    control::make_choice(name, topology(), place, "the drawn algorithm");
    return name;
  } catch (const control::UsageError&) {
    return std::string(control::default_algorithm(topology()));
  }
}

control::Plan DrawnPlan::plan() const {
  const control::PlanChoice choice =
      control::make_choice(algorithm_name(), topology(), placement(), "the drawn algorithm");
  return choice.plan(parameter(3, choice.plans()));
}

std::string describe(const DrawnPlan& drawn) {
  return fmt::format("{} on servers [{}] of {} with {} trainers each, rates {}",
                     drawn.algorithm_name(), fmt::join(drawn.servers(), " "),
                     drawn.topology().spec(), 1 + drawn.trainers,
                     control::to_json(drawn.link_rates()).dump());
}

rc::Gen<DrawnPlan> drawn_plans(std::uint32_t most_servers) {
  // Longer lists than there are levels do no harm.
  const auto numbers = [](unsigned below) {
    return rc::gen::container<std::vector<unsigned>>(rc::gen::inRange(0U, below));
  };
  // All of these alike, where small ones would be the first to be drawn.
  const auto from_the_first_case_on = [](unsigned below) {
    return rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0U, below));
  };
  return rc::gen::build<DrawnPlan>(
      rc::gen::set(&DrawnPlan::most_servers, rc::gen::just(most_servers)),
      rc::gen::set(&DrawnPlan::torus,
                   rc::gen::map(from_the_first_case_on(4), [](unsigned n) { return n == 3; })),
      rc::gen::set(&DrawnPlan::tree,
                   rc::gen::map(from_the_first_case_on(4), [](unsigned n) { return n == 3; })),
      rc::gen::set(&DrawnPlan::radices, numbers(5)), rc::gen::set(&DrawnPlan::members, numbers(64)),
      rc::gen::set(&DrawnPlan::rates, numbers(100)),
      rc::gen::set(&DrawnPlan::trainers, from_the_first_case_on(3)),
      rc::gen::set(&DrawnPlan::algorithm, from_the_first_case_on(kNames)),
      rc::gen::set(&DrawnPlan::parameters, numbers(36)));
}

}  // namespace gradcube::property
