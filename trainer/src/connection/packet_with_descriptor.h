// A message as recvmsg() receives it: bytes, and at most one descriptor.
//
// One thread; lives as long as the call.
#ifndef GRADCUBE_TRAINER_SRC_CONNECTION_PACKET_WITH_DESCRIPTOR_H_
#define GRADCUBE_TRAINER_SRC_CONNECTION_PACKET_WITH_DESCRIPTOR_H_

#include <cstddef>
#include <cstring>
#include <sys/socket.h>
#include <sys/uio.h>
#include <utility>
#include <vector>

#include "trainer/src/base/descriptor.h"
#include "trainer/src/connection/message.h"

namespace gradcube::trainer {

class PacketWithDescriptor {
 public:
  // The bytes go to `packet`.
  explicit PacketWithDescriptor(Packet& packet) : part_{packet.data(), packet.size()} {
    header_.msg_iov = &part_;
    header_.msg_iovlen = 1;
    header_.msg_control = control_;
    header_.msg_controllen = sizeof(control_);
  }
  PacketWithDescriptor(const PacketWithDescriptor&) = delete;
  PacketWithDescriptor& operator=(const PacketWithDescriptor&) = delete;

  // For recvmsg().
  msghdr& header() { return header_; }

  // The descriptor that came with it; none if several did.
  Descriptor take_descriptor() {
    std::vector<Descriptor> descriptors;
    for (cmsghdr* part = CMSG_FIRSTHDR(&header_); part != nullptr;
         part = CMSG_NXTHDR(&header_, part)) {
      if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
      const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
        descriptors.emplace_back(fd);
      }
    }
    return descriptors.size() == 1 ? std::move(descriptors.front()) : Descriptor();
  }

 private:
  iovec part_;
  msghdr header_{};
  alignas(cmsghdr) char control_[CMSG_SPACE(sizeof(int))];
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_CONNECTION_PACKET_WITH_DESCRIPTOR_H_
