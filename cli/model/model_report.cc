#include "cli/model/model_report.h"

#include <fmt/format.h>

#include "cli/text/text_table.h"
#include "control/model/transfer_time.h"

namespace gradcube::cli {

using control::model::ModelLoad;
using control::model::ModelRow;
using nlohmann::ordered_json;

ordered_json model_json(const std::vector<ModelRow>& rows) {
  ordered_json list = ordered_json::array();
  for (const ModelRow& row : rows) {
    list.push_back({{"topology", row.topology},
                    {"algorithm", row.algorithm},
                    {"servers", row.servers},
                    {"seconds", row.seconds},
                    {"relative", row.relative},
                    {"source", row.source}});
  }
  return {{"rows", std::move(list)}};
}

std::string model_text(const std::vector<ModelRow>& rows, const ModelLoad& load) {
  TextTable table({{"topology", Align::left},
                   {"algorithm", Align::left},
                   {"servers"},
                   {"time"},
                   {"time/T_F"},
                   {"source", Align::left}});
  for (const ModelRow& row : rows) {
    table.add_row({row.topology, row.algorithm, grouped(row.servers), human_seconds(row.seconds),
                   fmt::format("{:.4g}", row.relative), row.source});
  }
  const std::string latency =
      load.latency_seconds > 0
          ? fmt::format(", {} for each message", human_seconds(load.latency_seconds))
          : "";
  return fmt::format(
      "# {} at {}{}: T_F, one transfer over one link, is {}\n{}", human_bytes(load.bytes),
      human_rate(load.bits_per_second), latency,
      human_seconds(control::model::transfer_seconds(load.bytes, load.bits_per_second)),
      table.text());
}

}  // namespace gradcube::cli
