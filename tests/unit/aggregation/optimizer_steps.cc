// Steps of an optimizer for optimizers_test.py:
//
//     optimizer_steps INSTRUCTIONS TYPE RULE MOMENTUM DAMPENING WEIGHT_DECAY CLIP COUNT
//
// reads steps from stdin until it ends, each as the learning rate (float64), the number of the step
// (float64), the weights and two states (COUNT float32 each), and two gradients (COUNT elements of
// TYPE each). It writes to stdout the weights and both states after each, and where TYPE has 16
// bits also the rounded weights. It ends with 77 if this CPU lacks the instructions.
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "aggregation/kernels.h"
#include "aggregation/optimizer.h"

namespace {

namespace aggregation = gradcube::aggregation;

const aggregation::Kernels* kernels_named(std::string_view name) {
  for (int i = 0; i < 3; ++i) {
    const auto set = static_cast<aggregation::InstructionSet>(i);
    if (aggregation::instruction_set_name(set) == name) {
      return aggregation::kernels_for(set);
    }
  }
  return nullptr;
}

template <typename Value>
bool read_all(std::vector<Value>& values) {
  return std::fread(values.data(), sizeof(Value), values.size(), stdin) == values.size();
}

template <typename Value>
void write_all(const std::vector<Value>& values) {
  if (std::fwrite(values.data(), sizeof(Value), values.size(), stdout) != values.size()) {
    std::exit(1);
  }
}

int run(const aggregation::Kernels& kernels, aggregation::DataType type,
        const aggregation::OptimizerSettings& settings, std::size_t count) {
  const std::size_t element = aggregation::element_bytes(type);
  const aggregation::OptimizeFunction optimize =
      kernels.optimizers.optimize(type, aggregation::optimizer_form(settings, 2));
  std::vector<double> rate_and_step(2);
  std::vector<float> arrays[3];
  for (auto& array : arrays) array.resize(count);
  std::vector<std::byte> gradients(2 * count * element);
  std::vector<std::byte> rounded(element == 2 ? count * element : 0);
  while (read_all(rate_and_step)) {
    for (auto& array : arrays) {
      if (!read_all(array)) return 1;
    }
    if (!read_all(gradients)) return 1;
    const void* sources[] = {gradients.data(), gradients.data() + count * element};
    optimize({arrays[0].data(), arrays[1].data(), arrays[2].data(), rounded.data()}, sources, 2,
             count,
             aggregation::optimizer_step(settings, rate_and_step[0],
                                         static_cast<std::uint64_t>(rate_and_step[1]), 2));
    for (const auto& array : arrays) write_all(array);
    if (!rounded.empty()) write_all(rounded);
    if (std::fflush(stdout) != 0) return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 9) return 2;
  const auto type = aggregation::parse_data_type(argv[2]);
  const auto rule = aggregation::parse_optimizer_rule(argv[3]);
  if (!type || !rule) return 2;
  aggregation::OptimizerSettings settings;
  settings.rule = *rule;
  settings.momentum = std::atof(argv[4]);
  settings.dampening = std::atof(argv[5]);
  settings.weight_decay = std::atof(argv[6]);
  settings.clip = std::atof(argv[7]);
  const aggregation::Kernels* kernels = kernels_named(argv[1]);
  if (kernels == nullptr) return 77;
  return run(*kernels, *type, settings, static_cast<std::size_t>(std::atoll(argv[8])));
}
