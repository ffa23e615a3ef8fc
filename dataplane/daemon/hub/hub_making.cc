#include "dataplane/daemon/hub/hub_making.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <fmt/format.h>
#include <new>
#include <utility>
#include <vector>

#include "control/base/errors.h"
#include "control/base/units.h"
#include "control/hub/aggregator_plan.h"
#include "protocol/wire.h"

namespace gradcube::dataplane {

namespace {

// For memory that is on its way back: half a minute. A trainer that was evicted and does not know
// it may keep a hub's for longer.
constexpr unsigned kMostLooksForMemory = 1'500;

template <typename Future>
bool is_ready(const Future& future) {
  return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

std::string name_of(const HubWish& wish) {
  return fmt::format("job \"{}\": its hub on server {}", wish.job, wish.server);
}

}  // namespace

template <typename Task>
auto HubMaking::start(Task task) const {
  auto outcome = std::async(wish_.threads, std::move(task));
  if (wish_.threads == std::launch::deferred) outcome.wait();
  return outcome;
}

HubMaking::HubMaking(HubWish wish, const HubDesign& design, MemoryQuota::Charge charge)
    : wish_(std::move(wish)), charge_(std::move(charge)) {
  draft_ = start([this, design] {
    const std::string name = name_of(wish_);
    Draft draft{std::make_shared<const std::string>(wish_.table.bytes()), nullptr, design.shape, 0};
    HubTableContent content = read_hub_table(*draft.table, name);
    ServerHubShape& shape = draft.shape;
    shape.staleness = content.staleness;
    shape.accumulates = content.accumulates;
    choose_plan(shape, design, content);
    draft.model = std::make_shared<const control::hub::HubModel>(
        std::move(content.keys), std::move(content.optimizers), *shape.plan, shape.engines,
        content.chunk_bytes, name);
    // Their numbers, by which frames find them, may have gaps.
    const unsigned numbers =
        std::ranges::max(draft.model->executions(), {}, &control::hub::HubExecution::number)
            .number +
        1;
    if (numbers > protocol::kMaxHubThreads) {
      throw control::UsageError(
          fmt::format("{}: its plan and {} engines number {} executors: expected at most {}", name,
                      shape.engines, numbers, protocol::kMaxHubThreads));
    }
    draft.needs = ServerHub::needs(*draft.model, draft.shape);
    return draft;
  });
}

void HubMaking::choose_plan(ServerHubShape& shape, const HubDesign& design,
                            const HubTableContent& content) const {
  const std::vector<bcube::ServerId>& aggregators = content.aggregators;
  const bool is_named = std::ranges::find(aggregators, design.server) != aggregators.end();
  if (design.members.has_value() && !is_named) {
    throw control::UsageError(name_of(wish_) + ": its table names other aggregators");
  }
  if (aggregators.empty()) {
    std::uint64_t bytes = 0;
    for (const control::HubKey& key : content.keys) bytes += key.bytes();
    shape.plan = &shape.choice->plan_of_hub(bytes);
    return;
  }
  const control::Placement members =
      design.members.has_value() ? *design.members : shape.choice->placement();
  const bcube::ServerId server =
      design.members.has_value() ? design.server : members.server(shape.rank);
  shape.aggregators = aggregators;
  shape.choice = std::make_shared<const control::PlanChoice>(
      control::hub::aggregated(*design.topology, members, aggregators, name_of(wish_)));
  shape.plan = &shape.choice->plan(0);
  shape.rank = shape.choice->placement().rank(server).value();
}

bool HubMaking::go_on() {
  try {
    if (draft_.valid()) {
      if (!is_ready(draft_)) return false;
      uncharged_ = draft_.get();
      table_ = uncharged_->table;
      wish_.table = {};  // it has been copied
    }
    if (uncharged_.has_value() && !get_memory(*uncharged_)) return false;
  } catch (const std::exception&) {
    failure_ = std::current_exception();
  }
  uncharged_.reset();
  return failure_ != nullptr || is_ready(hub_);
}

// False: not yet.
bool HubMaking::get_memory(const Draft& draft) {
  if (!charge_.set(draft.needs)) {
    if (charge_.may_hold_soon(draft.needs) && ++looks_ < kMostLooksForMemory) return false;
    throw control::SetupError(fmt::format(
        "{} needs {}, and the trainers of user {} may use {} of memory on this host and use {}: "
        "expected that others end first, or a cluster with a larger --trainer-memory",
        name_of(wish_), control::format_size(draft.needs), charge_.user(),
        control::format_size(charge_.limit()), control::format_size(charge_.used())));
  }
  hub_ = start([this, draft] {
    try {
      auto made = std::make_shared<ServerHub>(wish_.number, draft.model, draft.shape);
      made->set_charge(std::move(charge_));
      return made;
    } catch (const std::bad_alloc&) {
      throw control::SetupError(fmt::format("{} needs {}, and the host has not so much",
                                            name_of(wish_), control::format_size(draft.needs)));
    }
  });
  return true;
}

std::shared_ptr<ServerHub> HubMaking::hub() const {
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  return hub_.get();
}

bool HubMaking::is_idle() const {
  return (!draft_.valid() || is_ready(draft_)) && (!hub_.valid() || is_ready(hub_));
}

}  // namespace gradcube::dataplane
