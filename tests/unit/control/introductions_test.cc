#include "control/jobs/introductions.h"

#include <gtest/gtest.h>
#include <optional>

namespace gradcube::control {
namespace {

using std::chrono::milliseconds;

constexpr bcube::ServerId kThis = 0;
constexpr bcube::ServerId kOther = 1;

class IntroductionsTest : public testing::Test {
 protected:
  using Body = decltype(NodeMessage::body);

  // What the daemon of this incarnation says on the other server.
  bool hears(Incarnation sender, const Body& body = StatusAsk{}) {
    out_.clear();
    return introductions_.admits({kOther, kThis, body, sender}, now_, out_);
  }
  // The challenge that has just been sent; nothing if there was none.
  std::optional<std::uint64_t> challenge() const {
    if (out_.size() != 1 || out_[0].to != kOther) return std::nullopt;
    const auto* challenge = std::get_if<Challenge>(&out_[0].body);
    return challenge == nullptr ? std::nullopt : std::optional(challenge->nonce);
  }

  Introductions introductions_{kThis, 42};
  Instant now_ = milliseconds(1000);
  NodeMessages out_;
};

TEST_F(IntroductionsTest, BelieveTheFirstThatIsHeardOf) {
  EXPECT_EQ(introductions_.speaker(kOther), 0U);
  EXPECT_TRUE(hears(7));
  EXPECT_TRUE(hears(7));
  EXPECT_TRUE(out_.empty());
  EXPECT_EQ(introductions_.speaker(kOther), 7U);
}

TEST_F(IntroductionsTest, BelieveAnotherOnceItHasAnsweredWhicheverNumberIsGreater) {
  ASSERT_TRUE(hears(4));
  for (const Incarnation next : {Incarnation{3}, Incarnation{UINT64_MAX}, Incarnation{5}}) {
    now_ += Introductions::kChallengeInterval;
    EXPECT_FALSE(hears(next)) << "it has proved nothing";
    ASSERT_TRUE(challenge().has_value());
    EXPECT_FALSE(hears(next, Response{*challenge()})) << "that is for nobody else";
    EXPECT_EQ(introductions_.speaker(kOther), next);
    EXPECT_TRUE(hears(next));
  }
}

TEST_F(IntroductionsTest, KeepWhoAnswersWhileStrangersSpeakForItsServer) {
  ASSERT_TRUE(hears(7));
  EXPECT_FALSE(hears(UINT64_MAX));
  const auto nonce = challenge();
  ASSERT_TRUE(nonce.has_value());
  EXPECT_FALSE(hears(UINT64_MAX, Response{*nonce + 1})) << "a guess";
  EXPECT_FALSE(hears(7, Response{*nonce}));
  EXPECT_FALSE(hears(UINT64_MAX, Response{*nonce})) << "it was answered";
  EXPECT_TRUE(hears(7));
  EXPECT_EQ(introductions_.speaker(kOther), 7U);
}

TEST_F(IntroductionsTest, TakeWhatADeadDaemonHasLeftOnItsWayForAStrangers) {
  ASSERT_TRUE(hears(7));
  ASSERT_FALSE(hears(3));
  ASSERT_FALSE(hears(3, Response{challenge().value()}));
  EXPECT_FALSE(hears(7)) << "of the former daemon";
  EXPECT_TRUE(hears(3));
}

TEST_F(IntroductionsTest, ChallengeAServerSeldomHoweverMuchIsSaidInItsName) {
  ASSERT_TRUE(hears(7));
  unsigned challenges = 0;
  for (Incarnation stranger = 100; stranger < 1100; ++stranger) {
    hears(stranger);
    challenges += static_cast<unsigned>(out_.size());
    // It sends back the first of them at once.
    if (challenges == 1 && challenge().has_value()) hears(7, Response{*challenge()});
    now_ += std::chrono::microseconds(100);
  }
  EXPECT_EQ(challenges, milliseconds(100) / Introductions::kChallengeInterval);
}

TEST_F(IntroductionsTest, AnswerAStrangersChallenge) {
  ASSERT_TRUE(hears(7));
  EXPECT_FALSE(hears(3, Challenge{99}));
  ASSERT_EQ(out_.size(), 1U);
  EXPECT_EQ(std::get<Response>(out_[0].body), Response{99});
  EXPECT_EQ(introductions_.speaker(kOther), 7U);
}

TEST_F(IntroductionsTest, BelieveNobodyWithoutAnIncarnation) {
  EXPECT_FALSE(hears(0));
  EXPECT_TRUE(out_.empty());
  EXPECT_TRUE(hears(7)) << "it took nobody's place";
}

class AuthenticIntroductionsTest : public testing::Test {
 protected:
  bool hears(Incarnation sender, std::uint64_t number,
             const decltype(NodeMessage::body)& body = StatusAsk{}) {
    out_.clear();
    return introductions_.admits({kOther, kThis, body, sender, number}, now_, out_);
  }
  template <typename Body>
  std::optional<std::uint64_t> said() const {
    for (const NodeMessage& message : out_) {
      if (const auto* body = std::get_if<Body>(&message.body)) return body->nonce;
    }
    return std::nullopt;
  }

