#include "dataplane/sockets/control_server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include "control/base/errors.h"
#include "control/base/json_text.h"
#include "control/base/printable.h"

namespace gradcube::dataplane {

namespace {
constexpr std::size_t kLongestLine = 64 * 1024;
constexpr std::size_t kMostUnread = 1024 * 1024;
constexpr std::size_t kMostSent = 1024 * 1024;  // in one go
constexpr std::size_t kMostClients = 64;
constexpr auto kAnswerWithin = std::chrono::seconds(5);

// Tells why, as far as the socket takes it at once, and closes it.
void refuse(int socket, const std::string& why) {
  const std::string line =
      control::json_text(nlohmann::ordered_json{{"ok", false}, {"error", why}}) + "\n";
  (void)!send(socket, line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  // What it has asked for would otherwise take the answer with it.
  shutdown(socket, SHUT_WR);
  std::array<char, 4096> asked{};
  (void)!recv(socket, asked.data(), asked.size(), MSG_DONTWAIT);
  close(socket);
}

}  // namespace

ControlServer::ControlServer(ControlLoop& loop, const std::filesystem::path& socket,
                             AllowedUsers users)
    : loop_(loop),
      listener_(
          loop, socket, SOCK_STREAM, [this](const auto& each) { accept(each); }, std::move(users)) {
}

ControlServer::~ControlServer() {
  while (!clients_.empty()) close_client(clients_.begin()->first);
}

void ControlServer::accept(const Accepted& accepted) {
  const int socket = accepted.socket;
  if (const std::string why = objection(accepted); !why.empty()) return refuse(socket, why);
  Client& client = clients_[socket];
  client.since = SteadyClock::now();
  client.user = accepted.uid;
  client.standing = accepted.standing;
  loop_.add(socket, [this, socket] { read(socket); });
}

// Why a client is not served; empty if it is.
std::string ControlServer::objection(const Accepted& accepted) const {
  const uid_t user = accepted.uid;
  if (accepted.standing == Standing::stranger) return AllowedUsers::refusal(user);
  std::size_t of_tenants = 0;
  std::size_t of_user = 0;
  for (const auto& [socket, client] : clients_) {
    if (client.standing == Standing::tenant) ++of_tenants;
    if (client.user == user) ++of_user;
  }
  const bool is_tenant = accepted.standing == Standing::tenant;
  if (is_tenant && of_user >= kMostOfTenant) {
    return fmt::format(
        "user {} asks the daemon {} times already, which is the most at a time: try again", user,
        kMostOfTenant);
  }
  if (clients_.size() < kMostClients && (!is_tenant || of_tenants < kMostOfTenants)) return "";
  return fmt::format("{} others ask the daemon already: try again", clients_.size());
}

void ControlServer::read(int socket) {
  Client& client = clients_.at(socket);
  std::array<char, 4096> buffer{};
  const ssize_t received = recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (received < 0 && (errno == EAGAIN || errno == EINTR)) return;
  // It may have shut down its writing side alone. When it closes the other, this is called again.
  if (received == 0 && !client.ended && !client.answer.empty()) {
    client.ended = true;
    return answer_line(socket);
  }
  if (received <= 0 || client.received.size() > kLongestLine) {
    close_client(socket);
    return;
  }
  client.received.append(buffer.data(), static_cast<std::size_t>(received));
  answer_line(socket);
}

// The first line that the client has sent, if it is whole. The client is read again when no whole
// line waits.
void ControlServer::answer_line(int socket) {
  Client& client = clients_.at(socket);
  const std::size_t end = client.received.find('\n');
  if (end != std::string::npos && answers_left_ > 0) {
    --answers_left_;
    last_answered_ = socket;
    if (client.answer.size() - client.sent > kMostUnread) {
      close_client(socket);
      return;
    }
    client.answer += answer_to(client, client.received.substr(0, end)) + "\n";
    client.received.erase(0, end + 1);
  }
  if (!write(socket)) return;
  const bool waits = client.received.find('\n') != std::string::npos;
  if (client.ended && client.answer.empty() && !waits) return close_client(socket);
  const bool pause = client.ended || waits;
  if (pause == client.paused) return;
  client.paused = pause;
  if (pause) {
    loop_.pause(socket);
  } else {
    loop_.resume(socket);
  }
}

std::string ControlServer::answer_to(const Client& client, const std::string& line) {
  nlohmann::ordered_json answer;
  try {
    const nlohmann::json request = nlohmann::json::parse(line);
    if (!request.is_object() || !request.contains("command") || !request["command"].is_string()) {
      throw control::UsageError("a request is a JSON object with a \"command\"");
    }
    const std::string name = request["command"];
    const auto found = commands_.find(name);
    if (found == commands_.end()) {
      throw control::UsageError(fmt::format("unknown command {}", control::quoted(name)));
    }
    const auto& [own, text, of_tenants] = found->second;
    const bool is_owner = client.standing == Standing::owner;
    if (is_owner && text) return text(request);
    if (!is_owner && !of_tenants) {
      throw control::SetupError(
          fmt::format("\"{}\" is for the daemon's own user, {}, and root: user {} may use the "
                      "cluster, and see its own jobs in `gradcube status`",
                      name, geteuid(), client.user));
    }
    answer = is_owner ? own(request) : of_tenants(request, client.user);
    answer["ok"] = true;
  } catch (const nlohmann::json::parse_error&) {
    answer = {{"ok", false}, {"usage", true}, {"error", "a request is one line of JSON"}};
  } catch (const control::UsageError& error) {
    answer = {{"ok", false}, {"usage", true}, {"error", error.what()}};
  } catch (const std::exception& error) {
    answer = {{"ok", false}, {"error", error.what()}};
  }
  return control::json_text(answer);
}

// Sends what the client takes, and no more than a part of a long answer. False if that closed the
// client.
bool ControlServer::write(int socket) {
  Client& client = clients_.at(socket);
  const std::size_t stop = std::min(client.answer.size(), client.sent + kMostSent);
  while (client.sent < stop) {
    const ssize_t sent = send(socket, client.answer.data() + client.sent, stop - client.sent,
                              MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) return true;
    if (sent <= 0) {
      close_client(socket);
      return false;
    }
    client.sent += static_cast<std::size_t>(sent);
  }
  if (client.sent < client.answer.size()) return true;
  client.answer.clear();
  client.sent = 0;
  return true;
}

void ControlServer::tick(SteadyClock::time_point now) {
  answers_left_ = kMostAnswers;
  std::vector<int> sockets;
  for (const auto& [socket, client] : clients_) sockets.push_back(socket);
  // In turn: from the one behind the last that had its turn.
  std::rotate(sockets.begin(), std::upper_bound(sockets.begin(), sockets.end(), last_answered_),
              sockets.end());
  for (const int socket : sockets) {
    const Client& client = clients_.at(socket);
    if (now - client.since > kAnswerWithin) {
      close_client(socket);
    } else if (client.paused || !client.answer.empty()) {
      answer_line(socket);
    }
  }
}

bool ControlServer::all_answered() const {
  for (const auto& [socket, client] : clients_) {
    if (client.standing == Standing::owner && !client.answer.empty()) return false;
  }
  return true;
}

void ControlServer::close_client(int socket) {
  clients_.erase(socket);
  loop_.remove(socket);
  close(socket);
}

}  // namespace gradcube::dataplane
