#include "dataplane/daemon/session_messages.h"

#include <array>
#include <sys/socket.h>
#include <sys/uio.h>

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

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

bool send_welcome(int socket, const shared::Welcome& welcome, int region, int doorbell) {
  iovec part{const_cast<shared::Welcome*>(&welcome), sizeof welcome};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(2 * sizeof(int));
  const std::array<int, 2> descriptors{region, doorbell};
  std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof descriptors);
  return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof welcome);
}

}  // namespace gradcube::dataplane
