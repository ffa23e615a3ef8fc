// Messages that are withdrawn and whose trainers leave, in all orders and however the wire delays,
// doubles and reorders: against MailModel.

#include "tests/unit/dataplane/engine/mail_pair.h"

#include <random>
#include <string>

#include "tests/unit/protocol/seed.h"

namespace gradcube::dataplane {
namespace {

// Of a sender, a receiver and one stream. By letter:
//   R, S: the receiver, the sender submits; r, s: withdraws what it has submitted last
//   >, <: all that the receiver's, the sender's server has to say is sent and arrives
//   -, _: the first of it is sent and stays on its way; =: all that is on its way arrives
//   *: all that is not acknowledged is sent again, and arrives
//   L, l: the sender, the receiver leaves; T, t: the other one's server is told
struct Course {
  const char* what;
  const char* steps;
  std::string receives;  // how each ends: 0, C for withdrawn, P for left; "." does not
  std::string sends;
};

std::string ends_of(const MailPair& pair, bool sends) {
  std::string ends;
  for (std::size_t which = 0; which < pair.model().size(); ++which) {
    if (pair.model().item(which).post.sends != sends) continue;
    const auto code = pair.code(which);
    ends += !code.has_value()             ? '.'
            : *code == GRADCUBE_ECANCELED ? 'C'
            : *code == GRADCUBE_EPEER     ? 'P'
                                          : '0';
  }
  return ends;
}

void expect(const Course& course, unsigned from, unsigned to) {
  SCOPED_TRACE(std::string(course.what) + ": " + course.steps + ", from " + std::to_string(from) +
               " to " + std::to_string(to));
  MailPair pair;
  std::size_t last[2] = {};
  const auto resend_all = [&pair](unsigned end) {
    for (std::uint64_t back = 0; back < 16; ++back) pair.resend(end / 2, end % 2, back);
  };
  const auto send_all = [&pair](unsigned server) {
    std::size_t before = pair.in_transit();
    while (pair.send(server, 0) || pair.send(server, 1)) pair.deliver(before);
  };
  for (const char* step = course.steps; *step != 0; ++step) {
    const unsigned receivers = MailModel::server_of(to);
    switch (*step) {
      case 'R':
        last[0] = pair.post({to, false, from, 7, 300});
        break;
      case 'S':
        last[1] = pair.post({from, true, to, 7, 200});
        break;
      case 'r':
      case 's':
        pair.withdraw(last[*step == 's' ? 1 : 0]);
        break;
      case '>':
      case '<':
        send_all(*step == '>' ? receivers : MailModel::server_of(from));
        break;
      case '-':
      case '_':
        EXPECT_TRUE(pair.send(*step == '-' ? receivers : MailModel::server_of(from), 0));
        break;
      case '=':
        pair.deliver_all();
        break;
      case '*':
        for (unsigned end = 0; end < 4; ++end) resend_all(end);
        pair.deliver_all();
        break;
      case 'L':
      case 'l':
        pair.leave(*step == 'L' ? from : to);
        break;
      default:
        if (receivers != MailModel::server_of(from)) pair.tell(*step == 'T' ? from : to);
        break;
    }
  }
  pair.finish();
  EXPECT_EQ(ends_of(pair, false), course.receives);
  EXPECT_EQ(ends_of(pair, true), course.sends);
}

TEST(MailPair, WithdrawsAndDesertsBetweenServersAsTheSendersServerDecides) {
  const Course courses[] = {
      {"the sender has left, and the withdrawal was not sent", "R>Lr<T", "P", ""},
      {"the same, and the word of it comes when all is over", "R>Lr<", ".", ""},
      {"the sender has left, and the withdrawal is on its way", "R>r-L<T=", "P", ""},
      {"the same, and the number is used again", "R>r-L<TR>=", "PP", ""},
      {"the sender has left behind the withdrawal", "R>r>L<T", "C", ""},
      {"the want was not sent", "RLTr", "C", ""},
      {"the want was not sent, nor withdrawn", "RLT", "P", ""},
      {"withdrawn when it is deserted", "R>L<rT", "P", ""},
      {"the channel is made after the sender has left", "LTR", "P", ""},
      {"the channel is made after the receiver has left", "ltSs", "", "P"},
      {"what was sent waits for its receive", "SLTR", "0", "0"},
      {"and the receive meets it although it is withdrawn", "SLTR-r-=", "0", "0"},
      {"and there is no second one", "SLTRR", "0P", "0"},
      {"a send is withdrawn when its receiver has left", "Slts", "", "P"},
      {"a send is withdrawn before that is known", "Slst", "", "C"},
      {"a send is withdrawn before its sender leaves", "SsLTR", "P", "C"},
      {"a send meets the receive of one that has left", "R>ltS", ".", "P"},
      {"the number is used again when the want was not sent", "RrR>S", "C0", "0"},
      {"the number is used again when the withdrawal was answered", "R>r><RS", "C0", "0"},
      {"the same, and all is sent twice", "R>r><*R*S*", "C0", "0"},
      {"the same, and all is sent twice at the end", "R>r><RS><*", "C0", "0"},
      {"the number's next want overtakes the withdrawal", "R>r-S<R>=S", "00", "00"},
      {"and is withdrawn itself", "R>r-S<R>r>=S", "0C", "0."},
      {"both withdraw and nothing was sent", "RSrs", "C", "C"},
      {"both withdraw and the want is on its way", "R-Srs=", "C", "C"},
      {"both withdraw and the want overtook the withdrawal", "R-Sr-s=", "C", "C"},
      {"both withdraw too late", "R>Srs", "0", "0"},
      {"the answer is late", "R>r>_S=", "C", "."},
      {"the answer is late and the next receive is early", "R>r>_RS>=", "C0", "0"},
      {"withdrawn twice", "R>rr>r<S", "C", "."},
      {"withdrawn and its message is on its way", "R>S_r-=", "0", "0"},
  };
  for (const Course& course : courses) expect(course, 1, 0);
}

TEST(MailPair, WithdrawsAndDesertsOnOneServerAtOnce) {
  const Course to_all[] = {
      {"withdrawn", "Rr", "C", ""},
      {"the number is used again", "RrRS", "C0", "0"},
      {"a send is withdrawn", "SsR", ".", "C"},
      {"both withdraw too late", "RSrs", "0", "0"},
      {"both withdraw, and then meet", "RrSsRS", "C0", "C0"},
  };
  for (const Course& course : to_all) {
    expect(course, 2, 0);
    expect(course, 0, 0);
  }
  const Course with_departures[] = {
      {"withdrawn when it is deserted", "RLr", "P", ""},
      {"withdrawn before", "RrL", "C", ""},
      {"asked for later", "LRr", "P", ""},
      {"what was sent waits for its receive", "SLRR", "0P", "0"},
      {"a send is withdrawn when its receiver has left", "Sls", "", "P"},
      {"a send comes later", "RlSs", ".", "P"},
  };
  for (const Course& course : with_departures) expect(course, 2, 0);
}

class RandomTrade {
 public:
  explicit RandomTrade(std::uint64_t seed) : random_(seed), leaves_(random_() % 2 == 0) {}

