// Who gets what on the control socket, and how much of a round its clients may take.
#include "dataplane/sockets/control_server.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <list>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

#include "control/base/descriptor.h"

namespace gradcube::dataplane {
namespace {

using Json = nlohmann::ordered_json;

constexpr uid_t kTenant = 54321;
constexpr uid_t kStranger = 54322;

class Control : public testing::Test {
 protected:
  Control() {
    std::string name = std::filesystem::temp_directory_path() / "gradcube-test-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a directory");
    directory_ = name;
    std::filesystem::permissions(directory_, std::filesystem::perms(0755));
    server_.emplace(loop_, directory_ / "s", AllowedUsers({std::to_string(kTenant)}, {}));
    server_->add("count", [this](const nlohmann::json& request) -> Json {
      ++carried_out_;
      asked_.insert(request.value("who", 0));
      return {{"number", carried_out_}};
    });
    server_->add("see", [](const nlohmann::json&) -> Json { return {{"all", true}}; });
    server_->add_for_tenants("see", [](const nlohmann::json&, uid_t user) -> Json {
      return {{"user", user}};
    });
    // No client is so slow that it is closed, however long the rounds take.
    loop_.on_tick([this, now = ControlServer::SteadyClock::now()] {
      ++rounds_;
      most_in_a_round_ = std::max(most_in_a_round_, carried_out_ - before_);
      before_ = carried_out_;
      server_->tick(now);
      if (done_()) loop_.stop();
    });
  }
  ~Control() override {
    server_.reset();
    std::filesystem::remove_all(directory_);
  }

  // As this user, as whom the thread connects: root alone may become another.
  control::Descriptor client(uid_t user = 0) const {
    if (user != 0) {
      EXPECT_EQ(syscall(SYS_setresuid, -1, user, -1), 0);
    }
    control::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (directory_ / "s").string().copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    if (user != 0) {
      EXPECT_EQ(syscall(SYS_setresuid, -1, 0, -1), 0);
    }
    return socket;
  }
  static void ask(const control::Descriptor& client, const Json& request) {
    const std::string line = request.dump() + "\n";
    (void)!send(client.get(), line.data(), line.size(), MSG_NOSIGNAL);
  }
  static std::string received(const control::Descriptor& client) {
    std::string text(65536, '\0');
    const ssize_t bytes = recv(client.get(), text.data(), text.size(), MSG_DONTWAIT);
    text.resize(bytes < 0 ? 0 : static_cast<std::size_t>(bytes));
    return text;
  }
  void run(unsigned most, std::function<bool()> done) {
    done_ = [until = rounds_ + most, done = std::move(done), this] {
      return done() || rounds_ >= until;
    };
    loop_.run();
  }
  std::string answer_to(const control::Descriptor& client, const char* command) {
    std::string text;
    ask(client, {{"command", command}});
    run(100, [&] { return (text += received(client)).ends_with('\n'); });
    return text;
  }

