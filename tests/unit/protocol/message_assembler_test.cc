#include "protocol/message_assembler.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <new>
#include <random>
#include <vector>

#include "tests/support/scarce_memory.h"
#include "tests/unit/protocol/seed.h"

namespace gradcube::protocol {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t kServers = 100;

// One fragment, with bytes of its own.
struct Piece {
  std::uint16_t source = 1;
  std::uint64_t incarnation = 10;
  std::uint32_t number = 1;
  std::uint8_t index = 0;
  std::uint8_t fragments = 1;
  Bytes bytes = {1, 2, 3};
};

class Assembler {
 public:
  explicit Assembler(const AssemblerLimits& limits = {}) : assembler_(kServers, limits) {}

  // What comes in full is right, and accepted.
  std::optional<Bytes> add(const Piece& piece, Nanoseconds now = 0) {
    auto whole = add_of_anyone(piece, now);
    if (whole.has_value()) assembler_.accept(fragment_of(piece));
    return whole;
  }
  std::optional<Bytes> add_of_anyone(const Piece& piece, Nanoseconds now = 0) {
    return assembler_.add(fragment_of(piece), now);
  }
  const AssemblerCounters& counters() const { return assembler_.counters(); }
  std::size_t held_bytes() const { return assembler_.held_bytes(); }

 private:
  static MessageFragment fragment_of(const Piece& piece) {
    MessageFragment fragment;
    fragment.routing.source = piece.source;
    fragment.header = {.incarnation = piece.incarnation,
                       .number = piece.number,
                       .index = piece.index,
                       .fragments = piece.fragments,
                       .length = static_cast<std::uint16_t>(piece.bytes.size())};
    fragment.bytes = piece.bytes;
    return fragment;
  }

