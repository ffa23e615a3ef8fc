#include "dataplane/sockets/control_loop.h"

#include <array>
#include <exception>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdexcept>
#include <unistd.h>
#include <vector>

#include "tests/support/scarce_memory.h"

namespace gradcube::dataplane {
namespace {

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) throw std::runtime_error("no pipe");
    reader = ends[0];
    writer = ends[1];
  }
  ~Pipe() {
    close_reader();
    close(writer);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void fill() const { ASSERT_EQ(write(writer, "x", 1), 1); }
  void drain() const {
    char byte = 0;
    ASSERT_EQ(read(reader, &byte, 1), 1);
  }
  void close_reader() {
    if (reader >= 0) close(reader);
    reader = -1;
  }

  int reader = -1;
  int writer = -1;
};

// It says more than fits into a string without memory.
struct NoWords : std::exception {
  const char* what() const noexcept override { return "a callback that found no memory"; }
};

// Counts the calls for what is in the pipe, and takes it.
void add_drain(ControlLoop& loop, const Pipe& pipe, unsigned& calls) {
  loop.add(pipe.reader, [&] {
    ++calls;
    pipe.drain();
  });
}

// Runs the loop for some ticks.
void run_for(ControlLoop& loop, unsigned ticks) {
  loop.on_tick([&loop, &ticks] {
    if (--ticks == 0) loop.stop();
  });
  loop.run();
}

TEST(ControlLoop, CallsWhatIsReadableAndNothingElse) {
  ControlLoop loop;
  Pipe full;
  const Pipe empty;
  full.fill();
  unsigned calls = 0;
  add_drain(loop, full, calls);
  loop.add(empty.reader, [] { ADD_FAILURE() << "nothing came"; });
  run_for(loop, 3);
  EXPECT_EQ(calls, 1u);
}

TEST(ControlLoop, DoesNotGiveTheEventOfAClosedDescriptorToTheNextOneOfThatNumber) {
  ControlLoop loop;
  Pipe first;
  Pipe second;
  first.fill();
  second.fill();
  Pipe fresh;  // never filled; takes over the number of the one that is closed
  unsigned calls = 0;
  // Both are ready in one batch. The one that is called first closes the other.
  const auto close_other = [&](Pipe& own, Pipe& other) {
    ++calls;
    own.drain();
    const int number = other.reader;
    loop.remove(number);
    other.close_reader();
    ASSERT_EQ(dup2(fresh.reader, number), number);
    loop.add(number, [] { ADD_FAILURE() << "a stale event was delivered"; });
    other.reader = number;
  };
  loop.add(first.reader, [&] { close_other(first, second); });
  loop.add(second.reader, [&] { close_other(second, first); });
  run_for(loop, 3);
  EXPECT_EQ(calls, 1u);
}

TEST(ControlLoop, CallsTheNextDescriptorOfANumberForItsOwnEvents) {
  ControlLoop loop;
  Pipe old;
  const int number = old.reader;
  loop.add(number, [] { ADD_FAILURE() << "nothing came"; });
  loop.remove(number);
  const Pipe fresh;
  fresh.fill();
  ASSERT_EQ(dup2(fresh.reader, number), number);
  unsigned calls = 0;
  loop.add(number, [&] {
    ++calls;
    fresh.drain();
  });
  run_for(loop, 3);
  EXPECT_EQ(calls, 1u);
}

TEST(ControlLoop, LooksAtDescriptorsBetweenTheStepsOfATickThatHurries) {
  ControlLoop loop;
  Pipe pipe;
  unsigned calls = 0;
  loop.add(pipe.reader, [&] {
    pipe.drain();
    ++calls;
  });
  unsigned ticks = 0;
  loop.on_tick([&] {
    EXPECT_EQ(calls, ticks);
    if (++ticks == 5) return loop.stop();
    pipe.fill();
    loop.hurry();
  });
  loop.run();
  EXPECT_EQ(loop.steps().hurries, 4u);
  EXPECT_EQ(loop.steps().steps, 5u + 4u);
  EXPECT_GE(loop.steps().longest, ControlLoop::Clock::duration::zero());
  loop.remove(pipe.reader);
}

TEST(ControlLoop, OutlivesWhatACallbackThrows) {
  ControlLoop loop;
  const Pipe full;
  full.fill();
  unsigned calls = 0;
  loop.add(full.reader, [&] {
    ++calls;
    full.drain();
    throw std::runtime_error("expected in this test");
  });
  run_for(loop, 3);
  EXPECT_EQ(calls, 1u);
}

// Of two, in the order of their numbers, the first one is gone.
TEST(ControlLoop, OutlivesAPauseThatCannotEnd) {
  ControlLoop loop;
  Pipe gone;
  Pipe full;
  full.fill();
  unsigned calls = 0;
  loop.add(gone.reader, [] {});
  add_drain(loop, full, calls);
  loop.pause_for(gone.reader, {});
  loop.pause_for(full.reader, {});
  ASSERT_LT(gone.reader, full.reader);
  gone.close_reader();
  run_for(loop, 3);
  EXPECT_EQ(calls, 1u);
}

TEST(ControlLoop, OutlivesThatThereIsNoMemoryForItsLogAndItsPauses) {
  ControlLoop loop;
  const Pipe full;
  full.fill();
  unsigned calls = 0;
  add_drain(loop, full, calls);
  loop.pause_for(full.reader, {});
  unsigned ticks = 10;
  loop.on_tick([&] {
    loop.hurry();
    if (--ticks == 0) loop.stop();
    throw NoWords();
  });
  const trainer::NoMemory none;
  EXPECT_NO_THROW(loop.run());
  EXPECT_EQ(ticks, 0U);
  EXPECT_EQ(calls, 1U);
}

TEST(ControlLoop, LetsACallbackRemoveItself) {
  ControlLoop loop;
  const Pipe full;
  full.fill();
  std::vector<int> alive(1000, 7);  // the callback's own memory has to outlive its removal
  unsigned sum = 0;
  loop.add(full.reader, [&loop, &full, &sum, alive] {
    loop.remove(full.reader);
    for (const int value : alive) sum += static_cast<unsigned>(value);
  });
  run_for(loop, 3);
  EXPECT_EQ(sum, 7000u);
}

}  // namespace
}  // namespace gradcube::dataplane
