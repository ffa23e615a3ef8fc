// What is done for one hub at one server on threads of its own, because it takes long, so that no
// trainer can keep the control thread from others. What has to be agreed with others happens
// between, on the control thread:
//
//   thread: a copy of the table, the model, and what it needs  ->  charge it
//       ->  thread: the memory  ->  hub()
//
// Where its user has not so much left, and would have it when the memory of an earlier hub has
// gone, which may take seconds, the charge waits for that.
//
// Under a virtual clock no thread may end when it likes: there all of it is done at once, by the
// caller (HubWish::threads).
//
// Threads: the control thread. The destructor waits for the threads: destroy it when is_idle().
#ifndef GRADCUBE_DATAPLANE_DAEMON_HUB_HUB_MAKING_H_
#define GRADCUBE_DATAPLANE_DAEMON_HUB_HUB_MAKING_H_

#include <cstdint>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "bcube_forwarding/address.h"
#include "control/plan/base/placement.h"
#include "control/plan/base/topology.h"
#include "dataplane/daemon/engines/departed_sessions.h"
#include "dataplane/daemon/hub/hub_table.h"
#include "dataplane/daemon/hub/hub_table_source.h"
#include "dataplane/engine/hub/server_hub.h"
#include "dataplane/engine/memory/memory_quota.h"

namespace gradcube::dataplane {

struct HubWish {
  std::string job;           // its name
  std::string server;        // in words
  std::uint32_t number = 0;  // of the hub
  unsigned lane = 0;
  HubTableSource table;
  std::launch threads = std::launch::async;  // deferred: none
};

// What is known of a hub before its table was read, which decides on the plan: it is that of its
// aggregators, or of the shape's choice for an all-reduce of the model.
struct HubDesign {
  ServerHubShape shape;
  const control::Topology* topology = nullptr;  // outlives the making
  // Of an aggregator's part, whose shape has no choice: its server, and the servers with trainers.
  bcube::ServerId server = 0;
  std::optional<control::Placement> members{};
};

class HubMaking final : public UnfinishedWork {
 public:
  // design: without the work, of which the table tells. charge: of nothing yet, of the user who is
  // to pay.
  HubMaking(HubWish wish, const HubDesign& design, MemoryQuota::Charge charge);
  HubMaking(const HubMaking&) = delete;
  HubMaking& operator=(const HubMaking&) = delete;

  // Goes on as far as possible without waiting. True: it is over, and hub() has the outcome.
  bool go_on();
  // Throws control::UsageError or control::SetupError, which say why there is none.
  std::shared_ptr<ServerHub> hub() const;
  // The copy, once go_on() was true and hub() did not throw.
  const std::shared_ptr<const std::string>& table() const { return table_; }

  // Nothing of it runs any more.
  bool is_idle() const override;

 private:
  void choose_plan(ServerHubShape& shape, const HubDesign& design,
                   const HubTableContent& content) const;

  struct Draft {
    std::shared_ptr<const std::string> table;
    std::shared_ptr<const control::hub::HubModel> model;
    ServerHubShape shape;
    std::uint64_t needs = 0;
  };

  template <typename Task>
  auto start(Task task) const;
  bool get_memory(const Draft& draft);

  HubWish wish_;
  MemoryQuota::Charge charge_;
  std::shared_ptr<const std::string> table_;
  std::future<Draft> draft_;
  std::optional<Draft> uncharged_;
  unsigned looks_ = 0;  // for memory to charge
  std::shared_future<std::shared_ptr<ServerHub>> hub_;
  std::exception_ptr failure_;  // before a thread began to make it
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_HUB_HUB_MAKING_H_
