// What trainers of one server push to their job's hub, out of the shared ring: checked, every field
// as hostile, and put on the hub's board (dataplane/hub/hub_board.h). Of their session (session.h).
//
// Threads: the session's leader engine; any thread calls hub().
#ifndef GRADCUBE_DATAPLANE_ENGINE_HUB_HUB_PUSHES_H_
#define GRADCUBE_DATAPLANE_ENGINE_HUB_HUB_PUSHES_H_

#include <atomic>
#include <cstdint>

#include "dataplane/engine/hub/server_hub.h"
#include "dataplane/engine/memory/session_region.h"
#include "trainer/shared_layout.h"

namespace gradcube::dataplane {

class HubPushes {
 public:
  // From set() on pushes to this hub are taken; end(): all that still come fail so, until there is
  // another one.
  void set(ServerHub& hub) { hub_.store(&hub, std::memory_order_release); }
  void end(std::int32_t code, std::uint32_t notice);
  // Null if there is none.
  ServerHub* hub() const { return hub_.load(std::memory_order_acquire); }

  // What becomes of a push: it is on the board, it has ended with this code, or no trainer that
  // keeps to the rules submits it.
  struct Outcome {
    const char* violation = nullptr;
    std::int32_t code = 0;
    std::uint32_t notice = 0;
  };
  Outcome take(const SessionRegion& region, unsigned local, const shared::Submission& submission);

 private:
  const char* check(const SessionRegion& region, unsigned local,
                    const shared::Submission& submission) const;
  const char* check_fields(const control::HubKey& key, const shared::SubmittedPush& asked) const;
  unsigned planes_of(const control::HubKey& key) const;
  std::uint64_t restored_arrays_of(const control::HubKey& key) const;
  void find_arrays(HubBoard::Push& push, std::uint32_t number) const;

  std::atomic<ServerHub*> hub_{nullptr};  // written by the leader, read by all engines
  // Of pushes to a hub that has ended; 0: there was none.
  std::int32_t code_ = 0;
  std::uint32_t notice_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_HUB_HUB_PUSHES_H_
