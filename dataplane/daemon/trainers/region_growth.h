// What trainers say of their memory: "it reaches up to this byte" (shared::Grow). Checks it, and
// confirms it to the engines (SessionRegion::confirm) and to the trainer.
//
// The user's quota is checked at once. The pages are looked at kSlice at a time, one slice of one
// trainer in every round of the control loop, the trainers in turn. So no report keeps the control
// thread from others, however much memory it is about.
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_TRAINERS_REGION_GROWTH_H_
#define GRADCUBE_DATAPLANE_DAEMON_TRAINERS_REGION_GROWTH_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "control/base/descriptor.h"
#include "dataplane/engine/memory/session_region.h"
#include "dataplane/sockets/control_loop.h"

namespace gradcube::dataplane {

class RegionGrowth {
 public:
  static constexpr std::uint64_t kSlice = 32 << 20;  // about half a millisecond

  // Gives an answer to the trainer at this socket.
  using Answer = std::function<void(int socket, const shared::Notice& notice)>;

  // Throws what event_descriptor() does.
  RegionGrowth(ControlLoop& loop, Answer answer);
  ~RegionGrowth() { loop_.remove(more_.get()); }
  RegionGrowth(const RegionGrowth&) = delete;
  RegionGrowth& operator=(const RegionGrowth&) = delete;

  // Of the trainer at this socket, which is answered. False if no trainer says this: bytes
  // that are no end of a page of its region, or anything while an earlier report is not answered.
  bool report(int socket, std::shared_ptr<SessionRegion> region, const shared::Grow& grow);

  // Drops what the trainer at this socket has reported. Before the socket is closed.
  void forget(int socket);

 private:
  struct Report {
    int socket;
    std::shared_ptr<SessionRegion> region;
    std::uint64_t end;
    std::uint64_t looked_at;  // up to here the pages are there
  };

  void look();
  void answer(int socket, const SessionRegion& region, std::int32_t code, const std::string& text);

  ControlLoop& loop_;
  const Answer answer_;
  const control::Descriptor more_;  // readable while there are reports
  std::deque<Report> reports_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_TRAINERS_REGION_GROWTH_H_
