// The calls of the process group that consist of messages.

#include <ATen/ATen.h>
#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "trainer/torch/interpreter.h"
#include "trainer/torch/process_group.h"
#include "trainer/torch/tensors.h"

namespace gradcube::pytorch {
namespace {

using Pointer = ProcessGroupGradcube::WorkPointer;
using Tensors = ProcessGroupGradcube::Tensors;
using c10d::OpType;

// What each rank gets of a tensor that is split along its first dimension; no sizes: the same.
std::vector<std::int64_t> rows_of(const at::Tensor& tensor, const std::vector<std::int64_t>& splits,
                                  int size) {
  const std::int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  if (splits.empty()) {
    if (rows % size == 0) {
      return std::vector<std::int64_t>(static_cast<std::size_t>(size), rows / size);
    }
    throw std::runtime_error("a tensor of " + std::to_string(rows) +
                             " rows cannot be split evenly among " + std::to_string(size) +
                             " ranks: expected a multiple, or sizes of the parts");
  }
  std::int64_t rest = rows;  // no sum, which may be too large for its type
  const bool are_sizes = std::all_of(splits.begin(), splits.end(), [&rest](std::int64_t one) {
    if (one < 0 || one > rest) return false;
    rest -= one;
    return true;
  });
  if (splits.size() == static_cast<std::size_t>(size) && rest == 0 && are_sizes) return splits;
  std::string given;
  for (const std::int64_t one : splits) given += (given.empty() ? "" : ", ") + std::to_string(one);
  throw std::runtime_error("parts of " + given + " rows: expected " + std::to_string(size) +
                           " parts of " + std::to_string(rows) + " rows in all, each of 0 or more");
}

Tensors parts_of(const at::Tensor& tensor, const std::vector<std::int64_t>& splits, int size) {
  Tensors parts;
  std::int64_t first = 0;
  for (const std::int64_t rows : rows_of(tensor, splits, size)) {
    parts.push_back(tensor.dim() == 0 ? tensor : tensor.narrow(0, first, rows));
    first += rows;
  }
  return parts;
}

Message message_of(gradcube_direction direction, const at::Tensor& memory, int peer,
                   std::uint64_t tag) {
  Message request;
  request.message.direction = direction;
  request.message.peer = static_cast<unsigned>(peer);
  request.message.buffer = memory.data_ptr();
  request.message.bytes = memory.nbytes();
  request.message.tag = tag;
  request.message.dtype = dtype_of(memory.scalar_type());
  return request;
}

void check_company(int size) {
  if (size > 1) return;
  throw std::runtime_error("a group of one rank has nobody to exchange messages with");
}

// Any tag of PyTorch's, also a negative one, as a number without the highest bit.
std::uint64_t tag_of(int tag) { return static_cast<std::uint32_t>(tag); }

}  // namespace

void ProcessGroupGradcube::add_send(Call& call, const at::Tensor& tensor, int to,
                                    std::uint64_t tag) {
  check_memory(tensor);
  const at::Tensor memory = plain(call, tensor, Use::read, kMessages);
  use(call, memory, memory.nbytes(), false, kMessages);
  call.requests.emplace_back(message_of(GRADCUBE_SEND, memory, to, tag));
}

void ProcessGroupGradcube::add_receive(Call& call, const at::Tensor& tensor, int from,
                                       std::uint64_t tag) {
  check_memory(tensor);
  const at::Tensor memory = plain(call, tensor, Use::write, kMessages);
  use(call, memory, memory.nbytes(), true, kMessages);
  call.requests.emplace_back(message_of(GRADCUBE_RECEIVE, memory, from, tag));
}

Pointer ProcessGroupGradcube::send(Tensors& tensors, int to, int tag) {
  check_company(size_);
  check_rank("rank", to);
  const auto fill = [&](Call& call) { add_send(call, only_one(tensors), to, tag_of(tag)); };
  return perform(OpType::SEND, "gradcube:send", tensors, tensors, timeout_, fill);
}

// Held from the look at who waits for a tag until a receive of it is submitted: else one from any
// rank might begin in between.
std::unique_lock<std::timed_mutex> ProcessGroupGradcube::enter_receive() {
  check_company(size_);
  progress_->check_process();  // another thread may have held it at the fork
  std::unique_lock<std::timed_mutex> lock(receives_, std::defer_lock);
  while (!lock.try_lock_for(kSignalInterval)) progress_->check_exit();
  return lock;
}

Pointer ProcessGroupGradcube::recv(Tensors& tensors, int from, int tag) {
  std::unique_lock<std::timed_mutex> lock = enter_receive();
  check_rank("rank", from);
  Call call{OpType::RECV, "gradcube:recv", {}, tensors};
  call.source = from;
  if (!add_kept(call, only_one(tensors), from, tag_of(tag))) {
    add_receive(call, tensors.front(), from, tag_of(tag));
  }
  const auto work = begin(call, timeout_);
  lock.unlock();
  work->look_for_signals();
  return work;
}

Pointer ProcessGroupGradcube::recvAnysource(Tensors& tensors, int tag) {
  std::unique_lock<std::timed_mutex> lock = enter_receive();
  const at::Tensor& tensor = only_one(tensors);
  if (!tensor.device().is_cpu()) {
    throw std::runtime_error("gradcube does not support a receive from any rank on the device " +
                             tensor.device().str() + ": expected a tensor on the CPU");
  }
  Call call{OpType::RECV, "gradcube:recv", {}, tensors};
  if (!add_kept(call, tensor, std::nullopt, tag_of(tag))) {
    call.memory.emplace_back(tensor.storage(), true);
    check_memory(tensor);
    call.any_source = std::make_shared<AnySource>(kept_, tag_of(tag), as_it_lies(tensor));
    for (int rank = 0; rank < size_; ++rank) {
      if (rank == rank_) continue;
      const at::Tensor memory = workspace(call, tensor, tensor.numel(), kMessages);
      call.any_source->add(rank, memory.view(tensor.sizes()));
      add_receive(call, memory, rank, tag_of(tag));
    }
  }
  const auto work = begin(call, timeout_);
  lock.unlock();
  work->look_for_signals();
  return work;
}

// What has come already, while a receive from any rank took another message. Whether there was one.
bool ProcessGroupGradcube::add_kept(Call& call, const at::Tensor& tensor, std::optional<int> from,
                                    std::uint64_t tag) {
  // What refuses the tensor does so before a message is taken for it, which were lost.
  check_memory(tensor);
  written_span(tensor);
  if (progress_ != nullptr) progress_->refuse_late({extent_of(tensor)}, false);
  const std::optional<int> source = kept_->take(tag, from, tensor);
  if (source.has_value()) call.source = *source;
  return source.has_value();
}

Pointer ProcessGroupGradcube::gather(TensorLists& outputs, Tensors& inputs,
                                     const c10d::GatherOptions& options) {
  return gather_parts(inputs, options, [&](const at::Tensor& input) {
    const Tensors& parts = only_one(outputs);
    check_list(parts, input, size_);
    return parts;
  });
}

Pointer ProcessGroupGradcube::gather_single(at::Tensor& output, at::Tensor& input,
                                            const c10d::GatherOptions& options) {
  return gather_parts({input}, options, [&](const at::Tensor& mine) {
    check_whole(output, mine, size_);
    if (!output.is_contiguous()) {
      throw std::runtime_error(
          "the tensor that gathers all is not contiguous: expected one that is");
    }
    std::vector<std::int64_t> shape = mine.sizes().vec();
    shape.insert(shape.begin(), size_);
    return output.view(shape).unbind();
  });
}

Pointer ProcessGroupGradcube::gather_parts(
    const Tensors& inputs, const c10d::GatherOptions& options,
    const std::function<Tensors(const at::Tensor& input)>& parts_at_root) {
  const std::uint64_t tag = next_tag();
  const at::Tensor& input = only_one(inputs);
  check_rank("root", options.rootRank);
  const auto root = static_cast<int>(options.rootRank);
  const auto fill = [&](Call& call) {
    if (rank_ != root) {
      add_send(call, input, root, tag);
    } else {
      call.outputs = parts_at_root(input);
      for (int rank = 0; rank < size_; ++rank) {
        if (rank == root) continue;
        add_receive(call, call.outputs[rank], rank, tag);
      }
      add_written(call, call.outputs[root]);
      copy_own(call, call.outputs[root],
               apart_from(call, {call.outputs[root]}, {input}, kMessages)[0]);
    }
  };
  return perform(OpType::GATHER, "gradcube:gather", inputs, {}, options.timeout, fill);
}

Pointer ProcessGroupGradcube::scatter(Tensors& outputs, TensorLists& inputs,
                                      const c10d::ScatterOptions& options) {
  const std::uint64_t tag = next_tag();
  const at::Tensor& output = only_one(outputs);
  check_rank("root", options.rootRank);
  const auto root = static_cast<int>(options.rootRank);
  const auto fill = [&](Call& call) {
    if (rank_ != root) {
      add_receive(call, output, root, tag);
    } else {
      call.inputs = only_one(inputs);
      check_list(call.inputs, output, size_);
      const Tensors given = apart_from(call, {output}, call.inputs, kMessages);
      for (int rank = 0; rank < size_; ++rank) {
        if (rank == root) continue;
        add_send(call, given[rank], rank, tag);
      }
      add_written(call, output);
      copy_own(call, output, given[root]);
    }
  };
  return perform(OpType::SCATTER, "gradcube:scatter", {}, outputs, options.timeout, fill);
}

// What is read, or copies of it where it shares memory with what is written.
Tensors ProcessGroupGradcube::apart_from(Call& call, const Tensors& written, const Tensors& read,
                                         std::size_t kind) {
  if (!share_memory(written, read)) return read;
  Tensors copies;
  for (const at::Tensor& one : read) {
    copies.push_back(workspace(call, one, one.numel(), kind).view(one.sizes()));
    copy_in(call, copies.back(), one);
  }
  return copies;
}

void ProcessGroupGradcube::add_exchange(Call& call, const Tensors& outputs, const Tensors& inputs,
                                        std::uint64_t tag) {
  const auto ranks = static_cast<std::size_t>(size_);
  if (outputs.size() != ranks || inputs.size() != ranks) {
    throw std::runtime_error("all_to_all has " + std::to_string(inputs.size()) + " inputs and " +
                             std::to_string(outputs.size()) +
                             " outputs: expected one for each of the group's " +
                             std::to_string(size_) + " ranks");
  }
  for (const Tensors* list : {&outputs, &inputs}) {
    for (const at::Tensor& tensor : *list) check_memory(tensor);
  }
  check_whole(outputs[rank_], inputs[rank_], 1);
  const Tensors given = apart_from(call, outputs, inputs, kMessages);
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    add_receive(call, outputs[rank], rank, tag);
    add_send(call, given[rank], rank, tag);
  }
  add_written(call, outputs[rank_]);
  copy_own(call, outputs[rank_], given[rank_]);
}

