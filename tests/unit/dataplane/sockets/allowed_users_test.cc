#include "dataplane/sockets/allowed_users.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include "control/base/errors.h"

namespace gradcube::dataplane {
namespace {

constexpr uid_t kSomebody = 54321;

class AllowedUsersTest : public testing::Test {
 protected:
  AllowedUsersTest() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0); }
  ~AllowedUsersTest() override {
    for (const int end : ends_) close(end);
  }

  int ends_[2] = {-1, -1};
};

TEST_F(AllowedUsersTest, AreItsOwnUserAndRootWhereNobodyIsNamed) {
  const AllowedUsers users;
  EXPECT_FALSE(users.any_tenants());
  EXPECT_EQ(users.standing(ends_[0], geteuid()), Standing::owner);
  EXPECT_EQ(users.standing(ends_[0], 0), Standing::owner);
  EXPECT_EQ(users.standing(ends_[0], kSomebody), Standing::stranger);
  EXPECT_NE(AllowedUsers::refusal(kSomebody).find("user 54321 is none of those"),
            std::string::npos);
}

TEST_F(AllowedUsersTest, AreNamedOrNumbered) {
  const AllowedUsers users({"54321", "root"}, {});
  EXPECT_TRUE(users.any_tenants());
  EXPECT_EQ(users.standing(ends_[0], kSomebody), Standing::tenant);
  EXPECT_EQ(users.standing(ends_[0], kSomebody + 1), Standing::stranger);
  EXPECT_EQ(users.standing(ends_[0], 0), Standing::owner) << "more than that";
}

// The other end is this process, whatever user it is said to have.
TEST_F(AllowedUsersTest, AreMembersOfGroups) {
  EXPECT_EQ(AllowedUsers({}, {std::to_string(getegid())}).standing(ends_[0], kSomebody),
            Standing::tenant);
  const gid_t none = 54322;
  EXPECT_EQ(AllowedUsers({}, {std::to_string(none)}).standing(ends_[0], kSomebody),
            Standing::stranger);
  if (geteuid() != 0) return;
  // More than fit where they are first asked for.
  std::vector<gid_t> groups;
  for (gid_t group = 60000; group < 60200; ++group) groups.push_back(group);
  std::vector<gid_t> before(static_cast<std::size_t>(getgroups(0, nullptr)));
  ASSERT_GE(getgroups(static_cast<int>(before.size()), before.data()), 0);
  ASSERT_EQ(setgroups(groups.size(), groups.data()), 0);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  ASSERT_EQ(setgroups(before.size(), before.data()), 0);
  EXPECT_EQ(AllowedUsers({}, {"60199"}).standing(ends[0], kSomebody), Standing::tenant);
  EXPECT_EQ(AllowedUsers({}, {"60200"}).standing(ends[0], kSomebody), Standing::stranger);
  for (const int end : ends) close(end);
}

TEST_F(AllowedUsersTest, ThatNobodyKnowsAreRefused) {
  for (const char* name : {"no-such-name", "4294967295", "99999999999", "-1", "1x"}) {
    EXPECT_THROW(AllowedUsers({name}, {}), control::UsageError) << name;
    EXPECT_THROW(AllowedUsers({}, {name}), control::UsageError) << name;
  }
}

}  // namespace
}  // namespace gradcube::dataplane
