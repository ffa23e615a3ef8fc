// A job's hub at one server: from a trainer's wish, or the call of an aggregator's caller, until it
// is read no more (hub_lifetime.h), and how it comes to the server's engines and goes.
//
// Owned with the job's engines and session (Member, AggregatedHubs), which outlive it. Threads: the
// control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_HUB_JOB_HUB_H_
#define GRADCUBE_DATAPLANE_DAEMON_HUB_JOB_HUB_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/plan/base/topology.h"
#include "dataplane/daemon/engines/departed_sessions.h"
#include "dataplane/daemon/engines/job_engines.h"
#include "dataplane/daemon/hub/hub_lifetime.h"
#include "dataplane/engine/session/session.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

class JobHub {
 public:
  JobHub(JobEngines& engines, Session& session) : engines_(engines), session_(session) {}
  JobHub(const JobHub&) = delete;
  JobHub& operator=(const JobHub&) = delete;

  // A trainer wishes for a hub: an answer follows from work(). plans: of the job's lanes.
  // all_trainers: of the job.
  void ask(unsigned local, HubWish wish, const LanePlans& plans, std::uint32_t all_trainers,
           const control::Topology& topology);
  // Where there are no trainers: makes what the server has of the hub. An answer follows as if to
  // trainer 0. Throws control::SetupError where there are no engines.
  void host(HubWish wish, HubDesign design, MemoryQuota::Charge charge);
  // The trainer has wished for one, and was not answered yet; or any has, or there is one; and this
  // trainer has not freed it.
  bool waits(unsigned local) const { return hub_.waits(local); }
  bool is_needed() const;
  bool needs(unsigned local) const { return is_needed() && !hub_.is_freed_by(local); }

  // To be called about every 20 ms: answers to trainers that are still there. is_whole: as of
  // HubLifetime.
  std::vector<HubAnswer> work(const HubLifetime::IsWhole& is_whole = nullptr);

  // A trainer needs hub `number` no more, which ends when none does. Or it has gone, which needs no
  // memory to be noted.
  void free(unsigned local, std::uint32_t number);
  void leave(unsigned local);
  // There is none any more, for a reason that a notice gives to trainers: all that is pushed fails,
  // once no packet points into the trainers' buffers. lose(): and there cannot be one.
  void end(std::int32_t code, const std::string& why, std::uint32_t notice);
  void lose(std::int32_t code, const std::string& why, std::uint32_t notice);
  // All its trainers have gone: it is not read any more.
  void forget() { hub_.forget(); }
  // As of HubLifetime.
  std::shared_ptr<ServerHub> read_by(unsigned local) const { return hub_.read_by(local); }
  void outlive_daemon() { hub_.outlive_daemon(); }
  // What still runs for hubs that nobody waits for: to be kept until each is_idle().
  std::vector<std::unique_ptr<UnfinishedWork>> take_dropped() { return hub_.take_dropped(); }

  // Null if there is none.
  const ServerHub* hub() const { return hub_.hub().get(); }
  // Of the hub, if there is one.
  const std::shared_ptr<const std::string>& table() const { return hub_.table(); }
  // Of a key by number: its name, or null.
  const std::string* key(std::uint64_t number) const;
  // What a push of the key waits for, in words: "key ... waits for ...". job: its name. pid: of a
  // trainer.
  std::string why_pushed(std::uint64_t number, const std::string& job,
                         const std::function<std::int32_t(unsigned local)>& pid) const;

  // How far it has come here, for the end of a sentence: "; its hub had ended step 17 of all keys
  // on this server". Empty where there is none.
  std::string progress_text() const;

 private:
  void complete(ServerHubShape& shape) const;
  void use(const std::shared_ptr<ServerHub>& hub);
  void take_off_engines(std::int32_t code, std::uint32_t notice);
  bool fail_pushes();
  void end_as_freed() { end(GRADCUBE_EINVAL, "the job's hub was freed", 0); }
  void forget_unread();
  bool has_gone(unsigned local) const { return (gone_ >> local & 1) != 0; }
  bool all_have_let_go() const;

  JobEngines& engines_;
  Session& session_;
  HubLifetime hub_;
  std::uint32_t gone_ = 0;  // trainers, by a bit for each
  static_assert(control::kMaxLocalTrainers <= 32);
  // One that the engines have let go, and whose pushes have not been failed yet.
  struct Failing {
    std::shared_ptr<ServerHub> hub;
    std::int32_t code;
    std::uint32_t notice;
  };
  std::optional<Failing> failing_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_HUB_JOB_HUB_H_
