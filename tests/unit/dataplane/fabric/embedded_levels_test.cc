// What differs by level in an embedded fabric: uplinks and rates.
#include <gtest/gtest.h>
#include <stdexcept>
#include <vector>

#include "dataplane/fabric/emulated/embedded_fabric.h"

namespace gradcube::dataplane {
namespace {

EmbeddedFabricOptions two_levels() {
  EmbeddedFabricOptions options{.space = bcube::AddressSpace(std::vector<unsigned>{2, 3}),
                                .servers = {0, 1, 2, 3, 4, 5},
                                .clones = clone_pool(1500)};
  options.port.queues = 2;
  options.levels = {{7, 0}, {15, 1'000'000'000}};
  return options;
}

TEST(EmbeddedLevels, HaveTheirOwnUplinksAndRates) {
  EmbeddedFabric fabric(two_levels());
  for (const bcube::ServerId server : fabric.servers()) {
    EXPECT_EQ(fabric.port(server, 0).transmit_room(0), 7u);
    EXPECT_EQ(fabric.port(server, 1).transmit_room(0), 15u);
  }
  for (const auto& at : fabric.switches()) {
    EXPECT_EQ(at.fabric->shards(), at.level == 0 ? 2u : 1u) << "a limited link has one clock";
  }
}

TEST(EmbeddedLevels, AreListedAllOrNone) {
  EmbeddedFabricOptions options = two_levels();
  options.levels.pop_back();
  EXPECT_THROW(EmbeddedFabric{options}, std::invalid_argument);
}

}  // namespace
}  // namespace gradcube::dataplane
