// What a command has found, told once: the text for people and the JSON for programs are both made
// of it.
//
// A report is a sequence of lines, which the text alone has, of facts, which the JSON alone has,
// and of tables, which both have: a list of objects in the JSON. The text follows the order in
// which they were added; a table without rows is not in it.
#ifndef GRADCUBE_CLI_TEXT_REPORT_H_
#define GRADCUBE_CLI_TEXT_REPORT_H_

#include <cstdint>
#include <deque>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/text/text_table.h"

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

// Without a key it is in the text alone, without a title in the JSON alone.
struct ReportColumn {
  std::optional<std::string> title;
  std::string key;
  Align align = Align::right;
  std::string unit = "";  // in a second line of titles, if a column has one
  std::size_t width = 0;  // at least
};

class ReportTable {
 public:
  explicit ReportTable(std::vector<ReportColumn> columns);

  // A cell for each column. in_text: whether the text has the row, too.
  void add(const std::vector<Cell>& cells, bool in_text = true);

  // Of the titles and of the last row alone, for rows that are shown as they come: their columns
  // are as wide as they say.
  std::string head() const { return text_.head(); }
  std::string last() const { return text_.last(); }

  std::string text() const { return text_.empty() ? "" : text_.text(); }
  const nlohmann::ordered_json& json() const { return json_; }

 private:
  std::vector<ReportColumn> columns_;
  TextTable text_;
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
