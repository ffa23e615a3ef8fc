// Receives from any rank. The job's messages name their sender, so such a receive is one from each
// rank, into memory of its own: the first message is what it gets, and the others are withdrawn
// (progress.h).
//
// A message that had met its receive before that was withdrawn is kept. It is for the next receive
// of its tag that names its rank, or none. While one from any rank waits nobody knows whose the
// next message is, so no other receive of its tag may begin. The group lets receives begin one
// after the other: between take() and the submission of a receive none other begins.
//
// Threads. Any thread calls; the progress thread calls what is Gate's, deliver() and finish().
//
// Errors are std::runtime_error.
#ifndef GRADCUBE_TRAINER_TORCH_ANY_SOURCE_H_
#define GRADCUBE_TRAINER_TORCH_ANY_SOURCE_H_

#include <ATen/core/Tensor.h>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "trainer/torch/progress.h"

namespace gradcube::pytorch {

// A message that no receive has got yet.
struct KeptMessage {
  int from = 0;
  at::Tensor memory;
};

// Of a group: what is kept, and the tags with which a receive from any rank waits.
class KeptMessages {
 public:
  // Copies the message that came first with this tag, from this rank if that is named, to this
  // tensor; returns its rank. Throws where a receive from any rank waits for the tag; and where the
  // message does not fit or cannot be copied: it stays.
  std::optional<int> take(std::uint64_t tag, std::optional<int> from, const at::Tensor& output);
  void keep(std::uint64_t tag, KeptMessage message);
  void begin(std::uint64_t tag);
  void end(std::uint64_t tag);

 private:
  std::mutex mutex_;                                           // guards all below
  std::map<std::uint64_t, std::deque<KeptMessage>> messages_;  // by tag
  std::set<std::uint64_t> waiting_;
};

// One receive from any rank.
class AnySource final : public Gate {
 public:
  AnySource(std::shared_ptr<KeptMessages> kept, std::uint64_t tag, at::Tensor output);
  ~AnySource() override;
  AnySource(const AnySource&) = delete;
  AnySource& operator=(const AnySource&) = delete;

  // The receive of the task's next request. Before it is submitted.
  void add(int rank, at::Tensor memory) { receives_.push_back({rank, std::move(memory)}); }

  bool is_open(std::size_t /*place*/) override { return true; }
  void has_ended(std::size_t place) override;
  bool takes_one_message() const override { return true; }

  // Into the output: a message has come.
  void deliver();
  // Other receives of the tag may begin, and get what has come and was not delivered.
  void finish();
  // From which it has come; -1: from none so far.
  int source() const { return source_; }

 private:
  const std::shared_ptr<KeptMessages> kept_;
  const std::uint64_t tag_;
  const at::Tensor output_;
  std::vector<KeptMessage> receives_;
  at::Tensor first_;  // undefined: none has come
  bool is_delivered_ = false;
  std::atomic<int> source_{-1};
  std::atomic<bool> is_finished_{false};
};

}  // namespace gradcube::pytorch

#endif  // GRADCUBE_TRAINER_TORCH_ANY_SOURCE_H_
