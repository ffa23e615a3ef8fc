#include "tests/unit/trainer/fake_session.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "tests/unit/trainer/fake_daemon.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

FakeSession::~FakeSession() {
  if (region_ != nullptr) ::munmap(region_, region_bytes_);
}

FakeSession::Message FakeSession::hear() {
  std::array<char, 8192> packet;
  const ssize_t bytes = ::recv(socket_.get(), packet.data(), packet.size(), MSG_DONTWAIT);
  if (bytes < 0 && errno == EAGAIN) return Message::nothing;
  finished_ = finished_ || bytes <= 0;
  if (bytes < static_cast<ssize_t>(sizeof(shared::MessageType))) {
    return doorbell_.valid() ? Message::death
                             : Message::nothing;  // who was not admitted is missed by nobody
  }
  return understand(packet.data(), static_cast<std::size_t>(bytes));
}

FakeSession::Message FakeSession::understand(const char* packet, std::size_t bytes) {
  shared::MessageType type;
  std::memcpy(&type, packet, sizeof(type));
  if (type == shared::MessageType::hello && read_hello(packet, bytes)) return Message::hello;
  if (type == shared::MessageType::mapped) return Message::mapped;
  if (type == shared::MessageType::grow && bytes == sizeof(shared::Grow)) {
    std::memcpy(&last_grow_, packet, sizeof(last_grow_));
    confirm();
    return Message::grow;
  }
  if (type == shared::MessageType::inquiry && bytes == sizeof(shared::Inquiry)) {
    const std::uint64_t before = last_inquiry_.request;
    std::memcpy(&last_inquiry_, packet, sizeof(last_inquiry_));
    const std::string again = last_inquiry_.request == before ? kAgain : "";
    if (job_ != "silent") {
      notify(shared::MessageType::report, GRADCUBE_ETIMEDOUT,
             kReport + std::to_string(last_inquiry_.request) + again, 0, last_inquiry_.request);
    }
    return Message::inquiry;
  }
  if (type == shared::MessageType::make_hub && bytes == sizeof(shared::MakeHub)) {
    std::memcpy(&last_wish_, packet, sizeof(last_wish_));
    make_hub();
    return Message::make_hub;
  }
  if (type == shared::MessageType::end_hub) {
    hub_.reset();
    return Message::end_hub;
  }
  finished_ = true;
  if (type == shared::MessageType::abort) return Message::abort;
  return type == shared::MessageType::goodbye ? Message::goodbye : Message::death;
}

bool FakeSession::read_hello(const char* packet, std::size_t bytes) {
  if (bytes < sizeof(hello_)) return false;
  std::memcpy(&hello_, packet, sizeof(hello_));
  if (bytes != sizeof(hello_) + hello_.member_count * sizeof(std::uint32_t)) return false;
  members_.resize(hello_.member_count);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    std::memcpy(&members_[i], packet + sizeof(hello_) + i * sizeof(members_[i]),
                sizeof(members_[i]));
  }
  return true;
}

void FakeSession::turn_away() {
  constexpr int kHelloMilliseconds = 5000;
  notify(shared::MessageType::refused, GRADCUBE_EJOB, kRefusal);
  // An unread hello makes the kernel reset the connection.
  pollfd hello{socket_.get(), POLLIN, 0};
  ::poll(&hello, 1, kHelloMilliseconds);
}

void FakeSession::answer() {
  job_ = hello_.job;
  if (job_ == "refuse") {
    notify(shared::MessageType::refused, GRADCUBE_EJOB, kRefusal);
    finished_ = true;
  } else if (job_ == "older") {
    notify(shared::MessageType::refused, GRADCUBE_EPROTOCOL, kOtherVersion);
    finished_ = true;
  } else if (job_ == "deaf") {
    finished_ = true;
  } else if (job_ == "garbage") {
    ::send(socket_.get(), "garbage", 7, MSG_NOSIGNAL);
  } else if (job_ == "version") {
    const std::uint32_t offer[5] = {static_cast<std::uint32_t>(shared::MessageType::offer),
                                    kOtherLayout};
    ::send(socket_.get(), offer, sizeof(offer), MSG_NOSIGNAL);
  } else if (job_ != "mute") {
    offer();
  }
}

