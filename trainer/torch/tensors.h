// What the process group takes of tensors: checked, and in the words of gradcube.h.
//
// All functions throw std::runtime_error for what Gradcube does not support, with a sentence that
// says what it takes instead.
#ifndef GRADCUBE_TRAINER_TORCH_TENSORS_H_
#define GRADCUBE_TRAINER_TORCH_TENSORS_H_

#include <ATen/core/Tensor.h>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <vector>

#include "trainer/torch/spans.h"

namespace gradcube::pytorch {

// How the elements of a tensor are combined.
struct Elements {
  int dtype = 0;
  int op = 0;
  std::size_t count = 0;
};

Elements elements_of(const at::Tensor& tensor, const c10d::ReduceOp& op);

// Whether the ranks combine such tensors themselves, each of them all: by PRODUCT, BAND, BOR and
// BXOR, which the job's collectives do not have.
bool is_combined_by_ranks(const at::Tensor& tensor, const c10d::ReduceOp& op);

// What a rank gives of this tensor to a PREMUL_SUM, which is a SUM of that.
at::Tensor premultiplied(const at::Tensor& tensor, const c10d::ReduceOp& op);

// To be done when requests have ended well: what did not work in place.
struct Copy {
  at::Tensor to;
  at::Tensor from;
  std::optional<c10d::ReduceOp::RedOpType> op = std::nullopt;  // of the rows of `from`
  std::optional<std::size_t> after = std::nullopt;  // the place of a request; none: after all
};

// The combination of all rows, one of each rank, in their order, by what is_combined_by_ranks().
at::Tensor combined(const at::Tensor& rows, c10d::ReduceOp::RedOpType op);

// The gradcube_dtype of this type. One that has none is refused: as bytes two such types could not
// be told apart, and quantized tensors have more than their bytes.
int dtype_of(at::ScalarType type);

// Of copies that are done in this order: none reads what one before it has written, nor what it
// writes itself, but for one of a tensor to itself.
void check_order(const std::vector<Copy>& copies);

// Whether one of these tensors may share a byte with one of those.
bool share_memory(const std::vector<at::Tensor>& these, const std::vector<at::Tensor>& those);

// Dense, on the CPU or a device that PyTorch has a guard for, and of a type that has a number.
void check_memory(const at::Tensor& tensor);

std::runtime_error unsupported_device(const at::Device& device);

// The device of all tensors of these lists; none: they have no tensor.
std::optional<at::Device> common_device(const std::vector<at::Tensor>& these,
                                        const std::vector<at::Tensor>& those);

// Of a call that takes a list for the devices of a process, of which a CPU process has one.
const at::Tensor& only_one(const std::vector<at::Tensor>& tensors);
const std::vector<at::Tensor>& only_one(const std::vector<std::vector<at::Tensor>>& lists);

// `list` has one tensor for each rank, each like `tensor`.
void check_list(const std::vector<at::Tensor>& list, const at::Tensor& tensor, int size);

// As many of these as of those.
void check_pairs(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& inputs);

// Of the type and of so many times the elements.
void check_whole(const at::Tensor& whole, const at::Tensor& part, int parts);

// Whether the tensor's elements lie one after the other in their order, as they are meant.
bool is_dense(const at::Tensor& tensor);

// Whether they do so in the memory of the CPU.
bool is_plain(const at::Tensor& tensor);

// Whether the tensors, all alike, lie one after the other in one memory.
bool are_consecutive(const std::vector<at::Tensor>& tensors);

// One tensor over the memory of several and what is between them, if they are of one type and each
// begins at the first multiple of `alignment` bytes after the one before it. Else undefined.
// Whether all lie in one block the caller has to know.
at::Tensor joined(const std::vector<at::Tensor>& tensors, std::size_t alignment);

}  // namespace gradcube::pytorch

#endif  // GRADCUBE_TRAINER_TORCH_TENSORS_H_
