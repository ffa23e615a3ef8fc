#include "cli/text/report.h"

#include <algorithm>

#include "cli/text/json_fields.h"
#include "cli/text/output.h"
#include "cli/text/units_text.h"

namespace gradcube::cli {

using nlohmann::ordered_json;

namespace cell {

Cell count(std::uint64_t number) { return {grouped(number), number}; }
Cell bytes(double bytes) { return {human_bytes(bytes), bytes}; }
Cell rate(double bits_per_second) { return {human_rate(bits_per_second), bits_per_second}; }
Cell seconds(double seconds) { return {human_seconds(seconds), seconds}; }
Cell none() { return {"-", nullptr}; }
Cell told(ordered_json value) { return {"", std::move(value)}; }
Cell shown(std::string text) { return {std::move(text), nullptr}; }

}  // namespace cell

ReportTable::ReportTable(std::vector<ReportColumn> columns) : columns_(std::move(columns)) {
  for (const ReportColumn& column : columns_) {
    widths_.push_back(
        std::max({column.width, column.title.value_or("").size(), column.unit.size()}));
  }
}

void ReportTable::add(const std::vector<Cell>& cells, bool in_text) {
  std::vector<std::string> shown;
  ordered_json told = ordered_json::object();
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!columns_[i].key.empty()) told[columns_[i].key] = cells.at(i).value;
    shown.push_back(cells.at(i).text);
  }
  json_.push_back(std::move(told));
  if (!in_text) return;
  for (std::size_t i = 0; i < shown.size(); ++i) widths_[i] = std::max(widths_[i], shown[i].size());
  rows_.push_back(std::move(shown));
}

std::string ReportTable::line(const std::vector<std::string>& cells) const {
  std::string line;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!columns_[i].title) continue;
    line += columns_[i].align == Align::right ? fmt::format("{:>{}}  ", cells[i], widths_[i])
                                              : fmt::format("{:<{}}  ", cells[i], widths_[i]);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

std::string ReportTable::head() const {
  std::vector<std::string> titles;
  std::vector<std::string> units;
  for (const ReportColumn& column : columns_) {
    titles.push_back(column.title.value_or(""));
    units.push_back(column.unit);
  }
  const bool has_units = std::any_of(units.begin(), units.end(),
                                     [](const std::string& unit) { return !unit.empty(); });
  return line(titles) + (has_units ? line(units) : "");
}

std::string ReportTable::text() const {
  if (empty()) return "";
  std::string text = head();
  for (const auto& row : rows_) text += line(row);
  return text;
}

std::string ReportTable::text_below(std::string_view heading) const {
  return empty() ? "" : fmt::format("\n{}\n{}", heading, text());
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
