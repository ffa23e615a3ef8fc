// Every counter that `gradcube status` shows is in the documents, once, and the documents list no
// other.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <regex>
#include <set>
#include <string>

#include "dataplane/engine/flows/engine_counters.h"
#include "dataplane/engine/session/mail_table.h"
#include "dataplane/fabric/emulated/switch_counters.h"
#include "dataplane/fabric/kernel/packet_port_counters.h"
#include "dataplane/fabric/nic/ethdev_port_counters.h"
#include "dataplane/fabric/port.h"
#include "dataplane/fabric/udp/udp_port_counters.h"
#include "protocol/send_window.h"

namespace gradcube::dataplane {
namespace {

using Names = std::multiset<std::string>;

// The first cells of the tables below this heading, where they are code: "| `name` | ... |".
Names documented(const std::string& page, const std::string& heading) {
  const char* documents = std::getenv("GRADCUBE_DOCS");
  if (documents == nullptr) throw std::runtime_error("GRADCUBE_DOCS names the folder docs/");
  std::ifstream file(std::string(documents) + "/" + page);
  const std::regex row("\\| `([a-z0-9_]+)` \\|.*");
  Names names;
  bool here = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) here = line == "## " + heading;
    std::smatch cells;
    if (here && std::regex_match(line, cells, row)) names.insert(cells[1]);
  }
  return names;
}

template <typename Counters>
Names counted(const std::string& group = "") {
  Names names;
  Counters::for_each([&](const CounterEntry& entry) {
    if (entry.group == group) names.insert(std::string(entry.name));
  });
  return names;
}

TEST(Counters, OfEnginesAreTheDocumentedOnes) {
  EXPECT_EQ(documented("counters.md", "Engines"), counted<EngineCounters>());
}

TEST(Counters, OfPortsAreTheDocumentedOnes) {
  EXPECT_EQ(documented("counters.md", "Ports"), counted<PortCounts>());
}

TEST(Counters, OfNicsThemselvesAreTheDocumentedOnes) {
  EXPECT_EQ(documented("counters.md", "What NICs drop themselves"), counted<NicDropCounts>());
}

TEST(Counters, OfPortsOnNetworkInterfacesAreTheDocumentedOnes) {
  EXPECT_EQ(documented("counters.md", "Ports on network interfaces"), counted<PacketPortCounts>());
}

TEST(Counters, OfPortsOnMemifLinksAndNicsAreTheDocumentedOnes) {
  EXPECT_EQ(documented("counters.md", "Ports on memif links and NICs"),
            counted<EthdevPortCounts>());
}

TEST(Counters, OfPortsOfDatagramsAreTheDocumentedOnes) {
  EXPECT_EQ(documented("counters.md", "Ports of datagrams"), counted<UdpPortCounts>());
}

TEST(Counters, OfSwitchesAreTheDocumentedOnes) {
  EXPECT_EQ(documented("counters.md", "Switches"), counted<SwitchPortCounts>());
}

TEST(Counters, OfFlowsAreTheDocumentedOnes) {
  EXPECT_EQ(documented("counters.md", "Flows"), counted<FlowCounters>());
  std::size_t count = 0;
  FlowCounters::for_each([&](const CounterEntry&) { ++count; });
  EXPECT_EQ(count * sizeof(std::uint64_t), sizeof(protocol::SendCounters));
}

TEST(Counters, OfMessagesAreTheDocumentedOnes) {
  EXPECT_EQ(documented("counters.md", "Messages"), counted<MailTable::Counts>());
}

TEST(Counters, OfDroppedFramesAreTheDocumentedReasons) {
  EXPECT_EQ(documented("protocol.md", "2. Reasons for dropping a frame"),
            counted<EngineCounters>("dropped"));
}

// A struct of nothing but 64-bit counters, so that one that is missing in its table shows.
template <typename Counters>
void expect_all_are_in_the_table() {
  std::size_t count = 0;
  Counters::for_each([&](const CounterEntry&) { ++count; });
  EXPECT_EQ(count * sizeof(std::uint64_t), sizeof(Counters));
}

TEST(Counters, AreAllInTheirTables) {
  expect_all_are_in_the_table<PortCounts>();
  expect_all_are_in_the_table<SwitchPortCounts>();
  expect_all_are_in_the_table<MailTable::Counts>();
  std::size_t count = 0;
  EngineCounters::for_each([&](const CounterEntry&) { ++count; });
  // The place of FrameError::none is never counted in.
  EXPECT_EQ((count + 1) * sizeof(std::uint64_t), sizeof(EngineCounters));
}

TEST(Counters, AddUpOneByOneAndPeaksByTheirMaximum) {
  SwitchPortCounters one;
  std::uint64_t next = 1;
  SwitchPortCounters::for_each(
      [&](const CounterEntry&, RelaxedCounter& counter) { counter.add(next++); }, one);
  SwitchPortCounts sum;
  add_counters(sum, one);
  add_counters(sum, one);
  next = 1;
  SwitchPortCounts::for_each(
      [&](const CounterEntry& entry, std::uint64_t value) {
        EXPECT_EQ(value, entry.name == "queue_peak_bytes" ? next : 2 * next) << entry.name;
        ++next;
      },
      sum);
}

}  // namespace
}  // namespace gradcube::dataplane
