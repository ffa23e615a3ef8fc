// How daemons on separate hosts ask each other for their status: in parts, because a message has at
// most 64 KiB. What a status says is not known here; it is text that nobody has checked.
//
//   StatusAsk{inquiry, part} -> StatusPart{inquiry, part, parts, text}
//
// The asker asks each other server for part 0, and for the next when one has come. Only the part
// that was asked for is taken. Messages take no credit, so the asker paces what comes to it: at
// most 16 parts, 64 KiB, are awaited at a time. What is not answered in 50 ms is awaited no more,
// and is asked again, after 100 ms, 200 ms and then 400 ms. A server from which no part has come
// for 2 s, or which has not told all in 10 s, is given up. 64 servers are asked at a time.
//
// Bounds. A server's status has some 1 KiB, 0.4 KiB for each port, 1 KiB and 8 bytes per member for
// each job, 0.4 KiB for each of its trainers and 0.35 KiB for each flow. 256 KiB have room for 16
// ports and 40 jobs of 8 trainers, or for one such job with 700 flows. Where that is not enough,
// the answerer leaves out flows (cluster_status.h). All answers together have at most 32 MiB.
//
// The answerer makes a text when part 0 of a new inquiry is asked for, at most every 100 ms, and
// keeps it for the further parts: for the last 16 askers. It sends at most 16 parts in 20 ms, 26
// Mbit/s.
//
// Single-threaded, no I/O, no clock: times go in, messages come out.
#ifndef GRADCUBE_CONTROL_JOBS_STATUS_EXCHANGE_H_
#define GRADCUBE_CONTROL_JOBS_STATUS_EXCHANGE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/jobs/job_actions.h"
#include "control/jobs/node_message.h"

namespace gradcube::control {

inline constexpr std::size_t kLongestStatus = std::size_t{kMostStatusParts} * kStatusPartBytes;

class StatusAsker {
 public:
  static constexpr Instant kPatience = std::chrono::seconds(2);  // between parts
  static constexpr Instant kLongest = std::chrono::seconds(10);  // for all of a server's
  static constexpr Instant kRepeat = std::chrono::milliseconds(50);
  static constexpr Instant kSlowestRepeat = std::chrono::milliseconds(400);
  static constexpr std::size_t kAtOnce = 64;   // servers
  static constexpr std::size_t kAwaited = 16;  // parts
  static constexpr std::size_t kMostBytes = 32 << 20;

  struct Answer {
    std::string text;
    std::string why;  // there is no text
  };
  using Answers = std::map<bcube::ServerId, Answer>;

  // servers: of the cluster, this one among them. first: not near the inquiries of any earlier
  // daemon of this server.
  StatusAsker(bcube::ServerId own, std::vector<bcube::ServerId> servers, std::uint64_t first);

  // The inquiry whose answers will all be younger than this call. It begins in on_time().
  std::uint64_t begin();
  bool finished(std::uint64_t inquiry) const { return finished_ >= inquiry; }
  // Of the last inquiry that has finished: of all servers but the own one.
  const Answers& answers() const { return answers_; }
  Answers take_answers() { return std::exchange(answers_, {}); }
  // Its number; before the first one, that which the constructor was given.
  std::uint64_t last_finished() const { return finished_; }

  void on_part(bcube::ServerId from, const StatusPart& part, Instant now, NodeMessages& out);
  void on_time(Instant now, NodeMessages& out);

 private:
  struct Asked {
    Instant deadline{0};       // for the next part
    Instant last_deadline{0};  // for all
    Instant repeat{0};
    Instant pause{kRepeat};  // until the next repeat
    Instant awaited_until{0};
    std::uint32_t next = 0;   // part
    std::uint32_t parts = 0;  // 0: not known
    std::string text;
  };

  void start();
  void ask(bcube::ServerId server, Asked& asked, Instant now, NodeMessages& out);
  void ask_what_is_due(Instant now, NodeMessages& out);
  std::size_t awaited(Instant now) const;
  void end(bcube::ServerId server, Answer answer);

  bcube::ServerId own_;
  std::vector<bcube::ServerId> servers_;
  std::uint64_t current_;
  std::uint64_t wanted_;
  std::uint64_t finished_;
  std::size_t next_;  // of servers_, to be asked
  std::map<bcube::ServerId, Asked> asked_;
  std::size_t bytes_ = 0;  // gathered
  Answers gathered_;
  Answers answers_;
};

class StatusAnswerer {
 public:
  static constexpr Instant kFreshFor = std::chrono::milliseconds(100);
  static constexpr Instant kRound = std::chrono::milliseconds(20);
  static constexpr std::size_t kMostKept = 16;
  static constexpr unsigned kMostParts = 16;  // in a round

  // status: returns the text. One that is longer than kLongestStatus is sent as an empty one.
  StatusAnswerer(bcube::ServerId own, std::function<std::string()> status);

  void on_ask(bcube::ServerId from, const StatusAsk& ask, Instant now, NodeMessages& out);

 private:
  using Text = std::shared_ptr<const std::string>;
  struct Kept {
    bcube::ServerId asker = 0;
    std::uint64_t inquiry = 0;
    Text text;
  };

  const Text* text_for(bcube::ServerId from, const StatusAsk& ask, Instant now);

  bcube::ServerId own_;
  std::function<std::string()> status_;
  std::deque<Kept> kept_;  // the newest last
  Text fresh_;
  Instant taken_{0};
  Instant round_{0};
  unsigned sent_ = 0;  // in this round
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_STATUS_EXCHANGE_H_
