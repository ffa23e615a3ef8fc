#include "aggregation/partial_kernels.h"

namespace gradcube::aggregation {
namespace {

bool reduce_nothing(void* /*result*/, const void* const* /*sources*/, std::size_t /*source_count*/,
                    std::size_t /*count*/) noexcept {
  return true;
}

void divide_nothing(void* /*values*/, std::size_t /*count*/, std::uint32_t /*divisor*/) noexcept {}

void step_nothing(const OptimizerArrays& /*arrays*/, const void* const* /*sources*/,
                  std::size_t /*source_count*/, std::size_t /*count*/,
                  const OptimizerStep& /*step*/) noexcept {}

template <InstructionSet kInstructionSet, DataType kType>
void add(const OptimizerArrays& arrays, const void* const* sources, std::size_t source_count,
         std::size_t count, const OptimizerStep& /*step*/) noexcept {
  static const ReduceFunction reduce = kernels_for(kInstructionSet)->reduce(kType, Operation::sum);
  void* const sum = kType == DataType::float32 ? arrays.weights : arrays.rounded;
  reduce(sum, sources, source_count, count);
}

Kernels all_idle() noexcept {
  Kernels kernels{};
  for (auto& of_type : kernels.reduce_functions) {
    for (ReduceFunction& function : of_type) function = reduce_nothing;
  }
  for (DivideFunction& function : kernels.divide_functions) function = divide_nothing;
  return kernels;
}

void fill(OptimizerKernels& kernels, std::size_t row, OptimizeFunction function) noexcept {
  for (auto& of_rule : kernels.functions[row]) {
    for (OptimizeFunction& one : of_rule) one = function;
  }
}

OptimizerKernels all_idle_optimizers() noexcept {
  OptimizerKernels kernels{};
  for (std::size_t row = 0; row < kGradientTypes; ++row) fill(kernels, row, step_nothing);
  return kernels;
}

template <InstructionSet kInstructionSet>
const OptimizerKernels& adding() noexcept {
  static const OptimizerKernels kernels = [] {
    OptimizerKernels made{};
    made.instruction_set = kInstructionSet;
    fill(made, 0, add<kInstructionSet, DataType::float32>);
    fill(made, 1, add<kInstructionSet, DataType::float16>);
    fill(made, 2, add<kInstructionSet, DataType::bfloat16>);
    return made;
  }();
  return kernels;
}

}  // namespace

const Kernels& idle_kernels() noexcept {
  static const Kernels kernels = all_idle();
  return kernels;
}

const OptimizerKernels& idle_optimizers() noexcept {
  static const OptimizerKernels kernels = all_idle_optimizers();
  return kernels;
}

const OptimizerKernels& adding_optimizers(InstructionSet instruction_set) noexcept {
  switch (instruction_set) {
    case InstructionSet::avx2:
      return adding<InstructionSet::avx2>();
    case InstructionSet::avx512:
      return adding<InstructionSet::avx512>();
    default:
      return adding<InstructionSet::scalar>();
  }
}

}  // namespace gradcube::aggregation
