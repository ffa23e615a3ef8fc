#include "dataplane/bed/test_bed.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <string>

#include "control/base/errors.h"

namespace gradcube::dataplane {
namespace {

namespace fs = std::filesystem;

TEST(TestBed, LeavesNoKeyWhereItDoesNotStart) {
  std::string made = fs::temp_directory_path() / "test-bed-XXXXXX";
  ASSERT_NE(mkdtemp(made.data()), nullptr);
  const control::RunDirectory directory(made);
  const auto lock = control::DaemonLock::acquire(directory);
  ASSERT_TRUE(lock.has_value());
  control::ClusterSettings settings;
  settings.fabric = control::FabricKind::udp;
  settings.allowed_users = {"nobody-has-this-name"};
  EXPECT_THROW(TestBed(settings, directory, *lock, {}, "1.0"), control::UsageError);
  EXPECT_FALSE(fs::exists(directory.key_file()));
  fs::remove_all(made);
}

}  // namespace
}  // namespace gradcube::dataplane
