// A trainer's side of a session's socket, spoken by hand.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_DAEMON_SESSION_TRAINER_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_DAEMON_SESSION_TRAINER_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

#include "trainer/shared_layout.h"

namespace gradcube::dataplane {

class Trainer {
 public:
  static constexpr std::uint64_t kHeap = std::uint64_t{100} << 20;
  static constexpr std::uint64_t kBytes = shared::kHeapOffset + kHeap;

  explicit Trainer(const std::filesystem::path& path)
      : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.string().copy(address.sun_path, sizeof address.sun_path - 1);
    all().insert(this);
    if (connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("cannot connect to " + path.string());
    }
  }
  ~Trainer() {
    all().erase(this);
    close(socket_);
    if (region_ >= 0) close(region_);
    if (memory_ != nullptr) munmap(memory_, kBytes);
  }
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  void hello(const std::string& job, const std::string& secret = "") const {
    shared::Hello hello = hello_of(job);
    secret.copy(hello.secret, sizeof hello.secret);
    EXPECT_TRUE(send_all(hello));
  }
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
  // All trainers that were offered memory, and know what to do with it, seal it and say so.
  static void answer_offers() {
    for (Trainer* trainer : all()) trainer->answer_offer();
  }
  // What becomes of an offer.
  enum class AtOffer { seal, leave_unsealed, wait };
  void at_offer(AtOffer what) { at_offer_ = what; }
  // Its memory; -1 before the offer.
  int region() const { return region_; }
  void touch(std::uint64_t begin, std::uint64_t end) const {
    for (std::uint64_t at = begin; at < end; at += 4096) memory_[at] = 1;
  }
  bool report_memory(std::uint64_t end, std::uint64_t wanted = 0) const {
    shared::Grow grow{};
    grow.type = shared::MessageType::grow;
    grow.end = end;
    grow.wanted = std::max(end, wanted);
    return send_all(grow);
  }
  // The answer to a report, if it is the next message.
  std::optional<shared::Notice> confirmation() const {
    shared::Notice notice{};
    if (recv(socket_, &notice, sizeof notice, MSG_PEEK) != sizeof notice ||
        notice.type != shared::MessageType::grown) {
      return std::nullopt;
    }
    recv(socket_, &notice, sizeof notice, 0);
    return notice;
  }
  void write(std::uint64_t at, const std::string& bytes) const {
    std::memcpy(memory_ + at, bytes.data(), bytes.size());
  }
  // Any message.
  template <typename Message>
  bool say(const Message& message) const {
    return send_all(message);
  }
  // The answer to a wish for a hub that was refused, if it is the next message.
  std::optional<shared::Notice> hub_answer() const {
    shared::Notice notice{};
    if (recv(socket_, &notice, sizeof notice, MSG_PEEK) != sizeof notice ||
        notice.type != shared::MessageType::hub_made) {
      return std::nullopt;
    }
    recv(socket_, &notice, sizeof notice, 0);
    return notice;
  }
  // The memory of a hub, which the caller closes, if it is the next message; else -1.
  int hub_memory() const {
    shared::Notice notice{};
    if (recv(socket_, &notice, sizeof notice, MSG_PEEK) != sizeof notice ||
        notice.type != shared::MessageType::hub_made) {
      return -1;
    }
    return take_with_descriptor(notice);
  }
  // Takes the welcome, if it has come; then the notices can be read.
  bool take_welcome() const {
    if (!is_welcomed()) return false;
    shared::Welcome welcome{};
    return recv(socket_, &welcome, sizeof welcome, 0) == sizeof welcome;
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
  static std::set<Trainer*>& all() {
    static std::set<Trainer*> trainers;
    return trainers;
  }
  void answer_offer() {
    shared::Offer offer{};
    if (at_offer_ == AtOffer::wait ||
        recv(socket_, &offer, sizeof offer, MSG_PEEK) != sizeof offer ||
        offer.type != shared::MessageType::offer) {
      return;
    }
    region_ = take_with_descriptor(offer);
    ASSERT_GE(region_, 0);
    ASSERT_EQ(offer.region_bytes, kBytes);
    void* mapping = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, region_, 0);
    ASSERT_NE(mapping, MAP_FAILED);
    memory_ = static_cast<std::uint8_t*>(mapping);
    if (at_offer_ == AtOffer::seal) {
      ASSERT_EQ(fcntl(region_, F_ADD_SEALS, shared::kSeals), 0);
    }
    ASSERT_TRUE(send_all(shared::MessageType::mapped));
  }

  // Takes the next message, and the descriptor that comes with it; -1 if none does.
  template <typename Message>
  int take_with_descriptor(Message& message) const {
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    iovec part{&message, sizeof message};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    int descriptor = -1;
    if (recvmsg(socket_, &header, MSG_CMSG_CLOEXEC) == static_cast<ssize_t>(sizeof message) &&
        CMSG_FIRSTHDR(&header) != nullptr) {
      std::memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof descriptor);
    }
    return descriptor;
  }

  static shared::Hello hello_of(const std::string& job) {
    shared::Hello hello{};
    hello.type = shared::MessageType::hello;
    hello.version = shared::kLayoutVersion;
    hello.heap_bytes = kHeap;
    hello.rank = -1;
    hello.weight = 1;
    hello.lane_count = 1;
    hello.trainers = 1;
    hello.local = -1;
    job.copy(hello.job, sizeof hello.job - 1);
    return hello;
  }
  template <typename Message>
  bool send_all(const Message& message) const {
    return send(socket_, &message, sizeof message, MSG_NOSIGNAL) ==
           static_cast<ssize_t>(sizeof message);
  }

  int socket_;
  int region_ = -1;
  std::uint8_t* memory_ = nullptr;
  AtOffer at_offer_ = AtOffer::seal;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_DAEMON_SESSION_TRAINER_H_
