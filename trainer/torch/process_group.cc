#include "trainer/torch/process_group.h"

#include <ATen/ATen.h>
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "trainer/torch/interpreter.h"
#include "trainer/torch/tensors.h"

namespace gradcube::pytorch {
namespace {

using Pointer = ProcessGroupGradcube::WorkPointer;
using c10d::OpType;

gradcube_collective collective_of(int kind) {
  gradcube_collective asked = GRADCUBE_COLLECTIVE_INIT;
  asked.kind = kind;
  return asked;
}

// Of as many elements as the tensor has, which are moved and not combined.
gradcube_collective moving_of(int kind, const at::Tensor& tensor) {
  gradcube_collective asked = collective_of(kind);
  asked.dtype = dtype_of(tensor.scalar_type());
  asked.count = static_cast<std::size_t>(tensor.numel());
  return asked;
}

// The tensor's part of this rank, where it consists of parts of one length.
at::Tensor part_of(const at::Tensor& whole, int rank, int size) {
  const std::int64_t elements = whole.numel() / size;
  return whole.view({-1}).narrow(0, rank * elements, elements);
}

// A tensor like this one for each rank.
at::Tensor rows_like(const at::Tensor& flat, const at::Tensor& like, int size) {
  std::vector<std::int64_t> shape = like.sizes().vec();
  shape.insert(shape.begin(), size);
  return flat.view(shape);
}

}  // namespace

ProcessGroupGradcube::ProcessGroupGradcube(const Membership& wanted, int size, Milliseconds timeout)
    : GroupBase(wanted.rank, size),
      timeout_(timeout),
      wanted_(wanted),
      part_(c10::intrusive_ptr<GroupBase>()),
      lanes_(wanted.lanes),
      session_(size == 1 ? nullptr : std::make_shared<Session>(wanted)),
      progress_(size == 1 ? nullptr : Progress::start(session_)),
      monitored_barrier_(size == 1 ? nullptr
                                   : std::make_unique<MonitoredBarrier>(progress_, wanted.rank,
                                                                        size, kBarrierTag)) {
  init();
}

ProcessGroupGradcube::~ProcessGroupGradcube() { close(); }

bool ProcessGroupGradcube::has_stopped() const {
  return progress_ != nullptr && progress_->has_stopped();
}

void ProcessGroupGradcube::close() {
  if (progress_ == nullptr) return;
  const WithoutInterpreterLock released;
  progress_->stop();
}

c10::intrusive_ptr<GroupOptions> ProcessGroupGradcube::getBackendOptions() {
  return c10::make_intrusive<GroupOptions>(getBackendName(), timeout_.load());
}

c10::intrusive_ptr<GroupBase> ProcessGroupGradcube::split(
    const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
    const c10::intrusive_ptr<GroupOptions>& options) {
  const auto own = std::find(ranks.begin(), ranks.end(), rank_);
  if (own == ranks.end()) return {};
  const std::string name = name_in(*options);
  c10::intrusive_ptr<GroupBase> part = part_.lock();
  // One that was destroyed may live on, as in a model, and its name may come again.
  if (part == nullptr || part_name_ != name ||
      static_cast<ProcessGroupGradcube&>(*part).has_stopped()) {
    part = split_off(wanted_, store, static_cast<int>(own - ranks.begin()),
                     static_cast<int>(ranks.size()), name, options->timeout);
    part_name_ = name;
    part_ = part;
  }
  return part;
}

std::array<Usage, kKinds> ProcessGroupGradcube::statistics() const {
  std::array<Usage, kKinds> result;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const Counters& counters = counters_[kind];
    result[kind] = {counters.requests, counters.bytes, counters.staged};
  }
  return result;
}

