#include "dataplane/daemon/trainers/session_messages.h"

#include <algorithm>
#include <array>
#include <sys/socket.h>
#include <sys/uio.h>
#include <vector>

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

namespace {

// The beginning of every version's Hello.
struct HelloBegin {
  shared::MessageType type;
  std::uint32_t version;
};

std::string text_of(const char* text, std::size_t room) { return {text, strnlen(text, room)}; }

}  // namespace

bool send_with(int socket, const void* bytes, std::size_t size, int descriptor) {
  iovec part{const_cast<void*>(bytes), size};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

shared::Notice make_notice(shared::MessageType type, std::int32_t code, const std::string& text) {
  shared::Notice notice{};
  notice.type = type;
  notice.code = code;
  text.copy(notice.text, shared::kNoticeTextBytes - 1);
  return notice;
}

shared::Notice make_failure(std::uint32_t number, std::int32_t code, const std::string& text) {
  shared::Notice notice = make_notice(shared::MessageType::failure, code, text);
  notice.number = number;
  return notice;
}

shared::Notice make_report(std::uint64_t request, const std::string& text) {
  shared::Notice notice = make_notice(shared::MessageType::report, GRADCUBE_ETIMEDOUT, text);
  notice.request = request;
  return notice;
}

bool send_notice(int socket, const shared::Notice& notice) {
  return send(socket, &notice, sizeof notice, MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof notice);
}

std::uint32_t hello_version(std::string_view bytes) {
  HelloBegin begin{};
  return read_as(bytes.substr(0, sizeof begin), begin) ? begin.version : 0;
}

std::optional<TrainerRequest> read_hello(std::string_view bytes) {
  shared::Hello hello{};
  if (!read_as(bytes.substr(0, sizeof hello), hello) ||
      bytes.size() != sizeof hello + std::uint64_t{hello.member_count} * sizeof(std::uint32_t) ||
      hello.lane_count == 0 || hello.lane_count > shared::kMaxLanes || hello.weight == 0 ||
      hello.weight > shared::kMostWeight || hello.trainers == 0 ||
      hello.trainers > shared::kMaxLocalTrainers || hello.reproducible > 1) {
    return std::nullopt;
  }
  TrainerRequest request;
  request.job = text_of(hello.job, shared::kJobNameBytes);
  request.secret = text_of(hello.secret, shared::kJobSecretBytes);
  request.heap_bytes = hello.heap_bytes;
  request.options.weight = hello.weight;
  request.options.reproducible = hello.reproducible != 0;
  request.options.trainers = hello.trainers;
  for (unsigned i = 0; i < hello.lane_count; ++i) {
    const shared::Lane& lane = hello.lanes[i];
    request.options.lanes.push_back(
        {text_of(lane.algorithm, shared::kAlgorithmNameBytes), lane.priority});
  }
  std::vector<bcube::ServerId>& members = request.options.members;
  members.resize(hello.member_count);
  if (!members.empty()) {
    std::memcpy(members.data(), bytes.data() + sizeof hello, members.size() * sizeof members[0]);
  }
  const auto not_ascending =
      std::ranges::adjacent_find(members, [](auto a, auto b) { return a >= b; });
  if (not_ascending != members.end()) return std::nullopt;
  if (hello.rank >= 0) request.rank = static_cast<std::uint32_t>(hello.rank);
  if (hello.local >= 0) request.local = static_cast<std::uint32_t>(hello.local);
  return request;
}

}  // namespace gradcube::dataplane
