// One element's way through a plan, without blocks or kernels: what the tests hold the oracle
// against. Wide is the type of the arithmetic, Stored that of an element in memory.
#ifndef GRADCUBE_TESTS_UNIT_CLI_NAIVE_ORACLE_H_
#define GRADCUBE_TESTS_UNIT_CLI_NAIVE_ORACLE_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "aggregation/element.h"
#include "cli/measure/perf_inputs.h"
#include "control/plan/base/plan.h"

namespace gradcube::cli {

inline constexpr std::uint64_t kSeed = 7;  // of the inputs

template <typename Wide, typename Stored>
class NaiveOracle {
 public:
  NaiveOracle(const control::Plan& plan, aggregation::DataType type,
              aggregation::Operation operation, std::size_t count)
      : plan_(plan), type_(type), operation_(operation), bytes_(count * sizeof(Stored)) {}

  Stored expect(unsigned thread, std::size_t index) const {
    const Stored reduced = reduce(thread, plan_.steps(thread), owner(thread, index), index);
    if (operation_ != aggregation::Operation::average || sizeof(Stored) == 2) return reduced;
    return narrow(divide(widen(reduced), plan_.placement().trainers()));
  }

 private:
  // Where the element ends: the buffer's units are divided by the digits of the thread's steps.
  control::Rank owner(unsigned thread, std::size_t index) const {
    const std::uint64_t unit = index * sizeof(Stored) / control::kUnitBytes;
    control::UnitRange units = control::part(control::units_of(bytes_), plan_.thread_part(thread));
    control::Rank rank = 0;
    for (unsigned w = 0; w < plan_.steps(thread); ++w) {
      if (plan_.step(thread, w).parts() == 1) continue;  // it divides nothing
      unsigned digit = 0;
      control::UnitRange here = control::part(units, digit, plan_.radix(thread, w));
      while (unit >= here.begin + here.count && digit + 1 < plan_.radix(thread, w)) {
        here = control::part(units, ++digit, plan_.radix(thread, w));
      }
      rank = plan_.peer(rank, thread, w, digit);
      units = here;
    }
    return rank;
  }

  // From the digit after the owner's on, one after the other.
  Stored reduce_ring(unsigned thread, unsigned w, control::Rank owner, std::size_t index) const {
    const unsigned radix = plan_.radix(thread, w);
    const unsigned end = plan_.digit(owner, thread, w);
    Stored sum{};
    for (unsigned hop = 1; hop <= radix; ++hop) {
      const control::Rank from = plan_.peer(owner, thread, w, (end + hop) % radix);
      const Stored next = reduce(thread, w, from, index);
      if (hop == 1) {
        sum = next;
        continue;
      }
      if constexpr (sizeof(Stored) == 2) {
        if (operation_ == aggregation::Operation::average) {
          Wide all = scaled(widen(sum), hop);
          for (unsigned copy = 2; copy < hop; ++copy) all = all + scaled(widen(sum), hop);
          all = all + scaled(widen(next), hop);
          sum = narrow(all / scaled(static_cast<Wide>(hop), hop));
          continue;
        }
      }
      sum = narrow(combine(widen(sum), widen(next)));
    }
    return sum;
  }

  // Of the trainers of one server, from the first on.
  Stored reduce_local(control::Rank server, std::size_t index) const {
    const unsigned trainers = plan_.placement().trainers_per_server();
    Wide sum{};
    for (unsigned local = 0; local < trainers; ++local) {
      Stored value;
      fill_input(type_, operation_, kSeed, server * trainers + local, index, 1, &value);
      if (trainers == 1) return value;
      const Wide next = scaled(widen(value), trainers);
      sum = local == 0 ? next : combine(sum, next);
    }
    if constexpr (sizeof(Stored) == 2) {
      if (operation_ == aggregation::Operation::average) {
        return narrow(sum / scaled(static_cast<Wide>(trainers), trainers));
      }
    }
    return narrow(sum);
  }

  Stored reduce(unsigned thread, unsigned steps, control::Rank server, std::size_t index) const {
    if (steps == 0) return reduce_local(server, index);
    if (plan_.step(thread, steps - 1).is_ring()) {
      return reduce_ring(thread, steps - 1, server, index);
    }
    Wide sum{};
    const unsigned radix = plan_.radix(thread, steps - 1);
    for (unsigned digit = 0; digit < radix; ++digit) {
      const Wide value = scaled(
          widen(reduce(thread, steps - 1, plan_.peer(server, thread, steps - 1, digit), index)),
          radix);
      sum = digit == 0 ? value : combine(sum, value);
    }
    if constexpr (sizeof(Stored) == 2) {
      if (operation_ == aggregation::Operation::average) {
        return narrow(sum / scaled(static_cast<Wide>(radix), radix));
      }
    }
    return narrow(sum);
  }

  // In an average of 16-bit floats: divided by the least power of two that is not below the radix.
  Wide scaled(Wide value, unsigned radix) const {
    if constexpr (sizeof(Stored) == 2) {
      if (operation_ == aggregation::Operation::average)
        return value / static_cast<Wide>(std::bit_ceil(radix));
    }
    return value;
  }

  Wide combine(Wide a, Wide b) const {
    if (operation_ == aggregation::Operation::min) return b < a ? b : a;
    if (operation_ == aggregation::Operation::max) return b > a ? b : a;
    if constexpr (std::is_integral_v<Wide>) {
      using Unsigned = std::make_unsigned_t<Wide>;
      return static_cast<Wide>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    } else {
      return a + b;
    }
  }

  static Wide divide(Wide value, std::uint32_t divisor) {
    return static_cast<Wide>(value / static_cast<Wide>(divisor));
  }

  Wide widen(Stored value) const {
    if constexpr (sizeof(Stored) == 2) {
      return type_ == aggregation::DataType::float16 ? aggregation::float16_to_float32(value)
                                                     : aggregation::bfloat16_to_float32(value);
    } else {
      return std::bit_cast<Wide>(value);
    }
  }

  Stored narrow(Wide value) const {
    if constexpr (sizeof(Stored) == 2) {
      return type_ == aggregation::DataType::float16 ? aggregation::float32_to_float16(value)
                                                     : aggregation::float32_to_bfloat16(value);
    } else {
      return std::bit_cast<Stored>(value);
    }
  }

  const control::Plan& plan_;
  aggregation::DataType type_;
  aggregation::Operation operation_;
  std::uint64_t bytes_;
};

}  // namespace gradcube::cli

#endif  // GRADCUBE_TESTS_UNIT_CLI_NAIVE_ORACLE_H_
