#include "control/base/units.h"

#include <gtest/gtest.h>
#include <limits>

#include "control/base/errors.h"
#include "tests/unit/control/message.h"

namespace gradcube::control {
namespace {

TEST(Units, ReadsRatesWithTheirUnit) {
  EXPECT_EQ(parse_rate("200mbit", "--rate"), 200'000'000u);
  EXPECT_EQ(parse_rate("1gbit", "--rate"), 1'000'000'000u);
  EXPECT_EQ(parse_rate("2.5gbit", "--rate"), 2'500'000'000u);
  EXPECT_EQ(parse_rate("64000kbit", "--rate"), 64'000'000u);
  EXPECT_EQ(parse_rate("10Gbit", "--rate"), 10'000'000'000u);
}

TEST(Units, RefusesARateWithoutAUnit) {
  EXPECT_EQ(message_of<UsageError>([] { parse_rate("200", "--rate"); }),
            "--rate \"200\": the unit is missing; expected a number and its unit bit, kbit, "
            "mbit, gbit or tbit (bits per second), 1mbit to 10tbit, for example 200mbit");
}

TEST(Units, NamesOneLeastRateAndAcceptsIt) {
  EXPECT_EQ(parse_rate(format_rate(kLeastRate), "--rate"), kLeastRate);
  EXPECT_EQ(parse_rate(format_rate(kMostRate), "--rate"), kMostRate);
  for (const char* text : {"999kbit", "64kbit", "10.1tbit"}) {
    const std::string message = message_of<UsageError>([&] { parse_rate(text, "--rate"); });
    EXPECT_NE(message.find("1mbit to 10tbit"), std::string::npos) << message;
    EXPECT_EQ(message.find("1kbit"), std::string::npos) << message;
  }
}

TEST(Units, RefusesTextsThatAreNotRates) {
  for (const char* text : {"", "mbit", "-1mbit", "1.2.3mbit", ".5gbit", "5.gbit", "0mbit",
                           "1e3mbit", "200 mbit", "200mbps", "nan", "999999999tbit", "0x10mbit"}) {
    EXPECT_THROW(parse_rate(text, "--rate"), UsageError) << text;
  }
}

TEST(Units, ReadsSizesInDecimal) {
  EXPECT_EQ(parse_size("0", "--sizes"), 0u);
  EXPECT_EQ(parse_size("4096", "--sizes"), 4096u);
  EXPECT_EQ(parse_size("1K", "--sizes"), 1000u);
  EXPECT_EQ(parse_size("64k", "--sizes"), 64000u);
  EXPECT_EQ(parse_size("128KB", "--sizes"), 128000u);
  EXPECT_EQ(parse_size("12.5M", "--sizes"), 12'500'000u);
  EXPECT_EQ(parse_size("97M", "--sizes"), 97'000'000u);
  EXPECT_EQ(parse_size("1G", "--sizes"), 1'000'000'000u);
  EXPECT_EQ(parse_size("0.001K", "--sizes"), 1u);
}

TEST(Units, ReadsBinarySizesInEitherCase) {
  EXPECT_EQ(parse_size("1Ki", "--sizes"), 1024u);
  EXPECT_EQ(parse_size("64KiB", "--sizes"), 65536u);
  EXPECT_EQ(parse_size("64kib", "--sizes"), 65536u);
  EXPECT_EQ(parse_size("1.5Mi", "--sizes"), 1536u * 1024);
  EXPECT_EQ(parse_size("16Gi", "--sizes"), 16ull << 30);
}

TEST(Units, ReadsSizesToTheLastDigit) {
  EXPECT_EQ(parse_size("999999.999999999G", "--sizes"), 999'999'999'999'999u);
  EXPECT_EQ(parse_size("0000000000000000000001.50000000000000000000K", "--sizes"), 1500u);
}

TEST(Units, ShortensAndEscapesWhatItRefuses) {
  const std::string message =
      message_of<UsageError>([] { parse_size(std::string(20'000, 'x') + "\x1b\n", "--sizes"); });
  EXPECT_LT(message.size(), 400u);
  EXPECT_NE(message.find("(20002 bytes)"), std::string::npos) << message;
  EXPECT_NE(
      message_of<UsageError>([] { parse_rate("1\x1b[2J\nmbit", "r"); }).find("1\\x1b[2J\\nmbit"),
      std::string::npos);
}

TEST(Units, RefusesASizeThatIsNotAWholeNumberOfBytes) {
  for (const char* text : {"", "K", "1.5", "0.0001K", "-5", "1T", "1 K", "99999999G", "0.0000001",
                           "97.0000001M", "0.3Ki", "1000000000000000000000", "1Kb i"}) {
    EXPECT_THROW(parse_size(text, "--sizes"), UsageError) << text;
  }
}

TEST(Units, ReadsDurations) {
  for (const char* text : {"0", "00", "0.0", "0.00", "0us"}) {
    EXPECT_EQ(parse_duration(text, "--delay"), 0) << text;
  }
  EXPECT_EQ(parse_duration("250ns", "--delay"), 250);
  EXPECT_EQ(parse_duration("50us", "--delay"), 50'000);
  EXPECT_EQ(parse_duration("1.5ms", "--delay"), 1'500'000);
  EXPECT_EQ(parse_duration("2s", "--delay"), 2'000'000'000);
  for (const char* text : {"", "5", "5m", "-1us", "2h", "7200s"}) {
    EXPECT_THROW(parse_duration(text, "--delay"), UsageError) << text;
  }
}

TEST(Units, ReadsProbabilities) {
  EXPECT_EQ(parse_probability("0", "--loss"), 0.0);
  EXPECT_EQ(parse_probability("0.01", "--loss"), 0.01);
  EXPECT_EQ(parse_probability("1", "--loss"), 1.0);
  for (const char* text : {"", "1.01", "-0.1", "nan", "inf", "1%", "0.1x"}) {
    EXPECT_THROW(parse_probability(text, "--loss"), UsageError) << text;
  }
}

TEST(Units, ReadsWholeNumbersWithinTheirBounds) {
  EXPECT_EQ(parse_integer("9000", "--mtu", 1500, 9000), 9000u);
  EXPECT_EQ(parse_integer("18446744073709551615", "--seed", 0, UINT64_MAX), UINT64_MAX);
  EXPECT_EQ(message_of<UsageError>([] { parse_integer("9001", "--mtu", 1500, 9000); }),
            "--mtu \"9001\": expected a whole number in 1500..9000");
  for (const char* text : {"", "x", "1.5", "-1", "18446744073709551616"}) {
    EXPECT_THROW(parse_integer(text, "--seed", 0, UINT64_MAX), UsageError) << text;
  }
}

TEST(Units, WritesWhatItReadsBack) {
  for (const uint64_t rate : {1'000'000ull, 64'000'000ull, 200'000'000ull, 2'500'000'000ull}) {
    EXPECT_EQ(parse_rate(format_rate(rate), "rate"), rate);
  }
  for (const uint64_t size : {0ull, 1ull, 999ull, 1'000ull, 12'500'000ull, 97'000'001ull}) {
    EXPECT_EQ(parse_size(format_size(size), "size"), size);
  }
  for (const int64_t time : {0ll, 1ll, 50'000ll, 1'500'000ll, 2'000'000'000ll}) {
    EXPECT_EQ(parse_duration(format_duration(time), "time"), time);
  }
  EXPECT_EQ(format_rate(2'500'000'000), "2.5gbit");
  EXPECT_EQ(format_size(12'500'000), "12.5M");
  EXPECT_EQ(format_duration(50'000), "50us");
}

TEST(Units, CountsOneThingAndMany) {
  EXPECT_EQ(counted(0, "link"), "0 links");
  EXPECT_EQ(counted(1, "link"), "1 link");
  EXPECT_EQ(counted(2, "link"), "2 links");
}

}  // namespace
}  // namespace gradcube::control
