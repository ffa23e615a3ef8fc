#include "aggregation/element.h"

#include <array>

namespace gradcube::aggregation {
namespace {

constexpr std::array<std::string_view, kDataTypes> kDataTypeNames = {
    "float32", "float64", "float16", "bfloat16", "int32", "int64", "int8", "uint8", "bytes"};

constexpr std::array<std::string_view, kOperations> kOperationNames = {"sum", "average", "min",
                                                                       "max"};

constexpr std::string_view kUnknown = "?";

}  // namespace

std::string_view data_type_name(DataType type) noexcept {
  const auto index = static_cast<std::size_t>(type);
  if (index < kDataTypes) return kDataTypeNames[index];
  return is_data_type(index) ? kCopiedTypes[index - kFirstCopiedType].name : kUnknown;
}

std::string_view operation_name(Operation operation) noexcept {
  const auto index = static_cast<std::size_t>(operation);
  return index < kOperations ? kOperationNames[index] : kUnknown;
}

std::optional<DataType> parse_data_type(std::string_view name) noexcept {
  for (std::size_t index = 0; index < kDataTypes; ++index) {
    if (kDataTypeNames[index] == name) return static_cast<DataType>(index);
  }
  return std::nullopt;
}

std::optional<Operation> parse_operation(std::string_view name) noexcept {
  for (std::size_t index = 0; index < kOperations; ++index) {
    if (kOperationNames[index] == name) return static_cast<Operation>(index);
  }
  return std::nullopt;
}

}  // namespace gradcube::aggregation
