#include "aggregation/element.h"

#include <array>

namespace gradcube::aggregation {
namespace {

constexpr std::array<std::string_view, kOperations> kOperationNames = {"sum", "average", "min",
                                                                       "max"};

constexpr std::string_view kUnknown = "?";

}  // namespace

std::string_view data_type_name(DataType type) noexcept { return element_type(type).name; }

std::string_view operation_name(Operation operation) noexcept {
  const auto index = static_cast<std::size_t>(operation);
  return index < kOperations ? kOperationNames[index] : kUnknown;
}

std::optional<DataType> parse_data_type(std::string_view name) noexcept {
  for (const DataType type : kPlainTypes) {
    if (data_type_name(type) == name) return type;
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
