#include "dataplane/daemon/control_server.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include "control/base/errors.h"
#include "control/base/printable.h"
#include "dataplane/daemon/unix_listener.h"

namespace gradcube::dataplane {

namespace {
constexpr std::size_t kLongestLine = 64 * 1024;
constexpr std::size_t kMostUnread = 1024 * 1024;
constexpr std::size_t kMostClients = 64;
constexpr auto kAnswerWithin = std::chrono::seconds(5);
}  // namespace

ControlServer::ControlServer(ControlLoop& loop, std::filesystem::path socket)
    : loop_(loop), path_(std::move(socket)), listener_(listen_on(path_, SOCK_STREAM)) {
  loop_.add(listener_, [this] { accept(); });
}

ControlServer::~ControlServer() {
  while (!clients_.empty()) close_client(clients_.begin()->first);
  loop_.remove(listener_);
  close(listener_);
  unlink(path_.c_str());
}

void ControlServer::accept() {
  for (;;) {
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) return;
    if (clients_.size() >= kMostClients || !peer_is_us(socket)) {
      close(socket);
      continue;
    }
    clients_[socket].since = SteadyClock::now();
    loop_.add(socket, [this, socket] { read(socket); });
  }
}

void ControlServer::read(int socket) {
  Client& client = clients_.at(socket);
  std::array<char, 4096> buffer{};
  const ssize_t received = recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (received < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (received <= 0 || client.received.size() > kLongestLine) {
    close_client(socket);
    return;
  }
  client.received.append(buffer.data(), static_cast<std::size_t>(received));
  for (std::size_t end; (end = client.received.find('\n')) != std::string::npos;) {
    if (client.answer.size() > kMostUnread) {
      close_client(socket);
      return;
    }
    client.answer += answer_to(client.received.substr(0, end)) + "\n";
    client.received.erase(0, end + 1);
  }
  write(socket);
}

std::string ControlServer::answer_to(const std::string& line) {
  nlohmann::ordered_json answer;
  try {
    const nlohmann::json request = nlohmann::json::parse(line);
    if (!request.is_object() || !request.contains("command") || !request["command"].is_string()) {
      throw control::UsageError("a request is a JSON object with a \"command\"");
    }
    const std::string name = request["command"];
    const auto command = commands_.find(name);
    if (command == commands_.end()) {
      throw control::UsageError(fmt::format("the daemon has no command {}", control::quoted(name)));
    }
    answer = command->second(request);
    answer["ok"] = true;
  } catch (const control::UsageError& error) {
    answer = {{"ok", false}, {"usage", true}, {"error", error.what()}};
  } catch (const std::exception& error) {
    answer = {{"ok", false}, {"error", error.what()}};
  }
  return answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void ControlServer::write(int socket) {
  Client& client = clients_.at(socket);
  while (!client.answer.empty()) {
    const ssize_t sent =
        send(socket, client.answer.data(), client.answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) return;  // expire_slow() comes by again
    if (sent <= 0) {
      close_client(socket);
      return;
    }
    client.answer.erase(0, static_cast<std::size_t>(sent));
  }
}

void ControlServer::expire_slow() {
  const auto now = SteadyClock::now();
  std::vector<int> sockets;
  for (const auto& [socket, client] : clients_) sockets.push_back(socket);
  for (const int socket : sockets) {
    if (now - clients_.at(socket).since > kAnswerWithin) {
      close_client(socket);
    } else if (!clients_.at(socket).answer.empty()) {
      write(socket);
    }
  }
}

bool ControlServer::all_answered() const {
  for (const auto& [socket, client] : clients_) {
    if (!client.answer.empty()) return false;
  }
  return true;
}

void ControlServer::close_client(int socket) {
  clients_.erase(socket);
  loop_.remove(socket);
  close(socket);
}

}  // namespace gradcube::dataplane
