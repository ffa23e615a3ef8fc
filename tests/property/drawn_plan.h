// A plan drawn by rapidcheck: a topology, the servers of it that take part, their trainers, rates,
// and an algorithm with parameters. All are small numbers, so that a failing one shrinks: to
// switches, fewer levels, smaller radices, all servers, one trainer on each, no rates, and `bml`.
// Any numbers make a plan.
#ifndef GRADCUBE_TESTS_PROPERTY_DRAWN_PLAN_H_
#define GRADCUBE_TESTS_PROPERTY_DRAWN_PLAN_H_

#include <cstdint>
#include <ostream>
#include <rapidcheck.h>
#include <string>
#include <vector>

#include "control/plan/base/plan.h"
#include "control/settings/link_rates.h"

namespace gradcube::property {

struct DrawnPlan {
  std::uint32_t most_servers = 3;      // levels beyond it are left out
  bool torus = false;                  // with rings of the first radix, and one more
  bool tree = false;                   // of switches, if there are several levels and no torus
  std::vector<unsigned> radices{};     // less 2; the lowest level first
  std::vector<unsigned> members{};     // of each level, the digits that take part, as bits; 0: all
  unsigned trainers = 0;               // on each server, less 1
  std::vector<unsigned> rates{};       // of each level, in 10 Mbit/s, less 1; none: no rates
  unsigned algorithm = 0;              // of all kinds of names
  std::vector<unsigned> parameters{};  // of the name

  control::Topology topology() const;  // with the rates
  control::LinkRates link_rates() const;
  control::Placement placement() const;
  std::vector<bcube::ServerId> servers() const;  // that take part: two or more
  // One that fits: the topology's default, if what was drawn does not.
  std::string algorithm_name() const;
  // Of `auto`, one of those that it chooses from.
  control::Plan plan() const;

 private:
  std::vector<unsigned> level_radices() const;
  std::string drawn_name(const control::Placement& placement) const;
  unsigned parameter(std::size_t i, unsigned below) const;
};

std::string describe(const DrawnPlan& drawn);

// How rapidcheck shows a counterexample.
inline void showValue(const DrawnPlan& drawn, std::ostream& out) { out << describe(drawn); }

rc::Gen<DrawnPlan> drawn_plans(std::uint32_t most_servers);

}  // namespace gradcube::property

#endif  // GRADCUBE_TESTS_PROPERTY_DRAWN_PLAN_H_
