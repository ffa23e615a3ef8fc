// A hub that is being made at one server. What takes long (numbering its chunks, getting its
// memory) happens on a thread of its own, so that no trainer can keep the control thread from
// others; what has to be agreed with others happens between, on the control thread:
//
//   thread: the model, and what it needs  ->  charge it  ->  thread: the memory  ->  hub()
//
// Threads: the control thread. The destructor waits for the thread: destroy it when is_idle().
#ifndef GRADCUBE_DATAPLANE_DAEMON_HUB_MAKING_H_
#define GRADCUBE_DATAPLANE_DAEMON_HUB_MAKING_H_

#include <cstdint>
#include <future>
#include <memory>
#include <string>

#include "control/plan/topology.h"
#include "dataplane/daemon/hub_table.h"
#include "dataplane/engine/memory_quota.h"
#include "dataplane/engine/server_hub.h"

namespace gradcube::dataplane {

struct HubWish {
  std::string job;           // its name
  std::string server;        // in words
  std::uint32_t number = 0;  // of the hub
  unsigned lane = 0;
  std::string table;  // shared::HubTable, copied
};

// What is known of a hub before its table was read. Where the shape has no plan yet, the table
// decides: it is that of its aggregator, which topology is for, or the lane's for an all-reduce of
// the model.
struct HubDesign {
  ServerHubShape shape;
  const control::Topology* topology = nullptr;  // outlives the making
};

class HubMaking {
 public:
  // design: without the work, of which the table tells. charge: of nothing yet, of the user who is
  // to pay.
  HubMaking(HubWish wish, const HubDesign& design, MemoryQuota::Charge charge);
  HubMaking(const HubMaking&) = delete;
  HubMaking& operator=(const HubMaking&) = delete;

  const HubWish& wish() const { return wish_; }
  // Goes on as far as possible without waiting. True: it is over, and hub() has the outcome.
  bool go_on();
  // Once. Throws control::UsageError or control::SetupError, which say why there is none.
  std::shared_ptr<ServerHub> hub();
  // Nothing of it runs any more.
  bool is_idle() const;

 private:
  void choose_plan(ServerHubShape& shape, const control::Topology* topology,
                   const HubTableContent& content) const;

  struct Draft {
    std::shared_ptr<const control::hub::HubModel> model;
    ServerHubShape shape;
    std::uint64_t needs = 0;
  };

  void get_memory(const Draft& draft);

  HubWish wish_;
  MemoryQuota::Charge charge_;
  std::future<Draft> draft_;
  std::future<std::shared_ptr<ServerHub>> hub_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_HUB_MAKING_H_
