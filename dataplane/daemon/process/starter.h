// The process that starts a daemon, at the other end of --ready-fd's pipe: it learns there when the
// daemon is ready, or why it does not start. If that process ends before, the daemon ends too:
// nobody is left who waits for it, and until it is ready it answers neither `gradcube status` nor
// `gradcube down`.
//
// Threads: the main thread. It has one of its own until tell().
#ifndef GRADCUBE_DATAPLANE_DAEMON_PROCESS_STARTER_H_
#define GRADCUBE_DATAPLANE_DAEMON_PROCESS_STARTER_H_

#include <nlohmann/json.hpp>
#include <thread>

namespace gradcube::dataplane {

class Starter {
 public:
  // descriptor: the pipe's end, which it owns; -1: nobody is told.
  explicit Starter(int descriptor);
  ~Starter() { stop_watching(); }
  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;

  // From now on this process ends if that one does. Throws std::system_error.
  void begin_watching();
  // In one line of JSON, how the start went. False if that process has ended.
  bool tell(const nlohmann::ordered_json& line);

 private:
  void watch() const;
  void stop_watching();

  int descriptor_;
  int ready_ = -1;
  std::thread watcher_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_PROCESS_STARTER_H_
