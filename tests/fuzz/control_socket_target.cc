// The control socket: whatever a client sends, every line is answered by one line of JSON with
// "ok", or the client is cut off because its line is too long.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "dataplane/sockets/control_loop.h"
#include "dataplane/sockets/control_server.h"
#include "tests/fuzz/fuzz_target.h"

namespace gradcube::fuzz {

const unsigned kMutations = 3'000;

namespace {

constexpr std::size_t kLongestInput = 16 * 1024;
constexpr auto kPatience = std::chrono::seconds(10);

// One directory for the program's life.
class Directory {
 public:
  Directory() { require(mkdtemp(path_.data()) != nullptr, "a directory can be made"); }
  ~Directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string socket() const { return path_ + "/control.sock"; }

 private:
  std::string path_ = std::filesystem::temp_directory_path() / "gradcube-fuzz-XXXXXX";
};

int connect_to(const std::string& path) {
  const int client = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  require(path.size() < sizeof address.sun_path, "the socket's path is short enough");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  require(connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0,
          "the socket takes a client");
  return client;
}

// Takes in what has come; false once the server has closed the connection.
bool receive(int client, std::string& answers) {
  for (;;) {
    std::array<char, 4096> buffer{};
    const ssize_t received = recv(client, buffer.data(), buffer.size(), 0);
    if (received < 0) return errno == EAGAIN;
    if (received == 0) return false;
    answers.append(buffer.data(), static_cast<std::size_t>(received));
  }
}

std::ptrdiff_t lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

void require_answers(const std::string& answers) {
  for (std::size_t begin = 0; begin < answers.size();) {
    const std::size_t end = answers.find('\n', begin);
    require(end != std::string::npos, "an answer is a whole line");
    const auto answer =
        nlohmann::json::parse(answers.substr(begin, end - begin), nullptr, /*exceptions=*/false);
    require(answer.is_object() && answer.contains("ok") && answer["ok"].is_boolean(),
            "an answer is a JSON object with \"ok\"");
    require(answer["ok"] == true || answer["error"].is_string(), "a refusal has a message");
    begin = end + 1;
  }
}

}  // namespace

void read_hostile(std::span<const std::uint8_t> input) {
  static const Directory directory;
  std::string request(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(
                                                         std::min(input.size(), kLongestInput)));
  request += '\n';

  dataplane::ControlLoop loop;
  dataplane::ControlServer server(loop, directory.socket());
  server.add("echo", [](const nlohmann::json& asked) {
    return nlohmann::ordered_json{{"echo", asked.dump()}};
  });
  server.add("refuse", [](const nlohmann::json& asked) -> nlohmann::ordered_json {
    return {{"never", asked.at("not there").get<int>()}};
  });

  const int client = connect_to(directory.socket());
  require(send(client, request.data(), request.size(), MSG_NOSIGNAL) ==
              static_cast<ssize_t>(request.size()),
          "the socket's buffer holds the request");
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  std::string answers;
  loop.add(client, [&] {
    require(receive(client, answers), "a client with short lines is not cut off");
    if (lines(answers) == lines(request)) loop.stop();
  });
  loop.on_tick([&] {
    server.tick(std::chrono::steady_clock::now());
    require(std::chrono::steady_clock::now() < deadline, "a client is answered in time");
  });
  loop.run();
  loop.remove(client);
  close(client);
  require_answers(answers);
}

std::vector<Bytes> seeds() {
  constexpr std::string_view kTexts[] = {
      R"({"command":"echo","loss":0.01,"list":[1,2.5e3,null,true,"a\u00e9\n"]})",
      "{\"command\":\"refuse\"}\n{\"command\":\"echo\"}\n{\"command\":\"nothing\"}",
      R"({"command":7})",
      "[]\n\n\"text\"\n{}",
      "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
      "{\"command\":\"echo\",\"bytes\":\"\xff\xfe\x80\"}",
  };
  std::vector<Bytes> inputs;
  for (const std::string_view text : kTexts) inputs.emplace_back(text.begin(), text.end());
  return inputs;
}

}  // namespace gradcube::fuzz
