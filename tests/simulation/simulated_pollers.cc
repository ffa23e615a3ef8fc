#include "tests/simulation/simulated_pollers.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "tests/support/chance.h"

namespace gradcube::simulation {

SimulatedPollers::SimulatedPollers(Schedule schedule,
                                   const std::vector<std::unique_ptr<dataplane::Poller>>& pollers,
                                   dataplane::VirtualClock& clock, dataplane::SeededRandom& random)
    : schedule_(std::move(schedule)),
      pollers_(pollers),
      clock_(clock),
      random_(random),
      states_(pollers.size()),
      order_(pollers.size()) {
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  for (const auto& poller : pollers_) {
    if (schedule_.go_on) poller->set_meanwhile([this] { let_go_on(); });
  }
}

SimulatedPollers::~SimulatedPollers() {
  for (const auto& poller : pollers_) poller->set_meanwhile({});
}

unsigned SimulatedPollers::iterate() {
  for (std::size_t i = order_.size(); i > 1; --i) {
    std::swap(order_[i - 1], order_[random_.below(i)]);
  }
  unsigned moved = 0;
  for (const std::size_t i : order_) {
    if (stalls(states_[i])) continue;
    if (hits(random_, schedule_.stalls)) {
      pause(i, static_cast<std::int64_t>(random_.below(kLongestStall)));
      continue;
    }
    moved += iterate(i);
  }
  return moved;
}

unsigned SimulatedPollers::iterate(std::size_t number) {
  dataplane::Poller& poller = *pollers_[number];
  State& state = states_[number];
  if (state.sleeps) {
    if (clock_.now() < state.wakes_at && !poller.wait_for_ring(0)) return 0;
    poller.finish_wait();
    state.sleeps = false;
  }
  const unsigned moved = schedule_.iterate(poller);
  if (moved != 0 || !schedule_.may_sleep) return moved;
  if (poller.next_event() - clock_.now() < dataplane::Poller::kShortestSleep) return 0;
  poller.prepare_wait();
  const unsigned seen_at_last = schedule_.iterate(poller);
  if (seen_at_last != 0) {
    poller.finish_wait();
  } else {
    state = {state.stalled_until, true, poller.next_event()};
  }
  return seen_at_last;
}

void SimulatedPollers::let_go_on() {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (!stalls(states_[i]) && random_.below(2) == 0) iterate(i);
  }
}

void SimulatedPollers::ring() {
  for (const auto& poller : pollers_) poller->doorbell().ring();
}

std::int64_t SimulatedPollers::next_event() {
  std::int64_t next = dataplane::kNever;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    State& state = states_[i];
    if (stalls(state)) {  // perhaps it has not seen all that was brought to it
      next = std::min(next, state.stalled_until);
    } else if (state.sleeps) {
      if (pollers_[i]->wait_for_ring(0)) state.wakes_at = clock_.now();
      next = std::min(next, state.wakes_at);
    } else {
      next = std::min(next, pollers_[i]->next_event());
    }
  }
  return next;
}

void SimulatedPollers::check_sleepers(const std::function<std::uint64_t()>& counted) {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    State& state = states_[i];
    // Some of what comes without a ring is looked for so often.
    const bool wakes_soon = state.wakes_at - clock_.now() <= dataplane::Poller::kShortestSleep;
    if (!state.sleeps || stalls(state) || wakes_soon) continue;
    // To pass what others have run alone moves nothing that counts.
    const std::uint64_t before = counted();
    if (schedule_.iterate(*pollers_[i]) != 0 && counted() != before) {
      throw std::logic_error(fmt::format(
          "poller {} sleeps at {} ns and has something to do: nobody has rung", i, clock_.now()));
    }
    state.wakes_at = std::min(state.wakes_at, pollers_[i]->next_event());
  }
}

}  // namespace gradcube::simulation
