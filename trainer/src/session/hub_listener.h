// What a session tells the hub that is built on it (trainer/src/hub/hub_client.h): the ends of its
// pushes, the daemon's word on it, and the session's own end.
//
// All of it under the session's lock, which only end_push() may release.
#ifndef GRADCUBE_TRAINER_SRC_SESSION_HUB_LISTENER_H_
#define GRADCUBE_TRAINER_SRC_SESSION_HUB_LISTENER_H_

#include <mutex>
#include <string>

#include "trainer/shared_layout.h"
#include "trainer/src/base/descriptor.h"
#include "trainer/src/session/requests.h"

namespace gradcube::trainer {

class HubListener {
 public:
  virtual ~HubListener() = default;
  HubListener(const HubListener&) = delete;
  HubListener& operator=(const HubListener&) = delete;

  // The caller is told of a push's end, which has this code: the code that it gets. Nobody finds
  // the request any more. Throws nothing: else the push would never end.
  virtual int end_push(std::unique_lock<std::mutex>& lock, const Request& request, int code) = 0;
  // A push has ended, and nobody asks for its end.
  virtual void settle(const Request& request, int code) = 0;
  // For messages: `the push of key "w" of the hub`.
  virtual std::string text_of_push(const Request& request) const = 0;

  // The daemon's answer to a MakeHub; and whether it has come since it was asked for.
  virtual void take_hub(const shared::Notice& notice, Descriptor memory) = 0;
  virtual bool is_answered() const = 0;

  // The session ends, and its daemon takes the hub's memory back: what callers have pointers into
  // stays.
  virtual void keep_shown() = 0;

 protected:
  HubListener() = default;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_SESSION_HUB_LISTENER_H_
