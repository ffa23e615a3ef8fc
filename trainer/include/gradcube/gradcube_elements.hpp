// gradcube_elements.hpp: the C++ types whose elements are added up, gathered and sent, and the
// dtypes that they are to the C ABI. gradcube.hpp includes it. Header only; C++20.
#ifndef GRADCUBE_ELEMENTS_HPP_
#define GRADCUBE_ELEMENTS_HPP_

#include <cstddef>
#include <cstdint>
#include <gradcube/gradcube.h>
#include <type_traits>

namespace gradcube {

// The bits of a 16-bit float; C++20 has no such types.
struct Float16 {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

namespace detail {

template <gradcube_dtype kDtype>
using Dtype = std::integral_constant<gradcube_dtype, kDtype>;

template <typename T>
struct DtypeOf;
template <>
struct DtypeOf<float> : Dtype<GRADCUBE_FLOAT32> {};
template <>
struct DtypeOf<double> : Dtype<GRADCUBE_FLOAT64> {};
template <>
struct DtypeOf<Float16> : Dtype<GRADCUBE_FLOAT16> {};
template <>
struct DtypeOf<BFloat16> : Dtype<GRADCUBE_BFLOAT16> {};
template <>
struct DtypeOf<std::int32_t> : Dtype<GRADCUBE_INT32> {};
template <>
struct DtypeOf<std::int64_t> : Dtype<GRADCUBE_INT64> {};
template <>
struct DtypeOf<std::int16_t> : Dtype<GRADCUBE_INT16> {};
template <>
struct DtypeOf<std::int8_t> : Dtype<GRADCUBE_INT8> {};
template <>
struct DtypeOf<std::uint8_t> : Dtype<GRADCUBE_UINT8> {};
template <>
struct DtypeOf<std::byte> : Dtype<GRADCUBE_BYTES> {};

}  // namespace detail

template <typename T>
concept Element = requires {
  detail::DtypeOf<T>::value;
};

// What can be added. std::byte can only be gathered and broadcast.
template <typename T>
concept Number = Element<T> && detail::DtypeOf<T>::value != GRADCUBE_BYTES;

}  // namespace gradcube

#endif  // GRADCUBE_ELEMENTS_HPP_
