// Takes the clients that wait at a listening socket, some in each round of the control loop.
//
// Where the system gives no socket for one (no descriptors, no memory), they go on waiting: for
// a pause nobody is taken, so that the loop does not turn for nothing, and then it is tried again.
// The log says so once, until one can be taken.
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_SOCKETS_CLIENT_LISTENER_H_
#define GRADCUBE_DATAPLANE_SOCKETS_CLIENT_LISTENER_H_

#include <chrono>
#include <filesystem>
#include <functional>

#include "dataplane/sockets/control_loop.h"
#include "dataplane/sockets/unix_listener.h"

namespace gradcube::dataplane {

class ClientListener {
 public:
  static constexpr auto kPause = std::chrono::milliseconds(100);
  static constexpr unsigned kMostAccepted = 16;  // in one round

  // on_client: owns the socket; also of strangers. Throws control::SetupError.
  ClientListener(ControlLoop& loop, std::filesystem::path path, int type,
                 std::function<void(const UnixListener::Accepted& client)> on_client,
                 AllowedUsers users = {}, ControlLoop::Clock::duration pause = kPause);
  ~ClientListener();
  ClientListener(const ClientListener&) = delete;
  ClientListener& operator=(const ClientListener&) = delete;

 private:
  void take();

  ControlLoop& loop_;
  UnixListener listener_;
  std::function<void(const UnixListener::Accepted& client)> on_client_;
  ControlLoop::Clock::duration pause_;
  bool told_ = false;  // that none can be taken
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_SOCKETS_CLIENT_LISTENER_H_
