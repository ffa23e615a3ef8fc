#include "trainer/torch/tensors.h"

#include <ATen/ATen.h>
#include <algorithm>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "trainer/torch/compatibility.h"

#include "gradcube/gradcube.h"

namespace gradcube::pytorch {
namespace {

using Op = c10d::ReduceOp;

constexpr int kNotTheJobs = -1;

struct Operation {
  Op::RedOpType op;
  const char* name;
  int of_job;  // the gradcube_op, or kNotTheJobs
  // Where ranks combine tensors themselves: one with the next one.
  at::Tensor& (at::Tensor::*combine)(const at::Tensor& next) const;
};

constexpr Operation kOperations[] = {{Op::SUM, "SUM", GRADCUBE_SUM, nullptr},
                                     {Op::AVG, "AVG", GRADCUBE_AVERAGE, nullptr},
                                     {Op::MIN, "MIN", GRADCUBE_MIN, nullptr},
                                     {Op::MAX, "MAX", GRADCUBE_MAX, nullptr},
                                     {Op::PRODUCT, "PRODUCT", kNotTheJobs, &at::Tensor::mul_},
                                     {Op::BAND, "BAND", kNotTheJobs, &at::Tensor::bitwise_and_},
                                     {Op::BOR, "BOR", kNotTheJobs, &at::Tensor::bitwise_or_},
                                     {Op::BXOR, "BXOR", kNotTheJobs, &at::Tensor::bitwise_xor_},
                                     {Op::PREMUL_SUM, "PREMUL_SUM", kNotTheJobs, nullptr},
                                     {Op::UNUSED, "UNUSED", kNotTheJobs, nullptr}};

const Operation& operation_of(Op::RedOpType op) {
  const auto* const found = std::find_if(std::begin(kOperations), std::end(kOperations) - 1,
                                         [op](const Operation& each) { return each.op == op; });
  return *found;  // the last one for what PyTorch does not name
}

std::runtime_error unsupported(Op::RedOpType op, at::ScalarType type) {
  return std::runtime_error(std::string("gradcube does not support ReduceOp.") +
                            operation_of(op).name + " of " + c10::toString(type) +
                            ": expected SUM, AVG, MIN or MAX of Float, Double, Half, BFloat16, "
                            "Int or Long; SUM, MIN or MAX of Char, Byte, Bool or Short; SUM or AVG "
                            "of ComplexFloat or ComplexDouble; PRODUCT; or BAND, BOR or BXOR of "
                            "integers or Bool");
}

Span whole_extent_of(const std::vector<at::Tensor>& tensors) {
  const std::less<const char*> before;
  Span whole;
  const char* end = nullptr;
  for (const at::Tensor& tensor : tensors) {
    const Span one = extent_of(tensor);
    if (one.bytes == 0) continue;
    if (end == nullptr || before(one.begin, whole.begin)) whole.begin = one.begin;
    end = std::max(end, one.begin + one.bytes, before);
  }
  whole.bytes = static_cast<std::size_t>(end - whole.begin);
  return whole;
}

}  // namespace

// By PyTorch's names, of which later versions have more.
int dtype_of(at::ScalarType type) {
  struct Name {
    std::string_view name;
    int dtype;
  };
  constexpr Name kNames[] = {{"Float", GRADCUBE_FLOAT32},
                             {"Double", GRADCUBE_FLOAT64},
                             {"Half", GRADCUBE_FLOAT16},
                             {"BFloat16", GRADCUBE_BFLOAT16},
                             {"Int", GRADCUBE_INT32},
                             {"Long", GRADCUBE_INT64},
                             {"Char", GRADCUBE_INT8},
                             {"Byte", GRADCUBE_UINT8},
                             {"Bool", GRADCUBE_BOOL},
                             {"Short", GRADCUBE_INT16},
                             {"UInt16", GRADCUBE_UINT16},
                             {"UInt32", GRADCUBE_UINT32},
                             {"UInt64", GRADCUBE_UINT64},
                             {"ComplexHalf", GRADCUBE_COMPLEX32},
                             {"ComplexFloat", GRADCUBE_COMPLEX64},
                             {"ComplexDouble", GRADCUBE_COMPLEX128},
                             {"Float8_e4m3fn", GRADCUBE_FLOAT8_E4M3FN},
                             {"Float8_e4m3fnuz", GRADCUBE_FLOAT8_E4M3FNUZ},
                             {"Float8_e5m2", GRADCUBE_FLOAT8_E5M2},
                             {"Float8_e5m2fnuz", GRADCUBE_FLOAT8_E5M2FNUZ}};
  const std::string_view name = c10::toString(type);
  const auto found = std::find_if(std::begin(kNames), std::end(kNames),
                                  [name](const Name& one) { return one.name == name; });
  if (found == std::end(kNames)) {
    throw std::runtime_error("gradcube does not support tensors of " + std::string(name) +
                             ": expected integers, floats, complex numbers or bool, such as "
                             "int_repr() of a quantized one, or view(torch.uint8)");
  }
  return found->dtype;
}

void check_order(const std::vector<Copy>& copies) {
  for (std::size_t later = 0; later < copies.size(); ++later) {
    const Copy& copy = copies[later];
    const Span read = extent_of(copy.from);
    // PyTorch copies nothing to itself by other strides, also where they are those of one element.
    const bool are_the_same = copy.to.data_ptr() == read.begin && copy.to.is_same_size(copy.from) &&
                              copy.to.strides() == copy.from.strides();
    if (!are_the_same && overlap(extent_of(copy.to), read)) throw shared_memory();
    for (std::size_t i = 0; i < later; ++i) {
      if (overlap(extent_of(copies[i].to), read)) throw shared_memory();
    }
  }
}

bool share_memory(const std::vector<at::Tensor>& these, const std::vector<at::Tensor>& those) {
  // As a rule the two lists lie apart as a whole.
  if (!overlap(whole_extent_of(these), whole_extent_of(those))) return false;
  return std::any_of(these.begin(), these.end(), [&those](const at::Tensor& one) {
    const Span extent = extent_of(one);
    return std::any_of(those.begin(), those.end(), [&extent](const at::Tensor& other) {
      return overlap(extent, extent_of(other));
    });
  });
}

Elements elements_of(const at::Tensor& tensor, const Op& op) {
  const at::ScalarType type = tensor.scalar_type();
  const Elements elements{dtype_of(type), operation_of(op.op_).of_job,
                          static_cast<std::size_t>(tensor.numel())};
  const bool is_small =
      type == at::kChar || type == at::kByte || type == at::kShort || type == at::kBool;
  const bool is_extreme = elements.op == GRADCUBE_MIN || elements.op == GRADCUBE_MAX;
  const bool is_known = elements.dtype < GRADCUBE_BYTES || type == at::kBool ||
                        type == at::kShort || type == at::kComplexFloat ||
                        type == at::kComplexDouble;
  if (elements.op == kNotTheJobs || !is_known || (is_small && elements.op == GRADCUBE_AVERAGE) ||
      (tensor.is_complex() && is_extreme)) {
    throw unsupported(op.op_, type);
  }
  return elements;
}

bool is_combined_by_ranks(const at::Tensor& tensor, const Op& op) {
  if (operation_of(op.op_).combine == nullptr) return false;
  return op.op_ == Op::PRODUCT || at::isIntegralType(tensor.scalar_type(), true);
}

at::Tensor premultiplied(const at::Tensor& tensor, const Op& op) {
  const at::ScalarType type = tensor.scalar_type();
  const at::Tensor given = factor_of(op);
  if (given.numel() != 1) {
    throw std::runtime_error("a PREMUL_SUM has a factor of " + std::to_string(given.numel()) +
                             " elements: expected one number");
  }
  const at::Tensor factor = given.reshape({}).to(tensor.device());
  if (!at::isIntegralType(type, true)) return (tensor * factor).to(type);
  const at::Tensor numbers =
      tensor.to(at::kLong);  // a product by a fraction is rounded as a double
  const at::Tensor whole = factor.to(at::kLong);
  if (whole.to(at::kDouble).equal(factor.to(at::kDouble))) return (numbers * whole).to(type);
  return (numbers.to(at::kDouble) * factor).to(type);
}

at::Tensor combined(const at::Tensor& rows, Op::RedOpType op) {
  at::Tensor result = rows.select(0, 0).clone();
  for (std::int64_t row = 1; row < rows.size(0); ++row) {
    (result.*operation_of(op).combine)(rows.select(0, row));
  }
  return result;
}

std::runtime_error unsupported_device(const at::Device& device) {
  return std::runtime_error("gradcube does not support tensors on the device " + device.str() +
                            ": expected one on the CPU, or on a device with streams, such as CUDA");
}

std::optional<at::Device> common_device(const std::vector<at::Tensor>& these,
                                        const std::vector<at::Tensor>& those) {
  std::optional<at::Device> device;
  for (const std::vector<at::Tensor>* list : {&these, &those}) {
    for (const at::Tensor& tensor : *list) {
      if (device.value_or(tensor.device()) != tensor.device()) {
        throw std::runtime_error("a call has tensors on " + device->str() + " and on " +
                                 tensor.device().str() + ": expected one device for all");
      }
      device = tensor.device();
    }
  }
  return device;
}

void check_memory(const at::Tensor& tensor) {
  if (!tensor.defined()) throw std::runtime_error("a tensor is undefined");
  if (tensor.layout() != at::kStrided) {
    throw std::runtime_error(
        "gradcube does not support sparse tensors but for all_reduce: expected a dense one");
  }
  const at::DeviceType place = tensor.device().type();
  if (place != at::kCPU && (place == at::kMeta || !c10::impl::hasDeviceGuardImpl(place))) {
    throw unsupported_device(tensor.device());
  }
  dtype_of(tensor.scalar_type());
  if (!tensor.has_storage()) throw std::runtime_error("a tensor has no storage of its own");
  // PyTorch gives a tensor whose storage it cannot resize its new shape all the same.
  const Span extent = extent_of(tensor);
  const auto* const memory = static_cast<const char*>(tensor.storage().data());
  const bool has_all =
      memory != nullptr && extent.begin + extent.bytes <= memory + tensor.storage().nbytes();
  if (extent.bytes != 0 && !has_all) {
    throw std::runtime_error(
        "a tensor is longer than its storage: expected memory for all of its elements");
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

void check_pairs(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& inputs) {
  if (outputs.size() == inputs.size()) return;
  throw std::runtime_error("a call has " + std::to_string(inputs.size()) + " inputs and " +
                           std::to_string(outputs.size()) + " outputs: expected the same number");
}

void check_whole(const at::Tensor& whole, const at::Tensor& part, int parts) {
  check_memory(whole);
  if (whole.scalar_type() == part.scalar_type() && whole.numel() == part.numel() * parts) return;
  throw std::runtime_error(std::string("a tensor has ") + std::to_string(whole.numel()) +
                           " elements of " + c10::toString(whole.scalar_type()) + ": expected " +
                           std::to_string(part.numel() * parts) + " of " +
                           c10::toString(part.scalar_type()));
}

bool is_dense(const at::Tensor& tensor) {
  return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

bool is_plain(const at::Tensor& tensor) { return tensor.device().is_cpu() && is_dense(tensor); }

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
