#include "control/jobs/status_exchange.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/protocol/seed.h"

namespace gradcube::control {
namespace {

using testing::HasSubstr;
constexpr Instant kTick = std::chrono::milliseconds(10);

std::vector<bcube::ServerId> numbers_below(std::size_t count) {
  std::vector<bcube::ServerId> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0U);
  return numbers;
}

std::string text_of(bcube::ServerId server, std::size_t bytes) {
  return std::to_string(server) + std::string(bytes, static_cast<char>('a' + server % 26));
}

// Server 0 asks; the others answer. Messages may be lost, doubled and reordered.
class StatusRun {
 public:
  StatusRun(std::uint32_t servers, std::size_t bytes) : asker_(0, numbers_below(servers), 1000) {
    for (bcube::ServerId server = 1; server < servers; ++server) {
      answerers_.emplace(server, StatusAnswerer(server, [this, server, bytes] {
                           ++made_[server];
                           return text_of(server, bytes);
                         }));
    }
  }

  void step() {
    now_ += kTick;
    NodeMessages out;
    asker_.on_time(now_, out);
    send(out);
    std::shuffle(on_the_way_.begin(), on_the_way_.end(), random_);
    std::size_t parts = 0;
    for (const NodeMessage& message : on_the_way_) {
      parts += std::holds_alternative<StatusPart>(message.body) ? 1 : 0;
    }
    most_parts = std::max(most_parts, parts);
    for (const NodeMessage& message : std::exchange(on_the_way_, {})) deliver(message);
  }

  // Whether it finished.
  bool run(std::uint64_t inquiry, Instant longest) {
    for (const Instant until = now_ + longest; now_ < until && !asker_.finished(inquiry);) step();
    return asker_.finished(inquiry);
  }

  StatusAsker& asker() { return asker_; }
  Instant now() const { return now_; }
  int made(bcube::ServerId server) { return made_[server]; }
  void silence(bcube::ServerId server) { answerers_.erase(server); }
  void set_faults(double loss, double twice) {
    loss_ = loss;
    twice_ = twice;
  }

  std::size_t most_asked = 0;  // in a step
  std::size_t most_parts = 0;  // on their way

 private:
  void send(const NodeMessages& messages) {
    std::size_t firsts = 0;
    for (const NodeMessage& message : messages) {
      firsts += std::holds_alternative<StatusAsk>(message.body) ? 1 : 0;
      for (int copies = hits(twice_) ? 2 : 1; copies > 0; --copies) {
        if (!hits(loss_)) on_the_way_.push_back(message);
      }
    }
    most_asked = std::max(most_asked, firsts);
  }

  void deliver(const NodeMessage& message) {
    NodeMessages out;
    if (const auto* part = std::get_if<StatusPart>(&message.body)) {
      asker_.on_part(message.from, *part, now_, out);
    } else if (const auto found = answerers_.find(message.to); found != answerers_.end()) {
      found->second.on_ask(message.from, std::get<StatusAsk>(message.body), now_, out);
    }
    send(out);
  }

  bool hits(double probability) {
    return std::uniform_real_distribution<double>(0, 1)(random_) < probability;
  }

