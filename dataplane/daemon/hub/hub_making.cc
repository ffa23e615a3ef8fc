#include "dataplane/daemon/hub/hub_making.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <fmt/format.h>
#include <new>
#include <utility>

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
    : wish_(std::move(wish)),
      charge_(std::move(charge)),
      copy_([this] { return std::make_shared<const std::string>(wish_.table.bytes()); }),
      table_(copy_.get_future().share()) {
  draft_ = start([this, design] {
    copy_();  // first: who compares waits for it
    const std::string name = name_of(wish_);
    HubTableContent content = read_hub_table(*table_.get(), name);
    Draft draft{nullptr, design.shape, 0};
    ServerHubShape& shape = draft.shape;
    shape.staleness = content.staleness;
    choose_plan(shape, design.topology, content);
    draft.model = std::make_shared<const control::hub::HubModel>(
        std::move(content.keys), std::move(content.optimizers), *shape.plan, shape.engines,
        content.chunk_bytes, name);
    if (draft.model->executions().size() > protocol::kMaxHubThreads) {
      throw control::UsageError(
          fmt::format("{}: its plan and {} engines make {} executors: expected at most {}", name,
                      shape.engines, draft.model->executions().size(), protocol::kMaxHubThreads));
    }
    draft.needs = ServerHub::needs(*draft.model, draft.shape);
    return draft;
  });
}

void HubMaking::choose_plan(ServerHubShape& shape, const control::Topology* topology,
                            const HubTableContent& content) const {
  if (shape.plan != nullptr) {
    if (content.aggregator != shape.aggregator) {
      throw control::UsageError(name_of(wish_) + ": its table names another aggregator");
    }
    return;
  }
  if (!content.aggregator.has_value()) {
    std::uint64_t bytes = 0;
    for (const control::HubKey& key : content.keys) bytes += key.bytes();
    shape.plan = &shape.choice->plan_of_hub(bytes);
    return;
  }
  const control::Placement& members = shape.choice->placement();
  const control::ServerId server = members.server(shape.rank);
  shape.aggregator = content.aggregator;
  shape.choice = std::make_shared<const control::PlanChoice>(
      control::hub::aggregated(*topology, members, *content.aggregator, name_of(wish_)));
  shape.plan = &shape.choice->plan(0);
  shape.rank = shape.choice->placement().rank(server).value();
}

bool HubMaking::go_on() {
  try {
    if (draft_.valid()) {
      if (!is_ready(draft_)) return false;
      uncharged_ = draft_.get();
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

void HubMaking::compare(unsigned local, HubTableSource table) {
  Comparison& added = comparisons_.emplace_back(Comparison{local, std::move(table), {}});
  try {
    begin(added);
  } catch (...) {
    comparisons_.pop_back();
    throw;
  }
}

void HubMaking::begin(Comparison& comparison) {
  comparison.same =
      start([&theirs = comparison.table, ours = table_] { return *ours.get() == theirs.bytes(); });
}

// Where it cannot begin, the outcome stays as it is, and the next look at it tries again.
void HubMaking::compare_again(Comparison& comparison) {
  try {
    begin(comparison);
  } catch (const std::exception&) {
  }
}

std::vector<HubMaking::Compared> HubMaking::compared() {
  std::vector<Compared> all;
  all.reserve(comparisons_.size());
  for (auto each = comparisons_.begin(); each != comparisons_.end();) {
    if (!is_ready(each->same)) {
      ++each;
      continue;
    }
    try {
      all.push_back({each->local, each->same.get()});
    } catch (const std::bad_alloc&) {
      compare_again(*each);
      ++each;
      continue;
    } catch (const std::exception&) {
      // There is no copy, and will be no hub: its maker is told why, and so are all.
    }
    each = comparisons_.erase(each);
  }
  return all;
}

bool HubMaking::is_idle() const {
  return (!draft_.valid() || is_ready(draft_)) && (!hub_.valid() || is_ready(hub_)) &&
         std::ranges::all_of(comparisons_,
                             [](const Comparison& each) { return is_ready(each.same); });
}

}  // namespace gradcube::dataplane
