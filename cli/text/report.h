// What a command has found, told once: the text for people and the JSON for programs are both made
// of it.
//
// A report is a sequence of lines, which the text alone has, of facts, which the JSON alone has,
// and of tables, which both have: a list of objects in the JSON. The text follows the order in
// which they were added; a table without rows is not in it.
#ifndef GRADCUBE_CLI_TEXT_REPORT_H_
#define GRADCUBE_CLI_TEXT_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gradcube::cli {

// One value, as people read it and as programs do.
struct Cell {
  std::string text;
  nlohmann::ordered_json value;

  Cell(std::string shown, nlohmann::ordered_json told)
      : text(std::move(shown)), value(std::move(told)) {}
  Cell(std::string_view both) : text(both), value(both) {}
  Cell(const std::string& both) : Cell(std::string_view(both)) {}
  Cell(const char* both) : Cell(std::string_view(both)) {}
};

namespace cell {

Cell count(std::uint64_t number);         // "1,234"
Cell bytes(double bytes);                 // "1.23 MB"
Cell rate(double bits_per_second);        // "200 Mbit/s"
Cell seconds(double seconds);             // "1.23 ms"
Cell none();                              // "-" and null
Cell told(nlohmann::ordered_json value);  // of a column of the JSON alone
Cell shown(std::string text);             // of a column of the text alone

template <typename T>
Cell plain(const T& value, fmt::format_string<const T&> format = "{}") {
  return {fmt::format(format, value), value};
}

// make(*value), or none().
template <typename T, typename Make>
Cell known(const std::optional<T>& value, const Make& make) {
  return value ? Cell(make(*value)) : none();
}

}  // namespace cell

enum class Align { left, right };

// Without a key it is in the text alone, without a title in the JSON alone.
struct ReportColumn {
  std::optional<std::string> title;
  std::string key = "";
  Align align = Align::right;
  std::string unit = "";  // in a second line of titles, if a column has one
  std::size_t width = 0;  // at least
};

// In the text each column is as wide as its widest cell, and two spaces separate columns.
class ReportTable {
 public:
  explicit ReportTable(std::vector<ReportColumn> columns);

  // A cell for each column. in_text: whether the text has the row, too.
  void add(const std::vector<Cell>& cells, bool in_text = true);

  // The titles and the last row alone, for rows that are shown as they come: their columns are as
  // wide as they say.
  std::string head() const;
  std::string last() const { return line(rows_.back()); }

  bool empty() const { return rows_.empty(); }
  // Every line ends with a newline, without spaces before it. Empty where it has no rows.
  std::string text() const;
  // Behind an empty line and a line with its heading, if it has rows.
  std::string text_below(std::string_view heading) const;
  const nlohmann::ordered_json& json() const { return json_; }

 private:
  std::string line(const std::vector<std::string>& cells) const;

  std::vector<ReportColumn> columns_;
  std::vector<std::size_t> widths_;             // of the columns, with what they have so far
  std::vector<std::vector<std::string>> rows_;  // with a text for each column
  nlohmann::ordered_json json_ = nlohmann::ordered_json::array();
};

class Report {
 public:
  void line(std::string text);  // without its newline
  void fact(std::string_view key, nlohmann::ordered_json value);
  // Lives as long as the report.
  ReportTable& table(std::string_view key, std::vector<ReportColumn> columns);

  std::string text() const;
  nlohmann::ordered_json json() const;

  // To standard output (output.h).
  void write(bool as_json) const;

 private:
  struct Part {
    std::string line;
    std::string key;
    ReportTable* table = nullptr;
    nlohmann::ordered_json value{};
  };

  std::vector<Part> parts_;
  std::deque<ReportTable> tables_;
};

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_TEXT_REPORT_H_
