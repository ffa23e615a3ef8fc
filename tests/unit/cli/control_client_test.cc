#include "cli/cluster/control_client.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include "cli/cluster/line_channel.h"
#include "control/base/errors.h"
#include "tests/unit/control/message.h"

namespace gradcube::cli {
namespace {

namespace fs = std::filesystem;
using control::DaemonLock;
using control::RunDirectory;
using control::SetupError;

// A run directory with something in it that holds the lock and answers one request with what it is
// told to.
class ControlClientTest : public testing::Test {
 protected:
  ControlClientTest() : root_(make_root()), directory_(root_) {}
  ~ControlClientTest() override {
    if (daemon_.joinable()) daemon_.join();
    fs::remove_all(root_);
  }

  void start_daemon(std::string answer) {
    lock_ = DaemonLock::acquire(directory_);
    listener_ = Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, directory_.control_socket().c_str());
    ASSERT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(listener_.get(), 1), 0);
    daemon_ = std::thread([this, answer = std::move(answer)]() mutable {
      const Descriptor connection(accept(listener_.get(), nullptr, nullptr));
      const Deadline deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      read_line(connection.get(), deadline, 1 << 20, &request_);
      if (!answer.empty()) {
        answer += '\n';
        EXPECT_EQ(send(connection.get(), answer.data(), answer.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(answer.size()));
      }
    });
  }

  std::string message_of_failure() {
    return control::message_of<SetupError>([&] {
      ask_daemon(directory_, {{"command", "status"}}, std::chrono::seconds(10));
    });
  }

  static std::string make_root() {
    std::string name = (fs::temp_directory_path() / "gradcube-test-XXXXXX").string();
    return mkdtemp(name.data());
  }

  fs::path root_;
  RunDirectory directory_;
  std::optional<DaemonLock> lock_;
  Descriptor listener_;
  std::thread daemon_;
  std::string request_;
};

TEST_F(ControlClientTest, SendsOneLineAndReturnsTheAnswer) {
  start_daemon(R"({"ok":true,"status":{"pid":5}})");
  EXPECT_EQ(ask_status(directory_), nlohmann::json({{"pid", 5}}));
  daemon_.join();
  EXPECT_EQ(nlohmann::json::parse(request_), nlohmann::json({{"command", "status"}}));
}

TEST_F(ControlClientTest, ReadsAnswersOfManyPieces) {
  const std::string long_text(3'000'000, 'x');
  start_daemon(nlohmann::json{{"ok", true}, {"text", long_text}}.dump());
  EXPECT_EQ(ask_daemon(directory_, {{"command", "status"}})["text"], long_text);
}

TEST_F(ControlClientTest, PassesTheDaemonsMessageOn) {
  start_daemon(R"({"ok":false,"error":"loss is 2, and a probability is at most 1"})");
  EXPECT_EQ(message_of_failure(), "loss is 2, and a probability is at most 1");
}

TEST_F(ControlClientTest, TellsAWrongRequestFromAFailure) {
  start_daemon(R"({"ok":false,"usage":true,"error":"--level 4: there are 0 to 1"})");
  EXPECT_THROW(ask_daemon(directory_, {{"command", "impair"}}), control::UsageError);
}

TEST_F(ControlClientTest, TellsOfAnswersThatAreNotOfTheProtocol) {
  for (const char* answer : {"nonsense", "[1]", "{}", R"({"ok":1})", "{\"ok\":true"}) {
    SCOPED_TRACE(answer);
    fs::remove(directory_.control_socket());
    lock_.reset();
    start_daemon(answer);
    EXPECT_THAT(message_of_failure(), testing::HasSubstr("does not follow the protocol"));
    daemon_.join();
  }
}

TEST_F(ControlClientTest, TellsOfADaemonThatHangsUp) {
  start_daemon("");
  EXPECT_THAT(message_of_failure(), testing::HasSubstr("closed the connection"));
}

TEST_F(ControlClientTest, DoesNotWaitForEverForASilentDaemon) {
  lock_ = DaemonLock::acquire(directory_);
  listener_ = Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, directory_.control_socket().c_str());
  ASSERT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener_.get(), 1), 0);
  try {
    ask_daemon(directory_, {{"command", "status"}}, std::chrono::milliseconds(50));
    FAIL() << "an answer out of nothing";
  } catch (const SetupError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("did not answer in time"));
  }
}

TEST_F(ControlClientTest, WithoutAClusterNamesTheCommandThatStartsOne) {
  EXPECT_EQ(message_of_failure(), "no cluster runs in " + root_.string() +
                                      ": start one with `gradcube up --topology bcube:3,2`");
}

}  // namespace
}  // namespace gradcube::cli
