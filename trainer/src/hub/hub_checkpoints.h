// Checkpoints of a trainer's hub: how all trainers of the job make one together, and take one back.
//
// The first trainer of each server writes what its server owns, to a file of its own
// (checkpoint_files.h, hub_saving.h). What an aggregator has comes to rank 0 in pushes, plane by
// plane (hub_checkpoints_rounds.cc), and rank 0 has the one file. Each step of it is agreed on
// (agreement.h).
//
// Nothing of its own: made for one call. Errors: throws Failure. Threads: any, one call of a hub at
// a time (HubCall).
#ifndef GRADCUBE_TRAINER_SRC_HUB_HUB_CHECKPOINTS_H_
#define GRADCUBE_TRAINER_SRC_HUB_HUB_CHECKPOINTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/src/base/deadline.h"
#include "trainer/src/hub/agreement.h"
#include "trainer/src/hub/checkpoint_files.h"
#include "trainer/src/hub/hub.h"
#include "trainer/src/hub/hub_client.h"
#include "trainer/src/session/session.h"

namespace gradcube::trainer {

class HubParts;
class HubSaving;
class KeyRounds;
struct HubCopy;

// While it lives the hub is not freed, though another thread asks for that: one that has given up a
// call, as Python's does on Ctrl-C.
class HubCall {
 public:
  HubCall(Session& session, Hub& hub);
  ~HubCall();
  HubCall(const HubCall&) = delete;
  HubCall& operator=(const HubCall&) = delete;

 private:
  Session& session_;
  Hub& hub_;
};

class HubCheckpoints {
 public:
  explicit HubCheckpoints(HubClient& client) : client_(client), session_(client.session()) {}

  // gradcube_hub_begin_checkpoint() and so on.
  void begin(Hub& hub, const char* path, std::uint64_t step);
  void end(Hub& hub, int timeout_ms);
  std::uint64_t restore(Hub& hub, const char* path, int timeout_ms);

 private:
  // The first trainer of each server has the files of all of them; of a hub with an aggregator rank
  // 0 has the one file.
  bool has_files(const Hub& hub) const {
    const std::uint32_t rank = session_.place().rank;
    return hub.has_aggregator() ? rank == 0 : rank % session_.trainers() == 0;
  }
  CheckpointFile own_file(const Hub& hub, const CheckpointVersion& version) const;
  void may_change(const Hub& hub);
  void may_save(const Hub& hub);
  void require_same_pushes(const std::vector<Said>& said) const;
  void require_alike(const std::vector<Said>& said, const Said& own) const;
  void make_all(HubSaving* saving, std::uint64_t step, const Deadline& deadline);
  static void replace(Hub& hub, const HubSaving& saving);

  // hub_checkpoints_restore.cc
  Attempt offer(const Hub& hub, const std::string& base,
                const std::optional<CheckpointVersion>& before, std::uint64_t round);
  std::optional<CheckpointVersion> newest_of_all(const Hub& hub, const std::string& base,
                                                 const Deadline& deadline);
  static void take_over(Hub& hub, const std::string& base, const CheckpointFile& own,
                        const HubParts& parts);
  HubParts take_parts(const Hub& hub, const std::string& base,
                      const CheckpointVersion& version) const;

  // hub_checkpoints_rounds.cc. save_planes(): of a hub with an aggregator. parts: null where
  // another trainer has them, whose word counts.
  std::optional<HubCopy> save_planes(Hub& hub, const Deadline& deadline);
  void push_parts(Hub& hub, HubParts* parts, const Deadline& deadline);
  void push_keys(Hub& hub, const KeyRounds& rounds, const Deadline& deadline);
  bool set_copies(Hub& hub, bool copies);
  void allocate_blocks(const Hub& hub, const KeyRounds& rounds, std::size_t first,
                       std::vector<std::byte*>& blocks);
  void push_plane(const KeyRounds& rounds, Hub& hub, unsigned plane, std::size_t first,
                  const std::vector<std::byte*>& blocks, bool& has_begun, const Deadline& deadline);

  HubClient& client_;
  Session& session_;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_HUB_HUB_CHECKPOINTS_H_
