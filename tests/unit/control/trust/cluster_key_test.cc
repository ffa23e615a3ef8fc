#include "control/settings/cluster_key.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "control/base/errors.h"

namespace gradcube::control {
namespace {

class KeyFile : public testing::Test {
 protected:
  KeyFile() { std::filesystem::create_directories(directory_); }
  ~KeyFile() override { std::filesystem::remove_all(directory_); }

  // Why the file is refused; empty if it is not.
  std::string refusal() const {
    try {
      read_key_file(path_);
      return "";
    } catch (const SetupError& error) {
      return error.what();
    }
  }
  void write(const std::string& text) const {
    std::ofstream(path_) << text;
    chmod(path_.c_str(), 0600);
  }

  const std::filesystem::path directory_ =
      std::filesystem::path(testing::TempDir()) / ("gradcube-key-" + std::to_string(getpid()));
  const std::filesystem::path path_ = directory_ / "cube.key";
};

TEST_F(KeyFile, ComesBackAndNobodyElseCanReadIt) {
  const Secret key = draw_secret();
  write_key_file(path_, key_text(key));
  EXPECT_EQ(read_key_file(path_), key);
  struct stat status {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

// What carries it from host to host, such as a secret of Kubernetes, may add ends of lines.
TEST_F(KeyFile, MayEndInSeveralEndsOfLines) {
  const Secret key = draw_secret();
  for (const char* end : {"", "\n", "\r\n", "\n\n"}) {
    std::string text = key_text(key);
    text.pop_back();
    write(text + end);
    EXPECT_EQ(read_key_file(path_), key);
  }
}

TEST_F(KeyFile, OfAClusterThatEndsIsGoneUnlessItIsKept) {
  const std::string text = key_text(draw_secret());
  write("of a cluster that was killed");
  {
    const OwnKeyFile own(path_, text);
    EXPECT_EQ(own.path(), path_);
    EXPECT_EQ(refusal(), "");
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
  OwnKeyFile(path_, text).keep();
  EXPECT_EQ(refusal(), "");
}

TEST_F(KeyFile, IsAnotherEachTime) { EXPECT_NE(draw_secret(), draw_secret()); }

TEST_F(KeyFile, IsNotWrittenOver) {
  const Secret key = draw_secret();
  write_key_file(path_, key_text(key));
  EXPECT_THROW(write_key_file(path_, key_text(draw_secret())), SetupError);
  EXPECT_EQ(read_key_file(path_), key);
}

TEST_F(KeyFile, ThatOthersCanReadIsRefused) {
  write_key_file(path_, key_text(draw_secret()));
  for (const mode_t mode : {0640U, 0604U, 0620U, 0602U}) {
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
    EXPECT_NE(refusal().find("chmod 600"), std::string::npos) << mode;
  }
  ASSERT_EQ(chmod(path_.c_str(), 0400), 0);
  EXPECT_EQ(refusal(), "");
}

TEST_F(KeyFile, OfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  write_key_file(path_, key_text(draw_secret()));
  ASSERT_EQ(chown(path_.c_str(), 65534, 65534), 0);
  EXPECT_NE(refusal().find("belongs to user 65534"), std::string::npos);
}

TEST_F(KeyFile, WithAnythingElseIsRefused) {
  const std::string digits(64, 'a');
  for (const std::string& text :
       {std::string(), digits.substr(1), digits + "a", digits + "\nmore",
        std::string(63, 'a') + "g", std::string(64, 'A'), std::string(63, 'a') + "\n"}) {
    write(text);
    EXPECT_NE(refusal().find("64 digits"), std::string::npos) << text;
  }
  write(digits);
  EXPECT_EQ(refusal(), "");
  std::filesystem::remove(path_);
  EXPECT_NE(refusal().find("gradcube keygen"), std::string::npos) << "there is none";
  std::filesystem::create_directory(path_);
  EXPECT_NE(refusal().find("is no file"), std::string::npos);
}

}  // namespace
}  // namespace gradcube::control
