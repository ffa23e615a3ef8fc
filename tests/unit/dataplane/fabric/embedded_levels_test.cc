// What differs by level in an embedded fabric: uplinks and rates.
#include <gtest/gtest.h>
#include <vector>

#include "bcube_forwarding/neighbours.h"
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

TEST(EmbeddedPorts, AreAsManyOnASwitchAsAServerHasWithItsRate) {
  const auto space = bcube::AddressSpace(std::vector<unsigned>{3}).with_ports({1, 1, 4});
  EmbeddedFabricOptions options{.space = space, .servers = {0, 1, 2}, .clones = clone_pool(1500)};
  options.levels = {{7, 1'000'000'000}};
  options.own_ports[2] = {15, 10'000'000'000};
  EmbeddedFabric fabric(options);
  EXPECT_EQ(fabric.ports(0).size(), 1u);
  ASSERT_EQ(fabric.ports(2).size(), 4u);
  EXPECT_EQ(fabric.port(0, 0).transmit_room(0), 7u);
  EXPECT_EQ(fabric.port(2, 3).transmit_room(0), 15u);
  ASSERT_EQ(fabric.switches().size(), 1u);
  ASSERT_EQ(fabric.links().size(), 6u);
  EXPECT_EQ(fabric.links()[5].server, 2u);
  EXPECT_EQ(fabric.links()[5].server_port, 3u);
}

TEST(EmbeddedCables, JoinEachPortOfATorusWithThatOfItsNeighbour) {
  const bcube::AddressSpace space(std::vector<unsigned>{3, 4}, bcube::Joint::cables);
  EmbeddedFabricOptions options{.space = space, .servers = {}, .clones = clone_pool(1500)};
  for (bcube::ServerId server = 0; server < space.servers(); ++server) {
    options.servers.push_back(server);
  }
  options.levels = {{7, 0}, {15, 1'000'000'000}};
  EmbeddedFabric fabric(options);
  ASSERT_EQ(fabric.ports(0).size(), 4u);
  EXPECT_EQ(fabric.port(0, 1).transmit_room(0), 7u);
  EXPECT_EQ(fabric.port(0, 2).transmit_room(0), 15u);
  ASSERT_EQ(fabric.switches().size(), 24u);
  ASSERT_EQ(fabric.links().size(), 48u);
  for (std::size_t i = 0; i < fabric.links().size(); i += 2) {
    const EmbeddedFabric::LinkAt& one = fabric.links()[i];
    const EmbeddedFabric::LinkAt& other = fabric.links()[i + 1];
    EXPECT_EQ(one.switch_index, i / 2);
    EXPECT_EQ(other.switch_index, i / 2);
    EXPECT_EQ(one.level, space.level_of_port(one.server_port));
    const bcube::NeighbourTable table(space, one.server);
    EXPECT_TRUE(table.is_behind(one.server_port, other.server));
    EXPECT_EQ(other.server_port, one.server_port ^ 1U);
    EXPECT_EQ(fabric.switches()[i / 2].name, space.joint_text(one.server, one.server_port));
    EXPECT_EQ(fabric.switches()[i / 2].name, space.joint_text(other.server, other.server_port));
  }
}

TEST(EmbeddedCables, AreThereWhereOneEndIs) {
  const bcube::AddressSpace space(std::vector<unsigned>{4}, bcube::Joint::cables);
  EmbeddedFabric fabric({.space = space, .servers = {0, 2}, .clones = clone_pool(1500)});
  EXPECT_EQ(fabric.switches().size(), 4u);
  EXPECT_EQ(fabric.links().size(), 4u);
}

}  // namespace
}  // namespace gradcube::dataplane
