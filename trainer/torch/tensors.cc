#include "trainer/torch/tensors.h"

#include <ATen/ATen.h>
#include <stdexcept>
#include <string>

#include "gradcube/gradcube.h"

namespace gradcube::pytorch {
namespace {

using Op = c10d::ReduceOp;

const char* name_of(Op::RedOpType op) {
  switch (op) {
    case Op::SUM:
      return "SUM";
    case Op::AVG:
      return "AVG";
    case Op::PRODUCT:
      return "PRODUCT";
    case Op::MIN:
      return "MIN";
    case Op::MAX:
      return "MAX";
    case Op::BAND:
      return "BAND";
    case Op::BOR:
      return "BOR";
    case Op::BXOR:
      return "BXOR";
    case Op::PREMUL_SUM:
      return "PREMUL_SUM";
    default:
      return "UNUSED";
  }
}

std::runtime_error unsupported(Op::RedOpType op, at::ScalarType type) {
  return std::runtime_error(std::string("gradcube does not support ReduceOp.") + name_of(op) +
                            " of " + c10::toString(type) +
                            ": expected SUM, AVG, MIN or MAX of Float, Double, Half, BFloat16, "
                            "Int or Long; SUM, MIN or MAX of Char, Byte or Bool; or SUM or AVG of "
                            "ComplexFloat or ComplexDouble");
}

int op_of(Op::RedOpType op, at::ScalarType type) {
  switch (op) {
    case Op::SUM:
      return GRADCUBE_SUM;
    case Op::AVG:
      return GRADCUBE_AVERAGE;
    case Op::MIN:
      return GRADCUBE_MIN;
    case Op::MAX:
      return GRADCUBE_MAX;
    default:
      throw unsupported(op, type);
  }
}

int dtype_of(at::ScalarType type, Op::RedOpType op) {
  switch (type) {
    case at::kFloat:
    case at::kComplexFloat:
      return GRADCUBE_FLOAT32;
    case at::kDouble:
    case at::kComplexDouble:
      return GRADCUBE_FLOAT64;
    case at::kHalf:
      return GRADCUBE_FLOAT16;
    case at::kBFloat16:
      return GRADCUBE_BFLOAT16;
    case at::kInt:
      return GRADCUBE_INT32;
    case at::kLong:
      return GRADCUBE_INT64;
    case at::kChar:
      return GRADCUBE_INT8;
    case at::kByte:
    case at::kBool:
      return GRADCUBE_UINT8;
    default:
      throw unsupported(op, type);
  }
}

}  // namespace

Elements elements_of(const at::Tensor& tensor, const Op& op) {
  const at::ScalarType type = tensor.scalar_type();
  Elements elements{dtype_of(type, op.op_), op_of(op.op_, type),
                    static_cast<std::size_t>(tensor.numel())};
  const bool is_small = type == at::kChar || type == at::kByte || type == at::kBool;
  if (is_small && elements.op == GRADCUBE_AVERAGE) throw unsupported(op.op_, type);
  if (type == at::kBool && elements.op == GRADCUBE_SUM) elements.op = GRADCUBE_MAX;
  if (tensor.is_complex()) {
    if (elements.op == GRADCUBE_MIN || elements.op == GRADCUBE_MAX) throw unsupported(op.op_, type);
    elements.count *= 2;
  }
  return elements;
}

void check_memory(const at::Tensor& tensor) {
  if (!tensor.defined()) throw std::runtime_error("a tensor is undefined");
  if (tensor.layout() != at::kStrided) {
    throw std::runtime_error("gradcube does not support sparse tensors: expected a dense one");
  }
  if (!tensor.device().is_cpu()) {
    throw std::runtime_error("gradcube does not support tensors on the device " +
                             tensor.device().str() + ": expected one on the CPU");
  }
}

const at::Tensor& only_one(const std::vector<at::Tensor>& tensors) {
  if (tensors.size() != 1) {
    throw std::runtime_error("gradcube takes one tensor at a time, and this call has " +
                             std::to_string(tensors.size()));
  }
  check_memory(tensors.front());
  return tensors.front();
}

const std::vector<at::Tensor>& only_one(const std::vector<std::vector<at::Tensor>>& lists) {
  if (lists.size() != 1) {
    throw std::runtime_error("gradcube takes one list of tensors at a time, and this call has " +
                             std::to_string(lists.size()));
  }
  return lists.front();
}

void check_list(const std::vector<at::Tensor>& list, const at::Tensor& tensor, int size) {
  if (list.size() != static_cast<std::size_t>(size)) {
    throw std::runtime_error("the list has " + std::to_string(list.size()) +
                             " tensors: expected one for each of the group's " +
                             std::to_string(size) + " ranks");
  }
  for (const at::Tensor& one : list) {
    check_memory(one);
    check_whole(one, tensor, 1);
  }
}

void check_whole(const at::Tensor& whole, const at::Tensor& part, int parts) {
  check_memory(whole);
  if (whole.scalar_type() == part.scalar_type() && whole.numel() == part.numel() * parts) return;
  throw std::runtime_error(std::string("a tensor has ") + std::to_string(whole.numel()) +
                           " elements of " + c10::toString(whole.scalar_type()) + ": expected " +
                           std::to_string(part.numel() * parts) + " of " +
                           c10::toString(part.scalar_type()));
}

bool is_plain(const at::Tensor& tensor) {
  return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

bool are_consecutive(const std::vector<at::Tensor>& tensors) {
  const auto* next = static_cast<const char*>(tensors.front().data_ptr());
  for (const at::Tensor& tensor : tensors) {
    const bool follows = tensor.data_ptr() == next && tensor.is_alias_of(tensors.front());
    if (!follows || !is_plain(tensor)) return false;
    next += tensor.nbytes();
  }
  return true;
}

at::Tensor joined(const std::vector<at::Tensor>& tensors, std::size_t alignment) {
  if (tensors.empty()) return at::Tensor();
  const at::Tensor& first = tensors.front();
  auto* const begin = static_cast<char*>(first.data_ptr());
  std::size_t end = 0;  // from `begin` on
  for (const at::Tensor& tensor : tensors) {
    const std::size_t place = (end + alignment - 1) / alignment * alignment;
    if (!is_plain(tensor) || tensor.scalar_type() != first.scalar_type() ||
        tensor.data_ptr() != begin + place) {
      return at::Tensor();
    }
    end = place + tensor.nbytes();
  }
  const auto elements = static_cast<std::int64_t>(end / first.element_size());
  return at::from_blob(
      begin, {elements}, [tensors](void* /*memory*/) {}, first.options().requires_grad(false));
}

}  // namespace gradcube::pytorch
