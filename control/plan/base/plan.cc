#include "control/plan/base/plan.h"

#include <algorithm>
#include <fmt/format.h>
#include <stdexcept>

namespace gradcube::control {
namespace {

// Throws std::invalid_argument unless the digits of the steps, in some order, are those of a
// mixed-radix number below `ranks`: then digits and ranks determine each other.
void require_digits_of_ranks(const std::vector<PlanStep>& steps, std::uint32_t ranks,
                             std::size_t thread) {
  if (steps.empty() || steps.size() > kMaxSteps) {
    throw std::invalid_argument(
        fmt::format("thread {} has {} steps; expected 1..{}", thread, steps.size(), kMaxSteps));
  }
  std::vector<PlanStep> sorted = steps;
  std::sort(sorted.begin(), sorted.end(),
            [](const PlanStep& a, const PlanStep& b) { return a.stride < b.stride; });
  const std::uint32_t most = std::min<std::uint32_t>(ranks, kMaxRunnableRadix);
  std::uint64_t stride = 1;
  for (const PlanStep& step : sorted) {
    if (step.radix < 2 || step.radix > most || step.stride != stride) {
      throw std::invalid_argument(
          fmt::format("thread {} has a step of radix {} and stride {}; expected radices of 2..{} "
                      "and, by ascending stride, strides that are the product of the radices "
                      "before, here {}",
                      thread, step.radix, step.stride, most, stride));
    }
    stride *= step.radix;
  }
  if (stride != ranks) {
    throw std::invalid_argument(fmt::format(
        "the radices of thread {}'s steps multiply to {}; expected the number of ranks, {}", thread,
        stride, ranks));
  }
}

}  // namespace

Plan::Plan(std::string algorithm, Topology topology, Placement placement,
           std::vector<PlanThread> threads, LinkUse link_use)
    : algorithm_(std::move(algorithm)),
      topology_(std::move(topology)),
      placement_(std::move(placement)),
      threads_(std::move(threads)),
      first_weight_{0},
      link_use_(link_use) {
  if (placement_.space() != topology_.space()) {
    throw std::invalid_argument("the placement is not on the plan's topology");
  }
  if (threads_.empty() || threads_.size() > kMaxPlanThreads) {
    throw std::invalid_argument(
        fmt::format("a plan has 1..{} threads, not {}", kMaxPlanThreads, threads_.size()));
  }
  for (std::size_t t = 0; t < threads_.size(); ++t) {
    const PlanThread& thread = threads_[t];
    if (thread.weight < 1 || thread.weight > kMaxWeight) {
      throw std::invalid_argument(
          fmt::format("thread {} has weight {}; expected 1..{}", t, thread.weight, kMaxWeight));
    }
    require_digits_of_ranks(thread.steps, ranks(), t);
    first_weight_.push_back(first_weight_.back() + thread.weight);
    most_steps_ = std::max(most_steps_, static_cast<unsigned>(thread.steps.size()));
    has_root_step_ = has_root_step_ || std::any_of(thread.steps.begin(), thread.steps.end(),
                                                   [](const PlanStep& s) { return s.is_root(); });
  }
  doubles_ = threads_.front().steps.front().doubles();
  for (const PlanThread& thread : threads_) {
    if (std::all_of(thread.steps.begin(), thread.steps.end(),
                    [this](const PlanStep& s) { return s.doubles() == doubles_; })) {
      continue;
    }
    throw std::invalid_argument("some steps double and others do not; expected all or none");
  }
}

std::uint32_t Plan::pieces(unsigned thread) const {
  std::uint32_t count = 1;
  for (const PlanStep& step : threads_[thread].steps) count *= step.parts();
  return count;
}

std::uint32_t Plan::pieces() const {
  std::uint32_t count = 0;
  for (unsigned thread = 0; thread < threads(); ++thread) count += pieces(thread);
  return count;
}

bool Plan::works(Rank rank, unsigned thread, unsigned steps) const {
  for (unsigned w = 0; w < steps; ++w) {
    if (!step(thread, w).sums(rank)) return false;
  }
  return true;
}

Route Plan::route(Rank from, Rank to, unsigned thread) const {
  const ServerId begin = placement_.server(from);
  const ServerId end = placement_.server(to);
  if (space().rails() == 1 || begin == end) return bcube::shortest_route(space(), begin, end);
  Route route;
  route.append(bcube::hop_over(space(), begin, end, threads_[thread].rail));
  return route;
}

std::optional<unsigned> Plan::level(unsigned thread, unsigned step) const {
  const PlanStep& s = this->step(thread, step);
  for (const GridDimension& dimension : placement_.dimensions()) {
    // With peers that are whole strides of the dimension apart, and less than its end.
    if (s.stride % dimension.stride == 0 &&
        dimension.radix % (s.stride / dimension.stride * s.radix) == 0) {
      return dimension.level;
    }
  }
  return std::nullopt;
}

PieceSet Plan::piece_set(Rank rank, unsigned thread, unsigned step) const {
  PieceSet set{.thread = thread,
               .none = !works(rank, thread, step + 1),
               .size = steps(thread),
               .digits = {}};
  for (unsigned w = 0; w < set.size; ++w) {
    const PlanStep& s = this->step(thread, w);
    int value = PieceSet::kAnyDigit;
    if (w <= step) value = static_cast<int>(s.digit_by_number(rank));
    if (s.is_root() || s.doubles())
      value = static_cast<int>(s.digit_by_number(s.with_digit(rank, 0)));
    set.digits[w] = {s.stride, s.radix, value};
  }
  std::sort(set.digits.begin(), set.digits.begin() + set.size,
            [](const PieceSet::Digit& a, const PieceSet::Digit& b) { return a.stride > b.stride; });
  return set;
}

std::vector<Exchange> Plan::exchanges(Rank rank, unsigned thread, Stage stage,
                                      unsigned step) const {
  const unsigned w = mirrored(thread, stage, step);
  const PlanStep& s = this->step(thread, w);
  const bool aggregates = stage == Stage::aggregation;
  if (!works(rank, thread, w) || !s.takes_part(rank) || (s.doubles() && !aggregates)) return {};
  const unsigned own = s.digit(rank);
  // What ends at the rank with a digit, modulo the radix.
  const auto pieces_of = [&](unsigned digit) {
    return piece_set(s.with_digit(rank, digit % s.radix), thread, w);
  };
  std::vector<Exchange> result;
  result.reserve(s.radix - 1);
  if (s.is_ring()) {
    // HiPS, Algorithm 2: Scatter, lines 4-11, and Gather, lines 18-27, where what a server ends up
    // with is the portion of its own rank.
    const Rank next = s.with_digit(rank, (own + 1) % s.radix);
    const Rank before = s.with_digit(rank, (own + s.radix - 1) % s.radix);
    for (unsigned round = 0; round < s.rounds(); ++round) {
      const unsigned sent = own + s.radix - round - (aggregates ? 1 : 0);
      result.push_back({next, pieces_of(sent), pieces_of(sent + s.radix - 1), before, round});
    }
    return result;
  }
  const PieceSet none{.thread = thread, .none = true, .digits = {}};
  for (unsigned digit = 0; digit < s.participants(); ++digit) {
    if (digit == own) continue;
    const Rank other = s.with_digit(rank, digit);
    if (!s.is_root()) {
      const PieceSet theirs = pieces_of(digit);
      const PieceSet mine = pieces_of(own);
      result.push_back({other, aggregates ? theirs : mine, aggregates ? mine : theirs});
    } else if (own == 0 || digit == 0) {
      // What is summed is the root's, and so are the results.
      const bool sends = aggregates == (own != 0);
      result.push_back({other, sends ? pieces_of(0) : none, sends ? none : pieces_of(0)});
    }
  }
  return result;
}

}  // namespace gradcube::control