Pointer ProcessGroupGradcube::alltoall(Tensors& outputs, Tensors& inputs,
                                       const c10d::AllToAllOptions& options) {
  const std::uint64_t tag = next_tag();
  const auto fill = [&](Call& call) { add_exchange(call, outputs, inputs, tag); };
  return perform(OpType::ALLTOALL, "gradcube:all_to_all", inputs, outputs, options.timeout, fill);
}

Pointer ProcessGroupGradcube::alltoall_base(at::Tensor& output, at::Tensor& input,
                                            std::vector<std::int64_t>& output_splits,
                                            std::vector<std::int64_t>& input_splits,
                                            const c10d::AllToAllOptions& options) {
  const std::uint64_t tag = next_tag();
  check_memory(output);
  check_memory(input);
  const auto fill = [&](Call& call) {
    add_exchange(call, parts_of(output, output_splits, size_), parts_of(input, input_splits, size_),
                 tag);
  };
  return perform(OpType::ALLTOALL_BASE, "gradcube:all_to_all", {input}, {output}, options.timeout,
                 fill);
}

void ProcessGroupGradcube::monitoredBarrier(const c10d::BarrierOptions& options,
                                            bool wait_all_ranks) {
  if (monitored_barrier_ == nullptr) return;
  monitored_barrier_->pass(limit_of(options.timeout), wait_all_ranks);
}

}  // namespace gradcube::pytorch
