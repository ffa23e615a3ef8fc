// A daemon without a network, for the trainer library's tests: the daemon's side of
// shared_layout.h, one thread.
//
// It pretends that all `size` trainers of a job submitted what its one trainer did: a sum is size
// times the buffer; an average, a minimum, a maximum leave it as it is; every chunk of an
// all-gather is this trainer's; another root broadcasts bytes kBroadcast. Where a collective leaves
// a part of a buffer undefined, it writes bytes kUndefined. What a session wants to see beyond that
// it says by its job's name:
//
//   refuse    refused, with kRefusal
//   garbage   answered with bytes that are no message
//   version   made an offer in another layout version, by a message of another length
//   older     refused as a daemon of another version refuses, with kOtherVersion
//   deaf      disconnected at the hello, as by a daemon that does not understand it
//   unsealed  offered a region that may shrink
//   poor      may use kPoorHeap bytes of its heap; more is refused with kQuota
//   swapped   the first report of memory is answered as if a page were missing
//   undecided  is never told that its memory is confirmed
//   generous  is told that more memory is confirmed than it has reported
//   mute      connected, never answered
//   hold      collectives wait until release() is called; an inquiry is answered with kReport
//   backwards as hold, and then the latest ends first
//   slow      each collective ends a while after its submission
//   silent    as hold, and inquiries are not answered
//   fail      each collective fails with GRADCUBE_EPEER, explained by kFailure
//   uneven    as hold, but barriers fail at once, as with fail
//   unexplained  each collective fails with GRADCUBE_EPEER, without a notice
//   vanished  the same, with the number of a notice that never comes
//   twice     each collective ends twice
//   die       the connection closes at the first submission
//   scold     closing notice kClosing, then the connection closes, at the first submission
//   scribble  completions of requests that were never made
//   hubless   no hub is made, for the reason kNoHub
//   unhubbed  a wish for a hub is never answered
//   misfit    a hub's weights are said to be longer than its keys
//   empty-handed  a hub comes without its weights
//   divided   rank 0 has each hub in a later epoch of the job
//   late      before a hub comes a refusal of the one before it
//   unpushed  pushes to the hub wait until release() is called, and nothing else
//   unheard   from the first push to the hub on, all but pushes waits until release() is called
//   unprepared  the same, from the fifth all-gather after it on
//   gradientless, planeless  pushes of gradients, or of what is saved, fail with GRADCUBE_EPEER
//   restoreless  all pushes of what is restored but the first fail with GRADCUBE_EPEER
//   bereft    at a barrier its hub ends with GRADCUBE_EPEER, explained by kFailure
//   dispossessed  at a barrier its hub's memory is taken back
//   dissent-N  in the Nth all-gather after the first push rank 0 says that it could not
//   ahead-N   in the Nth all-gather after it rank 0 says what it says in the next step of a call
#ifndef GRADCUBE_TESTS_UNIT_TRAINER_FAKE_DAEMON_H_
#define GRADCUBE_TESTS_UNIT_TRAINER_FAKE_DAEMON_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/trainer/fake_hub.h"
#include "trainer/shared_layout.h"
#include "trainer/src/base/descriptor.h"