// As the daemon does, but for looking at the pages.
void FakeSession::confirm() {
  const std::uint64_t wanted = std::max(last_grow_.end, last_grow_.wanted);
  if (job_ == "undecided") return;
  if (job_ == "generous") {
    confirmed_ = region_bytes_;
  } else if (job_ == "poor" && wanted > shared::kHeapOffset + kPoorHeap) {
    notify(shared::MessageType::grown, GRADCUBE_ENOMEM, kQuota, 0, confirmed_);
    return;
  } else if (job_ == "swapped" && last_grow_.end > confirmed_ && swapped_out_++ == 0) {
    notify(shared::MessageType::grown, GRADCUBE_EAGAIN, "not there", 0, confirmed_);
    return;
  } else {
    confirmed_ = std::max(confirmed_, last_grow_.end);
  }
  notify(shared::MessageType::grown, GRADCUBE_OK, "", 0, confirmed_);
}

// As the daemon does: with the table as it is when the message is read.
void FakeSession::make_hub() {
  if (job_ == "hubless") {
    notify(shared::MessageType::hub_made, GRADCUBE_ENOMEM, kNoHub, last_wish_.number);
    return;
  }
  hub_ = std::make_unique<FakeHub>(region_ + last_wish_.offset, last_wish_.bytes);
  if (job_ == "unhubbed") return;
  if (job_ == "late") {
    notify(shared::MessageType::hub_made, GRADCUBE_EINVAL, "too late", last_wish_.number - 1);
  }
  shared::Notice made{};
  made.type = shared::MessageType::hub_made;
  made.number = last_wish_.number;
  made.request = hub_->bytes() + (job_ == "misfit" ? shared::kBufferAlignment : 0);
  if (job_ == "empty-handed") {
    ::send(socket_.get(), &made, sizeof(made), MSG_NOSIGNAL | MSG_DONTWAIT);
  } else {
    send_with(&made, sizeof(made), hub_->descriptor());
  }
}

void FakeSession::make_region(std::uint64_t bytes) {
  memory_ = Descriptor(::memfd_create("gradcube-test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  region_bytes_ = bytes;
  if (::ftruncate(memory_.get(), static_cast<off_t>(bytes)) != 0) std::abort();
  if (job_ != "unsealed") ::fcntl(memory_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
  if (mapped == MAP_FAILED) std::abort();
  region_ = static_cast<std::byte*>(mapped);
  shared::RegionHeader& fresh = header();
  fresh.magic = shared::kMagic;
  fresh.version = shared::kLayoutVersion;
  fresh.ring_entries = shared::kRingEntries;
  fresh.region_bytes = bytes;
}

void FakeSession::offer() {
  make_region(shared::kHeapOffset + (hello_.heap_bytes + 4095) / 4096 * 4096);
  shared::Offer offer{};
  offer.type = shared::MessageType::offer;
  offer.version = shared::kLayoutVersion;
  offer.region_bytes = region_bytes_;
  send_with(&offer, sizeof(offer), memory_.get());
}

void FakeSession::welcome() {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) std::abort();
  doorbell_ = Descriptor(pair[0]);
  trainers_doorbell_ = Descriptor(pair[1]);

  shared::Welcome welcome{};
  welcome.type = shared::MessageType::welcome;
  welcome.rank = static_cast<std::uint32_t>(rank_);
  welcome.size = static_cast<std::uint32_t>(size_);
  welcome.server_number = FakeDaemon::kServer;
  std::strcpy(welcome.server, "[2,1]");
  send_with(&welcome, sizeof(welcome), trainers_doorbell_.get());
  trainers_doorbell_.reset();
}

int FakeSession::seals() const { return ::fcntl(memory_.get(), F_GET_SEALS); }

std::uint64_t FakeSession::resident_bytes() const {
  struct stat facts {};
  if (::fstat(memory_.get(), &facts) != 0) std::abort();
  return static_cast<std::uint64_t>(facts.st_blocks) * 512;
}

void FakeSession::send_with(const void* bytes, std::size_t size, int descriptor) {
  iovec part{const_cast<void*>(bytes), size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(rights), &descriptor, sizeof(descriptor));
  ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
}

void FakeSession::notify(shared::MessageType type, int code, const std::string& message,
                         std::uint32_t number, std::uint64_t request) {
  shared::Notice notice{};
  notice.type = type;
  notice.code = code;
  notice.number = number;
  notice.request = request;
  message.copy(notice.text, sizeof(notice.text) - 1);
  ::send(socket_.get(), &notice, sizeof(notice), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace gradcube::trainer
