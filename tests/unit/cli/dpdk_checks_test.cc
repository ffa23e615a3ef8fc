#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/checks/host_checks.h"

namespace gradcube::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* kNic = "0000:3b:00.0";

// A made-up sysfs.
class DpdkChecks : public testing::Test {
 protected:
  DpdkChecks() {
    std::string name = (fs::temp_directory_path() / "gradcube-test-XXXXXX").string();
    root_ = mkdtemp(name.data());
  }
  ~DpdkChecks() override { fs::remove_all(root_); }

  void pages(const std::string& node, int count) {
    const fs::path folder = root_ / "sys/devices/system/node" / node / "hugepages/hugepages-2048kB";
    fs::create_directories(folder);
    std::ofstream(folder / "nr_hugepages") << count << "\n";
  }

  void nic(const std::string& driver, const std::string& below = "") {
    const fs::path device = root_ / "sys/bus/pci/devices" / kNic;
    fs::create_directories(device / below);
    const fs::path drivers = root_ / "sys/bus/pci/drivers";
    fs::create_directories(drivers / driver);
    fs::remove(device / "driver");
    fs::create_symlink(drivers / driver, device / "driver");
    const fs::path interface = root_ / "sys/class/net/eth1";
    fs::create_directories(interface);
    std::ofstream(interface / "address") << "02:00:5e:10:00:01\n";
    if (!fs::exists(interface / "device")) {
      fs::create_symlink(device / below, interface / "device");
    }
  }

  HostCheck check(const std::string& name, const std::vector<std::string>& nics = {kNic}) {
    for (const HostCheck& check : check_dpdk_host(nics, root_)) {
      if (check.name == name) return check;
    }
    return {"", Verdict::ok, "not checked", ""};
  }

  fs::path root_;
};

TEST_F(DpdkChecks, WarnNobodyWhoNamesNoNic) {
  nic("ixgbe");
  const auto checks = check_dpdk_host({}, root_);
  ASSERT_EQ(checks.size(), 1U);
  EXPECT_EQ(checks[0].verdict, Verdict::ok);
  EXPECT_THAT(checks[0].finding, HasSubstr("none reserved"));
  pages("node0", 0);
  pages("node1", 8);
  EXPECT_EQ(check("huge pages", {}).verdict, Verdict::ok);
}

TEST_F(DpdkChecks, LookForHugePagesOnEachNode) {
  pages("node1", 512);
  pages("node0", 0);
  const HostCheck lacking = check("huge pages");
  EXPECT_EQ(lacking.verdict, Verdict::warn);
  EXPECT_EQ(lacking.finding, "none on node 0; 512 of 2048kB on node 1");
  EXPECT_THAT(lacking.remedy, HasSubstr("bringup.sh --huge-pages"));
  pages("node0", 3);
  EXPECT_EQ(check("huge pages").verdict, Verdict::ok);
  EXPECT_EQ(check("huge pages").remedy, "");
}

TEST_F(DpdkChecks, FindTheHostsPagesWhereThereAreNoNodes) {
  fs::create_directories(root_ / "sys/kernel/mm/hugepages/hugepages-1048576kB");
  std::ofstream(root_ / "sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages") << "2\n";
  EXPECT_EQ(check("huge pages").finding, "2 of 1048576kB on node 0");
}

TEST_F(DpdkChecks, SayHowToBindANic) {
  nic("ixgbe");
  EXPECT_EQ(check("iommu").verdict, Verdict::warn);
  EXPECT_THAT(check("iommu").remedy, HasSubstr("intel_iommu=on"));
  EXPECT_EQ(check("vfio-pci").remedy, "sudo modprobe vfio-pci");
  const HostCheck unbound = check("nic 0000:3b:00.0");
  EXPECT_EQ(unbound.verdict, Verdict::warn);
  EXPECT_THAT(unbound.finding, HasSubstr("the driver ixgbe"));
  EXPECT_EQ(unbound.remedy, "sudo ./scripts/bringup.sh --nic 0000:3b:00.0");

  fs::create_directories(root_ / "sys/kernel/iommu_groups/7");
  nic("vfio-pci");
  for (const char* name : {"iommu", "vfio-pci", "nic 0000:3b:00.0"}) {
    EXPECT_EQ(check(name).verdict, Verdict::ok) << name;
    EXPECT_NE(check(name).name, "") << name;
  }
}

TEST_F(DpdkChecks, AcceptTheModeWithoutAnIommu) {
  nic("vfio-pci");
  const fs::path parameters = root_ / "sys/module/vfio/parameters";
  fs::create_directories(parameters);
  std::ofstream(parameters / "enable_unsafe_noiommu_mode") << "N\n";
  EXPECT_EQ(check("iommu").verdict, Verdict::warn);
  std::ofstream(parameters / "enable_unsafe_noiommu_mode") << "Y\n";
  EXPECT_EQ(check("iommu").verdict, Verdict::ok);
  EXPECT_THAT(check("iommu").finding, HasSubstr("all memory"));
}

TEST_F(DpdkChecks, TakeAPciAddressAMacOrAnInterface) {
  nic("virtio-pci", "virtio0");
  for (const char* name : {"3b:00.0", "02:00:5E:10:00:01", "eth1"}) {
    EXPECT_THAT(check("nic " + std::string(name), {name}).finding, HasSubstr(kNic)) << name;
  }
}

TEST_F(DpdkChecks, AskForNothingWhereTheKernelsDriverStays) {
  nic("mlx5_core");
  EXPECT_EQ(check("nic 0000:3b:00.0").verdict, Verdict::ok);
  EXPECT_EQ(check("vfio-pci").finding, "not checked");
  EXPECT_EQ(check("iommu").finding, "not checked");
}

TEST_F(DpdkChecks, NameANicThatIsNotThere) {
  nic("ixgbe");
  for (const char* name : {"eth9", "0000:3b:00.1", "../../../etc", "", "00:00:00:00:00:00", "."}) {
    const HostCheck missing = check("nic " + std::string(name), {name});
    EXPECT_EQ(missing.verdict, Verdict::warn) << name;
    EXPECT_THAT(missing.finding, HasSubstr("no NIC of this host")) << name;
  }
  EXPECT_EQ(check("nic \\x1b[2J", {"\x1b[2J"}).verdict, Verdict::warn);
}

}  // namespace
}  // namespace gradcube::cli
