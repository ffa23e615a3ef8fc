#include "tests/property/drawn_plan.h"

#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <numeric>

#include "control/base/errors.h"
#include "control/plan/algorithms.h"

namespace gradcube::property {

using control::Placement;
using control::Topology;

unsigned DrawnPlan::parameter(std::size_t i, unsigned below) const {
  return parameters.empty() ? 0 : parameters[i % parameters.size()] % below;
}

std::vector<unsigned> DrawnPlan::level_radices() const {
  std::vector<unsigned> result;
  std::uint32_t servers = 1;
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
  std::reverse(highest_first.begin(), highest_first.end());
  const std::string spec = highest_first.size() == 1
                               ? fmt::format("bcube:{},1", highest_first.front())
                               : fmt::format("bcube:{}", fmt::join(highest_first, "x"));
  const Topology topology = control::parse_topology(spec, "the drawn topology");
  return rates.empty() ? topology : link_rates().on(topology);
}

std::vector<bcube::ServerId> DrawnPlan::servers() const {
  const bcube::AddressSpace space = topology().space();
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
  return Placement::grid(topology(), servers(), "the drawn servers");
}

std::string DrawnPlan::drawn_name(const Placement& placement) const {
  static constexpr std::array kHips = {"mesh", "ring", "root"};
  static constexpr std::array kBlueConnect = {"ring", "halving_doubling"};
  const std::size_t stages = placement.dimensions().size();
  std::vector<std::string> patterns;
  switch (algorithm % 9) {
    case 1:
      for (std::size_t w = 0; w < stages; ++w) patterns.emplace_back(kHips[parameter(w, 3)]);
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
      std::string address =
          topology().space().text(all[parameter(0, static_cast<unsigned>(all.size()))]);
      return "ps:" + address.substr(1, address.size() - 2);
    }
    case 8:
      return "blueconnect";
    default:
      return "bml";
  }
}

std::string DrawnPlan::algorithm_name() const {
  const Placement place = placement();
  const std::string name = drawn_name(place);
  try {
    control::make_plan(name, topology(), place, "the drawn algorithm");
    return name;
  } catch (const control::UsageError&) {
    return "bml";
  }
}

control::Plan DrawnPlan::plan() const {
  return control::make_plan(algorithm_name(), topology(), placement(), "the drawn algorithm");
}

std::string describe(const DrawnPlan& drawn) {
  return fmt::format("{} on servers [{}] of {}, rates {}", drawn.algorithm_name(),
                     fmt::join(drawn.servers(), " "), drawn.topology().spec(),
                     control::to_json(drawn.link_rates()).dump());
}

rc::Gen<DrawnPlan> drawn_plans(std::uint32_t most_servers) {
  // Longer lists than there are levels do no harm.
  const auto numbers = [](unsigned below) {
    return rc::gen::container<std::vector<unsigned>>(rc::gen::inRange(0U, below));
  };
  return rc::gen::build<DrawnPlan>(
      rc::gen::set(&DrawnPlan::most_servers, rc::gen::just(most_servers)),
      rc::gen::set(&DrawnPlan::radices, numbers(5)), rc::gen::set(&DrawnPlan::members, numbers(64)),
      rc::gen::set(&DrawnPlan::rates, numbers(100)),
      // All alike from the first case on.
      rc::gen::set(&DrawnPlan::algorithm,
                   rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0U, 9U))),
      rc::gen::set(&DrawnPlan::parameters, numbers(36)));
}

}  // namespace gradcube::property
