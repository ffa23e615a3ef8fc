#include "dataplane/engine/hub/server_hub.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <thread>
#include <utility>

#include "aggregation/optimizer.h"
#include "trainer/shared_layout.h"

namespace gradcube::dataplane {

namespace {

constexpr std::uint64_t kFreedApart = std::uint64_t{32} << 20;

// Whose gradients are stepped with at once.
std::uint32_t divisor_of(const ServerHubShape& shape) {
  if (!shape.staleness.has_value()) return shape.all_trainers;
  const std::size_t servers = shape.plan->ranks() - shape.aggregators.size();  // with trainers
  return static_cast<std::uint32_t>(shape.all_trainers / servers);
}

}  // namespace

ServerHub::ServerHub(std::uint32_t number, std::shared_ptr<const control::hub::HubModel> model,
                     const ServerHubShape& shape)
    : number_(number),
      model_(std::move(model)),
      shape_(shape),
      layout_(layout_of(*model_, shape_)),
      memory_(layout_.bytes, shape.numa_node),
      board_(model_->keys().size(), shape.trainers, model_->executions().size()) {
  for (std::size_t i = 0; i < model_->executions().size(); ++i) {
    HubExchangeContext context = context_of(*model_, shape_, i);
    context.weights = memory_.base();
    context.state = reinterpret_cast<float*>(memory_.base() + layout_.states[i]);
    exchanges_.emplace_back(context);
  }
  list_ranges();
}

ServerHub::Layout ServerHub::layout_of(const control::hub::HubModel& model,
                                       const ServerHubShape& shape) {
  const auto align = [](std::uint64_t bytes) {
    return (bytes + shared::kBufferAlignment - 1) / shared::kBufferAlignment *
           shared::kBufferAlignment;
  };
  Layout layout;
  std::vector<HubStateShape> states;
  for (std::size_t i = 0; i < model.executions().size(); ++i) {
    const HubNeeds needs = HubExchange::needs(context_of(model, shape, i));
    states.push_back(needs.state);
    layout.ranges += needs.state.ranges;
    layout.exchanges += needs.bytes;
  }
  layout.bytes =
      align(model.bytes() + sizeof(shared::HubHeader) + layout.ranges * sizeof(shared::HubRange));
  for (const HubStateShape& state : states) {
    layout.states.push_back(layout.bytes);
    layout.bytes += state.elements() * sizeof(float);
  }
  return layout;
}

std::uint64_t ServerHub::needs(const control::hub::HubModel& model, const ServerHubShape& shape) {
  const Layout layout = layout_of(model, shape);
  return layout.bytes + layout.exchanges +
         HubBoard::needs(model.keys().size(), shape.trainers, model.executions().size());
}

// Without memory.
HubExchangeContext ServerHub::context_of(const control::hub::HubModel& model,
                                         const ServerHubShape& shape, std::size_t execution) {
  return {model,
          model.executions()[execution],
          *shape.plan,
          shape.rank,
          *shape.kernels,
          shape.segment_bytes,
          shape.block_bytes,
          shape.trainers,
          divisor_of(shape),
          !shape.aggregators.empty(),
          shape.staleness,
          shape.accumulates,
          nullptr,
          nullptr};
}

shared::HubHeader& ServerHub::state() const {
  return *reinterpret_cast<shared::HubHeader*>(memory_.base() + model_->bytes());
}

void ServerHub::set_end(std::int32_t code, std::uint32_t notice) {
  __atomic_store_n(&state().end_notice, notice, __ATOMIC_RELAXED);
  __atomic_store_n(&state().end_code, code, __ATOMIC_RELEASE);
}

ServerHub::~ServerHub() {
  if (memory_.goes_at_the_end()) __atomic_store_n(&state().readable, 0, __ATOMIC_SEQ_CST);
  // Slots of an aggregator may have as many bytes as all its servers' models, and the system takes
  // 0.2 s for each GiB: a thread of its own frees them, where there is one.
  if (memory_.charged() <= kFreedApart) return;
  try {
    auto apart = std::make_unique<std::deque<HubExchange>>(std::move(exchanges_));
    auto free = [charge = memory_.charge(), apart = std::move(apart)]() mutable { apart.reset(); };
    std::thread(std::move(free)).detach();
  } catch (const std::exception&) {
    // Freed here.
  }
}

void ServerHub::list_ranges() {
  const aggregation::OptimizerSettings& its = model_->settings();
  std::uint8_t* const base = memory_.base();
  state() = {.ranges = static_cast<std::uint32_t>(layout_.ranges),
             .rule = static_cast<std::uint32_t>(its.rule),
             .settings = {its.learning_rate, its.momentum, its.dampening, its.beta1, its.beta2,
                          its.epsilon, its.weight_decay, its.clip},
             .end_code = 0,
             .end_notice = 0,
             .readable = 1,
             .reserved = 0};
  auto* const first = reinterpret_cast<shared::HubRange*>(&state() + 1);
  shared::HubRange* next = first;
  for (const HubExchange& exchange : exchanges_) {
    exchange.for_each_owned([&](const HubOwnedRange& owned) {
      shared::HubRange& range = *next++;
      range = {.key = owned.key,
               .reserved = 0,
               .first_element = owned.first_element,
               .elements = owned.elements,
               .arrays = {}};
      for (std::size_t i = 0; i < kHubArrays; ++i) {
        if (owned.arrays[i] == nullptr) continue;
        range.arrays[i] = static_cast<std::uint64_t>(
            reinterpret_cast<const std::uint8_t*>(owned.arrays[i]) - base);
      }
      if (owned.arrays[0] == nullptr) {
        range.arrays[0] = model_->begin_of_key(owned.key) + owned.first_element * sizeof(float);
      }
    });
  }
  std::sort(first, next, [](const shared::HubRange& a, const shared::HubRange& b) {
    return a.key != b.key ? a.key < b.key : a.first_element < b.first_element;
  });
}

}  // namespace gradcube::dataplane
