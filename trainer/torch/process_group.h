// torch.distributed's process group over a job of Gradcube: the backend "gradcube".
//
// Each rank of the group is a trainer of the job, whose ranks are the group's. The map from ranks
// to servers is made before (gradcube/_rendezvous.py).
//
// Every call returns at once with a Work; the calls of a lane begin in the order in which they are
// made, which must be the same on all ranks, but for messages. They work in place where a tensor
// lies in the session's memory (memory.h); else the library copies it there and back, and the bytes
// are counted (statistics()). Tensors that are not contiguous, and lists of tensors, are copied as
// well.
//
// all_reduce, broadcast, reduce, all_gather, reduce_scatter and barrier are the job's collectives.
// Where the job has no such reduction (tensors.h), each rank gets what all have given, and combines
// it in the order of the ranks: by an all_gather for all_reduce and reduce, which is as many times
// the bytes, and by messages for reduce_scatter.
// all_reduce of a sparse tensor (process_group_sparse.cc), a receive from any rank (any_source.h),
// gather, scatter, all_to_all and monitored_barrier (monitored_barrier.h) consist of messages.
// Their tags have the highest bit: no tag of send() and recv() has it. A gather, scatter,
// reduce_scatter or all_to_all takes its tag before it looks at what may be wrong on one rank. So a
// rank whose call is refused has the same tag as the others in the next one. Where a rank has no
// memory for a collective, or its device fails, the group ends: the others have begun theirs
// (in_step()).
//
// Tensors are exchanged as values: every call, and what its end copies, runs in PyTorch's inference
// mode. So copies of what requires a gradient are none of autograd's operations, and the caller may
// be in that mode or not.
//
// Types. What is moved carries the type of its tensor, which the job compares: ranks that name
// different ones all fail with an error that names them.
//
// Devices. Tensors of a call lie on the CPU, or all on one device: they are copied to the CPU and
// back (stage.h), and all of their bytes count as staged. What is all-reduced, reduced or broadcast
// goes in parts of kPart bytes, each a request of its own. So all ranks of such a call have their
// tensors on devices, or none has.
//
// Memory. What a call writes shares no byte with what else it writes or reads: begin() refuses it
// before anything begins. What it uses stays where it is until its end (held_memory.h). scatter and
// all_to_all may be done in place: they send copies then.
//
// Threads. Any thread may call; the session's end is looked for on one thread of the group
// (progress.h). The destructor leaves the job. It releases Python's interpreter lock while it waits
// for that thread.
//
// Errors are std::runtime_error, so RuntimeError in Python: what is unsupported is thrown by the
// call, and what fails by its Work.
#ifndef GRADCUBE_TRAINER_TORCH_PROCESS_GROUP_H_
#define GRADCUBE_TRAINER_TORCH_PROCESS_GROUP_H_

#include <array>
#include <atomic>
#include <c10/core/InferenceMode.h>
#include <c10/util/FunctionRef.h>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>
#include <vector>

#include "trainer/torch/any_source.h"
#include "trainer/torch/compatibility.h"
#include "trainer/torch/held_memory.h"
#include "trainer/torch/memory.h"
#include "trainer/torch/monitored_barrier.h"
#include "trainer/torch/progress.h"
#include "trainer/torch/session.h"
#include "trainer/torch/stage.h"
#include "trainer/torch/tensors.h"
#include "trainer/torch/work.h"

namespace gradcube::pytorch {

// What has been asked of the session so far, of one kind.
struct Usage {
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;   // of their buffers
  std::uint64_t staged = 0;  // bytes of them that had to be copied to shared memory or from it
};

// The kinds of requests: those of gradcube_kind, then messages.
inline constexpr std::size_t kKinds = 8;
inline constexpr std::size_t kMessages = kKinds - 1;

// A group like that one, by gradcube/torch.py, whose split_off() this calls. Any thread calls it.
c10::intrusive_ptr<GroupBase> split_off(const Membership& like,
                                        const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                        int size, const std::string& name,
                                        std::chrono::milliseconds timeout);

class ProcessGroupGradcube final : public GroupBase {
 public:
  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<std::vector<at::Tensor>>;
  using WorkPointer = c10::intrusive_ptr<c10d::Work>;
  using Milliseconds = std::chrono::milliseconds;

  // Throws std::runtime_error when the job cannot be joined.
  ProcessGroupGradcube(const Membership& wanted, int size, Milliseconds timeout);
  ~ProcessGroupGradcube() override;

  const std::string getBackendName() const override { return "gradcube"; }

  // Leaves the job. What is in flight fails, as does every later call.
  void close();
  void abort() { close(); }
  void shutdown() { close(); }
  bool has_stopped() const;  // of which a group of one rank knows nothing

  // Its thread, which can leave the job where nobody in Python has the group. Null in a group of
  // one rank.
  std::weak_ptr<Progress> progress() const { return progress_; }

