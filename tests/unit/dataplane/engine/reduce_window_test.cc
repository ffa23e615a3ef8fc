#include "dataplane/engine/reduce_window.h"

#include <gtest/gtest.h>
#include <memory>

#include "dataplane/host/packet_pool.h"
#include "tests/unit/dataplane/packets_in_use.h"

namespace gradcube::dataplane {
namespace {

class ReduceWindowTest : public testing::Test {
 protected:
  ReduceWindowTest() {
    PacketPoolOptions options;
    options.name = "reduce";
    options.count = 511;
    options.cache = 0;
    packets_ = std::make_unique<PacketPool>(options);
  }

  Contribution contribution(std::uint32_t count = 0) {
    Contribution contribution;
    contribution.packet = packets_->allocate();
    contribution.signature.count = count;
    return contribution;
  }
  static void hold_both(ReduceWindowTest& test, ReduceWindow& window, std::uint64_t sequence) {
    window.hold(sequence, 1, test.contribution(1));
    window.hold(sequence, 2, test.contribution(2));
  }

  std::unique_ptr<PacketPool> packets_;
};

TEST_F(ReduceWindowTest, WaitsForAllNeighboursInWhateverOrderTheyCome) {
  ReduceWindow window(2);
  window.hold(0, 2, contribution(22));
  EXPECT_FALSE(window.all_arrived(0));
  window.hold(0, 1, contribution(11));
  EXPECT_TRUE(window.all_arrived(0));
  EXPECT_EQ(window.contribution(0, 1).signature.count, 11u);
  EXPECT_EQ(window.contribution(0, 2).signature.count, 22u);
  EXPECT_FALSE(window.all_arrived(1));
  EXPECT_FALSE(window.reduced(0));
}

TEST_F(ReduceWindowTest, FreesWhatIsReducedAndMovesOverTheReducedPrefixOnly) {
  ReduceWindow window(2);
  for (std::uint64_t sequence = 0; sequence < 4; ++sequence) hold_both(*this, window, sequence);
  window.finish(2);
  EXPECT_EQ(window.base(), 0u);
  EXPECT_TRUE(window.reduced(2));
  EXPECT_FALSE(window.reduced(0));
  EXPECT_EQ(packets_in_use(*packets_), 6u);
  window.finish(0);
  EXPECT_EQ(window.base(), 1u);
  EXPECT_TRUE(window.reduced(0));
  window.finish(1);
  EXPECT_EQ(window.base(), 3u);
  EXPECT_EQ(packets_in_use(*packets_), 2u);
  window.finish(3);
  EXPECT_EQ(packets_in_use(*packets_), 0u);
}

TEST_F(ReduceWindowTest, HoldsAWholeWindowAndUsesItsPlacesAgain) {
  ReduceWindow window(1);
  for (std::uint64_t round = 0; round < 3; ++round) {
    const std::uint64_t base = window.base();
    for (std::uint64_t i = 0; i < ReduceWindow::kWindow; ++i) {
      window.hold(base + i, 1, contribution());
    }
    EXPECT_FALSE(window.all_arrived(base + ReduceWindow::kWindow));
    for (std::uint64_t i = ReduceWindow::kWindow; i-- > 0;) {
      EXPECT_EQ(window.base(), base);
      window.finish(base + i);
    }
    EXPECT_EQ(window.base(), base + ReduceWindow::kWindow);
    EXPECT_FALSE(window.reduced(window.base()));
  }
  EXPECT_EQ(packets_in_use(*packets_), 0u);
}

TEST_F(ReduceWindowTest, GivesBackWhatWaitsWhenClearedAndWhenDestroyed) {
  {
    ReduceWindow window(2);
    hold_both(*this, window, 5);
    window.finish(5);
    window.hold(0, 1, contribution());
    window.clear();
    EXPECT_EQ(packets_in_use(*packets_), 0u);
    EXPECT_EQ(window.base(), 0u);
    EXPECT_FALSE(window.reduced(5));
    window.hold(0, 1, contribution());
    ReduceWindow moved(std::move(window));
    EXPECT_EQ(packets_in_use(*packets_), 1u);
  }
  EXPECT_EQ(packets_in_use(*packets_), 0u);
}

}  // namespace
}  // namespace gradcube::dataplane
