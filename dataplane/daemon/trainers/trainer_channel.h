// How a node reaches its trainers, and what a trainer asks for when it joins.
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_TRAINERS_TRAINER_CHANNEL_H_
#define GRADCUBE_DATAPLANE_DAEMON_TRAINERS_TRAINER_CHANNEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>

#include "bcube_forwarding/address.h"
#include "control/jobs/job_messages.h"
#include "control/jobs/job_options.h"
#include "dataplane/engine/memory/session_region.h"
#include "trainer/shared_layout.h"

namespace gradcube::dataplane {

// A trainer of a node: which of its server's jobs it is in, counted since the node began, and its
// number among the job's trainers there.
struct TrainerId {
  bcube::ServerId server = 0;
  control::Attempt attempt = 0;
  unsigned local = 0;

  bool operator==(const TrainerId&) const = default;
  bool operator<(const TrainerId& other) const {
    return std::tuple(server, attempt, local) <
           std::tuple(other.server, other.attempt, other.local);
  }
};

// What a trainer asks for. Without lanes: one, with the default algorithm. Without members: every
// server of the cluster.
struct TrainerRequest {
  std::string job;
  std::uint32_t pid = 0;
  std::uint32_t uid = 0;
  std::uint64_t heap_bytes = 0;
  control::JobOptions options{};
  std::optional<std::uint32_t> rank{};
  // Its number among the job's trainers on its server. Without: the lowest that is free.
  std::optional<std::uint32_t> local{};
  std::string secret{};  // as it gives it
  control::JobOwner owner{};
  // Its memory, sealed. Without: the node makes one (make_own_region).
  std::shared_ptr<SessionRegion> region{};
};

// What an admitted trainer gets.
struct JoinedSession {
  unsigned rank = 0;
  unsigned size = 0;
  int region_descriptor = -1;  // the session's: the caller does not close it
  std::uint64_t region_bytes = 0;
  int trainer_doorbell = -1;  // the caller's: it passes it on and closes it
};

// A trainer may not join: GRADCUBE_E... code and the message for it.
class JoinRefused : public std::runtime_error {
 public:
  JoinRefused(std::int32_t code, const std::string& message)
      : std::runtime_error(message), code_(code) {}
  std::int32_t code() const { return code_; }

 private:
  std::int32_t code_;
};

// violation: also of a trainer that aborts its job. Nothing that is shared with it is completed.
// shutdown: its daemon ends, and the trainer keeps what it maps.
enum class Departure { orderly, death, violation, shutdown };

// The trainers and the daemon's log, as the nodes see them. Never blocks. After refuse() and
// evict() the node knows no such trainer any more.
class TrainerChannel {
 public:
  virtual ~TrainerChannel() = default;
  // The trainer's job takes it: once per trainer, before anything else that it is told.
  virtual void admit(TrainerId trainer, const JoinedSession& session) = 0;
  // Of one that has not been admitted.
  virtual void refuse(TrainerId trainer, std::int32_t code, const std::string& message) = 0;
  virtual void notify(TrainerId trainer, const shared::Notice& notice) = 0;
  // Gives the trainer the memory of the hub that it has wished for, if the notice has a code of 0.
  virtual void give_hub(TrainerId trainer, const shared::Notice& notice, int descriptor) = 0;
  // Tells the trainer why and closes its socket.
  virtual void evict(TrainerId trainer, std::int32_t code, const std::string& message) = 0;
  // A line for the log.
  virtual void record(const std::string& line) = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_TRAINERS_TRAINER_CHANNEL_H_
