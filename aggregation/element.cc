#include "aggregation/element.h"

#include <array>

namespace gradcube::aggregation {
namespace {

struct DataTypeRow {
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array<DataTypeRow, kDataTypes> kDataTypeRows = {{
    {"float32", 4},
    {"float64", 8},
    {"float16", 2},
    {"bfloat16", 2},
    {"int32", 4},
    {"int64", 8},
}};

constexpr std::array<std::string_view, kOperations> kOperationNames = {"sum", "average", "min",
                                                                       "max"};

constexpr std::string_view kUnknown = "?";

}  // namespace

std::size_t element_bytes(DataType type) noexcept {
  const auto index = static_cast<std::size_t>(type);
  return index < kDataTypes ? kDataTypeRows[index].bytes : 0;
}

std::string_view data_type_name(DataType type) noexcept {
  const auto index = static_cast<std::size_t>(type);
  return index < kDataTypes ? kDataTypeRows[index].name : kUnknown;
}

std::string_view operation_name(Operation operation) noexcept {
  const auto index = static_cast<std::size_t>(operation);
  return index < kOperations ? kOperationNames[index] : kUnknown;
}

std::optional<DataType> parse_data_type(std::string_view name) noexcept {
  for (std::size_t index = 0; index < kDataTypes; ++index) {
    if (kDataTypeRows[index].name == name) return static_cast<DataType>(index);
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
