// What is said of NICs that DPDK cannot use, before it starts.
#include "dataplane/fabric/nic/pci_nic.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

#include "control/base/errors.h"

namespace gradcube::dataplane {
namespace {

using testing::HasSubstr;

TEST(PciAddress, IsReadWithAndWithoutTheDomain) {
  EXPECT_EQ(pci_address("0000:03:00.0"), "0000:03:00.0");
  EXPECT_EQ(pci_address("af:00.1"), "0000:af:00.1");
  EXPECT_EQ(pci_address("0001:AF:1F.7"), "0001:af:1f.7");
}

TEST(PciAddress, RefusesWhatIsNone) {
  for (const char* text : {"", "eth0", "03:00", "03:00.8", "0000:03:00.0 ", "../0000:03:00.0",
                           "0000:03:00.0/driver", "g3:00.0", "00000:03:00.0"}) {
    try {
      pci_address(text);
      ADD_FAILURE() << text << " was read";
    } catch (const control::UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr("expected one such as 0000:03:00.0"));
    }
  }
}

// A folder as the kernel has it: devices that are bound to drivers by links.
class Nics : public testing::Test {
 protected:
  Nics() { std::filesystem::create_directories(devices_); }
  ~Nics() override { std::filesystem::remove_all(root_); }

  void add(const std::string& address, const std::string& driver) {
    std::filesystem::create_directory(devices_ / address);
    if (driver.empty()) return;
    std::filesystem::create_directories(root_ / "drivers" / driver);
    std::filesystem::create_symlink(root_ / "drivers" / driver, devices_ / address / "driver");
  }
  std::string refusal(const std::vector<std::string>& addresses) const {
    try {
      check_nics(addresses, devices_);
    } catch (const control::SetupError& error) {
      return error.what();
    }
    return "none";
  }

  const std::filesystem::path root_ =
      std::filesystem::temp_directory_path() / ("gradcube-nics-" + std::to_string(getpid()));
  const std::filesystem::path devices_ = root_ / "devices";
};

TEST_F(Nics, MayBeBoundToVfioOrSharedWithTheKernel) {
  add("0000:03:00.0", "vfio-pci");
  add("0000:04:00.0", "mlx5_core");
  EXPECT_EQ(refusal({"0000:03:00.0", "0000:04:00.0"}), "none");
}

TEST_F(Nics, AreNamedWithTheirDriverAndWhatMendsIt) {
  add("0000:03:00.0", "vfio-pci");
  add("0000:03:00.1", "ixgbe");
  add("0000:04:00.0", "");
  EXPECT_THAT(refusal({"0000:03:00.0", "0000:03:00.1"}),
              testing::AllOf(HasSubstr("0000:03:00.1 is bound to ixgbe"),
                             HasSubstr("scripts/bringup.sh --nic 0000:03:00.1")));
  EXPECT_THAT(refusal({"0000:04:00.0"}), HasSubstr("0000:04:00.0 is bound to no driver"));
}

TEST_F(Nics, AreMissedWhereThereAreNone) {
  EXPECT_THAT(refusal({"0000:05:00.0"}), HasSubstr("this host has no PCI device 0000:05:00.0"));
}

}  // namespace
}  // namespace gradcube::dataplane
