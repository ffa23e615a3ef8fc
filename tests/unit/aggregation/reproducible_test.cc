#include "aggregation/reproducible.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/aggregation/exact_sum.h"
#include "tests/unit/aggregation/oracle.h"

namespace gradcube::aggregation::test {
namespace {

constexpr DataType kFloats[] = {DataType::float32, DataType::float64, DataType::float16,
                                DataType::bfloat16};

using Element = std::array<std::byte, 16>;  // the memory of one

std::uint32_t most_ranks(DataType type) {
  return type == DataType::float64 ? kMostReproducibleFloat64 : kMostReproducible;
}

Bits sign_of(DataType type) { return Bits{1} << (8 * element_bytes(type) - 1); }
Bits infinity_of(DataType type) {
  return (sign_of(type) - 1) & ~((Bits{1} << mantissa_bits(type)) - 1);
}
Bits nan_of(DataType type) { return infinity_of(type) | Bits{1} << (mantissa_bits(type) - 1); }

// A float with these exponents, at random; never special.
Bits random_float(DataType type, Bits lowest, Bits highest, std::mt19937_64& random) {
  const Bits exponent = std::uniform_int_distribution<Bits>(lowest, highest)(random);
  const Bits mantissa = random() & ((Bits{1} << mantissa_bits(type)) - 1);
  return exponent << mantissa_bits(type) | mantissa | ((random() & 1) != 0 ? sign_of(type) : 0);
}

Element carrier(const ReproducibleReduction& reduction, Bits bits) {
  Element element{};
  to_carriers(reduction, &bits, element.data(), 1);
  return element;
}

Element combined(const ReproducibleReduction& reduction, const Element& a, const Element& b) {
  const auto [type, operation] = *carrier_of(reduction);
  static const Kernels& kernels = select_kernels(512);
  Element result{};
  const void* sources[] = {a.data(), b.data()};
  kernels.reduce(type, operation)(result.data(), sources, 2, 1);
  return result;
}

Bits result_of(const ReproducibleReduction& reduction, const Element& carriers) {
  Bits bits = 0;
  from_carriers(reduction, carriers.data(), &bits, 1);
  return bits;
}

Bits in_order(const ReproducibleReduction& reduction, const std::vector<Bits>& values) {
  Element sum = carrier(reduction, values[0]);
  for (std::size_t i = 1; i < values.size(); ++i) {
    sum = combined(reduction, sum, carrier(reduction, values[i]));
  }
  return result_of(reduction, sum);
}

// Two of what is left at a time, at random, until one is left.
Bits in_any_order(const ReproducibleReduction& reduction, const std::vector<Bits>& values,
                  std::mt19937_64& random) {
  std::vector<Element> left;
  for (const Bits value : values) left.push_back(carrier(reduction, value));
  while (left.size() > 1) {
    std::swap(left[random() % left.size()], left.back());
    const Element one = left.back();
    left.pop_back();
    Element& other = left[random() % left.size()];
    other = (random() & 1) != 0 ? combined(reduction, one, other) : combined(reduction, other, one);
  }
  return result_of(reduction, left[0]);
}

ExactSum exact(DataType type, const std::vector<Bits>& values) {
  ExactSum sum(type);
  for (const Bits value : values) sum.add(value);
  return sum;
}

class Reproducible : public ::testing::Test {
 protected:
  std::uint64_t seed_ = test_seed();
  std::mt19937_64 random_{seed_};
  ::testing::ScopedTrace trace_{__FILE__, __LINE__, "GRADCUBE_TEST_SEED=" + std::to_string(seed_)};
};

TEST_F(Reproducible, OneValueComesBackAsItIs) {
  for (const DataType type : kFloats) {
    for (const std::uint32_t ranks : {3u, kMostSum64, kMostSum64 + 1}) {
      const std::uint64_t count = element_bytes(type) == 2 ? 65536 : 20'000;
      for (std::uint64_t i = 0; i < count; ++i) {
        Bits bits = element_bytes(type) == 2 ? i : random_element(type, random_);
        const Bits found = in_order({type, Operation::sum, ranks}, {bits});
        if (is_nan(type, bits)) bits = nan_of(type);
        if (bits == sign_of(type)) bits = 0;
        ASSERT_EQ(found, bits) << data_type_name(type) << " " << ranks;
      }
    }
  }
}

TEST_F(Reproducible, EveryOrderAndAssociationYieldsTheSameBits) {
  for (const DataType type : kFloats) {
    for (const std::uint32_t ranks : {1u, 2u, 3u, 4u, 9u, 16u, 17u, 64u}) {
      for (const Operation operation : kAllOperations) {
        const ReproducibleReduction reduction{type, operation, ranks};
        for (int round = 0; round < 50; ++round) {
          std::vector<Bits> values(ranks);
          for (Bits& value : values) {
            value = round % 3 == 0
                        ? random_element(type, random_)
                        : random_float(type, 0, (infinity_of(type) >> mantissa_bits(type)) - 1,
                                       random_);
          }
          const Bits expected = in_order(reduction, values);
          for (int order = 0; order < 4; ++order) {
            ASSERT_EQ(in_any_order(reduction, values, random_), expected)
                << data_type_name(type) << " " << operation_name(operation) << " " << ranks;
          }
        }
      }
    }
  }
}

// docs/arithmetic.md: half a unit in the last place of the result, and ranks * 2^-2w of the
// greatest value. The long double adds its own rounding.
TEST_F(Reproducible, TheErrorStaysWithinItsBound) {
  for (const DataType type : kFloats) {
    for (const std::uint32_t ranks : {3u, 5u, 9u, 16u, 17u, 100u, 256u}) {
      const int piece = type == DataType::float64 ? 30 : ranks <= kMostSum64 ? 14 : 22;
      const ReproducibleReduction reduction{type, Operation::sum, ranks};
      for (int round = 0; round < 50; ++round) {
        const Bits middle = (infinity_of(type) >> mantissa_bits(type)) / 2;
        const Bits spread = std::min<Bits>(middle - 1, 1 + random_() % 80);
        std::vector<Bits> values(ranks);
        long double greatest = 0;
        for (Bits& value : values) {
          value = random_float(type, middle - spread, middle, random_);
          // Of what is added, something cancels.
          if (round % 2 == 0 && &value != values.data() && random_() % 2 == 0) {
            value = values[0] ^ sign_of(type) ^ (random_() % 4);
          }
          greatest = std::max(greatest, std::abs(ExactSum(type).add(value).value()));
        }
        const Bits found = in_order(reduction, values);
        ASSERT_TRUE(is_finite(type, found));
        const Bits above = (found & ~sign_of(type)) + 1;
        const long double unit = ExactSum(type).add(above).add(above - 1, -1).value();
        const long double error = std::abs(exact(type, values).add(found, -1).value());
        ASSERT_LE(error, (unit / 2 + std::ldexp(greatest, -2 * piece) * ranks) * (1 + 1e-15L))
            << data_type_name(type) << " " << ranks;
      }
    }
  }
}

// `found` is nearest to sum / divisor: the next floats on both sides are not nearer.
void expect_nearest(DataType type, const ExactSum& sum, std::int64_t divisor, Bits found) {
  const auto distance = [&](Bits to) { return std::abs(ExactSum(sum).add(to, -divisor).value()); };
  const Bits magnitude = found & ~sign_of(type);
  const Bits sign = found & sign_of(type);
  const long double here = distance(found);
  if (is_finite(type, magnitude + 1)) {
    ASSERT_LE(here, distance(sign | (magnitude + 1)));
    const bool tie = here == distance(sign | (magnitude + 1));
    ASSERT_TRUE(!tie || found % 2 == 0);
  }
  const Bits below = magnitude == 0 ? (sign ^ sign_of(type)) | 1 : sign | (magnitude - 1);
  ASSERT_LE(here, distance(below));
  ASSERT_TRUE(here < distance(below) || found % 2 == 0);
}

TEST_F(Reproducible, SumsAndAveragesOfFloat16AreCorrectlyRounded) {
  for (const std::uint32_t ranks : {3u, 9u, 16u, 17u, 200u}) {
    for (int round = 0; round < 150; ++round) {
      std::vector<Bits> values(ranks);
      for (Bits& value : values) value = random_float(DataType::float16, 0, 30, random_);
      const ExactSum sum = exact(DataType::float16, values);
      const Bits total = in_order({DataType::float16, Operation::sum, ranks}, values);
      if (is_finite(DataType::float16, total)) expect_nearest(DataType::float16, sum, 1, total);
      const Bits mean = in_order({DataType::float16, Operation::average, ranks}, values);
      ASSERT_TRUE(is_finite(DataType::float16, mean));
      expect_nearest(DataType::float16, sum, ranks, mean);
      if (HasFatalFailure()) return;
    }
  }
}

// Where no piece is dropped nothing but the last rounding is left.
TEST_F(Reproducible, ValuesOfSimilarSizeAreCorrectlyRounded) {
  for (const DataType type : kFloats) {
    const Bits highest = (infinity_of(type) >> mantissa_bits(type)) - 1;
    for (const std::uint32_t ranks : {3u, 16u, 33u, 256u}) {
      for (int round = 0; round < 40; ++round) {
        const Bits lowest = round % 2 == 0 ? 0 : random_() % (highest - 4);
        std::vector<Bits> values(ranks);
        for (Bits& value : values) value = random_float(type, lowest, lowest + 3, random_);
        const ExactSum sum = exact(type, values);
        const Bits total = in_order({type, Operation::sum, ranks}, values);
        if (is_finite(type, total)) expect_nearest(type, sum, 1, total);
        const Bits mean = in_order({type, Operation::average, ranks}, values);
        ASSERT_TRUE(is_finite(type, mean));
        expect_nearest(type, sum, ranks, mean);
        ASSERT_FALSE(HasFatalFailure()) << data_type_name(type) << " " << ranks;
      }
    }
  }
}

// As many equal values as there may be, of all mantissas and exponents: doubling is exact.
TEST_F(Reproducible, TheGreatestSumsFitInTheirFields) {
  for (const DataType type : kFloats) {
    for (const std::uint32_t ranks : {kMostSum64, most_ranks(type)}) {
      const ReproducibleReduction reduction{type, Operation::average, ranks};
      const Bits highest = (infinity_of(type) >> mantissa_bits(type)) - 1;
      for (Bits exponent = 0; exponent <= highest; ++exponent) {
        for (const Bits sign : {Bits{0}, sign_of(type)}) {
          const Bits all_ones = (exponent + 1) << mantissa_bits(type);
          for (const Bits value :
               {sign | (all_ones - 1), random_float(type, exponent, exponent, random_)}) {
            Element sum = carrier(reduction, value);
            for (std::uint32_t n = 1; n < ranks; n *= 2) sum = combined(reduction, sum, sum);
            ASSERT_EQ(result_of(reduction, sum), value == sign_of(type) ? 0 : value)
                << data_type_name(type) << " " << ranks;
          }
        }
      }
    }
  }
}

TEST_F(Reproducible, SpecialValuesAreThoseOfTheMathematicalSum) {
  for (const DataType type : kFloats) {
    const Bits infinity = infinity_of(type);
    const Bits minus = sign_of(type);
    const Bits greatest = infinity - 1;
    for (const std::uint32_t ranks : {2u, 3u, 16u, 17u}) {
      const ReproducibleReduction sum{type, Operation::sum, ranks};
      EXPECT_EQ(in_order(sum, {infinity, greatest}), infinity);
      EXPECT_EQ(in_order(sum, {minus | 1, minus | infinity}), minus | infinity);
      EXPECT_EQ(in_order(sum, {infinity, infinity}), infinity);
      EXPECT_EQ(in_order(sum, {infinity, minus | infinity}), nan_of(type));
      EXPECT_EQ(in_order(sum, {minus | nan_of(type) | 1, infinity}), nan_of(type));
      EXPECT_EQ(in_order(sum, {0, infinity | 1}), nan_of(type));
      EXPECT_EQ(in_order(sum, {minus, minus}), 0u);
      EXPECT_EQ(in_order(sum, {greatest, minus | greatest}), 0u);
      EXPECT_EQ(in_order(sum, {greatest, greatest}), infinity);
      EXPECT_EQ(in_order(sum, {1, 1}), 2u);
      for (const Operation operation : {Operation::min, Operation::max}) {
        EXPECT_EQ(in_order({type, operation, ranks}, {minus, 0}), 0u);
        EXPECT_EQ(in_order({type, operation, ranks}, {0, minus}), 0u);
        EXPECT_EQ(in_order({type, operation, ranks}, {minus | infinity | 1, 0}), nan_of(type));
      }
    }
    // What a float sum loses on the way is not lost here.
    EXPECT_EQ(in_order({type, Operation::sum, 3}, {greatest, greatest, minus | greatest}),
              greatest);
    EXPECT_EQ(in_order({type, Operation::average, 3}, {greatest, greatest, greatest}), greatest);
  }
}

TEST_F(Reproducible, ANegatedInputNegatesTheResult) {
  for (const DataType type : kFloats) {
    for (int round = 0; round < 150; ++round) {
      std::vector<Bits> values(9);
      std::vector<Bits> negated;
      for (Bits& value : values) {
        value = random_float(type, 0, (infinity_of(type) >> mantissa_bits(type)) - 1, random_);
        negated.push_back(value ^ sign_of(type));
      }
      const Bits sum = in_order({type, Operation::sum, 9}, values);
      ASSERT_EQ(in_order({type, Operation::sum, 9}, negated), sum == 0 ? 0 : sum ^ sign_of(type));
    }
  }
}

TEST_F(Reproducible, AveragesOfIntegersNeverOverflow) {
  constexpr auto kLeast = std::numeric_limits<std::int32_t>::min();
  const auto as_bits = [](std::int64_t value) { return std::bit_cast<Bits>(value); };
  const auto narrow = [](std::int32_t value) { return Bits{std::bit_cast<std::uint32_t>(value)}; };
  const std::vector<Bits> three = {narrow(2147483647), narrow(1), narrow(-5)};
  EXPECT_EQ(in_order({DataType::int32, Operation::average, 3}, three), narrow(715827881));
  EXPECT_EQ(in_order({DataType::int32, Operation::average, 2}, {narrow(kLeast), narrow(kLeast)}),
            narrow(kLeast));
  EXPECT_EQ(in_order({DataType::int32, Operation::average, 2}, {narrow(-3), narrow(0)}),
            narrow(-1));
  for (const std::int64_t value : {INT64_MIN, INT64_MAX, std::int64_t{-1}, std::int64_t{7}}) {
    const ReproducibleReduction reduction{DataType::int64, Operation::average, 65536};
    Element sum = carrier(reduction, as_bits(value));
    for (int doubling = 0; doubling < 16; ++doubling) sum = combined(reduction, sum, sum);
    EXPECT_EQ(result_of(reduction, sum), as_bits(value));
  }
  EXPECT_EQ(in_order({DataType::int64, Operation::average, 2}, {as_bits(-3), as_bits(0)}),
            as_bits(-1));
}

// The undefined-behaviour sanitizer judges.
TEST_F(Reproducible, BuffersOfNoElementsMayBeNowhere) {
  for (const DataType type :
       {DataType::float16, DataType::float64, DataType::int32, DataType::int64, DataType::uint8}) {
    for (const std::uint32_t ranks : {2u, 9u}) {
      to_carriers({type, Operation::max, ranks}, nullptr, nullptr, 0);
      to_carriers({type, Operation::sum, ranks}, nullptr, nullptr, 0);
      from_carriers({type, Operation::max, ranks}, nullptr, nullptr, 0);
      from_carriers({type, Operation::sum, ranks}, nullptr, nullptr, 0);
    }
  }
}

TEST_F(Reproducible, NothingCarriesMoreTrainersThanAFieldHolds) {
  const auto type_of = [](DataType type, Operation operation, std::uint32_t ranks) {
    const auto carrier = carrier_of({type, operation, ranks});
    return carrier.has_value() ? carrier->type : DataType::bytes;
  };
  EXPECT_EQ(type_of(DataType::float32, Operation::sum, 16), DataType::sum64);
  EXPECT_EQ(type_of(DataType::float32, Operation::average, 17), DataType::sum128);
  EXPECT_EQ(type_of(DataType::bfloat16, Operation::sum, 65536), DataType::sum128);
  EXPECT_EQ(type_of(DataType::bfloat16, Operation::sum, 65537), DataType::bytes);
  EXPECT_EQ(type_of(DataType::float64, Operation::sum, 256), DataType::sum128);
  EXPECT_EQ(type_of(DataType::float64, Operation::sum, 257), DataType::bytes);
  EXPECT_EQ(type_of(DataType::float64, Operation::max, 257), DataType::float64);
  EXPECT_EQ(type_of(DataType::float32, Operation::sum, 2), DataType::float32);
  EXPECT_EQ(type_of(DataType::int64, Operation::sum, 9), DataType::int64);
  EXPECT_TRUE(travels_unchanged({DataType::int64, Operation::sum, 9}));
  EXPECT_FALSE(travels_unchanged({DataType::float16, Operation::min, 9}));
}

}  // namespace
}  // namespace gradcube::aggregation::test