void ProcessGroupGradcube::add_reduction(Call& call, const at::Tensor& tensor,
                                         const c10d::ReduceOp& op, int kind, unsigned root,
                                         unsigned lane) {
  check_memory(tensor);
  const bool is_written = kind == GRADCUBE_ALL_REDUCE || root == static_cast<unsigned>(rank_);
  if (op.op_ == c10d::ReduceOp::PREMUL_SUM) {
    const at::Tensor given = premultiplied(tensor, op);
    add_reduction(call, given, c10d::ReduceOp::SUM, kind, root, lane);
    if (is_written) copy_out(call, {tensor, given});
    return;
  }
  if (is_combined_by_ranks(tensor, op)) return add_combination(call, tensor, op, is_written);
  const Elements elements = elements_of(tensor, op);
  gradcube_collective asked = collective_of(kind);
  asked.count = elements.count;
  asked.dtype = elements.dtype;
  asked.op = elements.op;
  asked.root = root;
  asked.lane = lane;
  add_whole(call, tensor, is_written ? Use::both : Use::read, asked);
}

void ProcessGroupGradcube::add_combination(Call& call, const at::Tensor& tensor,
                                           const c10d::ReduceOp& op, bool is_written) {
  const at::Tensor flat = workspace(call, tensor, tensor.numel() * size_, GRADCUBE_ALL_GATHER);
  const at::Tensor rows = rows_like(flat, tensor, size_);
  copy_own(call, rows.select(0, rank_), tensor);
  if (is_written) copy_out(call, {tensor, rows, op.op_});
  add_collective(call, flat, flat.nbytes(), moving_of(GRADCUBE_ALL_GATHER, tensor));
}

Pointer ProcessGroupGradcube::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  if (tensors.size() == 1 && tensors[0].layout() != at::kStrided) {
    return sum_sparse(tensors[0], options);
  }
  const auto fill = [&](Call& call) {
    add_reduction(call, only_one(tensors), options.reduceOp, GRADCUBE_ALL_REDUCE, 0);
  };
  return perform(OpType::ALLREDUCE, "gradcube:all_reduce", tensors, tensors, options.timeout, fill);
}

Pointer ProcessGroupGradcube::allreduce_sparse(Tensors& tensors,
                                               const c10d::AllreduceOptions& options) {
  return allreduce(tensors, options);
}

Pointer ProcessGroupGradcube::all_reduce_on(const at::Tensor& tensor, unsigned lane) {
  const auto fill = [&](Call& call) {
    add_reduction(call, tensor, c10d::ReduceOp::SUM, GRADCUBE_ALL_REDUCE, 0, lane);
  };
  return perform(OpType::ALLREDUCE, "gradcube:all_reduce", {tensor}, {tensor}, c10d::kUnsetTimeout,
                 fill);
}

Pointer ProcessGroupGradcube::compare(const at::Tensor& tensor) {
  check_memory(tensor);
  const auto fill = [&](Call& call) {
    const at::Tensor memory = plain(call, tensor, Use::read, GRADCUBE_COMPARE);
    gradcube_collective asked = collective_of(GRADCUBE_COMPARE);
    asked.buffer = use(call, memory, memory.nbytes(), false, GRADCUBE_COMPARE);
    asked.count = memory.nbytes();
    asked.dtype = GRADCUBE_BYTES;
    call.requests.emplace_back(asked);
  };
  return perform(OpType::UNKNOWN, "gradcube:compare", {tensor}, {tensor}, c10d::kUnsetTimeout,
                 fill);
}

Pointer ProcessGroupGradcube::allreduce_coalesced(Tensors& tensors,
                                                  const c10d::AllreduceCoalescedOptions& options) {
  const auto fill = [&](Call& call) {
    for (const at::Tensor& tensor : tensors) {
      add_reduction(call, tensor, options.reduceOp, GRADCUBE_ALL_REDUCE, 0);
    }
  };
  return perform(OpType::ALLREDUCE_COALESCED, "gradcube:all_reduce", tensors, tensors,
                 options.timeout, fill);
}

Pointer ProcessGroupGradcube::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  check_rank("root", options.rootRank);
  const auto fill = [&](Call& call) {
    add_reduction(call, only_one(tensors), options.reduceOp, GRADCUBE_REDUCE,
                  static_cast<unsigned>(options.rootRank));
  };
  return perform(OpType::REDUCE, "gradcube:reduce", tensors, tensors, options.timeout, fill);
}

