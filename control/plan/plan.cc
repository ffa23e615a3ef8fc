#include "control/plan/plan.h"

#include <algorithm>
#include <fmt/format.h>
#include <stdexcept>

namespace gradcube::control {
namespace {

// [U*i/n, U*(i+1)/n) of a range of U units. Written so that no product overflows.
ByteRange part(ByteRange units, uint64_t i, uint64_t n) {
  const uint64_t whole = units.size() / n;
  const uint64_t rest = units.size() % n;
  return {units.begin + whole * i + rest * i / n,
          units.begin + whole * (i + 1) + rest * (i + 1) / n};
}

ByteRange in_units(uint64_t bytes) {
  return {0, bytes / kUnitBytes + (bytes % kUnitBytes != 0 ? 1 : 0)};
}

ByteRange in_bytes(ByteRange units, uint64_t bytes) {
  // Only the buffer's last unit can be partial: its end is the buffer's end.
  const auto clamp = [bytes](uint64_t unit) {
    return unit > bytes / kUnitBytes ? bytes : unit * kUnitBytes;
  };
  return {clamp(units.begin), clamp(units.end)};
}

}  // namespace

std::string_view stage_name(Stage stage) {
  return stage == Stage::aggregation ? "aggregation" : "broadcast";
}

Plan::Plan(std::string algorithm, Topology topology, const std::vector<std::vector<Step>>& threads)
    : algorithm_(std::move(algorithm)), topology_(std::move(topology)) {
  if (threads.empty()) throw std::invalid_argument("a plan has at least one thread");
  for (size_t t = 0; t < threads.size(); ++t) {
    std::vector<unsigned> visited;
    for (const Step& step : threads[t]) visited.push_back(step.level);
    std::sort(visited.begin(), visited.end());
    bool each_once = visited.size() == topology_.levels();
    for (unsigned l = 0; each_once && l < visited.size(); ++l) each_once = visited[l] == l;
    if (!each_once) {
      throw std::invalid_argument(fmt::format(
          "thread {} does not visit every level 0..{} exactly once", t, topology_.levels() - 1));
    }
    auto& planned = threads_.emplace_back();
    uint32_t later = 1;
    for (size_t w = threads[t].size(); w-- > 0;) {
      planned[w] = {threads[t][w].level, threads[t][w].pattern, later};
      later *= space().radix(planned[w].level);
    }
  }
}

ByteRange Plan::thread_range(unsigned thread, uint64_t bytes) const {
  return in_bytes(part(in_units(bytes), thread, threads()), bytes);
}

ByteRange Plan::step_range(unsigned thread, ServerId server, unsigned step, uint64_t bytes) const {
  ByteRange units = part(in_units(bytes), thread, threads());
  for (unsigned w = 0; w < step; ++w) {
    const unsigned l = level(thread, w);
    units = part(units, space().digit(server, l), space().radix(l));
  }
  return in_bytes(units, bytes);
}

ByteRange Plan::piece_range(PieceId piece, uint64_t bytes) const {
  return step_range(piece.thread, piece.owner, steps(), bytes);
}

ServerId Plan::stream_piece_owner(unsigned thread, unsigned step, ServerId receiver,
                                  uint32_t index) const {
  ServerId owner = receiver;
  for (unsigned w = steps(); w-- > step + 1;) {
    const unsigned l = level(thread, w);
    const unsigned n = space().radix(l);
    owner = space().with_digit(owner, l, (space().digit(receiver, l) + index % n) % n);
    index /= n;
  }
  return owner;
}

uint32_t Plan::stream_index(unsigned thread, unsigned step, ServerId receiver,
                            ServerId owner) const {
  uint32_t index = 0;
  for (unsigned w = step + 1; w < steps(); ++w) {
    const unsigned l = level(thread, w);
    const unsigned n = space().radix(l);
    index = index * n + (space().digit(owner, l) + n - space().digit(receiver, l)) % n;
  }
  return index;
}

PieceSet Plan::piece_set(ServerId server, unsigned thread, unsigned step) const {
  PieceSet set{.thread = thread, .digits = {}};
  for (unsigned w = 0; w < steps(); ++w) {
    const unsigned l = level(thread, w);
    set.digits[l] = w <= step ? static_cast<int>(space().digit(server, l)) : PieceSet::kAnyDigit;
  }
  return set;
}

std::vector<Exchange> Plan::exchanges(ServerId server, unsigned thread, Stage stage,
                                      unsigned step) const {
  const unsigned aggregation_step = mirrored(stage, step);
  const unsigned l = level(thread, aggregation_step);
  const PieceSet own = piece_set(server, thread, aggregation_step);
  std::vector<Exchange> result;
  result.reserve(space().radix(l) - 1);
  for (unsigned digit = 0; digit < space().radix(l); ++digit) {
    if (digit == space().digit(server, l)) continue;
    const ServerId other = space().with_digit(server, l, digit);
    const PieceSet theirs = piece_set(other, thread, aggregation_step);
    if (stage == Stage::aggregation) {
      result.push_back({other, theirs, own});
    } else {
      result.push_back({other, own, theirs});
    }
  }
  return result;
}

}  // namespace gradcube::control
