// What differs between the versions of PyTorch, from 1.13 on. No other file asks for the version.
//
// A group. In PyTorch 1 a process group is one backend, of a class derived from ProcessGroup. From
// 2.0 on a process group has a backend for each type of device, derived from Backend. Both have the
// same calls. Ours declares a call that only later versions have without `override`: there PyTorch
// calls it, and elsewhere nobody does.
//
// An allocator of tensors' memory. allocate() was const once, and later not: the class is asked.
//
// PREMUL_SUM. Its factor is a number or a tensor, of which PyTorch 1 has a list.
//
// A split of a group. Later versions make a part of a group by its backend's split(), whose options
// name the part.
#ifndef GRADCUBE_TRAINER_TORCH_COMPATIBILITY_H_
#define GRADCUBE_TRAINER_TORCH_COMPATIBILITY_H_

#include <ATen/ATen.h>
#include <c10/core/Allocator.h>
#include <cstddef>
#include <cstring>
#include <string>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/version.h>
#include <type_traits>
#include <utility>

#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#else
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#endif

namespace gradcube::pytorch {

// The base of a backend, and its name in torch._C._distributed_c10d.
#if TORCH_VERSION_MAJOR >= 2
using GroupBase = c10d::Backend;
inline constexpr const char* kGroupBase = "Backend";
#else
using GroupBase = c10d::ProcessGroup;
inline constexpr const char* kGroupBase = "ProcessGroup";
#endif

// The base of an allocator of memory of the CPU, which only has to say where the memory is.
template <typename Base, typename = void>
class AllocatorOf : public Base {
 public:
  c10::DataPtr allocate(std::size_t bytes) final { return take(bytes); }
  void copy_data(void* to, const void* from, std::size_t bytes) const {
    std::memcpy(to, from, bytes);
  }

 protected:
  virtual c10::DataPtr take(std::size_t bytes) const = 0;
};

template <typename Base>
class AllocatorOf<Base, std::void_t<decltype(std::declval<const Base&>().allocate(1))>>
    : public Base {
 public:
  c10::DataPtr allocate(std::size_t bytes) const final { return take(bytes); }
  void copy_data(void* to, const void* from, std::size_t bytes) const {
    std::memcpy(to, from, bytes);
  }

 protected:
  virtual c10::DataPtr take(std::size_t bytes) const = 0;
};

using AllocatorBase = AllocatorOf<c10::Allocator>;

// What this rank's tensors are multiplied with, as a tensor of one element.
inline at::Tensor factor_of(const c10d::ReduceOp& premul_sum) {
  const auto& factor = static_cast<const c10d::NCCLPreMulSumSupplement&>(*premul_sum.supplement_);
#if TORCH_VERSION_MAJOR >= 2
  const at::Tensor& given = factor.tensor_factor;
#else
  const at::Tensor given = factor.tensor_factors.empty() ? at::Tensor() : factor.tensor_factors[0];
#endif
  return given.defined() ? given : at::scalar_tensor(factor.double_factor, at::kDouble);
}

template <typename Base, typename = void>
inline constexpr bool kHasSplit = false;
template <typename Base>
inline constexpr bool kHasSplit<Base, std::void_t<decltype(&Base::split)>> = true;

using GroupOptions = GroupBase::Options;

template <typename Options>
std::string name_in(const Options& options) {
  if constexpr (kHasSplit<GroupBase>) return options.group_name;
  return "";
}

}  // namespace gradcube::pytorch

#endif  // GRADCUBE_TRAINER_TORCH_COMPATIBILITY_H_