  std::filesystem::path directory_;
  ControlLoop loop_;
  std::optional<ControlServer> server_;
  unsigned carried_out_ = 0;
  unsigned before_ = 0;
  unsigned most_in_a_round_ = 0;
  unsigned rounds_ = 0;
  std::set<int> asked_;
  std::function<bool()> done_;
};

TEST_F(Control, CarriesOutNoMoreInARoundThanItMayAndLetsEachHaveItsTurn) {
  constexpr int kClients = 20;
  constexpr unsigned kLines = 50;
  std::vector<control::Descriptor> clients;
  for (int who = 0; who < kClients; ++who) {
    clients.push_back(client());
    for (unsigned i = 0; i < kLines; ++i) ask(clients.back(), {{"command", "count"}, {"who", who}});
  }
  run(1'000, [&] { return asked_.size() == kClients; });
  EXPECT_EQ(asked_.size(), std::size_t{kClients});
  EXPECT_LE(carried_out_, 4u * kClients) << "some had many turns before others had one";
  run(100, [&] { return false; });
  EXPECT_GT(carried_out_, 100u);
  // What is taken in a tick, and what comes in the events after it.
  EXPECT_LE(most_in_a_round_, ControlServer::kMostAnswers);
}

TEST_F(Control, GivesAWholeAnswerToAClientThatHasShutDownItsWritingSide) {
  constexpr std::size_t kLong = std::size_t{4} << 20;
  server_->add("long", [](const nlohmann::json&) -> Json {
    return {{"text", std::string(kLong, 'x')}};
  });
  const control::Descriptor one = client();
  ask(one, {{"command", "count"}});
  ask(one, {{"command", "long"}});
  ASSERT_EQ(shutdown(one.get(), SHUT_WR), 0);
  std::string text;
  run(1'000, [&] {
    for (std::string more = received(one); !more.empty(); more = received(one)) text += more;
    return std::count(text.begin(), text.end(), '\n') == 2;
  });
  EXPECT_GT(text.size(), kLong);
  char byte = 0;
  const auto is_closed = [&] { return recv(one.get(), &byte, 1, MSG_DONTWAIT) == 0; };
  run(100, is_closed);
  EXPECT_TRUE(is_closed());
}

TEST_F(Control, GivesATenantWhatIsForTenantsAndNothingElse) {
  if (geteuid() != 0) GTEST_SKIP() << "becomes another user, which takes root";
  const control::Descriptor tenant = client(kTenant);
  EXPECT_EQ(answer_to(tenant, "see"), "{\"user\":54321,\"ok\":true}\n");
  EXPECT_NE(answer_to(tenant, "count").find("is for the daemon's own user"), std::string::npos);
  EXPECT_NE(answer_to(tenant, "dance").find("unknown command"), std::string::npos);
  EXPECT_EQ(carried_out_, 0u);
  EXPECT_EQ(answer_to(client(), "see"), "{\"all\":true,\"ok\":true}\n");
}

TEST_F(Control, TellsAStrangerThatItIsNotForHim) {
  if (geteuid() != 0) GTEST_SKIP() << "becomes another user, which takes root";
  const control::Descriptor stranger = client(kStranger);
  const std::string answer = answer_to(stranger, "see");
  EXPECT_NE(answer.find("user 54322 is none of those whom it serves"), std::string::npos) << answer;
  EXPECT_EQ(std::count(answer.begin(), answer.end(), '\n'), 1);
  EXPECT_EQ(answer_to(stranger, "see"), "");
}

TEST_F(Control, WaitsForNoTenantWhenItEnds) {
  if (geteuid() != 0) GTEST_SKIP() << "becomes another user, which takes root";
  server_->add_for_tenants("long", [](const nlohmann::json&, uid_t) -> Json {
    return {{"text", std::string(std::size_t{4} << 20, 'x')}};
  });
  server_->add("long", [](const nlohmann::json&) -> Json {
    return {{"text", std::string(std::size_t{4} << 20, 'x')}};
  });
  const control::Descriptor tenant = client(kTenant);
  ask(tenant, {{"command", "long"}});
  run(10, [] { return false; });
  EXPECT_TRUE(server_->all_answered()) << "it takes as long as it likes to read";
  const control::Descriptor owner = client();
  ask(owner, {{"command", "long"}});
  run(10, [] { return false; });
  EXPECT_FALSE(server_->all_answered());
}

TEST_F(Control, LeavesPlacesForOthersHoweverManyATenantTakes) {
  if (geteuid() != 0) GTEST_SKIP() << "becomes another user, which takes root";
  std::list<control::Descriptor> many;
  for (unsigned i = 0; i < 100; ++i) {
    many.push_back(client(kTenant));
    run(10, [] { return true; });
  }
  EXPECT_NE(received(many.back()).find("user 54321 asks the daemon 8 times already"),
            std::string::npos);
  EXPECT_EQ(answer_to(client(), "see"), "{\"all\":true,\"ok\":true}\n");
}

}  // namespace
}  // namespace gradcube::dataplane
