// A trainer's side of a session's socket, spoken by hand.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_DAEMON_SESSION_TRAINER_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_DAEMON_SESSION_TRAINER_H_

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <stdexcept>
#include <string>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

#include "trainer/shared_layout.h"

namespace gradcube::dataplane {

class Trainer {
 public:
  explicit Trainer(const std::filesystem::path& path)
      : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.string().copy(address.sun_path, sizeof address.sun_path - 1);
    if (connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("cannot connect to " + path.string());
    }
  }
  ~Trainer() { close(socket_); }
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  void hello(const std::string& job) const { EXPECT_TRUE(send_all(hello_of(job))); }
  // Asks for servers 0 to most.
  void hello_with_members(const std::string& job, std::uint32_t most) const {
    shared::Hello hello = hello_of(job);
    hello.member_count = most + 1;
    std::vector<char> bytes(sizeof hello + hello.member_count * sizeof(std::uint32_t));
    std::memcpy(bytes.data(), &hello, sizeof hello);
    for (std::uint32_t server = 0; server <= most; ++server) {
      std::memcpy(&bytes[sizeof hello + server * sizeof server], &server, sizeof server);
    }
    EXPECT_EQ(send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // The text of the next notice; empty if there is none.
  std::string told() const {
    shared::Notice notice{};
    return recv(socket_, &notice, sizeof notice, 0) == sizeof notice ? notice.text : "";
  }
  // False if the queue is full.
  bool ask(std::uint64_t request) const {
    shared::Inquiry inquiry{};
    inquiry.type = shared::MessageType::inquiry;
    inquiry.request = request;
    inquiry.number = request;
    return send_all(inquiry);
  }
  void say_goodbye() const { EXPECT_TRUE(send_all(shared::MessageType::goodbye)); }
  void abort() const { EXPECT_TRUE(send_all(shared::MessageType::abort)); }
  // Whether a welcome is the next message that has come.
  bool is_welcomed() const {
    shared::Welcome welcome{};
    return recv(socket_, &welcome, sizeof welcome, MSG_PEEK) == sizeof welcome &&
           welcome.type == shared::MessageType::welcome;
  }
  // Whether the daemon has closed the session, and said nothing since.
  bool is_closed() const {
    char byte = 0;
    return recv(socket_, &byte, sizeof byte, MSG_PEEK) == 0;
  }
  // Whether something that was sent has not been read yet.
  bool has_unread() const {
    int bytes = 0;
    return ioctl(socket_, SIOCOUTQ, &bytes) == 0 && bytes != 0;
  }
  // The requests of all reports that have come.
  std::vector<std::uint64_t> reports() const {
    std::vector<std::uint64_t> requests;
    shared::Notice notice{};
    ssize_t bytes = 0;
    while ((bytes = recv(socket_, &notice, sizeof notice, 0)) > 0) {
      if (bytes == sizeof notice && notice.type == shared::MessageType::report) {
        requests.push_back(notice.request);
      }
    }
    return requests;
  }

 private:
  static shared::Hello hello_of(const std::string& job) {
    shared::Hello hello{};
    hello.type = shared::MessageType::hello;
    hello.version = shared::kLayoutVersion;
    hello.heap_bytes = 4096;
    hello.rank = -1;
    hello.weight = 1;
    hello.lane_count = 1;
    job.copy(hello.job, sizeof hello.job - 1);
    return hello;
  }
  template <typename Message>
  bool send_all(const Message& message) const {
    return send(socket_, &message, sizeof message, MSG_NOSIGNAL) ==
           static_cast<ssize_t>(sizeof message);
  }

  int socket_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_DAEMON_SESSION_TRAINER_H_
