#include "dataplane/engine/server_hub.h"

#include "aggregation/optimizer.h"

namespace gradcube::dataplane {

ServerHub::ServerHub(std::uint32_t number, std::shared_ptr<const control::hub::HubModel> model,
                     const ServerHubShape& shape)
    : number_(number),
      model_(std::move(model)),
      shape_(shape),
      weights_(model_->bytes(), shape.numa_node),
      board_(model_->keys().size(), shape.trainers, model_->executions().size()) {
  for (std::size_t i = 0; i < model_->executions().size(); ++i) {
    exchanges_.emplace_back(context_of(*model_, shape_, i, weights_.base()));
  }
}

std::uint64_t ServerHub::needs(const control::hub::HubModel& model, const ServerHubShape& shape) {
  std::uint64_t bytes = model.bytes() + HubBoard::needs(model.keys().size(), shape.trainers,
                                                        model.executions().size());
  for (std::size_t i = 0; i < model.executions().size(); ++i) {
    bytes += HubExchange::needs(context_of(model, shape, i, nullptr));
  }
  return bytes;
}

HubExchangeContext ServerHub::context_of(const control::hub::HubModel& model,
                                         const ServerHubShape& shape, std::size_t execution,
                                         std::uint8_t* weights) {
  const auto trainers = shape.trainers * static_cast<unsigned>(shape.plan->placement().ranks());
  return {model,
          model.executions()[execution],
          *shape.plan,
          shape.rank,
          *shape.kernels,
          *aggregation::optimizer_kernels_for(shape.kernels->instruction_set),
          shape.segment_bytes,
          shape.block_bytes,
          shape.trainers,
          trainers,
          weights};
}

}  // namespace gradcube::dataplane