Pointer ProcessGroupGradcube::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  check_rank("root", options.rootRank);
  const auto fill = [&](Call& call) {
    const at::Tensor& tensor = only_one(tensors);
    gradcube_collective asked = moving_of(GRADCUBE_BROADCAST, tensor);
    asked.root = static_cast<unsigned>(options.rootRank);
    add_whole(call, tensor, options.rootRank == rank_ ? Use::read : Use::write, asked);
  };
  return perform(OpType::BROADCAST, "gradcube:broadcast", tensors, tensors, options.timeout, fill);
}

// Into the outputs themselves where they are one memory.
void ProcessGroupGradcube::add_gathering(Call& call, const Tensors& outputs,
                                         const at::Tensor& input) {
  check_memory(input);
  check_list(outputs, input, size_);
  const bool in_place = are_consecutive(outputs);
  const at::Tensor flat = in_place
                              ? outputs.front()
                              : workspace(call, input, input.numel() * size_, GRADCUBE_ALL_GATHER);
  const at::Tensor own = in_place ? outputs[rank_] : part_of(flat, rank_, size_);
  copy_own(call, own.view(input.sizes()), input);
  if (!in_place) {
    for (int rank = 0; rank < size_; ++rank) {
      copy_out(call, {outputs[rank], part_of(flat, rank, size_).view(outputs[rank].sizes())});
    }
  }
  const gradcube_collective asked = moving_of(GRADCUBE_ALL_GATHER, input);
  add_collective(call, flat, input.nbytes() * static_cast<std::size_t>(size_), asked);
}

Pointer ProcessGroupGradcube::allgather(TensorLists& outputs, Tensors& inputs,
                                        const c10d::AllgatherOptions& options) {
  const Tensors& list = only_one(outputs);
  const auto fill = [&](Call& call) { add_gathering(call, list, only_one(inputs)); };
  return perform(OpType::ALLGATHER, "gradcube:all_gather", inputs, list, options.timeout, fill);
}

Pointer ProcessGroupGradcube::allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                                  const c10d::AllgatherOptions& options) {
  const auto fill = [&](Call& call) {
    if (outputs.size() != static_cast<std::size_t>(size_)) {
      throw std::runtime_error("all_gather_coalesced has " + std::to_string(outputs.size()) +
                               " lists: expected one for each of the group's " +
                               std::to_string(size_) + " ranks");
    }
    for (const Tensors& of_rank : outputs) check_pairs(of_rank, inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Tensors list;
      for (const Tensors& of_rank : outputs) list.push_back(of_rank[i]);
      call.outputs.insert(call.outputs.end(), list.begin(), list.end());
      add_gathering(call, list, inputs[i]);
    }
  };
  return perform(OpType::ALLGATHER_COALESCED, "gradcube:all_gather", inputs, {}, options.timeout,
                 fill);
}

Pointer ProcessGroupGradcube::_allgather_base(at::Tensor& output, at::Tensor& input,
                                              const c10d::AllgatherOptions& options) {
  return gather_wholes({output}, {input}, options.timeout);
}

Pointer ProcessGroupGradcube::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  return gather_wholes(outputs, inputs, options.timeout);
}

// Each output is one tensor for what all ranks give of its input.
Pointer ProcessGroupGradcube::gather_wholes(const Tensors& outputs, const Tensors& inputs,
                                            Milliseconds timeout) {
  check_pairs(outputs, inputs);
  const auto fill = [&](Call& call) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      check_memory(inputs[i]);
      check_whole(outputs[i], inputs[i], size_);
      const at::Tensor whole = plain(call, outputs[i], Use::write, GRADCUBE_ALL_GATHER);
      Tensors parts;
      for (int rank = 0; rank < size_; ++rank) {
        parts.push_back(part_of(whole, rank, size_).view(inputs[i].sizes()));
      }
      add_gathering(call, parts, inputs[i]);
    }
  };
  return perform(OpType::_ALLGATHER_BASE, "gradcube:all_gather", inputs, outputs, timeout, fill);
}

