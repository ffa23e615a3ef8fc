#include "tests/unit/trainer/fake_session.h"

#include <array>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "tests/unit/trainer/fake_daemon.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {
namespace {

template <typename T>
void multiply(std::byte* memory, std::uint64_t count, int factor) {
  for (std::uint64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, memory + i * sizeof(T), sizeof(T));
    value *= static_cast<T>(factor);
    std::memcpy(memory + i * sizeof(T), &value, sizeof(T));
  }
}

shared::RegionHeader& header_of(std::byte* region) {
  return *reinterpret_cast<shared::RegionHeader*>(region);
}

}  // namespace

FakeSession::~FakeSession() {
  if (region_ != nullptr) ::munmap(region_, region_bytes_);
}

FakeSession::Heard FakeSession::hear() {
  std::array<char, 2048> packet;
  const ssize_t bytes = ::recv(socket_.get(), packet.data(), packet.size(), MSG_DONTWAIT);
  if (bytes < 0 && errno == EAGAIN) return Heard::nothing;
  finished_ = finished_ || bytes <= 0;
  if (bytes < static_cast<ssize_t>(sizeof(shared::MessageType))) return Heard::death;
  shared::MessageType type;
  std::memcpy(&type, packet.data(), sizeof(type));
  if (type == shared::MessageType::hello && bytes == sizeof(shared::Hello)) {
    shared::Hello hello;
    std::memcpy(&hello, packet.data(), sizeof(hello));
    answer(hello);
    return Heard::nothing;
  }
  if (type == shared::MessageType::inquiry && bytes == sizeof(shared::Inquiry)) {
    shared::Inquiry inquiry;
    std::memcpy(&inquiry, packet.data(), sizeof(inquiry));
    if (job_ != "silent") {
      notify(shared::MessageType::report, GRADCUBE_OK, kReport, inquiry.request, inquiry.request);
    }
    return Heard::inquiry;
  }
  finished_ = true;
  return type == shared::MessageType::goodbye ? Heard::goodbye : Heard::death;
}

void FakeSession::turn_away() {
  constexpr int kHelloMilliseconds = 5000;
  notify(shared::MessageType::refused, GRADCUBE_EJOB, kRefusal, 0, 0);
  // An unread hello makes the kernel reset the connection.
  pollfd hello{socket_.get(), POLLIN, 0};
  ::poll(&hello, 1, kHelloMilliseconds);
}

void FakeSession::answer(const shared::Hello& hello) {
  job_ = hello.job;
  if (job_ == "refuse") {
    notify(shared::MessageType::refused, GRADCUBE_EJOB, kRefusal, 0, 0);
    finished_ = true;
  } else if (job_ == "garbage") {
    ::send(socket_.get(), "garbage", 7, MSG_NOSIGNAL);
  } else if (job_ != "mute") {
    welcome(hello.heap_bytes);
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
  shared::RegionHeader& header = header_of(region_);
  header.magic = shared::kMagic;
  header.version = shared::kLayoutVersion;
  header.ring_entries = shared::kRingEntries;
  header.region_bytes = bytes;
}

void FakeSession::welcome(std::uint64_t heap_bytes) {
  make_region(shared::kHeapOffset + (heap_bytes + 4095) / 4096 * 4096);
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) std::abort();
  doorbell_ = Descriptor(pair[0]);
  trainers_doorbell_ = Descriptor(pair[1]);

  shared::Welcome welcome{};
  welcome.type = shared::MessageType::welcome;
  welcome.version = shared::kLayoutVersion + (job_ == "version" ? 1 : 0);
  welcome.rank = static_cast<std::uint32_t>(rank_);
  welcome.size = static_cast<std::uint32_t>(size_);
  welcome.region_bytes = region_bytes_;
  std::strcpy(welcome.server, "[2,1]");

  iovec part{&welcome, sizeof(welcome)};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(2 * sizeof(int));
  const int descriptors[2] = {memory_.get(), trainers_doorbell_.get()};
  std::memcpy(CMSG_DATA(rights), descriptors, sizeof(descriptors));
  ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
  trainers_doorbell_.reset();
  memory_.reset();
}

