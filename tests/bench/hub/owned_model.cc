#include "tests/bench/hub/owned_model.h"

#include <cstring>
#include <limits>
#include <random>

#include "aggregation/kernels.h"

namespace gradcube::bench {

using aggregation::bench::make_memory;

Gradients::Gradients(std::size_t workers, std::size_t elements) {
  std::mt19937 random;
  for (std::size_t worker = 0; worker < workers; ++worker) {
    arrays_.push_back(make_memory(elements * sizeof(float)));
    const auto array = reinterpret_cast<float*>(arrays_.back().get());
    for (std::size_t i = 0; i < elements; ++i) {
      array[i] = static_cast<float>(static_cast<std::int32_t>(random())) * 0x1p-31F;
    }
  }
}

void Gradients::point_at(std::size_t first, std::span<const void*> sources) const {
  for (std::size_t worker = 0; worker < arrays_.size(); ++worker) {
    sources[worker] = arrays_[worker].get() + first * sizeof(float);
  }
}

OwnedModel::OwnedModel(std::size_t elements)
    : bytes_(elements * sizeof(float)),
      weights_(make_memory(bytes_)),
      momentum_(make_memory(bytes_)) {}

aggregation::OptimizerArrays OwnedModel::from(std::size_t first) const {
  return {reinterpret_cast<float*>(weights_.get()) + first,
          reinterpret_cast<float*>(momentum_.get()) + first, nullptr, nullptr};
}

bool OwnedModel::has_bits_of(const OwnedModel& other) const {
  return bytes_ == other.bytes_ && std::memcmp(weights_.get(), other.weights_.get(), bytes_) == 0 &&
         std::memcmp(momentum_.get(), other.momentum_.get(), bytes_) == 0;
}

NesterovStep::NesterovStep(std::uint32_t divisor) {
  aggregation::OptimizerSettings settings;
  settings.rule = aggregation::OptimizerRule::nesterov;
  settings.momentum = 0.9;
  numbers = aggregation::optimizer_step(settings, settings.learning_rate, 2, divisor);
  optimize = aggregation::select_kernels(std::numeric_limits<unsigned>::max())
                 .optimizers.optimize(aggregation::DataType::float32,
                                      aggregation::optimizer_form(settings, divisor));
}

}  // namespace gradcube::bench
