// A daemon without a network, for the trainer library's tests: the daemon's side of
// shared_layout.h, one thread.
//
// It pretends that all `size` trainers of a job submitted what its one trainer did: a sum is size
// times the buffer; an average, a minimum, a maximum leave it as it is. What a session wants to see
// beyond that it says by its job's name:
//
//   refuse    refused, with kRefusal
//   garbage   answered with bytes that are no message
//   version   welcomed in another layout version
//   unsealed  welcomed with a region that may shrink
//   mute      connected, never answered
//   hold      collectives wait until release() is called; an inquiry is answered with kReport
//   silent    as hold, and inquiries are not answered
//   fail      each collective fails with GRADCUBE_EPEER, explained by kFailure
//   unexplained  each collective fails with GRADCUBE_EPEER, without a notice
//   die       the connection closes at the first submission
//   scold     closing notice kClosing, then the connection closes, at the first submission
//   scribble  completions of requests that were never made
#ifndef GRADCUBE_TESTS_UNIT_TRAINER_FAKE_DAEMON_H_
#define GRADCUBE_TESTS_UNIT_TRAINER_FAKE_DAEMON_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "trainer/src/descriptor.h"

namespace gradcube::trainer {

inline constexpr char kRefusal[] = "server [2,1]'s place in this job is taken by process 1";
inline constexpr char kReport[] = "trainers [0,1] and [2,2] have not submitted request 1";
inline constexpr char kFailure[] = "trainer [0,2] of this job died";
inline constexpr char kClosing[] = "request 1 names a buffer outside the heap";

class FakeSession;

class FakeDaemon {
 public:
  static constexpr int kRank = 7;
  static constexpr int kSize = 9;

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
  int inquiries() const { return inquiries_; }
  int rings_heard() const { return rings_heard_; }

 private:
  void run();
  void accept();

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
  std::atomic<int> inquiries_{0};
  std::atomic<int> rings_heard_{0};
  std::thread thread_;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TESTS_UNIT_TRAINER_FAKE_DAEMON_H_
