// The hub of a trainer's job, on its session: how trainers agree on it, how it is pushed to and
// read, and how it goes. hub_checkpoints.h saves it and takes it back.
//
//   Hub          one hub's keys, weights and what is known of them; the caller's
//   agreement.h  what the ranks tell each other in a call that all of them make
//
// A push is a request of the session's, which tells of its end (hub_listener.h).
//
// Errors: as of Session. Threads: any; the session's lock guards all, and the hubs.
#ifndef GRADCUBE_TRAINER_SRC_HUB_HUB_CLIENT_H_
#define GRADCUBE_TRAINER_SRC_HUB_HUB_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "trainer/push_kind.h"
#include "trainer/shared_layout.h"
#include "trainer/src/base/deadline.h"
#include "trainer/src/base/descriptor.h"
#include "trainer/src/hub/hub.h"
#include "trainer/src/session/hub_listener.h"
#include "trainer/src/session/requests.h"
#include "trainer/src/session/session.h"

#include "gradcube/gradcube_hub.h"

namespace gradcube::trainer {

struct PushWish {
  shared::PushKind kind{};
  std::size_t key = 0;  // the place in the trainer's list
  const void* buffer = nullptr;
  void* weights = nullptr;  // where the new ones are wanted; null: nowhere
  double rate = 0;          // of gradients, and of what is applied
  std::uint64_t steps = 0;  // of what is restored, or loaded
  unsigned plane = 0;       // of what is saved or loaded
  bool has_plane = false;   // of what is loaded: whether it is in the buffer
  double scale = 0;         // of what is applied
};

class HubClient final : public HubListener {
 public:
  // The session outlives it.
  explicit HubClient(Session& session) : session_(session) { session_.set_hub(*this); }
  // Leaves the job.
  ~HubClient() override;

  // Hubs belong to the caller, and end before this. Throws Failure.
  std::unique_ptr<Hub> make(const gradcube_hub_settings& settings, int timeout_ms);
  // GRADCUBE_EAGAIN: it is still there.
  int free(Hub& hub, int timeout_ms);
  int push(Hub& hub, const PushWish& wish, std::uint64_t& number);
  int pull(Hub& hub, std::size_t key, void* weights);
  const void* weights(Hub& hub, std::size_t key);
  // Of all that is accumulated.
  int norm(Hub& hub, double& norm);

  Session& session() { return session_; }
  // For what saves and restores, with the lock: why the hub is not as it should be, as a code.
  int fail_if_ended(const Hub& hub);
  int fail_if_torn(const Hub& hub);
  std::string why_ended(const Hub& hub, int code);
  int no_weights(const Hub& hub, const Hub::Key& key);
  int copy(Session::Lock& lock, const Hub& hub, const Hub::Key& key, void* weights);
  int no_memory();
  int is_being_freed();
  bool keeps_memory(const Hub& hub) const;

  int end_push(Session::Lock& lock, const Request& request, int code) override;
  void settle(const Request& request, int code) override;
  std::string text_of_push(const Request& request) const override;
  void take_hub(const shared::Notice& notice, Descriptor memory) override;
  bool is_answered() const override { return answer_.has_value(); }
  void keep_shown() override;

 private:
  struct Answer {
    shared::Notice notice;
    Descriptor memory;
  };

  std::uint32_t next_number();
  std::uint32_t ask_for(Hub& hub, const Deadline& deadline);
  void let_go_of(Hub& hub);
  int fail(int code, std::string message) { return session_.fail(code, std::move(message)); }
  int fail_as_lost() { return fail(session_.lost_code(), session_.lost_message()); }
  int no_key(const Hub& hub, std::size_t place);
  int nothing(const Hub::Key& key);
  void await_pulls(Session::Lock& lock, Hub& hub, std::size_t place);
  int may_push(const Hub& hub, const PushWish& wish);
  int submit(Session::Lock& lock, Hub& hub, const PushWish& wish,
             const shared::SubmittedPush& submitted, std::uint64_t& number);
  int may_read(const Hub& hub, std::size_t place, bool also_while_pushed);
  std::uint64_t steps_after(const Hub& hub, const Hub::Key& key, const PushWish& wish) const;

  Session& session_;
  // The daemon's word on a hub that was asked for.
  std::optional<Answer> answer_;
  // In the heap: the table of a hub that was asked for, until the daemon, which reads it, answers.
  std::byte* table_ = nullptr;
  std::uint32_t hubs_ = 0;  // that were asked for
  Hub* hub_ = nullptr;      // the job's
  // Of this and earlier hubs, into which callers have pointers; and of these views. Taken last:
  // abort() has no other lock.
  std::mutex shown_mutex_;
  std::vector<std::shared_ptr<HubMapping>> shown_;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_HUB_HUB_CLIENT_H_
