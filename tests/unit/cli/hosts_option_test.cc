#include "cli/up/hosts_option.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

#include "control/base/errors.h"

namespace gradcube::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(HostsOption, TakesAListByCommasAsAHostEach) {
  const NamedHosts hosts = read_hosts_option("198.18.0.1,198.18.0.2:5000,[fd00::3]:6000,fd00::4");
  EXPECT_THAT(hosts.names, ElementsAre("198.18.0.1", "198.18.0.2", "fd00::3", "fd00::4"));
  EXPECT_EQ(hosts.addresses, "198.18.0.1 198.18.0.2:5000 [fd00::3]:6000 fd00::4");
}

TEST(HostsOption, TakesRowsByBlanksWithAnAddressForEachPort) {
  const NamedHosts hosts = read_hosts_option("198.18.0.1,198.18.1.1  alice@198.18.0.2,198.18.1.2 ");
  EXPECT_THAT(hosts.names, ElementsAre("198.18.0.1", "alice@198.18.0.2"));
  EXPECT_EQ(hosts.addresses, "198.18.0.1,198.18.1.1 198.18.0.2,198.18.1.2");
}

TEST(HostsOption, TakesAFileWithAHostInEachLine) {
  std::string path = (std::filesystem::temp_directory_path() / "gradcube-test-XXXXXX").string();
  close(mkstemp(path.data()));
  std::ofstream(path) << "# three\n\n198.18.0.1 slots=4 max_slots=4\n"
                      << "alice@node2\t198.18.0.2,198.18.1.2 # two ports\r\nnode3 198.18.0.3";
  const NamedHosts hosts = read_hosts_option(path);
  EXPECT_THAT(hosts.names, ElementsAre("198.18.0.1", "alice@node2", "node3"));
  EXPECT_EQ(hosts.addresses, "198.18.0.1 198.18.0.2,198.18.1.2 198.18.0.3");
  std::ofstream(path) << "node1 198.18.0.1 198.18.0.2\n";
  EXPECT_THROW(read_hosts_option(path), control::UsageError);
  std::ofstream(path) << "# nobody\n";
  EXPECT_THROW(read_hosts_option(path), control::UsageError);
  std::filesystem::remove(path);
}

TEST(HostsOption, RefusesWhatIsProbablyAMistake) {
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      read_hosts_option(text);
      return "";
    } catch (const std::exception& error) {
      return error.what();
    }
  };
  EXPECT_THAT(refusal("198.18.0.1,,198.18.0.2"), HasSubstr("a host without a name"));
  EXPECT_THAT(refusal("198.18.0.1,"), HasSubstr("a host without a name"));
  EXPECT_THAT(refusal("198.18.0.1"), HasSubstr("one host makes no cluster"));
  EXPECT_THAT(refusal("no/such.file,198.18.0.1"), HasSubstr("neither a file nor a host"));
}

TEST(HostsOption, RefusesANameThatMeansThisHostAlone) {
  try {
    read_hosts_option("198.18.0.1,localhost");
    ADD_FAILURE();
  } catch (const control::UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("localhost is "));
    EXPECT_THAT(error.what(), HasSubstr("`localhost 10.0.0.1`"));
  }
}

}  // namespace
}  // namespace gradcube::cli
