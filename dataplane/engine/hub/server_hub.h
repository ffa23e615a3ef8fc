// What one server has of a job's hub: the model, the weights, what is pushed (hub_board.h), and
// what its executors work on (hub_exchange.h). Its engines drive it, each its own executors
// (engine_hub.h).
//
// Its memory (hub_memory.h) has the weights, then a shared::HubHeader with its ranges, by which
// trainers find what is owned here, and then the arrays of each executor.
//
// Construction takes all memory that the hub will ever need here, which can take seconds: not on
// the control thread. Destroyed by the control thread, when no engine has it and no packet points
// into it.
#ifndef GRADCUBE_DATAPLANE_ENGINE_HUB_SERVER_HUB_H_
#define GRADCUBE_DATAPLANE_ENGINE_HUB_SERVER_HUB_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "bcube_forwarding/address.h"
#include "control/hub/hub_model.h"
#include "control/plan/plan_choice.h"
#include "dataplane/engine/hub/hub_memory.h"
#include "dataplane/engine/memory/memory_quota.h"
#include "dataplane/hub/hub_board.h"
#include "dataplane/hub/hub_exchange.h"
#include "trainer/shared_layout.h"

namespace gradcube::dataplane {

// What a hub is made of, and where. The same on all servers, but for the rank and the trainers.
struct ServerHubShape {
  // Of a lane of the job, or where the hub has aggregators its own; the plan is one of its.
  std::shared_ptr<const control::PlanChoice> choice;
  const control::Plan* plan = nullptr;
  control::Rank rank = 0;  // the server's, in the plan
  // The plan's roots, if they have no trainers of the job.
  std::vector<bcube::ServerId> aggregators;
  // Of an asynchronous hub, which has aggregators: HubExchangeContext's.
  std::optional<std::uint32_t> staleness;
  bool accumulates = false;  // the same's
  const aggregation::Kernels* kernels = nullptr;
  std::uint32_t segment_bytes = 0;
  std::uint32_t block_bytes = 0;
  unsigned trainers = 1;           // of the server; none of an aggregator
  std::uint32_t all_trainers = 1;  // of the job
  unsigned engines = 1;            // of each server
  std::optional<unsigned> numa_node;
};

class ServerHub {
 public:
  // number: 1, 2, 3, ... among the hubs of the job. Throws control::SetupError; std::bad_alloc.
  ServerHub(std::uint32_t number, std::shared_ptr<const control::hub::HubModel> model,
            const ServerHubShape& shape);
  ~ServerHub();
  ServerHub(const ServerHub&) = delete;
  ServerHub& operator=(const ServerHub&) = delete;

  // What one would take, in bytes. Throws nothing, allocates little.
  static std::uint64_t needs(const control::hub::HubModel& model, const ServerHubShape& shape);

  std::uint32_t number() const { return number_; }
  const control::hub::HubModel& model() const { return *model_; }
  const ServerHubShape& shape() const { return shape_; }
  const HubMemory& memory() const { return memory_; }
  // Control thread: tells trainers, who look there, that it ends.
  void set_end(std::int32_t code, std::uint32_t notice);
  // As of HubMemory. Trainers that look there are told before its pages go.
  void readers_have_left() { memory_.readers_have_left(); }
  void outlive_daemon() { memory_.outlive_daemon(); }
  HubBoard& board() { return board_; }
  const HubBoard& board() const { return board_; }
  // By the places of model().executions().
  std::deque<HubExchange>& exchanges() { return exchanges_; }

  // Who pays for it. Control thread.
  void set_charge(MemoryQuota::Charge charge) { memory_.set_charge(std::move(charge)); }
  std::uint64_t charged() const { return memory_.charged(); }

 private:
  // Of the memory, behind the weights.
  struct Layout {
    std::uint64_t ranges = 0;
    std::vector<std::uint64_t> states;  // where each executor's arrays begin
    std::uint64_t bytes = 0;
    std::uint64_t exchanges = 0;  // bytes that these take beside it
  };

  static Layout layout_of(const control::hub::HubModel& model, const ServerHubShape& shape);
  static HubExchangeContext context_of(const control::hub::HubModel& model,
                                       const ServerHubShape& shape, std::size_t execution);
  shared::HubHeader& state() const;
  void list_ranges();

  std::uint32_t number_;
  std::shared_ptr<const control::hub::HubModel> model_;
  ServerHubShape shape_;
  Layout layout_;
  HubMemory memory_;
  HubBoard board_;
  std::deque<HubExchange> exchanges_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_HUB_SERVER_HUB_H_
