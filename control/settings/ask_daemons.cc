#include "control/settings/ask_daemons.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <utility>

#include "control/base/descriptor.h"
#include "control/base/json_text.h"
#include "control/base/printable.h"

namespace gradcube::control {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kLongestAnswer = 64 << 20;
constexpr std::size_t kLongestRefusal = 4000;
// A daemon that hangs may have as many clients waiting as it can have.
constexpr std::chrono::milliseconds kBetweenTries{10};

// One question, and what has come of it.
class Inquiry {
 public:
  explicit Inquiry(const std::filesystem::path& path) {
    const std::string name = path.string();
    if (name.size() >= sizeof address_.sun_path) {
      end(fmt::format("the path {} is too long for a Unix socket", name));
      return;
    }
    address_.sun_family = AF_UNIX;
    name.copy(address_.sun_path, name.size());
    socket_ = Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_.valid()) {
      end(fmt::format("there is no socket to ask it by: {}{}", std::strerror(errno),
                      errno == EMFILE ? ": raise `ulimit -n`" : ""));
    }
  }

  bool has_ended() const { return socket_.get() < 0; }
  bool is_asked() const { return is_asked_; }
  int descriptor() const { return is_asked_ ? socket_.get() : -1; }  // -1: nothing to read

  // Again, where others wait to be let in.
  void ask(const std::string& line) {
    const auto* const address = reinterpret_cast<const sockaddr*>(&address_);
    is_asked_ = connect(socket_.get(), address, sizeof address_) == 0;
    if (is_asked_) {
      // The line is much shorter than the socket's buffer. A daemon that refuses at once has closed
      // its end already; its answer can still be read.
      (void)!send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL);
    } else if (errno != EAGAIN && errno != EINTR) {
      answer_.error = errno;
      end(fmt::format("its control socket cannot be reached: {}", std::strerror(answer_.error)));
    }
  }

  void read() {
    std::array<char, 65536> bytes{};
    const ssize_t size = recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (size < 0 && errno != ECONNRESET) {
      return end(fmt::format("its answer cannot be read: {}", std::strerror(errno)));
    }
    if (size <= 0) {
      return end("it closed the connection without an answer: it has ended, or is ending");
    }
    text_.append(bytes.data(), static_cast<std::size_t>(size));
    if (text_.find('\n', text_.size() - static_cast<std::size_t>(size)) != std::string::npos) {
      answer_ = read_answer(text_);
      return socket_.reset();
    }
    if (text_.size() > kLongestAnswer) end("its answer is too long");
  }

  DaemonAnswer take() {
    if (!has_ended()) end("it did not answer in time");
    return std::move(answer_);
  }

 private:
  void end(std::string why) {
    answer_.why = std::move(why);
    socket_.reset();
  }

  sockaddr_un address_{};
  Descriptor socket_;
  bool is_asked_ = false;
  std::string text_;
  DaemonAnswer answer_;
};

}  // namespace

DaemonAnswer read_answer(std::string_view line) {
  DaemonAnswer read;
  auto answer = nlohmann::ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object() || !answer.contains("ok") || !answer["ok"].is_boolean()) {
    read.why = "its answer does not follow the protocol: is it another version of gradcubed?";
  } else if (answer["ok"] == true) {
    read.answer = std::move(answer);
  } else {
    const bool told =
        answer.contains("error") && answer["error"].is_string() && answer["error"] != "";
    read.refused = true;
    read.usage = told && answer.contains("usage") && answer["usage"] == true;
    read.why = told ? printable(answer["error"].get<std::string>(), kLongestRefusal)
                    : "the daemon refused and gave no reason";
  }
  return read;
}

std::vector<DaemonAnswer> ask_daemons(const std::vector<std::filesystem::path>& sockets,
                                      const nlohmann::ordered_json& request,
                                      std::chrono::milliseconds patience) {
  const SteadyClock::time_point deadline = SteadyClock::now() + patience;
  const std::string line = json_text(request) + "\n";
  std::vector<Inquiry> inquiries;
  for (const auto& socket : sockets) inquiries.emplace_back(socket);
  std::vector<pollfd> events(inquiries.size());
  for (;;) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now());
    bool waiting = false;
    for (std::size_t i = 0; i < events.size(); ++i) {
      Inquiry& inquiry = inquiries[i];
      if (!inquiry.has_ended() && !inquiry.is_asked()) inquiry.ask(line);
      if (!inquiry.has_ended() && !inquiry.is_asked()) left = std::min(left, kBetweenTries);
      waiting = waiting || !inquiry.has_ended();
      events[i] = {inquiry.descriptor(), POLLIN, 0};  // poll() looks at no negative descriptor
    }
    if (!waiting || left.count() <= 0) break;
    poll(events.data(), events.size(), static_cast<int>(left.count()));
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (events[i].revents != 0) inquiries[i].read();
    }
  }
  std::vector<DaemonAnswer> answers;
  for (Inquiry& inquiry : inquiries) answers.push_back(inquiry.take());
  return answers;
}

}  // namespace gradcube::control
