// The kernels of sum64 and sum128 against the rule of reproducible.h, computed field by field.
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "aggregation/kernels.h"
#include "tests/unit/aggregation/arrays.h"
#include "tests/unit/aggregation/oracle.h"

namespace gradcube::aggregation::test {
namespace {

__extension__ using Word = unsigned __int128;
__extension__ using SignedWord = __int128;

struct Fields {
  unsigned index = 0;
  std::int64_t field[3] = {};  // the lowest first
};

struct Shape {
  DataType type;
  unsigned index_bits;
  unsigned stride;
};
constexpr Shape kShapes[] = {{DataType::sum64, 5, 19}, {DataType::sum128, 8, 39}};

std::vector<std::byte> packed(const Shape& shape, const std::vector<Fields>& elements) {
  const std::size_t size = element_bytes(shape.type);
  std::vector<std::byte> memory(elements.size() * size);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    SignedWord sum = 0;
    for (unsigned f = 3; f-- > 0;)
      sum = sum * (SignedWord{1} << shape.stride) + elements[i].field[f];
    const Word word = (static_cast<Word>(sum) << shape.index_bits) | elements[i].index;
    std::memcpy(memory.data() + i * size, &word, size);
  }
  return memory;
}

Fields rule(const Fields& a, const Fields& b) {
  Fields sum{std::max(a.index, b.index)};
  for (const Fields& one : {a, b}) {
    const unsigned down = sum.index - one.index;
    for (unsigned f = down; f < 3; ++f) sum.field[f - down] += one.field[f];
  }
  return sum;
}

Fields random_fields(const Shape& shape, std::size_t sources, std::mt19937_64& random) {
  const std::int64_t most =
      ((std::int64_t{1} << (shape.stride - 1)) - 1) / static_cast<std::int64_t>(sources);
  std::uniform_int_distribution<std::int64_t> value(-most, most);
  Fields fields{static_cast<unsigned>(random() % 5 + (random() % 8 == 0 ? 20 : 0))};
  for (std::int64_t& field : fields.field) {
    const auto choice = random() % 8;
    field = choice == 0 ? 0 : choice == 1 ? -most : choice == 2 ? most : value(random);
  }
  return fields;
}

class ReproducibleKernels : public ::testing::Test {
 protected:
  std::uint64_t seed_ = test_seed();
  std::mt19937_64 random_{seed_};
  ::testing::ScopedTrace trace_{__FILE__, __LINE__, "GRADCUBE_TEST_SEED=" + std::to_string(seed_)};
};

TEST_F(ReproducibleKernels, AddFieldsOfTheSamePiecesAndDropTheRest) {
  for (const Shape& shape : kShapes) {
    for (const std::size_t source_count : {1, 2, 3, 9}) {
      for (std::size_t count = 0; count <= 70; ++count) {
        std::vector<std::vector<std::byte>> arrays;
        std::vector<const void*> sources;
        std::vector<Fields> expected(count);
        for (std::size_t s = 0; s < source_count; ++s) {
          std::vector<Fields> elements(count);
          for (std::size_t i = 0; i < count; ++i) {
            elements[i] = random_fields(shape, source_count, random_);
            expected[i] = s == 0 ? elements[i] : rule(expected[i], elements[i]);
          }
          arrays.push_back(packed(shape, elements));
        }
        for (const auto& array : arrays) sources.push_back(array.data());
        for (const Kernels* kernels : available_kernels()) {
          std::vector<std::byte> result(arrays[0].size());
          ASSERT_TRUE(kernels->reduce(shape.type, Operation::sum)(result.data(), sources.data(),
                                                                  source_count, count));
          ASSERT_EQ(result, packed(shape, expected))
              << instruction_set_name(kernels->instruction_set) << " of " << source_count;
        }
      }
    }
  }
}

// What a faulty trainer may send is added in the same way everywhere, and stays in its place.
TEST_F(ReproducibleKernels, ArbitraryBitsAreAddedAlikeByAllInstructionSets) {
  FencedPage pages[3];
  for (const Shape& shape : kShapes) {
    for (std::size_t count = 0; count <= 70; ++count) {
      const std::size_t bytes = count * element_bytes(shape.type);
      std::vector<std::byte> arrays[2];
      for (auto& array : arrays) {
        array.resize(bytes);
        for (std::byte& byte : array) byte = static_cast<std::byte>(random_());
      }
      std::vector<std::byte> expected;
      for (const Kernels* kernels : available_kernels()) {
        const auto reduce = kernels->reduce(shape.type, Operation::sum);
        const void* sources[] = {pages[0].end() - bytes, pages[1].end() - bytes};
        for (int s = 0; s < 2 && bytes != 0; ++s) {
          std::memcpy(pages[s].end() - bytes, arrays[s].data(), bytes);
        }
        ASSERT_TRUE(reduce(pages[0].end() - bytes, sources, 2, count));
        std::vector<std::byte> result(bytes);
        if (bytes != 0) std::memcpy(result.data(), pages[0].end() - bytes, bytes);
        if (kernels == available_kernels().front()) expected = result;
        ASSERT_EQ(result, expected) << instruction_set_name(kernels->instruction_set);
      }
    }
  }
}

TEST_F(ReproducibleKernels, CarriersCanOnlyBeAdded) {
  for (const Shape& shape : kShapes) {
    for (const Operation operation : kAllOperations) {
      EXPECT_EQ(supports(shape.type, operation), operation == Operation::sum);
      for (const Kernels* kernels : available_kernels()) {
        EXPECT_EQ(kernels->reduce(shape.type, operation) != nullptr, operation == Operation::sum);
        EXPECT_EQ(kernels->divide(shape.type), nullptr);
      }
    }
    EXPECT_EQ(data_type_name(shape.type), "?");
  }
}

}  // namespace
}  // namespace gradcube::aggregation::test
