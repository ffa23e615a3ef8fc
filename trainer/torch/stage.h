// How one call of a process group reaches tensors on a device: by copies to memory of the CPU and
// back, of which none makes the host wait.
//
// A DeviceLink is what a group has of a device: a stream for the copies to the CPU, one for those
// back, and memory for both (staging_memory.h). All of it is by PyTorch's own parts that are the
// same for every device; there is no word here of any one.
//
// Order. A copy to the CPU begins after all that the caller's stream was told before the call, and
// a request after the copies that it needs: is_open() asks their event, and the progress thread
// asks is_open() (progress.h). Where a call has several requests, as a large all_reduce has, one
// part's copies overlap with the others' way through the network. What a request has brought is
// copied back when that has ended. The caller's stream waits for the copies back in wait(), or by
// the future, whose events are of the stream `back` (work.h).
//
// What the device may still read or write lives on after the call: blocks by their events, and
// tensors because PyTorch's allocator is told which stream uses them; where a call has failed, also
// because the Stage, which its task has until all requests have ended, has them.
//
// Threads. A Stage is used by the call's thread until its task is submitted, and from then on by
// the progress thread; is_open() by any thread that holds Progress's order.
//
// Errors: std::runtime_error for a device without streams; else what PyTorch throws.
#ifndef GRADCUBE_TRAINER_TORCH_STAGE_H_
#define GRADCUBE_TRAINER_TORCH_STAGE_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <vector>

#include "trainer/torch/progress.h"
#include "trainer/torch/session.h"
#include "trainer/torch/staging_memory.h"
#include "trainer/torch/tensors.h"

namespace gradcube::pytorch {

struct DeviceLink {
  DeviceLink(std::shared_ptr<Session> session, c10::Device device);

  const c10::Device device;
  const c10::Stream there;  // to the CPU
  const c10::Stream back;
  const std::shared_ptr<StagingMemory> memory;
};

class Stage final : public Gate {
 public:
  static constexpr std::chrono::seconds kLastCopies{5};

  // Of this thread's current stream.
  explicit Stage(std::shared_ptr<DeviceLink> link);
  ~Stage() override;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  const DeviceLink& link() const { return *link_; }

  // A tensor of the CPU, of so many elements of that one's type.
  at::Tensor memory(const at::Tensor& like, std::int64_t elements);

  // One of them is on the device, and the other there, too, or in memory().
  void copy(const at::Tensor& to, const at::Tensor& from);

  // The request at this place begins after what was copied so far.
  void mark(std::size_t place);

  // What is to be copied back, and the last word of the call's thread.
  void seal(std::vector<Copy> copies);

  bool is_open(std::size_t place) override;
  void has_ended(std::size_t place) override;

  // All that is left to be copied back: every request has ended well. Throws what has failed.
  void copy_rest();

  // Nothing is copied any more. What was ordered goes on. After a failure (`is_well` is false)
  // requests may still wait for it, and the caller has its tensors again: what was copied back is
  // waited for, kLastCopies at most.
  void finish(bool is_well) noexcept;

  // After finish(): what the current stream is told from now on comes after all copies back.
  void order_before_caller();

  // After finish(): whether the device has done all that was ordered. Any thread. Throws where it
  // cannot be asked.
  bool has_passed() const { return last_ == nullptr || last_->query(); }

  // Until the copies to the CPU have ended. Throws std::runtime_error after the deadline, and what
  // signals raise.
  void wait_for_copies(Clock::time_point deadline);

 private:
  void copy_back(const Copy& copy);
  void order_copies_back();
  void wait_for_copies_back();
  void record_use(const at::Tensor& tensor, const c10::Stream& stream);

  const std::shared_ptr<DeviceLink> link_;
  c10::Event before_;                   // what the caller's stream was told before
  std::shared_ptr<c10::Event> copied_;  // the last copy to the CPU; null: there was none
  bool is_marked_ = false;              // copied_ is of all that was copied
  std::vector<std::shared_ptr<c10::Event>> needed_;  // by each request; null: nothing
  std::vector<StagingMemory::BlockPointer> blocks_;
  std::vector<at::Tensor> read_;  // by copies to the CPU
  std::vector<Copy> copies_;
  std::exception_ptr failure_;
  std::shared_ptr<c10::Event> last_;  // of all that was ordered
  bool is_sealed_ = false;
  bool is_ordered_ = false;  // the copies back come after all else
  bool is_finished_ = false;
};

}  // namespace gradcube::pytorch

#endif  // GRADCUBE_TRAINER_TORCH_STAGE_H_
