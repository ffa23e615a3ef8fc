#include "dataplane/daemon/hub/hub_table.h"

#include <cstring>
#include <fmt/format.h>
#include <string>

#include "control/base/errors.h"
#include "control/plan/algorithms/cut_threads.h"
#include "trainer/shared_layout.h"

namespace gradcube::dataplane {

namespace {

static_assert(shared::kMostAggregators == control::kMostCutThreads, "each has a thread of a plan");

class Reader {
 public:
  Reader(std::string_view bytes, std::string_view where) : rest_(bytes), where_(where) {}

  template <typename T>
  T read() {
    T value{};
    const std::string_view bytes = take(sizeof value);
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string_view take(std::size_t bytes) {
    if (bytes > rest_.size()) refuse("it ends too early");
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  bool at_end() const { return rest_.empty(); }
  [[noreturn]] void refuse(const char* why) const {
    throw control::UsageError(
        fmt::format("{}: the table of its keys is malformed: {}", where_, why));
  }

 private:
  std::string_view rest_;
  std::string_view where_;
};

}  // namespace

HubTableContent read_hub_table(std::string_view bytes, std::string_view where) {
  Reader reader(bytes, where);
  const auto table = reader.read<shared::HubTable>();
  const std::string_view optimizer = reader.take(table.optimizer_bytes);
  HubTableContent content;
  content.chunk_bytes = table.chunk_bytes;
  if (table.aggregators > shared::kMostAggregators) reader.refuse("too many aggregators");
  for (std::uint32_t i = 0; i < table.aggregators; ++i) {
    content.aggregators.push_back(reader.read<std::uint32_t>());
  }
  if (table.staleness != shared::kSynchronous) {
    if (content.aggregators.empty()) reader.refuse("a staleness without an aggregator");
    content.staleness = table.staleness;
  }
  if (table.accumulates > 1 || table.reserved != 0) reader.refuse("a field that there is not");
  content.accumulates = table.accumulates != 0;
  if (content.accumulates && content.staleness.has_value()) {
    reader.refuse("an asynchronous hub that accumulates");
  }
  // What a key takes at least bounds how many there can be: no number is believed.
  for (std::uint32_t i = 0; i < table.keys; ++i) {
    const auto key = reader.read<shared::HubTableKey>();
    const std::string_view name = reader.take(key.name_bytes);
    if (!aggregation::is_data_type(key.dtype)) reader.refuse("a type that there is not");
    content.keys.push_back(
        {std::string(name), key.elements, static_cast<aggregation::DataType>(key.dtype)});
  }
  if (!reader.at_end()) reader.refuse("there is more behind its last key");
  content.keys = control::ordered_keys(std::move(content.keys), where);
  content.optimizers = control::parse_key_optimizers(optimizer, content.keys, where);
  return content;
}

}  // namespace gradcube::dataplane
