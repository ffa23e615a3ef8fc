// The pollers of a simulated cluster, which one thread iterates in the place of theirs: in an order
// that chance draws anew each time, and now and then not at all, as if the operating system had
// taken a core away.
//
// Sleep. A poller that finds nothing sleeps at once, and then nothing but a ring, or the time that
// it has foretold, wakes it: not after a while, as those of a daemon. So a ring that is missing is
// a collective that does not end; and check_sleepers() lets them show that they slept rightly.
//
// Single-threaded. Clock, randomness and pollers outlive it.
#ifndef GRADCUBE_TESTS_SIMULATION_SIMULATED_POLLERS_H_
#define GRADCUBE_TESTS_SIMULATION_SIMULATED_POLLERS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "dataplane/fabric/emulated/random.h"
#include "dataplane/host/clock.h"
#include "dataplane/host/poller.h"

namespace gradcube::simulation {

class SimulatedPollers {
 public:
  static constexpr std::int64_t kLongestStall = 5'000'000;

  struct Schedule {
    double stalls = 0;       // per iteration and poller: the probability of one of kLongestStall
    bool may_sleep = false;  // all that brings something rings
    bool go_on = false;      // while the control thread waits for one of them
    std::function<unsigned(dataplane::Poller&)> iterate;  // what one iteration is
  };

  SimulatedPollers(Schedule schedule,
                   const std::vector<std::unique_ptr<dataplane::Poller>>& pollers,
                   dataplane::VirtualClock& clock, dataplane::SeededRandom& random);
  ~SimulatedPollers();
  SimulatedPollers(const SimulatedPollers&) = delete;
  SimulatedPollers& operator=(const SimulatedPollers&) = delete;

  // One iteration of each that has its core and is awake, or wakes now. How much moved.
  unsigned iterate();
  // It does nothing for this time.
  void pause(std::size_t poller, std::int64_t nanoseconds) {
    states_[poller].stalled_until = clock_.now() + nanoseconds;
  }
  // Rings all of them.
  void ring();
  // When the first has something to do: now, where somebody has rung for one.
  std::int64_t next_event();
  // Lets those that sleep look once more. Throws std::logic_error where that changes `counted`, and
  // none of them would have woken soon: nobody has rung.
  void check_sleepers(const std::function<std::uint64_t()>& counted);

 private:
  struct State {
    std::int64_t stalled_until = 0;
    bool sleeps = false;
    std::int64_t wakes_at = 0;  // if nobody rings
  };

  bool stalls(const State& state) const { return clock_.now() < state.stalled_until; }
  unsigned iterate(std::size_t number);
  void let_go_on();

  Schedule schedule_;
  const std::vector<std::unique_ptr<dataplane::Poller>>& pollers_;
  dataplane::VirtualClock& clock_;
  dataplane::SeededRandom& random_;
  std::vector<State> states_;  // by poller
  std::vector<std::size_t> order_;
};

}  // namespace gradcube::simulation

#endif  // GRADCUBE_TESTS_SIMULATION_SIMULATED_POLLERS_H_