void FakeSession::notify(shared::MessageType type, int code, const char* message,
                         std::uint64_t first, std::uint64_t last) {
  shared::Notice notice{};
  notice.type = type;
  notice.code = code;
  notice.first_request = first;
  notice.last_request = last;
  std::strncpy(notice.text, message, sizeof(notice.text) - 1);
  ::send(socket_.get(), &notice, sizeof(notice), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void FakeSession::work(bool released) {
  if (region_ == nullptr || finished_) return;
  shared::RegionHeader& header = header_of(region_);
  const std::uint64_t tail = header.submission_tail.load(std::memory_order_seq_cst);
  while (submission_head_ < tail) {
    shared::Submission submission;
    std::memcpy(&submission,
                region_ + shared::kSubmissions +
                    submission_head_ % shared::kRingEntries * sizeof(submission),
                sizeof(submission));
    header.submission_head.store(++submission_head_, std::memory_order_release);
    if (misbehave()) return;
    waiting_.push_back(submission);
  }
  const bool held = (job_ == "hold" || job_ == "silent") && !released;
  for (; !held && !waiting_.empty(); waiting_.pop_front()) serve(waiting_.front());
}

bool FakeSession::misbehave() {
  if (job_ == "scold") {
    notify(shared::MessageType::closing, GRADCUBE_EPROTOCOL, kClosing, 0, 0);
  } else if (job_ == "scribble") {
    complete(1'000'000, GRADCUBE_OK);
    return false;
  } else if (job_ != "die") {
    return false;
  }
  finished_ = true;
  return true;
}

void FakeSession::serve(const shared::Submission& submission) {
  if (job_ == "unexplained") return complete(submission.request, GRADCUBE_EPEER);
  if (job_ == "fail") {
    notify(shared::MessageType::failure, GRADCUBE_EPEER, kFailure, submission.request,
           submission.request);
    return complete(submission.request, GRADCUBE_EPEER);
  }
  const bool aligned = submission.offset % shared::kBufferAlignment == 0;
  const bool inside = submission.offset >= shared::kHeapOffset &&
                      submission.offset <= region_bytes_ &&
                      submission.count <= (region_bytes_ - submission.offset) / 8;
  if (!aligned || !inside) return complete(submission.request, GRADCUBE_EINVAL);
  if (submission.op == GRADCUBE_SUM) add_up(submission);
  complete(submission.request, GRADCUBE_OK);
}

void FakeSession::add_up(const shared::Submission& submission) {
  std::byte* memory = region_ + submission.offset;
  switch (submission.dtype) {
    case GRADCUBE_FLOAT32:
      return multiply<float>(memory, submission.count, size_);
    case GRADCUBE_FLOAT64:
      return multiply<double>(memory, submission.count, size_);
    case GRADCUBE_INT32:
      return multiply<std::int32_t>(memory, submission.count, size_);
    case GRADCUBE_INT64:
      return multiply<std::int64_t>(memory, submission.count, size_);
    default:
      // 16-bit floats pass through unchanged: this daemon is about rings, not about arithmetic.
      return;
  }
}

void FakeSession::complete(std::uint64_t request, int code) {
  const shared::Completion completion{request, code, 0};
  std::memcpy(
      region_ + shared::kCompletions + completion_tail_ % shared::kRingEntries * sizeof(completion),
      &completion, sizeof(completion));
  shared::RegionHeader& header = header_of(region_);
  header.completion_tail.store(++completion_tail_, std::memory_order_seq_cst);
  if (header.trainer_asleep.load(std::memory_order_seq_cst) != 0) {
    ::send(doorbell_.get(), "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
}

bool FakeSession::about_to_sleep() {
  if (region_ == nullptr) return true;
  shared::RegionHeader& header = header_of(region_);
  header.daemon_asleep.store(1, std::memory_order_seq_cst);
  return header.submission_tail.load(std::memory_order_seq_cst) == submission_head_;
}

int FakeSession::awake() {
  if (region_ == nullptr) return 0;
  header_of(region_).daemon_asleep.store(0, std::memory_order_seq_cst);
  char rings[64];
  const ssize_t heard = ::recv(doorbell_.get(), rings, sizeof(rings), MSG_DONTWAIT);
  return heard > 0 ? static_cast<int>(heard) : 0;
}

}  // namespace gradcube::trainer
