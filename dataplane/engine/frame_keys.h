// The keys that an engine makes and checks MACs with (protocol/mac.h), derived from the cluster's
// (control/settings/cluster_key.h).
#ifndef GRADCUBE_DATAPLANE_ENGINE_FRAME_KEYS_H_
#define GRADCUBE_DATAPLANE_ENGINE_FRAME_KEYS_H_

#include <array>
#include <cstdint>
#include <string_view>

#include "control/base/hkdf.h"
#include "control/base/undumped.h"
#include "protocol/bytes.h"
#include "protocol/mac.h"

namespace gradcube::dataplane {

// Of a daemon. Immutable; any thread.
struct FrameKeys {
  explicit FrameKeys(const control::Secret& cluster)
      : of_jobs(control::derived_secret(cluster, "jobs")),
        of_servers(control::derived_secret(cluster, "servers")) {}

  control::Secret of_jobs;        // that those of each job are derived from
  protocol::FrameKey of_servers;  // for all that is of no job
};

// What holds keys for long has them on pages that no core dump has: one for a daemon, and one for
// each job of an engine, where the tables of its epoch lie beside those of its mail.
using UndumpedFrameKeys = control::Undumped<FrameKeys>;

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
