// The numbers of element types and operations that code names stand in several headers. Here the
// compiler holds them against each other. numbers_test.py does so for all types and the Python
// package.

#include <cstdint>

#include "aggregation/element.h"
#include "trainer/shared_layout.h"
#include "trainer/src/base/elements.h"

#include "gradcube/gradcube.h"
#include "gradcube/gradcube.hpp"

namespace gradcube::trainer {
namespace {

using aggregation::DataType;
using aggregation::Operation;

constexpr bool is_same(DataType type, int dtype) { return static_cast<int>(type) == dtype; }

static_assert(is_same(DataType::float32, GRADCUBE_FLOAT32));
static_assert(is_same(DataType::float64, GRADCUBE_FLOAT64));
static_assert(is_same(DataType::float16, GRADCUBE_FLOAT16));
static_assert(is_same(DataType::bfloat16, GRADCUBE_BFLOAT16));
static_assert(is_same(DataType::int32, GRADCUBE_INT32));
static_assert(is_same(DataType::int64, GRADCUBE_INT64));
static_assert(is_same(DataType::int8, GRADCUBE_INT8));
static_assert(is_same(DataType::uint8, GRADCUBE_UINT8));
static_assert(is_same(DataType::int16, GRADCUBE_INT16));
static_assert(is_same(DataType::bytes, GRADCUBE_BYTES));
static_assert(static_cast<int>(aggregation::kTruth) == GRADCUBE_BOOL &&
              static_cast<int>(aggregation::kComplex64) == GRADCUBE_COMPLEX64 &&
              static_cast<int>(aggregation::kComplex128) == GRADCUBE_COMPLEX128);
static_assert(is_combined(GRADCUBE_COMPLEX64, GRADCUBE_AVERAGE) &&
              !is_combined(GRADCUBE_COMPLEX64, GRADCUBE_MAX) &&
              is_combined(GRADCUBE_BOOL, GRADCUBE_MAX) &&
              !is_combined(GRADCUBE_BOOL, GRADCUBE_AVERAGE) &&
              !is_combined(GRADCUBE_UINT16, GRADCUBE_SUM) &&
              is_combined(GRADCUBE_INT16, GRADCUBE_SUM) &&
              !is_combined(GRADCUBE_INT16, GRADCUBE_AVERAGE) &&
              !is_combined(GRADCUBE_BYTES, GRADCUBE_SUM));
static_assert(GRADCUBE_BOOL == aggregation::kFirstWideNumber &&
              element_size(GRADCUBE_FLOAT8_E5M2FNUZ + 1) == 0 && element_size(255) == 0);
static_assert(element_size(GRADCUBE_BYTES) == 1 && element_size(GRADCUBE_BYTES + 1) == 0 &&
              element_size(-1) == 0);

static_assert(static_cast<int>(Operation::sum) == GRADCUBE_SUM);
static_assert(static_cast<int>(Operation::average) == GRADCUBE_AVERAGE);
static_assert(static_cast<int>(Operation::min) == GRADCUBE_MIN);
static_assert(static_cast<int>(Operation::max) == GRADCUBE_MAX);
static_assert(is_op(static_cast<int>(aggregation::kOperations) - 1) &&
              !is_op(static_cast<int>(aggregation::kOperations)) && !is_op(-1));

template <typename T>
constexpr bool has_size_of_its_dtype() {
  return sizeof(T) == element_size(gradcube::detail::DtypeOf<T>::value);
}
static_assert(has_size_of_its_dtype<float>() && has_size_of_its_dtype<double>());
static_assert(has_size_of_its_dtype<Float16>() && has_size_of_its_dtype<BFloat16>());
static_assert(has_size_of_its_dtype<std::int32_t>() && has_size_of_its_dtype<std::int64_t>());
static_assert(has_size_of_its_dtype<std::int8_t>() && has_size_of_its_dtype<std::uint8_t>());
static_assert(has_size_of_its_dtype<std::byte>());
static_assert(Number<float> && Number<std::uint8_t> && Element<std::byte> && !Number<std::byte>);
static_assert(static_cast<int>(Op::sum) == GRADCUBE_SUM &&
              static_cast<int>(Op::max) == GRADCUBE_MAX);

static_assert(static_cast<int>(shared::CollectiveKind::all_reduce) == GRADCUBE_ALL_REDUCE);
static_assert(static_cast<int>(shared::CollectiveKind::reduce_scatter) == GRADCUBE_REDUCE_SCATTER);
static_assert(static_cast<int>(shared::CollectiveKind::all_gather) == GRADCUBE_ALL_GATHER);
static_assert(static_cast<int>(shared::CollectiveKind::broadcast) == GRADCUBE_BROADCAST);
static_assert(static_cast<int>(shared::CollectiveKind::reduce) == GRADCUBE_REDUCE);
static_assert(static_cast<int>(shared::CollectiveKind::barrier) == GRADCUBE_BARRIER);
static_assert(shared::kCollectiveKinds == GRADCUBE_BARRIER + 1);

}  // namespace
}  // namespace gradcube::trainer