namespace gradcube::trainer {

inline constexpr char kRefusal[] = "server [2,1]'s place in this job is taken by process 1";
inline constexpr char kOtherVersion[] = "the trainer's library speaks version 2, this daemon 8";
inline constexpr char kReport[] = "trainers [0,1] and [2,2] have not submitted request ";
inline constexpr char kAgain[] = ", as before";  // where the last inquiry was about it, too
inline constexpr char kFailure[] = "trainer [0,2] of this job died in request ";
inline constexpr char kClosing[] = "request 1 names a buffer outside the heap";
inline constexpr char kQuota[] = "the trainers of user 7 may use 4M of shared memory on this host";
inline constexpr std::size_t kPoorHeap = std::size_t{4} << 20;
inline constexpr char kNoHub[] = "the hub needs 9G, and there are 8G";
inline constexpr std::uint32_t kOtherLayout = shared::kLayoutVersion + 1;
inline constexpr int kBroadcast = 0x07;
inline constexpr int kUndefined = 0xee;
// Messages: what receives get, and tags with a meaning (fake_session.cc).
inline constexpr int kReceived = 0x09;
inline constexpr std::uint64_t kTooLong = 1'000'001;
inline constexpr std::uint64_t kLie = 1'000'002;
inline constexpr std::uint64_t kTooFar = 1'000'003;
inline constexpr std::uint64_t kOtherType = 1'000'004;

// What a submission is.
inline bool is_push(const shared::Submission& submission) {
  return submission.type == static_cast<std::uint8_t>(shared::SubmissionType::push);
}
inline bool is_push(const shared::Submission& submission, shared::PushKind kind) {
  return is_push(submission) && submission.push.kind == static_cast<std::uint8_t>(kind);
}
inline bool is_collective(const shared::Submission& submission, shared::CollectiveKind kind) {
  return submission.type == static_cast<std::uint8_t>(shared::SubmissionType::collective) &&
         submission.collective.kind == static_cast<std::uint8_t>(kind);
}
inline bool is_barrier(const shared::Submission& submission) {
  return is_collective(submission, shared::CollectiveKind::barrier);
}

// What the latest trainer said at the door, and what it submitted and asked last.
struct Heard {
  shared::Hello hello{};
  std::vector<std::uint32_t> members;
  shared::Submission submission{};
  shared::Inquiry inquiry{};
  std::vector<shared::Grow> grows;
  std::vector<shared::MakeHub> wishes;  // for hubs
  std::vector<FakeHubKey> hub_keys;     // of the latest
  std::string hub_optimizer;
  std::uint64_t hub_chunk_bytes = 0;
  std::vector<std::uint32_t> hub_aggregators;
  std::uint32_t hub_staleness = 0;
  int hub_ends = 0;
  int seals = 0;                     // of its memory when it said that it had mapped it
  std::uint64_t resident_bytes = 0;  // of its memory when it last reported some
};

class FakeSession;

class FakeDaemon {
 public:
  static constexpr int kRank = 7;
  static constexpr int kSize = 9;
  static constexpr int kServer = 5;

  explicit FakeDaemon(const std::string& socket_path, int rank = kRank, int size = kSize);
  ~FakeDaemon();

  // Completes what sessions of job "hold" wait for, now and from now on.
  void release() { released_ = true; }

  // From now on: refuses with kRefusal as soon as a trainer connects, and closes without reading
  // what the trainer sent.
  void turn_away() { turning_away_ = true; }

  // Dies: closes every socket at once.
  void kill();

  int orderly_leaves() const { return orderly_leaves_; }
  int deaths() const { return deaths_; }
  int aborts() const { return aborts_; }
  int inquiries() const { return inquiries_; }
  int rings_heard() const { return rings_heard_; }

  Heard heard() const {
    const std::scoped_lock lock(heard_mutex_);
    return heard_;
  }

 private:
  void run();
  void accept();
  void hear(FakeSession& session);

  std::string path_;
  int rank_;
  int size_;
  Descriptor listener_;
  std::vector<std::unique_ptr<FakeSession>> sessions_;
  std::atomic<bool> released_{false};
  std::atomic<bool> turning_away_{false};
  std::atomic<bool> stop_{false};
  std::atomic<int> orderly_leaves_{0};
  std::atomic<int> deaths_{0};
  std::atomic<int> aborts_{0};
  std::atomic<int> inquiries_{0};
  std::atomic<int> rings_heard_{0};
  mutable std::mutex heard_mutex_;
  Heard heard_;
  std::thread thread_;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TESTS_UNIT_TRAINER_FAKE_DAEMON_H_
