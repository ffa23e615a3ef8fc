// The control thread's event loop: descriptors with what to do when they are readable, and a tick.
//
// One thread. What a callback throws is logged, and ends nothing but that callback. A callback may
// add and remove descriptors, its own too: a removed one is not called again.
#ifndef GRADCUBE_DATAPLANE_DAEMON_CONTROL_LOOP_H_
#define GRADCUBE_DATAPLANE_DAEMON_CONTROL_LOOP_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

namespace gradcube::dataplane {

class ControlLoop {
 public:
  ControlLoop();
  ~ControlLoop();
  ControlLoop(const ControlLoop&) = delete;
  ControlLoop& operator=(const ControlLoop&) = delete;

  // The caller keeps the descriptor open until remove(). The callback also runs when the other end
  // hangs up.
  void add(int descriptor, std::function<void()> on_readable);
  void remove(int descriptor);

  // Called after every round of events, and at least every 20 ms.
  void on_tick(std::function<void()> tick) { tick_ = std::move(tick); }

  void run();                       // until stop()
  void stop() { stopped_ = true; }  // from a callback

 private:
  void guarded(const std::function<void()>& callback);

  struct Watch {
    std::function<void()> on_readable;
  };

  int epoll_;
  bool stopped_ = false;
  std::map<int, std::shared_ptr<Watch>> watches_;
  std::function<void()> tick_;
};

}  // namespace gradcube::dataplane

#endif
