// all_reduce of a sparse tensor: messages between all ranks, and a sum that each makes for itself.
//
// How many elements a rank has comes first. What follows is begun when that is known, so beside
// later calls: collectives would not have the same order on all ranks then, and messages need none.

#include <ATen/ATen.h>
#include <algorithm>
#include <c10/core/InferenceMode.h>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include "trainer/torch/process_group.h"
#include "trainer/torch/tensors.h"

namespace gradcube::pytorch {
namespace {

using Pointer = ProcessGroupGradcube::WorkPointer;
using Tensors = ProcessGroupGradcube::Tensors;
using c10d::OpType;

constexpr const char* kTitle = "gradcube:all_reduce";

void check_sparse(const at::Tensor& tensor, const c10d::ReduceOp& op) {
  if (tensor.layout() != at::kSparse || !tensor.device().is_cpu() ||
      op.op_ != c10d::ReduceOp::SUM) {
    throw std::runtime_error(
        "gradcube adds sparse tensors of PyTorch's COO layout on the CPU, by ReduceOp.SUM alone: "
        "expected such a one, or to_dense()");
  }
  dtype_of(tensor.scalar_type());
}

// What the others have to know of a coalesced tensor: how many elements, and its shape.
at::Tensor outline_of(const at::Tensor& tensor) {
  std::vector<std::int64_t> numbers = {tensor._nnz(), tensor.sparse_dim()};
  numbers.insert(numbers.end(), tensor.sizes().begin(), tensor.sizes().end());
  return at::tensor(numbers, at::kLong);
}

}  // namespace

// One sum on its way.
struct ProcessGroupGradcube::SparseSum {
  at::Tensor result;
  at::Tensor own;    // of this rank, coalesced
  Tensors outlines;  // of each rank
  Tensors indices, values;
  std::uint64_t tag = 0;
  Clock::time_point deadline;
  c10::intrusive_ptr<GradcubeWork> work;
};

Pointer ProcessGroupGradcube::sum_sparse(const at::Tensor& tensor,
                                         const c10d::AllreduceOptions& options) {
  const std::uint64_t tag = next_tag();
  const auto work = in_step(OpType::ALLREDUCE, [&] {
    Call call{OpType::ALLREDUCE, kTitle, {}, {}};
    const auto sum = std::make_shared<SparseSum>();
    sum->tag = tag;
    check_sparse(tensor, options.reduceOp);
    call.inputs = {tensor._indices(), tensor._values()};
    sum->result = tensor;
    sum->own = tensor.coalesce();
    // What a program that Ctrl-C has brought out of its wait writes there is for no other rank.
    if (tensor.is_coalesced()) sum->own = sum->own.clone();
    sum->deadline = deadline_after(limit_of(options.timeout));
    const at::Tensor own = outline_of(sum->own);
    for (int rank = 0; rank < size_; ++rank) sum->outlines.push_back(at::empty_like(own));
    add_exchange(call, sum->outlines, Tensors(static_cast<std::size_t>(size_), own), sum->tag);
    sum->work = c10::make_intrusive<GradcubeWork>(rank_, OpType::ALLREDUCE, kTitle, Tensors{tensor},
                                                  Tensors{tensor}, std::vector<HeldMemory>(),
                                                  std::vector<Copy>(), nullptr, nullptr, -1);
    follow(sum, begin(call, options.timeout), &ProcessGroupGradcube::exchange_elements);
    return sum->work;
  });
  work->look_for_signals();
  return work;
}

// Goes on when this part of it has ended, on whichever thread ends that.
void ProcessGroupGradcube::follow(const SparseSumPointer& sum,
                                  const c10::intrusive_ptr<GradcubeWork>& part,
                                  void (ProcessGroupGradcube::*next)(const SparseSumPointer&)) {
  sum->work->follow(*part);
  const auto self = c10::intrusive_ptr<ProcessGroupGradcube>::reclaim_copy(this);
  part->getFuture()->addCallback([self, sum, next](c10::ivalue::Future& ended) {
    try {
      if (ended.hasError()) std::rethrow_exception(ended.exception_ptr());
      (*self.*next)(sum);
    } catch (const std::exception& error) {
      sum->work->end(error.what());
    }
  });
}

void ProcessGroupGradcube::exchange_elements(const SparseSumPointer& sum) {
  Call call{OpType::RECV, kTitle, {}, {}};  // the call was counted when it began
  const at::Tensor own_indices = sum->own.indices().contiguous();
  const at::Tensor own_values = sum->own.values().contiguous();
  const at::Tensor& mine = sum->outlines[rank_];
  for (int rank = 0; rank < size_; ++rank) {
    const at::Tensor& theirs = sum->outlines[rank];
    if (!theirs.slice(0, 1).equal(mine.slice(0, 1))) {
      throw std::runtime_error("rank " + std::to_string(rank) +
                               " gives a sparse tensor of another shape than rank " +
                               std::to_string(rank_) + ": expected the same of all");
    }
    const auto count = theirs[0].item<std::int64_t>();
    std::vector<std::int64_t> shape = own_values.sizes().vec();
    shape[0] = count;
    const bool is_own = rank == rank_;
    sum->indices.push_back(is_own ? own_indices
                                  : at::empty({own_indices.size(0), count}, own_indices.options()));
    sum->values.push_back(is_own ? own_values : at::empty(shape, own_values.options()));
    if (is_own) continue;
    add_receive(call, sum->indices.back(), rank, sum->tag);
    add_receive(call, sum->values.back(), rank, sum->tag);
    add_send(call, own_indices, rank, sum->tag);
    add_send(call, own_values, rank, sum->tag);
  }
  const auto left = std::chrono::duration_cast<Milliseconds>(
      std::max<Clock::duration>(sum->deadline - Clock::now(), Milliseconds(1)));
  follow(sum, begin(call, left), &ProcessGroupGradcube::add_elements);
}

void ProcessGroupGradcube::add_elements(const SparseSumPointer& sum) {
  const c10::InferenceMode as_the_result(sum->result.is_inference());
  const at::NoGradGuard as_values;
  const at::Tensor all =
      at::sparse_coo_tensor(at::cat(sum->indices, 1), at::cat(sum->values, 0), sum->result.sizes())
          .coalesce();
  // What it had lives on until the copy's lock is free: to let go of NumPy's memory asks for the
  // interpreter, whose lock may be held by who waits for the other one.
  const at::Tensor former_indices = sum->result._indices();
  const at::Tensor former_values = sum->result._values();
  sum->work->end_by([&sum, &all] { sum->result.copy_(all); });
}

}  // namespace gradcube::pytorch
