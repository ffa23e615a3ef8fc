// Memory that holds each thread that reads or writes it until release(): it is in the midst of what
// a test has given the memory to, for as long as the test wants.
//
// One at a time in a process: it is behind a handler of SIGSEGV.
#ifndef GRADCUBE_TESTS_SUPPORT_HELD_MEMORY_H_
#define GRADCUBE_TESTS_SUPPORT_HELD_MEMORY_H_

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace gradcube {

class HeldMemory {
 public:
  explicit HeldMemory(std::size_t bytes)
      : HeldMemory(::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), bytes) {
    is_own_ = true;
  }
  // Of pages that are somebody else's, and keep what is in them.
  HeldMemory(void* pages, std::size_t bytes) : memory_(pages), bytes_(bytes) {
    EXPECT_NE(memory_, MAP_FAILED);
    EXPECT_EQ(::mprotect(memory_, bytes_, PROT_NONE), 0);
    EXPECT_EQ(::pipe2(gate_.data(), O_CLOEXEC), 0);
    current() = this;
    struct sigaction action {};
    action.sa_sigaction = &hold;
    action.sa_flags = SA_SIGINFO;
    EXPECT_EQ(::sigaction(SIGSEGV, &action, &before_), 0);
  }
  ~HeldMemory() {
    release();
    ::sigaction(SIGSEGV, &before_, nullptr);
    current() = nullptr;
    ::close(gate_[0]);
    if (is_own_) ::munmap(memory_, bytes_);
  }
  HeldMemory(const HeldMemory&) = delete;
  HeldMemory& operator=(const HeldMemory&) = delete;

  template <typename T>
  T* as() const {
    return static_cast<T*>(memory_);
  }
  bool holds_a_thread() const { return held_; }
  // From now on it is ordinary memory; its own is of zeros. Threads that it holds, or that are
  // still to touch it, come back before it ends.
  void release() {
    if (const int gate = std::exchange(gate_[1], -1); gate >= 0) ::close(gate);
  }

 private:
  static std::atomic<HeldMemory*>& current() {
    static std::atomic<HeldMemory*> memory{nullptr};
    return memory;
  }

  // Any other address is a fault: it comes again, and ends the process.
  static void hold(int, siginfo_t* fault, void*) {
    HeldMemory* const memory = current();
    const auto* const at = static_cast<const std::byte*>(fault->si_addr);
    if (memory == nullptr || at < memory->as<std::byte>() ||
        at >= memory->as<std::byte>() + memory->bytes_) {
      ::signal(SIGSEGV, SIG_DFL);
      return;
    }
    memory->held_ = true;
    char none = 0;
    while (::read(memory->gate_[0], &none, 1) != 0) {
    }
    ::mprotect(memory->memory_, memory->bytes_, PROT_READ | PROT_WRITE);
  }

  void* memory_;
  std::size_t bytes_;
  bool is_own_ = false;
  std::array<int, 2> gate_{};
  std::atomic<bool> held_{false};
  struct sigaction before_ {};
};

}  // namespace gradcube

#endif  // GRADCUBE_TESTS_SUPPORT_HELD_MEMORY_H_
