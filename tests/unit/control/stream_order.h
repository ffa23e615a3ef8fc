// The layout and the order of streams as docs/bml.md defines them, piece by piece and with wide
// numbers: what the tests hold ThreadSchedule and CollectiveLayout against.
#ifndef GRADCUBE_TESTS_UNIT_CONTROL_STREAM_ORDER_H_
#define GRADCUBE_TESTS_UNIT_CONTROL_STREAM_ORDER_H_

#include <cstdint>
#include <vector>

#include "control/plan/base/byte_range.h"
#include "control/plan/base/pieces.h"
#include "control/plan/base/plan.h"

namespace gradcube::control {

// The owners of the pieces of the stream that `receiver` gets at aggregation step w, in order.
inline std::vector<Rank> stream_owners(const Plan& plan, unsigned thread, unsigned w,
                                       Rank receiver) {
  if (plan.doubles()) return {0};
  std::vector<Rank> owners = {receiver};
  for (unsigned u = plan.steps(thread); u-- > w + 1;) {
    const unsigned n = plan.radix(thread, u);
    const unsigned own_digit = plan.digit(receiver, thread, u);
    std::vector<Rank> rotated;
    for (unsigned r = 0; r < n; ++r) {
      const unsigned digit = (own_digit + r) % n;
      if (plan.step(thread, u).is_root() && digit != 0) continue;
      for (const Rank owner : owners) rotated.push_back(plan.peer(owner, thread, u, digit));
    }
    owners = rotated;
  }
  return owners;
}

// [U*i/n, U*(i+1)/n) of a range of U units.
inline UnitRange wide_part(UnitRange whole, uint64_t i, uint64_t n) {
  __extension__ using Wide = unsigned __int128;
  const auto begin = static_cast<uint64_t>(Wide{whole.count} * i / n);
  const auto end = static_cast<uint64_t>(Wide{whole.count} * (i + 1) / n);
  return {whole.begin + begin, end - begin};
}

// A thread's share of some units: what its weight is of all weights, behind the threads before it.
inline UnitRange wide_share(const Plan& plan, uint64_t units, unsigned thread) {
  uint64_t before = 0, all = 0;
  for (unsigned t = 0; t < plan.threads(); ++t) {
    if (t < thread) before += plan.thread(t).weight;
    all += plan.thread(t).weight;
  }
  __extension__ using Wide = unsigned __int128;
  const auto begin = static_cast<uint64_t>(Wide{units} * before / all);
  const auto end = static_cast<uint64_t>(Wide{units} * (before + plan.thread(thread).weight) / all);
  return {begin, end - begin};
}

// The units of what `rank` still works on in this thread when `step` begins; with step =
// plan.steps(thread), of the piece that it owns.
inline UnitRange active_units(const Plan& plan, unsigned thread, Rank rank, unsigned step,
                              uint64_t bytes) {
  UnitRange units = wide_share(plan, (bytes >> 6) + ((bytes & 63) != 0 ? 1 : 0), thread);
  for (unsigned w = 0; w < step; ++w) {
    if (plan.step(thread, w).parts() == 1) continue;
    units = wide_part(units, plan.digit(rank, thread, w), plan.radix(thread, w));
  }
  return units;
}

inline ByteRange piece_bytes(const Plan& plan, PieceId piece, uint64_t bytes) {
  const UnitRange units =
      active_units(plan, piece.thread, piece.owner, plan.steps(piece.thread), bytes);
  const auto in_bytes = [bytes](uint64_t unit) { return unit > bytes / 64 ? bytes : unit * 64; };
  return {in_bytes(units.begin), in_bytes(units.begin + units.count)};
}

}  // namespace gradcube::control

#endif  // GRADCUBE_TESTS_UNIT_CONTROL_STREAM_ORDER_H_
