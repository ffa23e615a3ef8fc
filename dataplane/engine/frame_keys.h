// The keys that an engine makes and checks MACs with (protocol/mac.h), derived from the cluster's
// (control/settings/cluster_key.h).
#ifndef GRADCUBE_DATAPLANE_ENGINE_FRAME_KEYS_H_
#define GRADCUBE_DATAPLANE_ENGINE_FRAME_KEYS_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "control/base/hkdf.h"
#include "control/base/undumped.h"
#include "protocol/bytes.h"
#include "protocol/mac.h"

namespace gradcube::dataplane {

// Made of one key of the cluster. Immutable; any thread.
struct FrameKeys {
  explicit FrameKeys(const control::Secret& cluster)
      : id(id_of(cluster)),
        of_jobs(control::derived_secret(cluster, "jobs")),
        of_servers(control::derived_secret(cluster, "servers")) {}

  // Tells keys apart, and tells nothing of them.
  static control::KeyId id_of(const control::Secret& cluster) {
    return protocol::load_little<control::KeyId>(
        control::derived_secret(cluster, "id of the key").data());
  }

  control::KeyId id;
  control::Secret of_jobs;        // that those of each job are derived from
  protocol::FrameKey of_servers;  // for all that is of no job
};

// What holds keys for long has them on pages that no core dump has: one for each key of a daemon,
// and one for each job of an engine, where the tables of its epoch lie beside those of its mail.
using UndumpedFrameKeys = control::Undumped<FrameKeys>;

// A daemon's: one, and while that is exchanged for another, which takes the whole cluster some
// time, two (dataplane/daemon/process/key_change.h). The control thread changes them; engines use
// of_servers() alone.
class ClusterKeys {
 public:
  explicit ClusterKeys(const control::Secret& cluster)
      : own_(std::make_unique<const UndumpedFrameKeys>(cluster)), of_servers_((*own_)->of_servers) {
    control::wipe_stack();
  }

  const protocol::ServerKeys& of_servers() const { return of_servers_; }
  control::KeyId own_id() const { return (*own_)->id; }
  std::optional<control::KeyId> other_id() const {
    return other_ == nullptr ? std::nullopt : std::optional((*other_)->id);
  }
  // Null: there is no key of this id, or no more.
  const control::Secret* of_jobs(control::KeyId id) const {
    for (const auto* keys : {&own_, &other_}) {
      if (*keys != nullptr && (**keys)->id == id) return &(**keys)->of_jobs;
    }
    return nullptr;
  }

  // There must be no other yet.
  void take(const control::Secret& cluster) {
    other_ = std::make_unique<const UndumpedFrameKeys>(cluster);
    of_servers_.also_take(&(*other_)->of_servers);
    control::wipe_stack();
  }
  void exchange() {
    of_servers_.exchange();
    std::swap(own_, other_);
  }
  // Once it was refused and no engine is at work with it any more, it may be forgotten.
  void refuse_other() { of_servers_.also_take(nullptr); }
  void forget_other() { other_.reset(); }

 private:
  std::unique_ptr<const UndumpedFrameKeys> own_;
  std::unique_ptr<const UndumpedFrameKeys> other_;  // null: there is one key
  protocol::ServerKeys of_servers_;
};

// Of a job at an engine. The epoch's belongs to the engine's thread between attach and detach.
class JobKeys {
 public:
  explicit JobKeys(const control::Secret& of_job)
      : of_job_(of_job), of_epoch_(key_of(0)), of_mail_(of_epoch_) {}
  JobKeys(const JobKeys&) = delete;
  JobKeys& operator=(const JobKeys&) = delete;

  void set_epoch(std::uint32_t epoch) { of_epoch_ = key_of(epoch); }
  const protocol::FrameKey& of_epoch() const { return of_epoch_; }
  // Mail goes on over resets: it stays in epoch 0.
  const protocol::FrameKey& of_mail() const { return of_mail_; }

 private:
  protocol::FrameKey key_of(std::uint32_t epoch) const {
    std::array<std::uint8_t, 4> bytes{};
    protocol::store_little<std::uint32_t>(bytes.data(), epoch);
    return protocol::FrameKey(control::derived_secret(
        of_job_, "epoch", {reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  }

  control::Secret of_job_;
  protocol::FrameKey of_epoch_;
  protocol::FrameKey of_mail_;
};

using UndumpedJobKeys = control::Undumped<JobKeys>;

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_FRAME_KEYS_H_