  Introductions introductions_{kThis, 42, Introductions::First::challenged};
  Instant now_ = milliseconds(1000);
  NodeMessages out_;
};

TEST_F(AuthenticIntroductionsTest, BelieveNobodyWhoHasNotAnswered) {
  EXPECT_FALSE(hears(7, 1)) << "somebody may have recorded it before this daemon was started";
  EXPECT_EQ(introductions_.speaker(kOther), 0U);
  const auto nonce = said<Challenge>();
  ASSERT_TRUE(nonce.has_value());
  EXPECT_FALSE(hears(7, 5, Response{*nonce}));
  EXPECT_EQ(introductions_.speaker(kOther), 7U);
  EXPECT_TRUE(hears(7, 6));
}

TEST_F(AuthenticIntroductionsTest, TakeEachMessageOnceAndNoneOfBeforeTheAnswer) {
  hears(7, 1);
  hears(7, 5, Response{said<Challenge>().value()});
  for (std::uint64_t number = 1; number <= 5; ++number) EXPECT_FALSE(hears(7, number)) << number;
  EXPECT_TRUE(hears(7, 8));
  EXPECT_TRUE(hears(7, 6));
  EXPECT_FALSE(hears(7, 6));
  EXPECT_FALSE(hears(7, 8));
  EXPECT_EQ(introductions_.repeated(), 7U);
}

// Somebody keeps the answer back, until more has come.
TEST_F(AuthenticIntroductionsTest, ForgetNothingThatHasComeWhenAnAnswerComesLate) {
  hears(7, 1);
  hears(7, 5, Response{said<Challenge>().value()});
  now_ += Introductions::kChallengeInterval;
  EXPECT_FALSE(hears(6, 99)) << "of a dead daemon";
  const auto nonce = said<Challenge>();
  ASSERT_TRUE(nonce.has_value());
  EXPECT_TRUE(hears(7, 7));
  EXPECT_TRUE(hears(7, 8));
  EXPECT_FALSE(hears(7, 6, Response{*nonce}));
  EXPECT_FALSE(hears(7, 7));
  EXPECT_FALSE(hears(7, 8));
  EXPECT_TRUE(hears(7, 9));
}

TEST_F(AuthenticIntroductionsTest, AnswerAChallengeThatComesAgainAndAgainSeldom) {
  unsigned answers = 0;
  for (unsigned i = 0; i < 1000; ++i) {
    hears(7, 1, Challenge{99});
    if (said<Response>().has_value()) ++answers;
    now_ += std::chrono::microseconds(100);
  }
  EXPECT_EQ(answers, 10U);
  hears(7, 2, Challenge{100});
  EXPECT_EQ(said<Response>(), 100U) << "another one is not kept waiting";
}

TEST_F(AuthenticIntroductionsTest, AskWhoAsksThem) {
  EXPECT_FALSE(hears(7, 1, Challenge{99}));
  EXPECT_EQ(said<Response>(), 99U);
  const auto nonce = said<Challenge>();
  ASSERT_TRUE(nonce.has_value()) << "so that both are believed after one round trip";
  EXPECT_FALSE(hears(7, 2, Response{*nonce}));
  EXPECT_TRUE(hears(7, 3));
  EXPECT_FALSE(hears(7, 4, Challenge{100}));
  EXPECT_FALSE(said<Challenge>().has_value()) << "it is believed already";
}

TEST_F(AuthenticIntroductionsTest, LetNoFragmentWaitOfAMessageThatHasCome) {
  hears(7, 1);
  hears(7, 5, Response{said<Challenge>().value()});
  ASSERT_TRUE(hears(7, 7));
  for (const std::uint64_t number : {1, 5, 7}) {
    EXPECT_FALSE(introductions_.may_wait(kOther, 7, number)) << number;
  }
  EXPECT_EQ(introductions_.repeated(), 3U);
  EXPECT_TRUE(introductions_.may_wait(kOther, 7, 6));
  EXPECT_TRUE(introductions_.may_wait(kOther, 7, 8));
  EXPECT_TRUE(hears(7, 8)) << "it has not come with its fragment";
}

TEST_F(AuthenticIntroductionsTest, LetNoFragmentOfAStrangerWaitButAskWhoHeIs) {
  out_.clear();
  for (const Incarnation stranger : {0, 7, 8}) {
    EXPECT_FALSE(introductions_.may_wait(kOther, stranger, 1));
  }
  introductions_.challenge_strangers(now_, out_);
  EXPECT_EQ(out_.size(), 1U);
  const auto nonce = said<Challenge>();
  ASSERT_TRUE(nonce.has_value());
  now_ += Introductions::kChallengeInterval;
  introductions_.challenge_strangers(now_, out_);
  EXPECT_EQ(out_.size(), 1U) << "nobody has spoken since";
  EXPECT_FALSE(hears(8, 2, Response{*nonce}));
  EXPECT_TRUE(introductions_.may_wait(kOther, 8, 3));
}

}  // namespace
}  // namespace gradcube::control
