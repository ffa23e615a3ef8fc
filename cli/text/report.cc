#include "cli/text/report.h"

#include "cli/text/json_fields.h"
#include "cli/text/output.h"

namespace gradcube::cli {

using nlohmann::ordered_json;

namespace {

std::vector<Column> shown_columns(const std::vector<ReportColumn>& columns) {
  std::vector<Column> shown;
  for (const ReportColumn& column : columns) {
    if (column.title) shown.push_back({*column.title, column.align, column.unit, column.width});
  }
  return shown;
}

}  // namespace

namespace cell {

Cell count(std::uint64_t number) { return {grouped(number), number}; }
Cell bytes(double bytes) { return {human_bytes(bytes), bytes}; }
Cell rate(double bits_per_second) { return {human_rate(bits_per_second), bits_per_second}; }
Cell seconds(double seconds) { return {human_seconds(seconds), seconds}; }
Cell none() { return {"-", nullptr}; }
Cell told(ordered_json value) { return {"", std::move(value)}; }
Cell shown(std::string text) { return {std::move(text), nullptr}; }

}  // namespace cell

ReportTable::ReportTable(std::vector<ReportColumn> columns)
    : columns_(std::move(columns)), text_(shown_columns(columns_)) {}

void ReportTable::add(const std::vector<Cell>& cells, bool in_text) {
  std::vector<std::string> shown;
  ordered_json told = ordered_json::object();
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].title) shown.push_back(cells.at(i).text);
    if (!columns_[i].key.empty()) told[columns_[i].key] = cells.at(i).value;
  }
  if (in_text) text_.add_row(std::move(shown));
  json_.push_back(std::move(told));
}

void Report::line(std::string text) {
  parts_.push_back({.line = std::move(text) + '\n', .key = {}});
}

void Report::fact(std::string_view key, ordered_json value) {
  parts_.push_back({.line = {}, .key = std::string(key), .value = std::move(value)});
}

ReportTable& Report::table(std::string_view key, std::vector<ReportColumn> columns) {
  ReportTable& table = tables_.emplace_back(std::move(columns));
  parts_.push_back({.line = {}, .key = std::string(key), .table = &table});
  return table;
}

std::string Report::text() const {
  std::string text;
  for (const Part& part : parts_) text += part.table != nullptr ? part.table->text() : part.line;
  return text;
}

ordered_json Report::json() const {
  ordered_json report = ordered_json::object();
  for (const Part& part : parts_) {
    if (!part.key.empty())
      report[part.key] = part.table != nullptr ? part.table->json() : part.value;
  }
  return report;
}

void Report::write(bool as_json) const {
  write_output(as_json ? json_text(json()) + "\n" : text());
}

}  // namespace gradcube::cli