// In a copy, because the inputs keep what they have.
void ProcessGroupGradcube::add_scattering(Call& call, const at::Tensor& output,
                                          const Tensors& inputs, const c10d::ReduceOp& op,
                                          std::uint64_t tag) {
  check_memory(output);
  if (op.op_ == c10d::ReduceOp::PREMUL_SUM) {
    check_list(inputs, output, size_);
    Tensors given;
    for (const at::Tensor& input : inputs) given.push_back(premultiplied(input, op));
    return add_scattering(call, output, given, c10d::ReduceOp::SUM, tag);
  }
  if (is_combined_by_ranks(output, op)) {
    return add_scattered_combination(call, output, inputs, op, tag);
  }
  check_list(inputs, output, size_);
  const Elements elements = elements_of(output, op);
  const at::Tensor flat = workspace(call, output, output.numel() * size_, GRADCUBE_REDUCE_SCATTER);
  for (int rank = 0; rank < size_; ++rank) {
    copy_in(call, part_of(flat, rank, size_).view(inputs[rank].sizes()), inputs[rank]);
  }
  copy_out(call, {output, part_of(flat, rank_, size_).view(output.sizes())});
  gradcube_collective asked = collective_of(GRADCUBE_REDUCE_SCATTER);
  asked.count = elements.count;
  asked.dtype = elements.dtype;
  asked.op = elements.op;
  add_collective(call, flat, flat.nbytes(), asked);
}

// By messages: each rank gets what the others have for it.
void ProcessGroupGradcube::add_scattered_combination(Call& call, const at::Tensor& output,
                                                     const Tensors& inputs,
                                                     const c10d::ReduceOp& op, std::uint64_t tag) {
  check_list(inputs, output, size_);
  const at::Tensor flat = workspace(call, output, output.numel() * size_, kMessages);
  Tensors parts;
  Tensors given;
  for (int rank = 0; rank < size_; ++rank) {
    parts.push_back(part_of(flat, rank, size_));
    given.push_back(inputs[rank].reshape({-1}));
  }
  add_exchange(call, parts, given, tag);
  copy_out(call, {output, rows_like(flat, output, size_), op.op_});
}

Pointer ProcessGroupGradcube::reduce_scatter(Tensors& outputs, TensorLists& inputs,
                                             const c10d::ReduceScatterOptions& options) {
  const std::uint64_t tag = next_tag();
  const Tensors& list = only_one(inputs);
  const auto fill = [&](Call& call) {
    add_scattering(call, only_one(outputs), list, options.reduceOp, tag);
  };
  return perform(OpType::REDUCE_SCATTER, "gradcube:reduce_scatter", list, outputs, options.timeout,
                 fill);
}

Pointer ProcessGroupGradcube::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                   const c10d::ReduceScatterOptions& options) {
  return scatter_wholes({output}, {input}, options.reduceOp, options.timeout);
}

Pointer ProcessGroupGradcube::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  return scatter_wholes(outputs, inputs, options.reduceOp, options.timeout);
}

// Each input is one tensor for what all ranks get of it.
Pointer ProcessGroupGradcube::scatter_wholes(const Tensors& outputs, const Tensors& inputs,
                                             const c10d::ReduceOp& op, Milliseconds timeout) {
  const std::uint64_t tag = next_tag();
  check_pairs(outputs, inputs);
  const auto fill = [&](Call& call) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      check_memory(outputs[i]);
      check_whole(inputs[i], outputs[i], size_);
      const at::Tensor whole = inputs[i].contiguous();
      Tensors parts;
      for (int rank = 0; rank < size_; ++rank) parts.push_back(part_of(whole, rank, size_));
      add_scattering(call, outputs[i], parts, op, tag);
    }
  };
  return perform(OpType::_REDUCE_SCATTER_BASE, "gradcube:reduce_scatter", inputs, outputs, timeout,
                 fill);
}

Pointer ProcessGroupGradcube::barrier(const c10d::BarrierOptions& options) {
  const auto fill = [&](Call& call) {
    add_collective(call, at::Tensor(), 0, collective_of(GRADCUBE_BARRIER));
  };
  return perform(OpType::BARRIER, "gradcube:barrier", {}, {}, options.timeout, fill);
}

}  // namespace gradcube::pytorch
