#include "control/jobs/message_codec.h"

#include <array>
#include <functional>
#include <gtest/gtest.h>
#include <string>

#include "control/jobs/message_fields.h"
#include "tests/support/random_message.h"
#include "tests/unit/control/counted_memory.h"
#include "tests/unit/protocol/seed.h"

namespace gradcube::control {
namespace {

using Bytes = std::vector<std::uint8_t>;

bcube::AddressSpace space_of(std::initializer_list<unsigned> radices) {
  return bcube::AddressSpace(std::span(radices.begin(), radices.size()));
}

const bcube::AddressSpace kSpaceOfNine = space_of({3, 3});

NodeMessage with(JobBody body) {
  return {1, 2, JobMessage{{1, 10, 1}, {2, 20, 0}, 7, "job", std::move(body)}};
}

Bytes encoded(const NodeMessage& message) { return encode_message(message, kSpaceOfNine); }
std::optional<NodeMessage> decoded(const Bytes& bytes) {
  return decode_message(bytes, kSpaceOfNine);
}

JobOptions options() { return {{{"bml", 3}}, 2, {1, 2, 5}}; }

JobDescriptor descriptor() {
  return {7, "job", options(), true, {{1, 0, 10, 1}, {2, 1, 20, 4}}, {1408, 8, true}, 5};
}

// Calls `check` with many random messages of every kind.
void on_random_messages(
    unsigned each,
    const std::function<void(const NodeMessage&, const Bytes&, std::mt19937_64&)>& check) {
  const std::uint64_t seed = protocol::test_seed(20260301);
  SCOPED_TRACE(protocol::seed_trace(seed));
  std::mt19937_64 random(seed);
  for (std::size_t kind = 0; kind < kMessageKinds; ++kind) {
    SCOPED_TRACE("kind " + std::to_string(kind));
    for (unsigned i = 0; i < each; ++i) {
      const NodeMessage message = random_message(kind, random, kSpaceOfNine);
      const Bytes bytes = encoded(message);
      ASSERT_FALSE(bytes.empty());
      check(message, bytes, random);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// Whatever is accepted has no other byte form.
void expect_nothing_or_the_same(const Bytes& bytes) {
  const std::uint64_t before = bytes_asked_for();
  const auto message = decoded(bytes);
  ASSERT_LE(bytes_asked_for() - before, 32 * bytes.size() + 1024);
  ASSERT_TRUE(!message.has_value() || encoded(*message) == bytes);
}

TEST(MessageCodec, EveryMessageComesBackAsItWas) {
  on_random_messages(200, [](const NodeMessage& message, const Bytes& bytes, std::mt19937_64&) {
    ASSERT_EQ(decoded(bytes), message);
  });
}

TEST(MessageCodec, NoTruncationIsAMessage) {
  on_random_messages(8, [](const NodeMessage&, const Bytes& bytes, std::mt19937_64&) {
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      const Bytes part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
      ASSERT_FALSE(decoded(part).has_value()) << length << " of " << bytes.size();
    }
  });
}

TEST(MessageCodec, NothingMayFollowAMessage) {
  on_random_messages(8, [](const NodeMessage&, const Bytes& bytes, std::mt19937_64&) {
    Bytes longer = bytes;
    longer.push_back(0);
    ASSERT_FALSE(decoded(longer).has_value());
  });
}

TEST(MessageCodec, DamagedBytesAreRefusedOrAreAMessageOfTheirOwn) {
  on_random_messages(300, [](const NodeMessage&, const Bytes& good, std::mt19937_64& random) {
    Bytes bytes = good;
    for (std::size_t changes = 1 + random() % 4; changes > 0; --changes) {
      // The counts and lengths that do most harm are near the beginning.
      const std::size_t end =
          random() % 2 == 0 ? bytes.size() : std::min<std::size_t>(80, bytes.size());
      bytes[random() % end] = static_cast<std::uint8_t>(random());
    }
    expect_nothing_or_the_same(bytes);
  });
}

TEST(MessageCodec, RandomBytesCostLittleMemory) {
  on_random_messages(100, [](const NodeMessage&, const Bytes& good, std::mt19937_64& random) {
    // What comes before the body is as it should be.
    Bytes bytes(good.begin(), good.begin() + 14);
    for (std::size_t more = random() % 5000; more > 0; --more) {
      bytes.push_back(static_cast<std::uint8_t>(random() % 4 == 0 ? random() : 0xff));
    }
    expect_nothing_or_the_same(bytes);
  });
}

TEST(MessageCodec, IsWhatTheTableSays) {
  const Bytes greeting = {11, 1, 0, 2, 0, 0, 0xa8, 0xa7, 0xa6, 0xa5, 0xa4, 0xa3, 0xa2, 0xa1, 1};
  EXPECT_EQ(encoded({1, 2, Greeting{0xa1a2a3a4a5a6a7a8, true}}), greeting);
  const Bytes hold = {11, 1, 0,   2,   0,   1,               // format, from, to, a job message
                      1,  0, 10,  0,   0,   0, 0, 0, 0, 0,   // from: server, incarnation
                      1,  0, 0,   0,   0,   0, 0, 0,         // attempt
                      2,  0, 20,  0,   0,   0, 0, 0, 0, 0,   // to: server, incarnation
                      0,  0, 0,   0,   0,   0, 0, 0,         // attempt
                      7,  0, 0,   0,                         // job
                      3,  0, 'j', 'o', 'b',                  // name
                      0,  0, 0,   0,   0,   0, 0, 0,         // owner: of a user
                      8,  0, 0,   0,   0,   0, 0, 0,         // whose number is 7
                      10,                                    // Hold
                      5,  0, 0,   0,                         // epoch
                      2,  0, 'w', 'e',                       // why
                      1,  3, 9,   0,   0,   0, 0, 0, 0, 0};  // asked: lane, number
  NodeMessage message = with(Hold{5, "we", CollectiveName{3, 9}});
  std::get<JobMessage>(message.body).owner = JobOwner::of_user(7);
  EXPECT_EQ(encoded(message), hold);
}

TEST(MessageCodec, EveryBodyKeepsItsNumber) {
  const std::vector<JobBody> bodies = {Join{{}, options(), {}, {}},
                                       Pending{},
                                       Refused{},
                                       Seek{},
                                       Elsewhere{{}, options()},
                                       Prepare{descriptor()},
                                       Armed{},
                                       Start{},
                                       Started{},
                                       Disagree{},
                                       Hold{},
                                       Held{},
                                       Reset{},
                                       Leave{},
                                       Abort{},
                                       Unknown{},
                                       Ask{},
                                       Counts{},
                                       Left{},
                                       Noted{}};
  ASSERT_EQ(bodies.size(), std::variant_size_v<JobBody>);
  constexpr std::size_t kKindAt = 6 + 18 + 18 + 4 + 5 + 16;
  for (std::size_t number = 0; number < bodies.size(); ++number) {
    EXPECT_EQ(encoded(with(bodies[number])).at(kKindAt), number);
  }
}

TEST(MessageCodec, BothSidesRefuseWhatBreaksARule) {
  const auto in_prepare = [](const std::function<void(JobDescriptor&)>& change) {
    JobDescriptor job = descriptor();
    change(job);
    return with(Prepare{job});
  };
  const auto in_options = [](const std::function<void(JobOptions&)>& change) {
    Elsewhere elsewhere{{}, options()};
    change(elsewhere.options);
    return with(elsewhere);
  };
  const auto named = [](const std::string& name) {
    NodeMessage message = with(Seek{});
    std::get<JobMessage>(message.body).name = name;
    return message;
  };
  const auto between = [](bcube::ServerId from, bcube::ServerId to) {
    return NodeMessage{from, to, JobMessage{{from, 1, 1}, {to, 1, 1}, 7, "job", Seek{}}};
  };
  NodeMessage forged = with(Seek{});
  std::get<JobMessage>(forged.body).from.server = 3;
  const std::vector<NodeMessage> broken = {
      between(9, 1),
      between(1, 9),
      between(1, 1),
      forged,
      named(""),
      named("two words"),
      named(std::string(64, 'a')),
      in_options([](JobOptions& options) { options.lanes.clear(); }),
      in_options([](JobOptions& options) { options.lanes.resize(9); }),
      in_options([](JobOptions& options) { options.lanes[0].algorithm.assign(56, 'a'); }),
      in_options([](JobOptions& options) { options.weight = 0; }),
      in_options([](JobOptions& options) { options.weight = 1001; }),
      in_options([](JobOptions& options) {
        options.members = {1, 9};
      }),
      in_options([](JobOptions& options) {
        options.members = {2, 1};
      }),
      in_options([](JobOptions& options) {
        options.members = {2, 2};
      }),
      in_prepare([](JobDescriptor& job) { job.id = protocol::kNoJob; }),
      in_prepare([](JobDescriptor& job) { job.name = "?"; }),
      in_prepare([](JobDescriptor& job) { job.members[0].server = 9; }),
      in_prepare([](JobDescriptor& job) { job.members[0].server = 2; }),
      in_prepare([](JobDescriptor& job) { job.members[0].rank = 9; }),
      with(Join{{}, options(), 9, {}}),
      with(Disagree{0, {8, 1, 0, "", Disagreement::Cause::overflow}}),
      with(Disagree{0, {0, 1, 0, "", static_cast<Disagreement::Cause>(3)}}),
      with(Hold{0, "", CollectiveName{8, 1}}),
      with(Held{0, LaneNumbers(9), {}, {}, {}, ""}),
      with(Held{0, {}, LaneNumbers(9), {}, {}, ""}),
      with(Held{0, {}, {}, {{1, 1, 0, "", {}}, {1, 2, 0, "", {}}}, {}, ""}),
      with(Held{0, {}, {}, std::vector<Disagreement>(9), {}, ""}),
      with(Leave{"", false, 0, LaneNumbers(9)}),
      with(Left{0, {{9, 0, "", {}}}}),
      with(Left{0, {{1, 0, "", LaneNumbers(9)}}}),
      with(Left{0, std::vector<Departure>(9)}),
      with(Abort{"", {9}, {}, {}, false}),
      with(Abort{"", {5, 4}, {}, {}, false}),
      with(Abort{"", {}, LaneNumbers(9), {}, false}),
      with(Abort{"", {}, {}, LaneNumbers(9), false}),
  };
  for (std::size_t i = 0; i < broken.size(); ++i) {
    EXPECT_TRUE(encoded(broken[i]).empty()) << "the message in place " << i;
    MessageForm writer(kSpaceOfNine);
    NodeMessage message = broken[i];
    fields(writer, message);
    EXPECT_FALSE(decoded(writer.take()).has_value()) << "the message in place " << i;
  }
}

TEST(MessageCodec, AByteThatCanOnlyBeZeroOrOneIsNothingElse) {
  const Bytes good = encoded({1, 2, Greeting{5, true}});
  for (unsigned value = 0; value < 256; ++value) {
    Bytes bytes = good;
    bytes.back() = static_cast<std::uint8_t>(value);
    EXPECT_EQ(decoded(bytes).has_value(), value <= 1);
  }
}

TEST(MessageCodec, OtherFormatsAndKindsAreRefused) {
  for (const std::size_t at : {0U, 5U, 67U}) {
    Bytes bytes = encoded(with(Seek{}));
    ASSERT_TRUE(decoded(bytes).has_value());
    bytes[at] = at == 67 ? std::variant_size_v<JobBody> : kMessageFormat + 1;
    EXPECT_FALSE(decoded(bytes).has_value()) << "at " << at;
  }
}

TEST(MessageCodec, PartsOfAStatusAreBounded) {
  const auto part = [](std::uint32_t number, std::uint32_t parts, std::size_t bytes) {
    return encoded({1, 2, StatusPart{7, number, parts, std::string(bytes, 'x')}});
  };
  EXPECT_TRUE(decoded(part(63, 64, kStatusPartBytes)).has_value());
  EXPECT_TRUE(part(64, 65, 1).empty());
  EXPECT_TRUE(part(3, 3, 1).empty());
  EXPECT_TRUE(part(0, 0, 1).empty());
  EXPECT_TRUE(part(0, 1, kStatusPartBytes + 1).empty()) << "no text of it is cut";
  Bytes bytes = part(0, 2, 1);
  const std::size_t number = 14;
  for (unsigned value = 0; value < 256; ++value) {
    bytes[number] = static_cast<std::uint8_t>(value);
    EXPECT_EQ(decoded(bytes).has_value(), value < 2) << value;
  }
}

TEST(MessageCodec, CallsOfHubsAreBounded) {
  const HubCall good{{7, 1}, {}, 0, 0, "job", {1, 2}, 1, 1, 8, 1000, 100, false};
  const auto taken = [](const HubCall& call) { return !encoded({1, 2, call}).empty(); };
  EXPECT_TRUE(taken(good));
  const std::vector<std::function<void(HubCall&)>> spoilers = {
      [](HubCall& call) { call.hub.job = protocol::kNoJob; },
      [](HubCall& call) { call.job = ""; },
      [](HubCall& call) { call.members = {}; },
      [](HubCall& call) {
        call.members = {2, 1};
      },
      [](HubCall& call) { call.trainers = 0; },
      [](HubCall& call) { call.trainers = 17; },
      [](HubCall& call) { call.weight = 0; },
      [](HubCall& call) { call.table_bytes = 0; },
      [](HubCall& call) { call.table_bytes = (1 << 25) + 1; },
  };
  for (std::size_t i = 0; i < spoilers.size(); ++i) {
    HubCall call = good;
    spoilers[i](call);
    EXPECT_FALSE(taken(call)) << i;
  }
  EXPECT_TRUE(encoded({1, 2, HubPart{{7, 1}, 0, std::string(kHubPartBytes + 1, 'x')}}).empty());
  EXPECT_FALSE(encoded({1, 2, HubPart{{7, 1}, 0, std::string(kHubPartBytes, 'x')}}).empty());
}

TEST(MessageCodec, TextsAreCutAndNeverRefused) {
  const std::string longest(kLongestText, 'x');
  EXPECT_EQ(decoded(encoded(with(Refused{longest}))), with(Refused{longest}));
  EXPECT_EQ(decoded(encoded(with(Refused{longest + "y"}))),
            with(Refused{std::string(kLongestText - 3, 'x') + "..."}));
  EXPECT_EQ(decoded(encoded(with(Refused{std::string(100'000, 'x')}))),
            with(Refused{std::string(kLongestText - 3, 'x') + "..."}));

  Bytes bytes = encoded(with(Refused{longest}));
  const std::size_t length_at = bytes.size() - kLongestText - 2;
  ++bytes[length_at];
  bytes.push_back('y');
  EXPECT_FALSE(decoded(bytes).has_value());
}

TEST(MessageCodec, EveryMessageOfAPartialClusterComesBackAsItWas) {
  const auto part = kSpaceOfNine.without(std::vector<bcube::ServerId>{0, 5});
  std::mt19937_64 random(20261123);
  for (std::size_t kind = 0; kind < kMessageKinds; ++kind) {
    for (unsigned i = 0; i < 100; ++i) {
      const NodeMessage message = random_message(kind, random, part);
      ASSERT_EQ(decode_message(encode_message(message, part), part), message) << kind;
    }
  }
}

TEST(MessageCodec, AbsentServersNeitherSendNorReceiveNorTakePart) {
  const Bytes bytes = encoded(with(Refused{"no"}));
  ASSERT_TRUE(decode_message(bytes, kSpaceOfNine).has_value());
  const NodeMessage message = *decode_message(bytes, kSpaceOfNine);
  for (const bcube::ServerId absent : {message.from, message.to}) {
    const auto part = kSpaceOfNine.without(std::vector<bcube::ServerId>{absent});
    EXPECT_FALSE(decode_message(bytes, part).has_value()) << absent;
    EXPECT_TRUE(encode_message(message, part).empty()) << absent;
  }
}

TEST(MessageCodec, AJobOfManyServersFitsUntilAMessageIsFull) {
  const auto space = space_of({256, 256});
  const auto prepare = [](std::uint32_t servers) {
    JobDescriptor job = descriptor();
    job.options.members.clear();
    job.members.clear();
    for (std::uint32_t server = 0; server < servers; ++server) {
      job.options.members.push_back(server);
      job.members.push_back({server, server, 1, 1});
    }
    return with(Prepare{job});
  };
  const NodeMessage fits = prepare(2900);
  EXPECT_EQ(decode_message(encode_message(fits, space), space), fits);
  NodeMessage too_long = prepare(3000);
  EXPECT_TRUE(encode_message(too_long, space).empty());
  MessageForm writer(space);
  fields(writer, too_long);
  ASSERT_TRUE(writer.good());
  EXPECT_FALSE(decode_message(writer.take(), space).has_value());
}

}  // namespace
}  // namespace gradcube::control