  MessageAssembler assembler_;
};

// The pieces of a message, each with one byte: its index.
std::vector<Piece> pieces(std::uint32_t number, unsigned fragments, std::uint16_t source = 1) {
  std::vector<Piece> pieces;
  for (unsigned index = 0; index < fragments; ++index) {
    const auto place = static_cast<std::uint8_t>(index);
    pieces.push_back({.source = source,
                      .number = number,
                      .index = place,
                      .fragments = static_cast<std::uint8_t>(fragments),
                      .bytes = {place}});
  }
  return pieces;
}

Bytes first_bytes(unsigned count) {
  Bytes bytes;
  for (unsigned i = 0; i < count; ++i) bytes.push_back(static_cast<std::uint8_t>(i));
  return bytes;
}

TEST(MessageAssembler, DeliversAMessageOfOneFragmentAtOnce) {
  Assembler assembler;
  EXPECT_EQ(assembler.add({}), (Bytes{1, 2, 3}));
  EXPECT_EQ(assembler.held_bytes(), 0U);
  EXPECT_EQ(assembler.counters().messages, 1U);
}

TEST(MessageAssembler, DeliversTheBytesInOrderWhateverTheOrderOfArrival) {
  const std::uint64_t seed = test_seed(7);
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  Assembler assembler;
  for (std::uint32_t number = 0; number < 300; ++number) {
    const unsigned fragments = 1 + static_cast<unsigned>(random() % kMaxFragments);
    auto arriving = pieces(number, fragments);
    std::shuffle(arriving.begin(), arriving.end(), random);
    for (std::size_t i = 0; i + 1 < arriving.size(); ++i) {
      ASSERT_FALSE(assembler.add(arriving[i]).has_value());
      // Doubled on the way.
      if (random() % 2 != 0) continue;
      ASSERT_FALSE(assembler.add(arriving[random() % (i + 1)]).has_value());
    }
    ASSERT_EQ(assembler.add(arriving.back()), first_bytes(fragments));
    ASSERT_EQ(assembler.held_bytes(), 0U);
  }
}

TEST(MessageAssembler, KeepsMessagesOfDifferentSourcesAndNumbersApart) {
  Assembler assembler;
  for (std::uint16_t source = 0; source < 3; ++source) {
    for (std::uint32_t number = 0; number < 3; ++number) {
      Piece piece = pieces(number, 2, source)[0];
      piece.bytes = {static_cast<std::uint8_t>(source), static_cast<std::uint8_t>(number)};
      EXPECT_FALSE(assembler.add(piece).has_value());
    }
  }
  for (std::uint16_t source = 0; source < 3; ++source) {
    for (std::uint32_t number = 0; number < 3; ++number) {
      EXPECT_EQ(assembler.add(pieces(number, 2, source)[1]),
                (Bytes{static_cast<std::uint8_t>(source), static_cast<std::uint8_t>(number), 1}));
    }
  }
}

TEST(MessageAssembler, WaitsForWhatIsLostUntilItIsGivenUp) {
  Assembler assembler;
  const auto sent = pieces(1, 3);
  assembler.add(sent[0], 0);
  assembler.add(sent[2], 999 * kMillisecond);
  EXPECT_EQ(assembler.counters().given_up, 0U);
  EXPECT_FALSE(assembler.add(sent[1], 1000 * kMillisecond).has_value()) << "a second is over";
  EXPECT_EQ(assembler.counters().given_up, 1U);
  assembler.add(sent[0], 1001 * kMillisecond);
  EXPECT_TRUE(assembler.add(sent[2], 1999 * kMillisecond).has_value()) << "begun anew";
}

TEST(MessageAssembler, DeliversAMessageThatComesTwiceSoonOnlyOnce) {
  Assembler assembler;
  constexpr std::uint32_t kRemembered = MessageAssembler::kRemembered;
  for (std::uint32_t number = 0; number < kRemembered; ++number) {
    EXPECT_TRUE(assembler.add({.number = number}).has_value());
  }
  for (std::uint32_t number = 0; number < kRemembered; ++number) {
    EXPECT_FALSE(assembler.add({.number = number}).has_value());
  }
  EXPECT_EQ(assembler.counters().duplicates, kRemembered);
  EXPECT_TRUE(assembler.add({.number = kRemembered}).has_value());
  EXPECT_TRUE(assembler.add({.number = 0}).has_value()) << "forgotten by now";
  EXPECT_TRUE(assembler.add({.source = 2, .number = kRemembered}).has_value()) << "another source";
}

TEST(MessageAssembler, GivesUpWhatAnotherIncarnationBegan) {
  Assembler assembler;
  Piece first = pieces(1, 2)[0];
  Piece second = pieces(1, 2)[1];
  assembler.add(first);
  EXPECT_TRUE(assembler.add({.incarnation = 11, .number = 1}).has_value()) << "of the new one";
  EXPECT_EQ(assembler.held_bytes(), 0U) << "what the former one began is given up";
  EXPECT_FALSE(assembler.add(second).has_value());
  EXPECT_TRUE(assembler.add({.incarnation = 11, .number = 2}).has_value());
  first.incarnation = second.incarnation = 9;  // whichever number is greater
  first.number = second.number = 1;
  EXPECT_FALSE(assembler.add(first).has_value());
  EXPECT_TRUE(assembler.add(second).has_value()) << "numbers begin anew with an incarnation";
}

TEST(MessageAssembler, HearsASourceOnWhileStrangersSpeakForIt) {
  Assembler assembler;
  EXPECT_TRUE(assembler.add({.incarnation = 10, .number = 1}).has_value());
  const auto sent = pieces(2, 2);
  EXPECT_FALSE(assembler.add(sent[0]).has_value());
  // More than a source may have begun, with the same numbers, too.
  for (std::uint32_t number = 1; number <= 20; ++number) {
    Piece stranger = pieces(number, 2)[0];
    stranger.incarnation = UINT64_MAX;
    EXPECT_FALSE(assembler.add_of_anyone(stranger).has_value());
    EXPECT_TRUE(assembler.add_of_anyone({.incarnation = 99, .number = number}).has_value());
  }
  EXPECT_EQ(assembler.add(sent[1]), first_bytes(2)) << "what it has begun is not given up";
  EXPECT_FALSE(assembler.add({.incarnation = 10, .number = 1}).has_value()) << "it comes again";
  EXPECT_LE(assembler.held_bytes(), 4 * (1 + MessageAssembler::kFragmentCost));
}

TEST(MessageAssembler, RefusesFragmentsThatCannotBe) {
  Assembler assembler;
  const std::vector<Piece> refused = {{.fragments = 0},
                                      {.index = 1, .fragments = 1},
                                      {.index = 255, .fragments = 255},
                                      {.bytes = {}},
                                      {.source = kServers},
                                      {.source = 65535},
                                      {.bytes = Bytes(kMaxMessageBytes + 1)}};
  for (const Piece& piece : refused) EXPECT_FALSE(assembler.add(piece).has_value());
  EXPECT_EQ(assembler.counters().refused, refused.size());
  EXPECT_EQ(assembler.held_bytes(), 0U);
}

TEST(MessageAssembler, HeedsTheFirstOfFragmentsThatContradictEachOther) {
  Assembler assembler;
  const auto sent = pieces(1, 3);
  assembler.add(sent[0]);
  for (const std::uint8_t fragments : {2, 4, 255}) {
    EXPECT_FALSE(assembler.add({.index = 1, .fragments = fragments}).has_value());
  }
  EXPECT_FALSE(assembler.add({.index = 0, .fragments = 3, .bytes = {9, 9}}).has_value());
  assembler.add(sent[1]);
  EXPECT_EQ(assembler.add(sent[2]), first_bytes(3));
  EXPECT_EQ(assembler.counters().refused, 3U);
  EXPECT_EQ(assembler.counters().duplicates, 1U);
}

TEST(MessageAssembler, TakesMessagesUpToTheLimitAndNoneBeyond) {
  Assembler assembler({.message_bytes = 100});
  assembler.add({.number = 1, .index = 0, .fragments = 2, .bytes = Bytes(60)});
  EXPECT_TRUE(
      assembler.add({.number = 1, .index = 1, .fragments = 2, .bytes = Bytes(40)}).has_value());
  assembler.add({.number = 2, .index = 0, .fragments = 2, .bytes = Bytes(60)});
  EXPECT_FALSE(
      assembler.add({.number = 2, .index = 1, .fragments = 2, .bytes = Bytes(41)}).has_value());
  EXPECT_EQ(assembler.counters().refused, 1U);
}

TEST(MessageAssembler, GivesUpTheOldestOfASourceThatBeginsTooMany) {
  Assembler assembler({.per_source = 4});
  assembler.add(pieces(1, 2, 7)[0]);
  for (std::uint32_t number = 1; number <= 5; ++number) assembler.add(pieces(number, 2)[0]);
  EXPECT_EQ(assembler.counters().given_up, 1U);
  for (std::uint32_t number = 2; number <= 5; ++number) {
    EXPECT_TRUE(assembler.add(pieces(number, 2)[1]).has_value()) << number;
  }
  EXPECT_FALSE(assembler.add(pieces(1, 2)[1]).has_value());
  EXPECT_TRUE(assembler.add(pieces(1, 2, 7)[1]).has_value()) << "another source keeps its own";
}

TEST(MessageAssembler, GivesNoPlaceOfAnAcceptedSourceToALowerNumber) {
  Assembler assembler({.per_source = 4});
  ASSERT_TRUE(assembler.add({.number = 1}).has_value());
  for (std::uint32_t number = 101; number <= 104; ++number) assembler.add(pieces(number, 2)[0]);
  for (std::uint32_t recorded = 2; recorded <= 100; ++recorded) {
    EXPECT_FALSE(assembler.add(pieces(recorded, 2)[0]).has_value());
  }
  EXPECT_EQ(assembler.counters().given_up, 99U);
  EXPECT_FALSE(assembler.add(pieces(105, 2)[0]).has_value()) << "in place of the lowest";
  EXPECT_FALSE(assembler.add(pieces(101, 2)[1]).has_value());
  for (std::uint32_t number = 102; number <= 105; ++number) {
    EXPECT_TRUE(assembler.add(pieces(number, 2)[1]).has_value()) << number;
  }
}

TEST(MessageAssembler, TakesMemoryFromTheSourceThatHoldsTheMostWhereItEnds) {
  constexpr std::size_t kEach = 1000 + MessageAssembler::kFragmentCost;
  Assembler assembler({.total_bytes = 10 * kEach});
  const auto begun = [](std::uint16_t source, std::uint8_t index) {
    return Piece{.source = source, .index = index, .fragments = 100, .bytes = Bytes(1000)};
  };
  for (std::uint16_t source = 1; source <= 8; ++source) {
    assembler.add({.source = source, .index = 0, .fragments = 2, .bytes = Bytes(1000)});
  }
  for (std::uint8_t index = 0; index < 50; ++index) assembler.add(begun(9, index));
  EXPECT_GT(assembler.counters().given_up, 10U);
  for (std::uint16_t source = 1; source <= 8; ++source) {
    EXPECT_TRUE(assembler.add({.source = source, .index = 1, .fragments = 2}).has_value());
  }
}

TEST(MessageAssembler, GivesUpTheOldestOfAllWhereTheMemoryEnds) {
  constexpr std::size_t kEach = 1000 + MessageAssembler::kFragmentCost;
  Assembler assembler({.total_bytes = 10 * kEach});
  const auto begun = [](std::uint16_t source) {
    return Piece{.source = source, .index = 0, .fragments = 2, .bytes = Bytes(1000)};
  };
  for (std::uint16_t source = 0; source < 10; ++source) assembler.add(begun(source));
  EXPECT_EQ(assembler.held_bytes(), 10 * kEach);
  EXPECT_EQ(assembler.counters().given_up, 0U);
  assembler.add(begun(10));
  EXPECT_EQ(assembler.counters().given_up, 1U);
  EXPECT_TRUE(assembler.add({.source = 1, .index = 1, .fragments = 2}).has_value());
  EXPECT_FALSE(assembler.add({.source = 0, .index = 1, .fragments = 2}).has_value());
}

TEST(MessageAssembler, HoldsBoundedMemoryAndStillDeliversAmidHostileFragments) {
  const std::uint64_t seed = test_seed(8);
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  const AssemblerLimits limits{.message_bytes = 4000, .total_bytes = 50'000};
  Assembler assembler(limits);
  for (int round = 0; round < 100'000; ++round) {
    const Piece hostile{.source = static_cast<std::uint16_t>(2 + random() % 110),
                        .incarnation = random() % 3,
                        .number = static_cast<std::uint32_t>(random() % 8),
                        .index = static_cast<std::uint8_t>(random() % 6),
                        .fragments = static_cast<std::uint8_t>(random() % 6),
                        .bytes = Bytes(random() % 2000)};
    const auto message = round % 2 == 0 ? assembler.add(hostile, round * kMicrosecond)
                                        : assembler.add_of_anyone(hostile, round * kMicrosecond);
    ASSERT_LE(message.value_or(Bytes()).size(), limits.message_bytes);
    ASSERT_LE(assembler.held_bytes(), limits.total_bytes);
    if (round % 1000 != 0) continue;
    const auto good = pieces(static_cast<std::uint32_t>(round), 2);
    assembler.add(good[0], round * kMicrosecond);
    ASSERT_EQ(assembler.add(good[1], round * kMicrosecond), first_bytes(2));
  }
  EXPECT_GT(assembler.counters().messages, 200U);
  EXPECT_GT(assembler.counters().given_up, 1000U);
}

// Whichever allocation of the first fragment fails.
TEST(MessageAssembler, ForgetsWhatItHadNoMemoryFor) {
  const std::vector<Piece> message = pieces(1, 2);
  bool failed = true;
  for (unsigned most = 0; failed; ++most) {
    Assembler assembler;
    unsigned allocations = 0;
    try {
      const trainer::NoMemory none([&] { return ++allocations > most; });
      assembler.add(message[0]);
      failed = false;
    } catch (const std::bad_alloc&) {
    }
    const Nanoseconds later = AssemblerLimits{}.expiry;
    EXPECT_FALSE(assembler.add(message[0], later).has_value()) << most;
    EXPECT_TRUE(assembler.add(message[1], later).has_value()) << most;
    EXPECT_EQ(assembler.held_bytes(), 0U) << most;
  }
}

}  // namespace
}  // namespace gradcube::protocol
