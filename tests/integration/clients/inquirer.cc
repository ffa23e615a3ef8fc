// A trainer that only asks: inquirer SECONDS SOCKET JOB THREADS.
//
// Joins JOB, prints "joined", and then sends inquiries from THREADS threads as fast as the socket
// takes them. It reads no answer. Prints "sent N" at the end, and "cut off" if the daemon closed
// the session before.

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "trainer/shared_layout.h"

namespace {

namespace shared = gradcube::shared;

int join(const char* path, const char* job) {
  const int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  if (connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return -1;
  shared::Hello hello{};
  hello.type = shared::MessageType::hello;
  hello.version = shared::kLayoutVersion;
  hello.heap_bytes = 1 << 20;
  hello.pid = static_cast<std::uint32_t>(getpid());
  hello.rank = -1;
  hello.weight = 1;
  hello.lane_count = 1;
  hello.trainers = 1;
  hello.local = -1;
  std::strncpy(hello.job, job, sizeof hello.job - 1);
  if (send(connection, &hello, sizeof hello, 0) != sizeof hello) return -1;
  shared::Offer offer{};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  iovec part{&offer, sizeof offer};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(connection, &message, 0) != sizeof offer) return -1;
  int region = -1;
  std::memcpy(&region, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof region);
  if (fcntl(region, F_ADD_SEALS, shared::kSeals) != 0) return -1;
  close(region);
  const shared::MessageType mapped = shared::MessageType::mapped;
  if (send(connection, &mapped, sizeof mapped, 0) != sizeof mapped) return -1;
  shared::Welcome welcome{};
  if (recv(connection, &welcome, sizeof welcome, 0) != sizeof welcome) return -1;
  return welcome.type == shared::MessageType::welcome ? connection : -1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[1]));
  const int connection = join(argv[2], argv[3]);
  if (connection < 0) {
    std::puts("refused");
    return 1;
  }
  std::puts("joined");
  std::fflush(stdout);
  std::atomic<std::uint64_t> sent{0};
  std::atomic<bool> cut_off{false};
  const auto ask = [&] {
    shared::Inquiry inquiry{};
    inquiry.type = shared::MessageType::inquiry;
    inquiry.request = 1;
    inquiry.number = 1;
    while (!cut_off && std::chrono::steady_clock::now() < end) {
      if (send(connection, &inquiry, sizeof inquiry, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
        sent.fetch_add(1);
      } else if (errno != EAGAIN && errno != EINTR) {
        cut_off = true;
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < std::atoi(argv[4]); ++i) threads.emplace_back(ask);
  for (std::thread& thread : threads) thread.join();
  std::printf("sent %llu\n", static_cast<unsigned long long>(sent.load()));
  if (cut_off) std::puts("cut off");
  return 0;
}
