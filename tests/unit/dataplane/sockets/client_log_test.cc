#include "dataplane/sockets/client_log.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace gradcube::dataplane {
namespace {

using std::chrono::seconds;

class Log : public testing::Test {
 protected:
  std::vector<std::string> written_;
  ClientLog log_{[this](const std::string& text) { written_.push_back(text); }};
  ClientLog::SteadyClock::time_point now_ = ClientLog::SteadyClock::now();
};

TEST_F(Log, WritesWhatClientsDo) {
  log_.line("refused a trainer", now_);
  log_.line("a trainer died", now_);
  EXPECT_EQ(written_, (std::vector<std::string>{"refused a trainer", "a trainer died"}));
}

TEST_F(Log, LimitsABurstAndSaysHowMuchIsLeftOut) {
  for (unsigned i = 0; i < ClientLog::kBurst + 50; ++i) log_.line("noise", now_);
  EXPECT_EQ(written_.size(), ClientLog::kBurst);
  log_.line("later", now_ + ClientLog::kInterval);
  ASSERT_EQ(written_.size(), ClientLog::kBurst + 2);
  EXPECT_NE(written_[ClientLog::kBurst].find("50 lines"), std::string::npos)
      << written_[ClientLog::kBurst];
  EXPECT_EQ(written_.back(), "later");
}

TEST_F(Log, GrowsByOneLinePerIntervalUnderAFlood) {
  constexpr unsigned kIntervals = 500;
  for (unsigned i = 0; i < kIntervals; ++i) {
    for (unsigned j = 0; j < 20; ++j) log_.line("noise", now_ + i * ClientLog::kInterval);
  }
  // Each line of the flood may bring one that says how many were left out.
  EXPECT_LE(written_.size(), ClientLog::kBurst + 2 * kIntervals);
  EXPECT_GE(written_.size(), kIntervals);
}

TEST_F(Log, RecoversItsBurstInAQuietTime) {
  for (unsigned i = 0; i < ClientLog::kBurst; ++i) log_.line("noise", now_);
  now_ += ClientLog::kBurst * ClientLog::kInterval;
  written_.clear();
  for (unsigned i = 0; i < ClientLog::kBurst; ++i) log_.line("more", now_);
  EXPECT_EQ(written_.size(), ClientLog::kBurst);
}

}  // namespace
}  // namespace gradcube::dataplane
