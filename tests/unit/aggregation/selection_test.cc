#include <gtest/gtest.h>
#include <limits>

#include "aggregation/kernels.h"
#include "tests/unit/aggregation/oracle.h"

namespace gradcube::aggregation::test {
namespace {

TEST(Selection, TheScalarKernelsAreAlwaysThere) {
  ASSERT_NE(kernels_for(InstructionSet::scalar), nullptr);
}

TEST(Selection, EveryTableIsThatOfItsInstructionSetAndWhole) {
  for (const InstructionSet instruction_set : kInstructionSets) {
    const Kernels* kernels = kernels_for(instruction_set);
    if (kernels == nullptr) continue;
    EXPECT_EQ(kernels->instruction_set, instruction_set);
    for (const DataType type : kPlainTypes) {
      EXPECT_EQ(kernels->divide(type) != nullptr,
                supports(type, Operation::average) && element_bytes(type) != 2);
      for (const Operation operation : kAllOperations) {
        EXPECT_EQ(kernels->reduce(type, operation) != nullptr, supports(type, operation));
      }
    }
  }
}

TEST(Selection, StaysWithinTheLimit) {
  for (const unsigned bits : {0u, 64u, 127u}) {
    EXPECT_EQ(select_kernels(bits).instruction_set, InstructionSet::scalar) << bits;
  }
  for (const unsigned bits : {128u, 255u}) {
    EXPECT_NE(select_kernels(bits).instruction_set, InstructionSet::avx2) << bits;
  }
  for (const unsigned bits : {256u, 511u}) {
    EXPECT_NE(select_kernels(bits).instruction_set, InstructionSet::avx512) << bits;
  }
}

TEST(Selection, TakesTheWidestThisMachineHas) {
  const Kernels* widest = available_kernels().back();
  EXPECT_EQ(&select_kernels(512), widest);
  EXPECT_EQ(&select_kernels(32768), widest);
  EXPECT_EQ(&select_kernels(std::numeric_limits<unsigned>::max()), widest);
  if (const Kernels* avx2 = kernels_for(InstructionSet::avx2)) {
    EXPECT_EQ(&select_kernels(256), avx2);
  }
  if (const Kernels* neon = kernels_for(InstructionSet::neon)) {
    EXPECT_EQ(&select_kernels(128), neon);
  }
}

TEST(Selection, InstructionSetsHaveNames) {
  EXPECT_EQ(instruction_set_name(InstructionSet::scalar), "scalar");
  EXPECT_EQ(instruction_set_name(InstructionSet::neon), "neon");
  EXPECT_EQ(instruction_set_name(InstructionSet::avx2), "avx2");
  EXPECT_EQ(instruction_set_name(InstructionSet::avx512), "avx512");
  EXPECT_EQ(instruction_set_name(static_cast<InstructionSet>(9)), "?");
}

}  // namespace
}  // namespace gradcube::aggregation::test
