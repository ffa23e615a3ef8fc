// Real bus errors: a file is mapped, and cut behind the mapping's back.

#include "dataplane/engine/memory/guarded_memory.h"

#include <cerrno>
#include <csignal>
#include <gtest/gtest.h>
#include <memory>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "dataplane/engine/session/session.h"
#include "tests/unit/dataplane/engine/engine_alone.h"
#include "tests/unit/dataplane/engine/small_hub.h"

namespace gradcube::dataplane {
namespace {

void install_handler_once() {
  static const bool done = (GuardedMemory::install_handler(), true);
  (void)done;
}

class MappedFile {
 public:
  explicit MappedFile(std::uint64_t bytes) : bytes_(bytes), file_(memfd_create("cut", 0)) {
    EXPECT_EQ(ftruncate(file_, static_cast<off_t>(bytes)), 0);
    void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    EXPECT_NE(base, MAP_FAILED);
    base_ = static_cast<volatile std::uint8_t*>(base);
  }
  ~MappedFile() {
    munmap(address(), bytes_);
    close(file_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  volatile std::uint8_t& operator[](std::uint64_t at) { return base_[at]; }
  std::uint8_t* address() { return const_cast<std::uint8_t*>(base_); }
  void cut(std::uint64_t bytes) { EXPECT_EQ(ftruncate(file_, static_cast<off_t>(bytes)), 0); }

 private:
  std::uint64_t bytes_;
  int file_;
  volatile std::uint8_t* base_ = nullptr;
};

constexpr std::uint64_t kChunk = GuardedMemory::kChunk;

class GuardedMemoryTest : public testing::Test {
 protected:
  GuardedMemoryTest() { install_handler_once(); }
  ~GuardedMemoryTest() override { GuardedMemory::settle(GuardedMemory::faults()); }
};

TEST_F(GuardedMemoryTest, GoesOnWithZerosAfterAFaultAndIsMarked) {
  MappedFile file(3 * kChunk);
  const GuardedMemory guard(file.address(), 3 * kChunk);
  for (std::uint64_t at = 0; at < 3 * kChunk; at += 4096) file[at] = 7;
  const std::uint32_t before = GuardedMemory::faults();
  file.cut(kChunk);
  EXPECT_FALSE(guard.faulted());
  EXPECT_EQ(file[0], 7);
  errno = ENOTTY;
  EXPECT_EQ(file[kChunk + 4096], 0);
  EXPECT_EQ(errno, ENOTTY) << "the handler left its mark";
  EXPECT_TRUE(guard.faulted());
  file[2 * kChunk] = 9;
  EXPECT_EQ(file[2 * kChunk], 9);
  EXPECT_EQ(file[0], 7) << "what is sound stays";
  EXPECT_EQ(GuardedMemory::faults(), before + 2) << "one fault per chunk";
  EXPECT_TRUE(GuardedMemory::pending());
}

TEST_F(GuardedMemoryTest, ContainsFaultsOfManyThreadsAtOnce) {
  MappedFile file(16 * kChunk);
  const GuardedMemory guard(file.address(), 16 * kChunk);
  file.cut(0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&file] {
      for (std::uint64_t at = 0; at < 16 * kChunk; at += 4096) EXPECT_EQ(file[at], 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(guard.faulted());
}

TEST_F(GuardedMemoryTest, MarksNoOther) {
  MappedFile first(kChunk);
  MappedFile second(kChunk + 4096);
  const GuardedMemory guard_of_first(first.address(), kChunk);
  const GuardedMemory guard_of_second(second.address(), kChunk + 4096);
  second.cut(0);
  EXPECT_EQ(second[kChunk], 0) << "the last page, in a chunk that is not whole";
  EXPECT_TRUE(guard_of_second.faulted());
  EXPECT_FALSE(guard_of_first.faulted());
}

TEST_F(GuardedMemoryTest, GivesItsPlaceToLaterMemoryUnmarked) {
  for (int i = 0; i < 3; ++i) {
    MappedFile file(kChunk);
    const GuardedMemory guard(file.address(), kChunk);
    EXPECT_FALSE(guard.faulted());
    file.cut(0);
    EXPECT_EQ(file[0], 0);
    EXPECT_TRUE(guard.faulted());
  }
}

TEST_F(GuardedMemoryTest, IsPendingUntilItsFaultIsSettled) {
  MappedFile file(kChunk);
  const GuardedMemory guard(file.address(), kChunk);
  EXPECT_FALSE(GuardedMemory::pending());
  file.cut(0);
  EXPECT_EQ(file[0], 0);
  EXPECT_TRUE(GuardedMemory::pending());
  GuardedMemory::settle(GuardedMemory::faults());
  EXPECT_FALSE(GuardedMemory::pending());
}

using GuardedMemoryDeathTest = GuardedMemoryTest;

// For a process that is about to die. A sanitizer's handler would give the signal another effect.
void install_handler_over_the_default() {
  std::signal(SIGBUS, SIG_DFL);
  GuardedMemory::install_handler();
}

TEST_F(GuardedMemoryDeathTest, LeavesOtherFaultsTheirEffect) {
  EXPECT_EXIT(
      {
        install_handler_over_the_default();
        MappedFile file(kChunk);
        file.cut(0);
        file[0] = 1;
      },
      testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(
      {
        install_handler_over_the_default();
        MappedFile file(kChunk);
        { const GuardedMemory guard(file.address(), kChunk); }
        file.cut(0);
        file[0] = 1;
      },
      testing::KilledBySignal(SIGBUS), "");
}

TEST_F(GuardedMemoryDeathTest, LeavesASignalThatWasSentItsEffect) {
  EXPECT_EXIT(
      {
        install_handler_over_the_default();
        raise(SIGBUS);
        _exit(0);
      },
      testing::KilledBySignal(SIGBUS), "");
}

// What failed memory looks like to a session: pages of the region that cannot be read.
void fail_memory_of(const SessionRegion& region, std::uint64_t begin, std::uint64_t bytes) {
  const int empty = memfd_create("empty", 0);
  void* mapping =
      mmap(region.base() + begin, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, empty, 0);
  EXPECT_EQ(mapping, region.base() + begin);
  close(empty);
}

TEST_F(GuardedMemoryTest, AFaultInItsRingsIsASessionsViolation) {
  Session session(std::make_shared<SessionRegion>(1 << 20), -1, {2, {1}}, {});
  fail_memory_of(session.region(), 0, shared::kHeapOffset);
  EXPECT_EQ(session.take(), Session::Take::none) << "the fault comes with the first look";
  EXPECT_TRUE(session.region().faulted());
  EXPECT_EQ(session.take(), Session::Take::violation);
  EXPECT_STREQ(session.violation(), kMemoryFault);
}

TEST_F(GuardedMemoryTest, AFaultInTheHeapIsASessionsViolation) {
  Session session(std::make_shared<SessionRegion>(1 << 20), -1, {2, {1}}, {});
  fail_memory_of(session.region(), shared::kHeapOffset, 1 << 20);
  volatile const std::uint8_t* heap = session.region().base() + shared::kHeapOffset;
  EXPECT_EQ(heap[5000], 0);
  EXPECT_EQ(session.take(), Session::Take::violation);
  EXPECT_STREQ(session.violation(), kMemoryFault);
}

// Another engine of the server may fault and end its part of a round after the leader engine has
// last looked for faults.
TEST_F(GuardedMemoryTest, NoRoundOfAHubEndsWhileAFaultIsPending) {
  const std::shared_ptr<ServerHub> hub = small_hub();
  TestSession session(1, 1 << 16);
  session->set_hub(*hub);
  submission_entry(session->region(), 0) = small_push(7);
  session->region().header().submission_tail.store(1);
  ASSERT_EQ(session->take(), Session::Take::taken);
  MappedFile file(kChunk);
  const GuardedMemory guard(file.address(), kChunk);
  file.cut(0);
  EXPECT_EQ(file[0], 0);
  hub->board().end(0, 0, 0);
  const Session::EndedPushes held = session->end_pushes();
  EXPECT_EQ(held.rounds, 0U);
  EXPECT_TRUE(held.held_up) << "nobody announces that it goes on";
  EXPECT_EQ(session->region().header().completion_tail.load(), 0U);
  EXPECT_EQ(session->pushes_in_flight(), 1U);

  GuardedMemory::settle(GuardedMemory::faults());
  EXPECT_EQ(session->end_pushes().rounds, 1U) << "the fault was another job's";
  EXPECT_EQ(session->region().completion(0).code, 0);
  EXPECT_EQ(session->region().header().completion_tail.load(), 1U);
}

// The fault is another job's: nobody knows yet into whose results its zeros have gone.
TEST_F(EngineAlone, CompletesNothingWhileAFaultIsPending) {
  install_handler_once();
  MappedFile file(kChunk);
  const GuardedMemory guard(file.address(), kChunk);
  file.cut(0);
  EXPECT_EQ(file[0], 0);

  submit(1.0F);
  poll();
  Frame contributed = contribution();
  contributed.transport.acknowledged = 1;
  arrive(contributed);
  Frame result = contribution(0, 3.0F);
  result.transport.stage = protocol::Stage::broadcast;
  arrive(result);
  Frame acknowledgement = without_segment(protocol::Stage::broadcast);
  acknowledgement.transport.acknowledged = 1;
  acknowledgement.transport.sequence = 1;
  arrive(acknowledgement);
  EXPECT_EQ(session_->completed(0), 0u);
  EXPECT_EQ(engine_->next_event(), now_) << "it must not sleep over what is left to do";

  GuardedMemory::settle(GuardedMemory::faults());
  poll();
  EXPECT_EQ(session_->completed(0), 1u);
  EXPECT_GT(engine_->next_event(), now_);
}

}  // namespace
}  // namespace gradcube::dataplane
