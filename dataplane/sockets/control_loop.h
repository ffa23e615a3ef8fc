// The control thread's event loop: descriptors with what to do when they are readable, and a tick.
//
// No callback and no tick should take longer than kLongStep: whoever else waits for this thread,
// waits. What takes longer is done in parts, with hurry() between them.
//
// One thread. What a callback throws is logged (ClientLog), unless there is no memory for that, and
// ends nothing but that callback. The same holds for the end of a pause, which is tried again. A
// callback may add and remove descriptors, its own too: a removed one is not called again.
//
// Several events arrive in one batch. A callback may close a descriptor that has another event in
// the batch, and the kernel may give the closed descriptor's number to a new one at once. So every
// add() has a generation of its own, and an event reaches only the add() that it belongs to.
#ifndef GRADCUBE_DATAPLANE_SOCKETS_CONTROL_LOOP_H_
#define GRADCUBE_DATAPLANE_SOCKETS_CONTROL_LOOP_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "dataplane/sockets/client_log.h"

namespace gradcube::dataplane {

class ControlLoop {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr auto kLongStep = std::chrono::milliseconds(50);

  // A step is a callback, a tick, or the end of a pause.
  struct Steps {
    std::uint64_t steps = 0;
    std::uint64_t long_ones = 0;  // that took longer than kLongStep, waiting for a core included
    Clock::duration longest{};
    std::uint64_t hurries = 0;  // calls of hurry()
  };

  ControlLoop();
  ~ControlLoop();
  ControlLoop(const ControlLoop&) = delete;
  ControlLoop& operator=(const ControlLoop&) = delete;

  // The caller keeps the descriptor open until remove(). The callback also runs when the other end
  // hangs up.
  void add(int descriptor, std::function<void()> on_readable);
  void remove(int descriptor);

  // pause() stops reports of readable data until resume(). A hang-up is still reported.
  void pause(int descriptor);
  void resume(int descriptor);
  // The same until so much time has passed.
  void pause_for(int descriptor, Clock::duration pause);

  // Called after every round of events, and at least every 20 ms.
  void on_tick(std::function<void()> tick) { tick_ = std::move(tick); }

  // From a callback or the tick: the next round does not wait for events.
  void hurry() {
    hurries_ = true;
    ++steps_.hurries;
  }

  const Steps& steps() const { return steps_; }

  void run();                       // until stop(); may be called again
  void stop() { stopped_ = true; }  // from a callback

 private:
  void watch(int descriptor, int operation, std::uint32_t events, std::uint32_t generation) const;
  void resume_paused();
  template <typename Callback>
  void guarded(const Callback& callback);
  void log_without_fail(const char* line);

  struct Watch {
    std::uint32_t generation = 0;
    std::function<void()> on_readable;
  };

  int epoll_;
  bool stopped_ = false;
  bool hurries_ = false;
  Steps steps_;
  std::uint32_t next_generation_ = 0;
  std::map<int, std::shared_ptr<const Watch>> watches_;  // by descriptor
  std::map<int, Clock::time_point> paused_until_;        // by descriptor
  std::function<void()> tick_;
  ClientLog log_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_SOCKETS_CONTROL_LOOP_H_
