// Tables for people: each column is as wide as its widest cell, and two spaces separate columns.
#ifndef GRADCUBE_CLI_TEXT_TEXT_TABLE_H_
#define GRADCUBE_CLI_TEXT_TEXT_TABLE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gradcube::cli {

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::right;
  std::string unit = "";  // in a second line of titles, if a column has one
  std::size_t width = 0;  // at least
};

class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns);

  // Cells beyond the columns are ignored, missing ones are empty.
  void add_row(std::vector<std::string> cells);

  bool empty() const { return rows_.empty(); }

  // Every line ends with a newline, without spaces before it.
  std::string text() const;
  // Behind an empty line and a line with its heading; empty where it has no rows.
  std::string text_below(std::string_view heading) const;
  std::string head() const;  // the titles alone
  std::string last() const;  // the last row alone

 private:
  std::string line(const std::vector<std::string>& cells) const;

  std::vector<Column> columns_;
  std::vector<std::size_t> widths_;  // of the columns, with what they have so far
  std::vector<std::vector<std::string>> rows_;
};

// 1234567 -> "1.23 MB", decimal; below 1000 "999 B".
std::string human_bytes(double bytes);
// The same, and the number where that is rounded: 10239 -> "10.2 KB (10,239 bytes)".
std::string exact_bytes(std::uint64_t bytes);

// 200000000 -> "200 Mbit/s".
std::string human_rate(double bits_per_second);

// 0.00123 -> "1.23 ms"; from a minute on "2 min 5 s", and from 10^15 s on "1e+21 s".
std::string human_seconds(double seconds);

// 1234567 -> "1,234,567".
std::string grouped(std::uint64_t number);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_TEXT_TEXT_TABLE_H_
