#include "cli/text/report.h"

#include <gtest/gtest.h>

namespace gradcube::cli {
namespace {

using nlohmann::json;

TEST(ReportTable, MakesColumnsAsWideAsTheirWidestCell) {
  ReportTable table({{"name", "", Align::left}, {"n"}});
  EXPECT_EQ(table.text(), "");
  table.add({"a", "1,000"});
  table.add({"longest", "1"});
  EXPECT_EQ(table.text(),
            "name         n\n"
            "a        1,000\n"
            "longest      1\n");
}

TEST(Report, HasATableInTheTextAndAListInTheJson) {
  Report report;
  report.line("# two servers");
  report.fact("running", true);
  ReportTable& table = report.table("rows", {{"server", "server", Align::left},
                                             {"bytes", "bytes"},
                                             {"time", "seconds"},
                                             {"relative", ""},
                                             {{}, "level"}});
  table.add({"0,0", cell::count(1234), cell::seconds(0.0015), cell::shown("1.0"), cell::told(2)});
  table.add({"0,1", cell::count(7), cell::none(), cell::shown("-"), cell::told(nullptr)});
  EXPECT_EQ(report.text(),
            "# two servers\n"
            "server  bytes    time  relative\n"
            "0,0     1,234  1.5 ms       1.0\n"
            "0,1         7       -         -\n");
  EXPECT_EQ(json(report.json()), json::parse(R"({"running":true,"rows":[
                {"server":"0,0","bytes":1234,"seconds":0.0015,"level":2},
                {"server":"0,1","bytes":7,"seconds":null,"level":null}]})"));
}

TEST(Report, LeavesATableWithoutRowsOutOfTheText) {
  Report report;
  report.table("rows", {{"server", "server"}});
  report.line("nothing");
  EXPECT_EQ(report.text(), "nothing\n");
  EXPECT_EQ(json(report.json()), json::parse(R"({"rows":[]})"));
}

TEST(Report, ShowsRowsAsTheyComeBelowTitlesWithUnits) {
  ReportTable table({{"time", "seconds", Align::right, "(ms)", 6}, {"n", "n"}});
  EXPECT_EQ(table.head(), "  time  n\n  (ms)\n");
  table.add({Cell("1.5", 0.0015), cell::plain(3)});
  EXPECT_EQ(table.last(), "   1.5  3\n");
}

TEST(Report, HasADashWhereNothingIsKnown) {
  EXPECT_EQ(cell::known(std::optional<double>(0.5), cell::seconds).text, "500 ms");
  EXPECT_EQ(cell::known(std::optional<double>(), cell::seconds).text, "-");
  EXPECT_TRUE(cell::known(std::optional<double>(), cell::seconds).value.is_null());
}

}  // namespace
}  // namespace gradcube::cli