  // What split_group() asks for: the group of these ranks, in the order of the list, with the job's
  // options of this one; null where this rank is none of them. PyTorch asks once for each type of
  // device, and gets the same group. In versions without such splits nobody calls these.
  bool supportsSplitting() const { return kHasSplit<GroupBase>; }
  c10::intrusive_ptr<GroupOptions> getBackendOptions();
  c10::intrusive_ptr<GroupBase> split(const c10::intrusive_ptr<c10d::Store>& store,
                                      const std::vector<int>& ranks,
                                      const c10::intrusive_ptr<GroupOptions>& options);

  // Of calls that are given none.
  void setTimeout(Milliseconds timeout) { timeout_ = timeout; }

  unsigned lanes() const { return lanes_; }  // each of higher priority than the one before it

  std::array<Usage, kKinds> statistics() const;
  std::shared_ptr<Session> session() const { return session_; }  // null in a group of one rank

  // process_group.cc
  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPointer allreduce_coalesced(Tensors& tensors,
                                  const c10d::AllreduceCoalescedOptions& options) override;
  WorkPointer allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options);
  // A sum. The other collectives take lane 0.
  WorkPointer all_reduce_on(const at::Tensor& tensor, unsigned lane);
  // Fails on all ranks, with the ranks that differ, unless all have the same bytes. The tensor is
  // read when the request begins, which may be later, and others wait with theirs meanwhile.
  WorkPointer compare(const at::Tensor& tensor);
  WorkPointer reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPointer allgather(TensorLists& outputs, Tensors& inputs,
                        const c10d::AllgatherOptions& options) override;
  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input,
                              const c10d::AllgatherOptions& options) override;
  WorkPointer allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                  const c10d::AllgatherOptions& options) override;
  WorkPointer allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::AllgatherOptions& options);
  WorkPointer reduce_scatter(Tensors& outputs, TensorLists& inputs,
                             const c10d::ReduceScatterOptions& options) override;
  WorkPointer _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                   const c10d::ReduceScatterOptions& options) override;
  WorkPointer reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::ReduceScatterOptions& options);
  WorkPointer barrier(const c10d::BarrierOptions& options) override;

  // process_group_messages.cc
  WorkPointer gather(TensorLists& outputs, Tensors& inputs,
                     const c10d::GatherOptions& options) override;
  WorkPointer gather_single(at::Tensor& output, at::Tensor& input,
                            const c10d::GatherOptions& options);
  WorkPointer scatter(Tensors& outputs, TensorLists& inputs,
                      const c10d::ScatterOptions& options) override;
  WorkPointer alltoall_base(at::Tensor& output, at::Tensor& input,
                            std::vector<std::int64_t>& output_splits,
                            std::vector<std::int64_t>& input_splits,
                            const c10d::AllToAllOptions& options) override;
  WorkPointer alltoall(Tensors& outputs, Tensors& inputs,
                       const c10d::AllToAllOptions& options) override;
  WorkPointer send(Tensors& tensors, int to, int tag) override;
  WorkPointer recv(Tensors& tensors, int from, int tag) override;
  WorkPointer recvAnysource(Tensors& tensors, int tag) override;
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;

  // How many collectives were called so far: neither sends and receives nor monitored barriers,
  // which a rank may miss.
  void setSequenceNumberForGroup() override {}
  std::uint64_t getSequenceNumberForGroup() override { return collectives_; }

 private:
  // What a call asks of the session, and what has to happen to its tensors. Its thread
  // is in inference mode while it lives, which is not until handlers of signals run.
  struct Call {
    c10d::OpType type;
    const char* title;
    Tensors inputs;
    Tensors outputs;
    std::vector<Request> requests = {};
    std::vector<HeldMemory> memory = {};  // that the requests use, and copies write to
    std::vector<Span> uses = {};          // of it, and what else is written
    std::vector<Span> lent = {};          // of it, in tensors of the caller's
    std::vector<Span> device_uses = {};   // of tensors on a device, copied there and back
    Tensors workspaces = {};              // on the CPU, without a stage
    std::vector<Copy> own = {};           // what this rank gives itself, before the requests
    std::vector<Copy> copies = {};
    int source = -1;
    std::shared_ptr<Stage> stage = nullptr;           // of tensors on a device
    std::shared_ptr<AnySource> any_source = nullptr;  // of a receive from any rank
    std::optional<c10::InferenceMode> as_values{std::in_place};
  };
  enum class Use { read, write, both };
  struct Counters {
    std::atomic<std::uint64_t> requests{0};
    std::atomic<std::uint64_t> bytes{0};
    std::atomic<std::uint64_t> staged{0};
  };

  void check_rank(const char* role, std::int64_t rank) const;
  Milliseconds limit_of(Milliseconds timeout) const;
  std::shared_ptr<DeviceLink> link_to(const at::Device& device);
  at::Tensor workspace(Call& call, const at::Tensor& like, std::int64_t elements, std::size_t kind);
  // How every call is made: perform() gives in_step() what fills the call and begins it.
  c10::intrusive_ptr<GradcubeWork> in_step(
      c10d::OpType type, c10::function_ref<c10::intrusive_ptr<GradcubeWork>()> make);
  WorkPointer perform(c10d::OpType type, const char* title, const Tensors& inputs,
                      const Tensors& outputs, Milliseconds timeout,
                      c10::function_ref<void(Call& call)> fill);
  void copy_in(Call& call, const at::Tensor& to, const at::Tensor& from);
  void copy_own(Call& call, const at::Tensor& to, const at::Tensor& given);
  at::Tensor plain(Call& call, const at::Tensor& tensor, Use use, std::size_t kind);
  void copy_out(Call& call, const Copy& copy);
  void add_written(Call& call, const at::Tensor& tensor);
  static bool is_copy_of(const Call& call, const at::Tensor& memory);
  void* use(Call& call, const at::Tensor& memory, std::size_t bytes, bool is_written,
            std::size_t kind, bool is_carried = false);
  void add_collective(Call& call, const at::Tensor& memory, std::size_t bytes,
                      gradcube_collective asked, bool has_result = true);
  void add_whole(Call& call, const at::Tensor& tensor, Use use, gradcube_collective asked);
  void add_reduction(Call& call, const at::Tensor& tensor, const c10d::ReduceOp& op, int kind,
                     unsigned root, unsigned lane = 0);
  void add_combination(Call& call, const at::Tensor& tensor, const c10d::ReduceOp& op,
                       bool is_written);
  void add_gathering(Call& call, const Tensors& outputs, const at::Tensor& input);
  void add_scattering(Call& call, const at::Tensor& output, const Tensors& inputs,
                      const c10d::ReduceOp& op, std::uint64_t tag);
  void add_scattered_combination(Call& call, const at::Tensor& output, const Tensors& inputs,
                                 const c10d::ReduceOp& op, std::uint64_t tag);
  WorkPointer gather_wholes(const Tensors& outputs, const Tensors& inputs, Milliseconds timeout);
  WorkPointer scatter_wholes(const Tensors& outputs, const Tensors& inputs,
                             const c10d::ReduceOp& op, Milliseconds timeout);
  // The function gives the root where it gets each rank's tensor, or throws.
  WorkPointer gather_parts(const Tensors& inputs, const c10d::GatherOptions& options,
                           const std::function<Tensors(const at::Tensor& input)>& parts_at_root);
  void add_send(Call& call, const at::Tensor& tensor, int to, std::uint64_t tag);
  void add_receive(Call& call, const at::Tensor& tensor, int from, std::uint64_t tag);
  std::unique_lock<std::timed_mutex> enter_receive();
  bool add_kept(Call& call, const at::Tensor& tensor, std::optional<int> from, std::uint64_t tag);
  Tensors apart_from(Call& call, const Tensors& written, const Tensors& read, std::size_t kind);
  void add_exchange(Call& call, const Tensors& outputs, const Tensors& inputs, std::uint64_t tag);
  bool is_shared(const void* memory, std::size_t bytes) const;
  bool is_carried(const at::Tensor& memory, const gradcube_collective& asked) const;
  std::uint64_t next_tag() { return kCollectiveTag | tags_++; }
  static std::vector<Span> touched_by(const Call& call);
  // Takes what the call has.
  c10::intrusive_ptr<GradcubeWork> begin(Call& call, Milliseconds timeout);

  // process_group_sparse.cc
  struct SparseSum;
  using SparseSumPointer = std::shared_ptr<SparseSum>;
  WorkPointer sum_sparse(const at::Tensor& tensor, const c10d::AllreduceOptions& options);
  void follow(const SparseSumPointer& sum, const c10::intrusive_ptr<GradcubeWork>& part,
              void (ProcessGroupGradcube::*next)(const SparseSumPointer&));
  void exchange_elements(const SparseSumPointer& sum);
  void add_elements(const SparseSumPointer& sum);

  static constexpr std::uint64_t kCollectiveTag = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kBarrierTag = kCollectiveTag | std::uint64_t{1} << 62;

  std::atomic<Milliseconds> timeout_;
  const Membership wanted_;
  std::string part_name_;  // of the last split, which is that of one thread at a time
  c10::weak_intrusive_ptr<GroupBase> part_;
  const unsigned lanes_;
  // Null in a group of one rank, which exchanges nothing and needs no job.
  const std::shared_ptr<Session> session_;
  const std::shared_ptr<Progress> progress_;
  const std::unique_ptr<MonitoredBarrier> monitored_barrier_;  // null in a group of one rank, too
  std::array<Counters, kKinds> counters_;
  const std::shared_ptr<KeptMessages> kept_ = std::make_shared<KeptMessages>();
  std::timed_mutex receives_;
  std::mutex links_mutex_;
  std::map<std::string, std::shared_ptr<DeviceLink>> links_;  // by device; guarded by links_mutex_
  std::atomic<std::uint64_t> collectives_{0};
  std::atomic<std::uint64_t> tags_{0};
};

}  // namespace gradcube::pytorch

#endif  // GRADCUBE_TRAINER_TORCH_PROCESS_GROUP_H_