  Instant now_{std::chrono::seconds(1)};
  StatusAsker asker_;
  std::map<bcube::ServerId, StatusAnswerer> answerers_;
  std::map<bcube::ServerId, int> made_;
  NodeMessages on_the_way_;
  std::mt19937_64 random_{protocol::test_seed(20261123)};
  double loss_ = 0, twice_ = 0;
};

TEST(StatusExchange, GathersTheTextsOfAllServers) {
  StatusRun exchange(4, 100);
  const std::uint64_t inquiry = exchange.asker().begin();
  EXPECT_FALSE(exchange.asker().finished(inquiry));
  ASSERT_TRUE(exchange.run(inquiry, StatusAsker::kPatience));
  ASSERT_EQ(exchange.asker().answers().size(), 3U);
  for (const auto& [server, answer] : exchange.asker().answers()) {
    EXPECT_EQ(answer.text, text_of(server, 100));
    EXPECT_EQ(answer.why, "");
  }
}

TEST(StatusExchange, PutsLongTextsTogetherWhateverIsLostAndDoubled) {
  StatusRun exchange(5, 5 * kStatusPartBytes + 77);
  exchange.set_faults(0.2, 0.3);
  SCOPED_TRACE(protocol::seed_trace(protocol::test_seed(20261123)));
  ASSERT_TRUE(exchange.run(exchange.asker().begin(), StatusAsker::kLongest));
  for (const auto& [server, answer] : exchange.asker().answers()) {
    EXPECT_EQ(answer.text, text_of(server, 5 * kStatusPartBytes + 77)) << answer.why;
    EXPECT_EQ(exchange.made(server), 1) << "all parts are of one text";
  }
}

TEST(StatusExchange, NamesThoseThatDoNotAnswerInTime) {
  StatusRun exchange(4, 10);
  exchange.silence(2);
  const std::uint64_t inquiry = exchange.asker().begin();
  EXPECT_FALSE(exchange.run(inquiry, StatusAsker::kPatience));
  ASSERT_TRUE(exchange.run(inquiry, 3 * kTick));
  EXPECT_EQ(exchange.asker().answers().size(), 3U);
  EXPECT_THAT(exchange.asker().answers().at(2).why, HasSubstr("did not answer in time"));
  EXPECT_EQ(exchange.asker().answers().at(3).text, text_of(3, 10));
}

// The answers all come to one port, and wait for no credit.
TEST(StatusExchange, AwaitsAFewPartsAtATime) {
  StatusRun exchange(200, 3 * kStatusPartBytes);
  exchange.silence(100);
  ASSERT_TRUE(exchange.run(exchange.asker().begin(), 4 * StatusAsker::kPatience));
  EXPECT_EQ(exchange.most_asked, StatusAsker::kAwaited);
  EXPECT_LE(exchange.most_parts, StatusAsker::kAwaited);
  EXPECT_EQ(exchange.asker().answers().size(), 199U);
  EXPECT_EQ(exchange.asker().answers().at(199).text, text_of(199, 3 * kStatusPartBytes));
}

// Who does not answer is asked ever more rarely, and does not keep others from being asked.
TEST(StatusExchange, AsksSilentServersMoreRarely) {
  StatusAsker asker(0, numbers_below(2 * StatusAsker::kAwaited + 1), 10);
  asker.begin();
  std::map<bcube::ServerId, std::vector<Instant>> asked;
  for (Instant now{1}; now < StatusAsker::kPatience; now += kTick) {
    NodeMessages out;
    asker.on_time(now, out);
    EXPECT_LE(out.size(), StatusAsker::kAwaited);
    for (const NodeMessage& message : out) asked[message.to].push_back(now);
  }
  ASSERT_EQ(asked.size(), 2 * StatusAsker::kAwaited);
  EXPECT_LE(asked[2 * StatusAsker::kAwaited].front(), Instant(1) + 2 * StatusAsker::kRepeat);
  for (const auto& [server, times] : asked) {
    EXPECT_GE(times.size(), 4U);
    EXPECT_LE(times.size(), 9U);
  }
}

// As long as parts come, the deadline moves, but not for ever.
TEST(StatusExchange, WaitsForWhoGoesOnAnswering) {
  for (const std::uint32_t parts : {10U, 60U}) {
    StatusAsker asker(0, numbers_below(2), 10);
    const std::uint64_t inquiry = asker.begin();
    NodeMessages out;
    Instant now{1};
    for (std::uint32_t part = 0; part < parts && !asker.finished(inquiry); ++part) {
      for (const Instant until = now + std::chrono::milliseconds(500); now < until; now += kTick) {
        asker.on_time(now, out);
      }
      asker.on_part(1, {inquiry, part, parts, "x"}, now, out);
    }
    asker.on_time(now, out);
    ASSERT_TRUE(asker.finished(inquiry));
    if (parts == 10) {
      EXPECT_EQ(asker.answers().at(1).text, std::string(10, 'x'));
    } else {
      EXPECT_LE(now, Instant(1) + StatusAsker::kLongest + std::chrono::milliseconds(500));
      EXPECT_THAT(asker.answers().at(1).why, HasSubstr("did not answer in time"));
    }
  }
}

TEST(StatusExchange, BeginsAnewForWhoAsksWhileOneIsUnderWay) {
  StatusRun exchange(3, 10);
  const std::uint64_t first = exchange.asker().begin();
  EXPECT_EQ(exchange.asker().begin(), first) << "it has not begun";
  exchange.step();
  const std::uint64_t second = exchange.asker().begin();
  EXPECT_NE(second, first);
  ASSERT_TRUE(exchange.run(second, StatusAsker::kPatience));
  EXPECT_TRUE(exchange.asker().finished(first));
}

TEST(StatusExchange, TakesNothingThatWasNotAskedFor) {
  StatusAsker asker(0, numbers_below(3), 10);
  NodeMessages out;
  const std::uint64_t inquiry = asker.begin();
  asker.on_time(Instant(1), out);
  ASSERT_EQ(out.size(), 2U);
  out.clear();
  asker.on_part(1, {inquiry + 1, 0, 1, "another inquiry"}, Instant(2), out);
  asker.on_part(1, {inquiry, 1, 2, "a later part"}, Instant(2), out);
  asker.on_part(0, {inquiry, 0, 1, "its own"}, Instant(2), out);
  asker.on_part(7, {inquiry, 0, 1, "nobody's"}, Instant(2), out);
  EXPECT_TRUE(out.empty());
  asker.on_part(1, {inquiry, 0, 2, "good"}, Instant(2), out);
  asker.on_part(1, {inquiry, 0, 2, "twice"}, Instant(2), out);
  asker.on_part(1, {inquiry, 1, 3, "of another length"}, Instant(2), out);
  asker.on_part(1, {inquiry, 1, 2, " text"}, Instant(2), out);
  asker.on_part(1, {inquiry, 0, 1, "again"}, Instant(2), out);
  asker.on_part(2, {inquiry, 0, 1, ""}, Instant(2), out);
  asker.on_time(Instant(3), out);
  ASSERT_TRUE(asker.finished(inquiry));
  EXPECT_EQ(asker.answers().at(1).text, "good text");
  EXPECT_THAT(asker.answers().at(2).why, HasSubstr("too long"));
}

TEST(StatusExchange, BoundsWhatAllAnswersTogetherTake) {
  constexpr std::uint32_t kServers = 200;
  StatusAsker asker(0, numbers_below(kServers), 10);
  NodeMessages out;
  const std::uint64_t inquiry = asker.begin();
  std::size_t bytes = 0;
  const std::string text(kStatusPartBytes, 'x');
  for (Instant now{1}; !asker.finished(inquiry); now += kTick) {
    asker.on_time(now, out);
    while (!out.empty()) {
      for (const NodeMessage& message : std::exchange(out, {})) {
        const auto& ask = std::get<StatusAsk>(message.body);
        asker.on_part(message.to, {inquiry, ask.part, kMostStatusParts, text}, now, out);
      }
    }
  }
  std::size_t refused = 0;
  for (const auto& [server, answer] : asker.answers()) {
    bytes += answer.text.size();
    refused += answer.why.empty() ? 0 : 1;
  }
  EXPECT_LE(bytes, StatusAsker::kMostBytes);
  EXPECT_EQ(refused, kServers - 1 - StatusAsker::kMostBytes / kLongestStatus);
}

TEST(StatusAnswerer, MakesATextAtMostEveryTenthOfASecond) {
  int made = 0;
  StatusAnswerer answerer(1, [&] { return std::to_string(++made); });
  NodeMessages out;
  Instant now{0};
  for (std::uint64_t inquiry = 1; inquiry <= 10; ++inquiry) {
    answerer.on_ask(2, {inquiry, 0}, now, out);
  }
  EXPECT_EQ(out.size(), 10U);
  EXPECT_EQ(made, 1);
  answerer.on_ask(2, {11, 0}, StatusAnswerer::kFreshFor, out);
  EXPECT_EQ(std::get<StatusPart>(out.back().body).text, "2");
}

TEST(StatusAnswerer, SendsNoMoreThanALittleAtATime) {
  StatusAnswerer answerer(1, [] { return "text"; });
  NodeMessages out;
  for (int i = 0; i < 1000; ++i) answerer.on_ask(2, {1, 0}, Instant(5), out);
  EXPECT_EQ(out.size(), StatusAnswerer::kMostParts);
  answerer.on_ask(2, {1, 0}, Instant(5) + StatusAnswerer::kRound, out);
  EXPECT_EQ(out.size(), StatusAnswerer::kMostParts + 1);
}

TEST(StatusAnswerer, KeepsTheTextsOfTheLastAskers) {
  StatusAnswerer answerer(1, [] { return std::string(2 * kStatusPartBytes, 'x'); });
  NodeMessages out;
  Instant now{5};
  for (bcube::ServerId asker = 2; asker < 2 + StatusAnswerer::kMostKept + 1; ++asker) {
    answerer.on_ask(asker, {1, 0}, now += StatusAnswerer::kRound, out);
  }
  out.clear();
  now += StatusAnswerer::kRound;
  answerer.on_ask(2, {1, 1}, now, out);
  EXPECT_TRUE(out.empty()) << "the first has been forgotten";
  answerer.on_ask(3, {1, 1}, now, out);
  answerer.on_ask(3, {2, 1}, now, out);
  answerer.on_ask(3, {1, 2}, now, out);
  EXPECT_EQ(out.size(), 1U) << "no other inquiry, and no part beyond the end";
}

TEST(StatusAnswerer, SendsNothingOfATextThatIsTooLong) {
  StatusAnswerer answerer(1, [] { return std::string(kLongestStatus + 1, 'x'); });
  NodeMessages out;
  answerer.on_ask(2, {1, 0}, Instant(5), out);
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(std::get<StatusPart>(out[0].body), (StatusPart{1, 0, 1, ""}));
}

}  // namespace
}  // namespace gradcube::control
