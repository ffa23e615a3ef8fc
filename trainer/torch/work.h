// What a call of the process group returns: it ends when the call's requests have ended.
//
// Its future ends first, which runs the callbacks of then() on the progress thread; then the
// threads in wait() go on.
//
// On a device a work ends when its copies back are ordered: wait() makes the caller's current
// stream wait for them, and the future makes that of who takes its value, and of its callbacks.
// isCompleted() is true when the device has done them, too.
//
// Until then PyTorch refuses to resize storages that the call uses (held_memory.h). The result is
// in the memory that its tensors had when it began, whatever `.data` they are given meanwhile.
// Where a storage had lost that by its end, by share_memory_() or to nothing, the work fails.
//
// wait() with a timeout fails the work for good when the time is up, with the reason that Gradcube
// knows: who is missing. Messages are withdrawn then; if all had met the other ranks' already, the
// work ends well (progress.h). What the call uses stays alive until its requests have ended.
//
// Waiting on the main thread ends early with Python's KeyboardInterrupt (or whatever a handler of a
// signal raises). The time of a send or a receive is up with that: it is withdrawn before wait()
// throws, and the next wait() says so. Calls of all ranks go on, and can be waited for again: until
// one has ended well and was, its tensors are those of a late one (progress.h).
#ifndef GRADCUBE_TRAINER_TORCH_WORK_H_
#define GRADCUBE_TRAINER_TORCH_WORK_H_

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>

#include "trainer/torch/any_source.h"
#include "trainer/torch/held_memory.h"
#include "trainer/torch/progress.h"
#include "trainer/torch/stage.h"
#include "trainer/torch/tensors.h"

namespace gradcube::pytorch {

class GradcubeWork final : public c10d::Work {
 public:
  // `memory`: what the call uses.
  // `stage`: of tensors on a device, and has the copies then; else null. `any_source`: of a receive
  // from any rank, else null. `source`: of another receive, the rank that it is from, else -1.
  GradcubeWork(int rank, c10d::OpType type, const char* title, std::vector<at::Tensor> inputs,
               std::vector<at::Tensor> outputs, std::vector<HeldMemory> memory,
               std::vector<Copy> copies, std::shared_ptr<Stage> stage,
               std::shared_ptr<AnySource> any_source, int source);

  // Submits the requests; without any the work ends now. `lent` is what of its memory is the
  // caller's own, `touched` also what copies use.
  static void start(const c10::intrusive_ptr<GradcubeWork>& work,
                    const std::shared_ptr<Progress>& progress, std::vector<Request> requests,
                    std::vector<Span> lent, std::vector<Span> touched, Clock::time_point deadline);

  // When the call is made: a signal that has come meanwhile counts as one that ends the wait().
  // Python raises what its handler does before the caller has the work. In backward(), which makes
  // a RuntimeError of what is thrown, handlers run later.
  void look_for_signals();
  // The same for one whose handler has raised later, but before the caller had the work. With the
  // interpreter's lock, which is free meanwhile. Throws what the handler of another signal raises,
  // and std::runtime_error in a forked child.
  void lose();

  // Of a work without requests of its own, which end() ends: until then, what is asked of it is
  // asked of this part of it.
  void follow(const GradcubeWork& part);
  // Once. Empty: well.
  void end(const std::string& failure);
  // The same, well, after this copy to the caller's memory. But it fails where a signal has ended
  // the wait() for it, and there was no other one: what the caller has written since stays.
  void end_by(const std::function<void()>& copy);

  int sourceRank() const override {
    return any_source_ == nullptr ? source_ : any_source_->source();
  }
  std::vector<at::Tensor> result() override { return outputs_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  bool isCompleted() override;
  bool wait(std::chrono::milliseconds timeout) override;
  // For a work that has ended: the current stream of the tensors' device waits for their copies.
  void synchronize() override;

 private:
  void expire(const char* why);
  void break_off();
  void abandon();
  void take_back();
  void order_before_caller();
  bool has_lost_result() const;
  void copy();
  std::exception_ptr complete_future();
  bool has_ended_within(std::chrono::milliseconds time, bool handles_signals = true);

  const std::vector<at::Tensor> outputs_;
  std::vector<HeldMemory> memory_;  // until its end
  std::vector<Copy> copies_;
  const std::shared_ptr<Stage> stage_;
  const std::shared_ptr<AnySource> any_source_;
  const int source_;
  const c10::intrusive_ptr<c10::ivalue::Future> future_;
  std::weak_ptr<Progress> progress_;
  std::weak_ptr<Task> task_;       // guarded by mutex_ once the work can be waited for
  const char* late_ = nullptr;     // why its time is up; guarded by mutex_
  std::weak_ptr<Task> abandoned_;  // guarded by mutex_
  bool is_abandoned_ = false;      // guarded by mutex_
};

}  // namespace gradcube::pytorch

#endif  // GRADCUBE_TRAINER_TORCH_WORK_H_