  void play(unsigned steps) {
    for (unsigned step = 0; step < steps && !testing::Test::HasFailure(); ++step) act();
    for (unsigned trainer = 0; trainer < MailPair::kTrainers; ++trainer) {
      if (told_.contains(trainer)) continue;
      if (gone_.contains(trainer)) pair_.tell(trainer);
    }
    for (std::size_t which = 0; which < pair_.model().size(); ++which) {
      if (stays(which)) pair_.withdraw(which);
    }
    pair_.finish();
    for (std::size_t which = 0; which < pair_.model().size(); ++which) {
      EXPECT_FALSE(stays(which)) << "message " << which << " has not ended";
    }
  }
  unsigned ended(std::int32_t code) const {
    unsigned ended = 0;
    for (std::size_t which = 0; which < pair_.model().size(); ++which) {
      ended += pair_.code(which) == code ? 1 : 0;
    }
    return ended;
  }

 private:
  unsigned below(std::size_t end) { return static_cast<unsigned>(random_() % end); }
  bool stays(std::size_t which) const {
    return !pair_.code(which).has_value() &&
           !gone_.contains(pair_.model().item(which).post.trainer);
  }
  void act() {
    const unsigned trainer = below(MailPair::kTrainers);
    const unsigned server = below(2);
    const unsigned path = below(MailPair::kPaths);
    switch (below(12)) {
      case 0:
      case 1:
        if (gone_.contains(trainer) || !pair_.has_room(trainer)) return;
        pair_.post({trainer, below(2) == 0, below(MailPair::kTrainers), below(2),
                    below(MailPair::kMostBytes + 1)});
        return;
      case 2:
        if (pair_.model().size() == 0) return;
        if (const std::size_t which = below(pair_.model().size()); stays(which)) {
          pair_.withdraw(which);
        }
        return;
      case 3:
        if (!leaves_ || below(60) != 0 || !gone_.insert(trainer).second) return;
        pair_.leave(trainer);
        return;
      case 4:
        if (!gone_.contains(trainer) || below(8) != 0 || !told_.insert(trainer).second) return;
        pair_.tell(trainer);
        return;
      case 5:
        return pair_.explain(server);
      case 6:
      case 7:
        pair_.send(server, path);
        return;
      case 8:
        return pair_.resend(server, path, random_());
      case 9:
        return pair_.acknowledge(server, path);
      default:
        if (pair_.in_transit() != 0) pair_.deliver(below(pair_.in_transit()), below(4) == 0);
        return;
    }
  }

  std::mt19937_64 random_;
  MailPair pair_;
  bool leaves_;  // whether any trainer does
  std::set<unsigned> gone_;
  std::set<unsigned> told_;
};

TEST(MailPair, DoesWhatTheModelDoesWhateverTrainersDoAndTheWire) {
  std::map<std::int32_t, unsigned> ended;
  for (std::uint64_t seed = protocol::test_seed(1), end = seed + 200; seed < end; ++seed) {
    SCOPED_TRACE(protocol::seed_trace(seed));
    RandomTrade trade(seed);
    trade.play(1500);
    if (HasFailure()) return;
    for (const std::int32_t code :
         {GRADCUBE_OK, GRADCUBE_ECANCELED, GRADCUBE_EPEER, GRADCUBE_EMISMATCH}) {
      ended[code] += trade.ended(code);
    }
  }
  for (const auto& [code, count] : ended) EXPECT_GT(count, 200u) << "with code " << code;
}

}  // namespace
}  // namespace gradcube::dataplane
