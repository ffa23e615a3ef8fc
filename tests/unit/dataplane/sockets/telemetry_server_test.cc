#include "dataplane/sockets/telemetry_server.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/base/descriptor.h"
#include "control/base/errors.h"

namespace gradcube::dataplane {
namespace {

using control::Descriptor;
using Json = nlohmann::ordered_json;

// A client and the server take turns on one thread: every wait is for what is there already.
class Telemetry : public testing::Test {
 protected:
  Telemetry() {
    std::string name = std::filesystem::temp_directory_path() / "gradcube-test-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a directory");
    directory_ = name;
    server_.emplace(loop_, directory_ / "s", "gradcubed 1.2.3");
    server_->add("/echo", "says it again", [](std::string_view text) { return Json(text); });
    server_->add("/long", "as many letters", [](std::string_view count) {
      return Json(std::string(std::stoul(std::string(count)), 'a'));
    });
    server_->add("/wrong", "refuses",
                 [](std::string_view) -> Json { throw control::UsageError("not like that"); });
    loop_.on_tick([this] { loop_.stop(); });
  }
  ~Telemetry() override {
    server_.reset();
    std::filesystem::remove_all(directory_);
  }

  void serve() {
    for (int round = 0; round < 3; ++round) loop_.run();
  }

  Descriptor connect() {
    Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (directory_ / "s").string().copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    serve();
    return socket;
  }

  // Null where nothing is there; discarded where it is no JSON.
  static Json receive(const Descriptor& socket) {
    std::string text(TelemetryServer::kLongestAnswer + 1, '\0');
    const ssize_t size = recv(socket.get(), text.data(), text.size(), MSG_DONTWAIT);
    if (size <= 0) return nullptr;
    return Json::parse(text.substr(0, static_cast<std::size_t>(size)), nullptr, false);
  }

  Json ask(const Descriptor& socket, std::string_view request) {
    EXPECT_EQ(send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    serve();
    return receive(socket);
  }

  static bool is_closed(const Descriptor& socket) {
    std::array<char, 2048> bytes{};
    ssize_t size = 0;
    while ((size = recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT)) > 0) {
    }
    return size == 0 || errno == ECONNRESET;
  }

  std::filesystem::path directory_;
  ControlLoop loop_;
  std::optional<TelemetryServer> server_;
};

TEST_F(Telemetry, SpeaksAsDpdkDoes) {
  const Descriptor client = connect();
  const Json greeting = receive(client);
  EXPECT_EQ(greeting["version"], "gradcubed 1.2.3");
  EXPECT_EQ(greeting["pid"], getpid());
  EXPECT_EQ(greeting["max_output_len"], TelemetryServer::kLongestAnswer);
  EXPECT_EQ(ask(client, "/").dump(), R"({"/":["/","/echo","/help","/info","/long","/wrong"]})");
  EXPECT_EQ(ask(client, "/info")["/info"], greeting);
  EXPECT_EQ(ask(client, "/help,/echo").dump(), R"({"/help":{"/echo":"says it again"}})");
  EXPECT_EQ(ask(client, "/echo,one,two").dump(), R"({"/echo":"one,two"})");
  EXPECT_EQ(ask(client, "/echo").dump(), R"({"/echo":""})");
  EXPECT_EQ(ask(client, "/nowhere,3").dump(), R"({"/nowhere":null})");
}

TEST_F(Telemetry, SaysWhatIsWrongWithAParameter) {
  EXPECT_EQ(server_->answer_to("/wrong,x"), R"({"/wrong":{"error":"not like that"}})");
  EXPECT_NE(server_->answer_to("/help,/nowhere").find("\"error\""), std::string::npos);
}

TEST_F(Telemetry, RefusesAnAnswerThatNoMessageHolds) {
  const Descriptor client = connect();
  receive(client);
  const std::size_t most = TelemetryServer::kLongestAnswer - std::string(R"({"/long":""})").size();
  EXPECT_EQ(ask(client, "/long," + std::to_string(most))["/long"].get<std::string>().size(), most);
  EXPECT_TRUE(ask(client, "/long," + std::to_string(most + 1))["/long"].contains("error"));
}

TEST_F(Telemetry, AnswersHostileBytesInJson) {
  const Descriptor client = connect();
  receive(client);
  for (const std::string& request :
       {std::string(","), std::string(",,,"), std::string("\0", 1), std::string("/echo\0,x", 8),
        std::string("\xff\xfe\x80"), std::string("\"}\n{\""), std::string(1023, '/'),
        std::string(1024, '/'), "/echo," + std::string(5000, 'a')}) {
    const Json answer = ask(client, request);
    ASSERT_TRUE(answer.is_object()) << request;
    EXPECT_TRUE(answer.begin()->is_null()) << answer.dump();
  }
  EXPECT_EQ(ask(client, "/echo,\xff\"\n")["/echo"], "\xef\xbf\xbd\"\n");
  EXPECT_EQ(ask(client, "/echo," + std::string(1017, 'a'))["/echo"], std::string(1017, 'a'));
}

TEST_F(Telemetry, DisconnectsAClientThatTakesNoAnswers) {
  const Descriptor greedy = connect();
  const Descriptor other = connect();
  receive(other);
  for (int i = 0; i < 50; ++i) {
    if (send(greedy.get(), "/long,100000", 12, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) break;
    serve();
  }
  EXPECT_TRUE(is_closed(greedy));
  EXPECT_EQ(ask(other, "/echo,1")["/echo"], "1");
}

TEST_F(Telemetry, GivesTheQuietestClientsPlaceToANewOne) {
  std::vector<Descriptor> clients;
  for (std::size_t i = 0; i < TelemetryServer::kMostClients; ++i) clients.push_back(connect());
  receive(clients[0]);
  ask(clients[0], "/echo");
  const Descriptor late = connect();
  EXPECT_TRUE(receive(late).contains("pid"));
  EXPECT_TRUE(is_closed(clients[1]));
  for (const std::size_t i : {0U, 2U, 9U}) EXPECT_FALSE(is_closed(clients[i])) << i;
}

TEST_F(Telemetry, OutlivesItsClientsAndTheirEnd) {
  { const Descriptor client = connect(); }
  serve();
  {
    const Descriptor client = connect();
    EXPECT_EQ(send(client.get(), "/echo", 5, MSG_NOSIGNAL), 5);
  }
  serve();
  const Descriptor client = connect();
  receive(client);
  EXPECT_EQ(ask(client, "/echo,x")["/echo"], "x");
  server_.reset();
  EXPECT_TRUE(is_closed(client));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "s"));
}

TEST_F(Telemetry, TakesThePlaceOfADeadDaemonsSocket) {
  server_.reset();
  const Descriptor dead(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (directory_ / "s").string().copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  server_.emplace(loop_, directory_ / "s", "gradcubed 1.2.4");
  EXPECT_EQ(receive(connect())["version"], "gradcubed 1.2.4");
}

}  // namespace
}  // namespace gradcube::dataplane
