// Flows over one credit pool, for its tests.
#ifndef GRADCUBE_TESTS_UNIT_PROTOCOL_CREDIT_FLOWS_H_
#define GRADCUBE_TESTS_UNIT_PROTOCOL_CREDIT_FLOWS_H_

#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <vector>

#include "protocol/credit.h"
#include "tests/unit/protocol/arrive.h"

namespace gradcube::protocol {

inline constexpr std::uint32_t kSegment = 1'000;

inline CreditSettings segments(std::uint64_t budget) {
  return {.budget_bytes = budget * kSegment, .segment_bytes = kSegment};
}

// The sender says again and again that it has all below `ready`, until it is granted no more.
inline void grant_all(CreditPool& pool, CreditPool::Handle flow, std::uint64_t ready) {
  do pool.on_frame(flow, ready);
  while (pool.distribute());
}

// Flows over one pool, whose segments arrive in order.
struct Flows {
  Flows(const CreditSettings& settings, std::size_t count, unsigned window = ReceiveWindow::kWindow)
      : port(settings), pool(port, 0) {
    for (std::size_t index = 0; index < count; ++index) add({}, window);
    pool.distribute();
  }

  void add(const CreditRank& rank, unsigned window = ReceiveWindow::kWindow) {
    windows.push_back(std::make_unique<ReceiveWindow>(window));
    ids.push_back(pool.add(windows.back().get(), rank));
  }

  // The flow's sender has so many segments ready beyond what it was granted.
  void ask(std::size_t flow, std::uint64_t more) {
    pool.on_frame(ids[flow], windows[flow]->limit() + more);
  }

  // The same, by all flows, until none is granted more.
  void ask_for_all(std::uint64_t more) {
    do
      for (std::size_t flow = 0; flow < windows.size(); ++flow) ask(flow, more);
    while (pool.distribute());
  }

  // The flow's next segment arrives and is used up; its sender has `backlog` more.
  void arrive(std::size_t flow, std::uint64_t backlog) {
    ReceiveWindow& window = *windows[flow];
    ASSERT_EQ(protocol::arrive(window, window.cumulative()), Arrival::fresh);
    pool.set_consumed(ids[flow], window.cumulative(), 0);
    pool.on_frame(ids[flow], window.highest() + backlog);
  }

  std::uint64_t granted(std::size_t flow) const {
    return windows[flow]->limit() - windows[flow]->arrivals();
  }

  std::uint64_t sum() const {
    std::uint64_t total = 0;
    for (std::size_t flow = 0; flow < windows.size(); ++flow) total += granted(flow);
    return total;
  }

  PortCredit port;
  CreditPool pool;
  std::vector<std::unique_ptr<ReceiveWindow>> windows;
  std::vector<CreditPool::Handle> ids;
};

}  // namespace gradcube::protocol

#endif  // GRADCUBE_TESTS_UNIT_PROTOCOL_CREDIT_FLOWS_H_
