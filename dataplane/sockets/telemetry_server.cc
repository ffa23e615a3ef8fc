#include "dataplane/sockets/telemetry_server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "control/base/errors.h"
#include "control/base/json_text.h"
#include "control/base/printable.h"

namespace gradcube::dataplane {

using Json = nlohmann::ordered_json;

namespace {

constexpr std::size_t kLongestRequest = 1023;

}  // namespace

TelemetryServer::TelemetryServer(ControlLoop& loop, const std::filesystem::path& socket,
                                 std::string version)
    : loop_(loop),
      version_(std::move(version)),
      listener_(loop, socket, SOCK_SEQPACKET, [this](const auto& each) { accept(each); }) {
  add("/", "the commands", [this](std::string_view) {
    Json names = Json::array();
    for (const auto& [name, entry] : commands_) names.push_back(name);
    return names;
  });
  add("/info", "who answers here", [this](std::string_view) {
    return Json{{"version", version_}, {"pid", getpid()}, {"max_output_len", kLongestAnswer}};
  });
  add("/help", "what a command answers; its parameter is the command", [this](std::string_view of) {
    const auto found = commands_.find(of);
    if (found == commands_.end()) {
      throw control::UsageError(fmt::format("{} is no command: / lists them", control::quoted(of)));
    }
    return Json{{found->first, found->second.help}};
  });
}

TelemetryServer::~TelemetryServer() {
  while (!clients_.empty()) close_client(clients_.begin()->first);
}

void TelemetryServer::add(const std::string& name, std::string help, Command command) {
  commands_[name] = {std::move(help), std::move(command)};
}

void TelemetryServer::accept(const Accepted& accepted) {
  const int socket = accepted.socket;
  if (accepted.standing != Standing::owner) {
    close(socket);
    return;
  }
  if (clients_.size() >= kMostClients) make_room();
  clients_[socket] = ++heard_;
  loop_.add(socket, [this, socket] { read(socket); });
  send_answer(socket, control::json_text(commands_.at("/info").command("")));
}

void TelemetryServer::make_room() {
  const auto quiet = std::ranges::min_element(
      clients_, [](const auto& a, const auto& b) { return a.second < b.second; });
  close_client(quiet->first);
}

void TelemetryServer::read(int socket) {
  std::array<char, kLongestRequest + 1> request{};
  const ssize_t received = recv(socket, request.data(), request.size(), MSG_DONTWAIT);
  if (received < 0 && (errno == EAGAIN || errno == EINTR)) return;
  // An empty message looks like an end.
  if (received <= 0) return close_client(socket);
  clients_.at(socket) = ++heard_;
  const auto size = static_cast<std::size_t>(received);
  // One that is longer was cut, so nobody knows what it asks for.
  send_answer(socket, answer_to(size > kLongestRequest ? std::string_view()
                                                       : std::string_view(request.data(), size)));
}

std::string TelemetryServer::answer_to(std::string_view request) const {
  const std::size_t comma = request.find(',');
  const std::string_view name = request.substr(0, comma);
  const auto found = commands_.find(name);
  if (found == commands_.end()) {
    return control::json_text(Json{{name.empty() ? "none" : control::printable(name), nullptr}});
  }
  Json answer = Json::object();
  Json& value = answer[found->first];
  try {
    value = found->second.command(comma == std::string_view::npos ? std::string_view()
                                                                  : request.substr(comma + 1));
  } catch (const control::UsageError& error) {
    value = {{"error", error.what()}};
  }
  std::string text = control::json_text(answer);
  if (text.size() <= kLongestAnswer) return text;
  value = {{"error", fmt::format("the answer has {} bytes, and {} is the most: ask for a part of "
                                 "it, as `/help,{}` says",
                                 text.size(), kLongestAnswer, found->first)}};
  return control::json_text(answer);
}

void TelemetryServer::send_answer(int socket, const std::string& answer) {
  if (send(socket, answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    close_client(socket);
  }
}

void TelemetryServer::close_client(int socket) {
  clients_.erase(socket);
  loop_.remove(socket);
  close(socket);
}

}  // namespace gradcube::dataplane
