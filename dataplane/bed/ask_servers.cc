#include "dataplane/bed/ask_servers.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "control/base/descriptor.h"
#include "control/base/printable.h"

namespace gradcube::dataplane {

using control::Descriptor;
using SteadyClock = std::chrono::steady_clock;

namespace {

constexpr std::size_t kLongestAnswer = 64 << 20;
constexpr std::size_t kLongestRefusal = 1000;

// One question, and what has come of it.
class Inquiry {
 public:
  Inquiry(const std::filesystem::path& path, const std::string& line) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = path.string();
    if (name.size() >= sizeof address.sun_path) {
      end("the path of its socket is too long");
      return;
    }
    name.copy(address.sun_path, name.size());
    socket_ = Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    // The line is much shorter than the socket's buffer.
    if (connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL) !=
            static_cast<ssize_t>(line.size())) {
      end(fmt::format("its control socket cannot be reached: {}", std::strerror(errno)));
    }
  }

  int descriptor() const { return socket_.get(); }  // -1 when it has ended

  void read() {
    std::array<char, 65536> bytes{};
    const ssize_t size = recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (size <= 0) return end("it closed the connection without an answer");
    text_.append(bytes.data(), static_cast<std::size_t>(size));
    if (text_.find('\n') != std::string::npos) return parse();
    if (text_.size() > kLongestAnswer) end("its answer is too long");
  }

  ServerAnswer take() {
    if (socket_.get() >= 0) end("it did not answer in time");
    return std::move(answer_);
  }

 private:
  void end(std::string why) {
    answer_.why = std::move(why);
    socket_.reset();
  }

  void parse() {
    auto answer = nlohmann::ordered_json::parse(text_, nullptr, /*allow_exceptions=*/false);
    if (!answer.is_object()) return end("its answer is not what a daemon says");
    if (!answer.contains("ok") || answer["ok"] != true) {
      const bool told = answer.contains("error") && answer["error"].is_string();
      answer_.usage = told && answer.contains("usage") && answer["usage"] == true;
      return end(told ? control::printable(answer["error"].get<std::string>(), kLongestRefusal)
                      : "it refused");
    }
    answer_.answer = std::move(answer);
    socket_.reset();
  }

  Descriptor socket_;
  std::string text_;
  ServerAnswer answer_;
};

}  // namespace

std::vector<ServerAnswer> ask_servers(const std::vector<std::filesystem::path>& sockets,
                                      const nlohmann::ordered_json& request,
                                      std::chrono::milliseconds patience) {
  const SteadyClock::time_point deadline = SteadyClock::now() + patience;
  const std::string line = request.dump() + "\n";
  std::vector<Inquiry> inquiries;
  for (const auto& socket : sockets) inquiries.emplace_back(socket, line);
  std::vector<pollfd> events(inquiries.size());
  for (;;) {
    // poll() looks at no negative descriptor.
    for (std::size_t i = 0; i < events.size(); ++i) {
      events[i] = {inquiries[i].descriptor(), POLLIN, 0};
    }
    const bool waiting = std::any_of(events.begin(), events.end(),
                                     [](const pollfd& event) { return event.fd >= 0; });
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now());
    if (!waiting || left.count() <= 0) break;
    poll(events.data(), events.size(), static_cast<int>(left.count()));
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (events[i].revents != 0) inquiries[i].read();
    }
  }
  std::vector<ServerAnswer> answers;
  for (Inquiry& inquiry : inquiries) answers.push_back(inquiry.take());
  return answers;
}

}  // namespace gradcube::dataplane
