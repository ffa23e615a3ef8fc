// The mail between the trainers of this server and those of one other: its flows, one for each of
// the parallel paths, and what they carry.
//
// It is a FlowUser (flow_user.h). Its streams are made as they are sent: when a flow is asked for
// its next segment, it takes the next one of the mail that has some left, in turn. So the paths
// share a large message by what each of them carries, whatever their rates, and no message waits
// for a longer one before it. What a sequence stands for is remembered until it is acknowledged.
//
// Both directions of a flow carry wants, their withdrawals, data, refusals and absences (letter.h).
// Wants, withdrawals, the answers to these and absences take the first path alone, the only one
// whose order matters (mail_matcher.h), and go before data and refusals. What arrives is copied to
// its receive's buffer at once: a segment comes only after its receive has asked for it. So nothing
// is held, whatever the trainers do.
//
// Whether a message meets a receive or its withdrawal is decided where the sends are, by the order
// of wants and withdrawals. The receive ends with the answer, or with the message.
//
// Each call takes the same time however many messages wait: what a flow may take next stands in a
// queue for each number of paths, and an acknowledgement touches what it acknowledges.
//
// Owned by its Mailroom; touched only by the leader engine's thread. Allocates where it begins.
#ifndef GRADCUBE_DATAPLANE_ENGINE_MESSAGES_MAIL_CHANNEL_H_
#define GRADCUBE_DATAPLANE_ENGINE_MESSAGES_MAIL_CHANNEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "dataplane/engine/flows/flow.h"
#include "dataplane/engine/flows/flow_user.h"
#include "dataplane/engine/messages/letter.h"
#include "dataplane/engine/messages/mail_matcher.h"

namespace gradcube::dataplane {

class Mailroom;

class MailChannel {
 public:
  // most_in_flight: that the trainers of a server can have. segment_bytes: of every segment but a
  // message's last. key: of the matcher's hash.
  MailChannel(Mailroom& room, bcube::ServerId peer, std::size_t most_in_flight,
              std::uint32_t segment_bytes, std::uint64_t key);
  MailChannel(const MailChannel&) = delete;
  MailChannel& operator=(const MailChannel&) = delete;

  bcube::ServerId peer() const { return peer_; }
  // By path; none to this server itself.
  std::deque<Flow>& flows() { return flows_; }
  void add_flow(const FlowKey& key, EngineJob& job, const FlowSettings& settings, unsigned window);

  // A letter of this server's trainers to or from the peer's.
  void send(std::uint32_t number);
  void receive(std::uint32_t number);
  // Its trainer wants it back: it ends soon, if it has not met the other one's.
  void withdraw(std::uint32_t number);
  // Of the peer's; or of this server's own, where the peer is this server.
  void add_want(const Want& want, std::uint64_t settled);
  // Trainers have left, and all that they had sent is here: what waits for more of it is told, in
  // parts, by sweep(). False: it was under way, and begins anew.
  bool begin_sweep() { return matcher_.begin_sweep(); }
  bool any_wants() const { return matcher_.wants() != 0; }
  // Counts down the steps that it takes. True: it is over.
  bool sweep(std::size_t& steps);
  // More has been acknowledged on this one of the flows.
  void on_acknowledged(const Flow& flow);

  // FlowUser ------------------------------------------------------------------

  struct Acceptance {
    std::optional<DropReason> refused;
  };
  Acceptance accept(Flow& flow, std::uint64_t sequence, const Contribution& segment);
  bool take(Flow& flow, std::uint64_t sequence, const Contribution& segment,
            const Acceptance& accepted);
  std::uint64_t consumed(const Flow& flow) const { return flow.receive.cumulative(); }
  // The end of a message says so itself.
  bool sender_waits(const Flow&, std::uint64_t) const { return false; }
  std::optional<OutgoingSegment> next_segment(Flow& flow);
  OutgoingSegment sent_segment(const Flow& flow, std::uint64_t sequence) const;
  std::uint64_t granting(const Flow&) const { return 0; }
  std::uint8_t backlog(Flow& flow) const;
  std::uint8_t ready_backlog(Flow& flow) const { return backlog(flow); }

 private:
  // What a sequence of a flow stands for.
  struct Entry {
    std::uint32_t letter = 0;
    std::uint32_t segment = 0;
  };
  static constexpr std::uint32_t kWantEntry = UINT32_MAX;  // in the place of a segment
  static constexpr std::uint32_t kWithdrawalEntry = UINT32_MAX - 1;
  static constexpr std::uint32_t kWithdrawnEntry = UINT32_MAX - 2;  // of a letter of the peer's
  static constexpr std::uint32_t kAbsenceEntry = UINT32_MAX - 3;    // the same
  struct Path {
    // By sequence: those that are not acknowledged, and the next one. A power of two.
    std::array<Entry, 2 * std::size_t{protocol::SendWindow::kWindow}> entries{};
    std::uint64_t chosen = 0;        // all sequences below stand for something
    std::uint64_t acknowledged = 0;  // all below have counted for their letters
  };
  // Sends that take the same number of paths and have segments left: next the one whose last turn
  // was the longest ago.
  struct Unsent {
    LetterQueue letters;
    std::uint64_t segments = 0;  // that are left
  };

  static std::size_t place_of(std::uint64_t sequence) {
    return static_cast<std::size_t>(sequence % (2 * std::size_t{protocol::SendWindow::kWindow}));
  }
  bool choose(const Flow& flow, Entry& entry);
  bool choose_notice(std::uint64_t sequence, Entry& entry);
  Unsent* next_unsent(unsigned path);
  OutgoingSegment outgoing(const Entry& entry) const;
  void meet(std::uint32_t number, const Want& want);
  void settle(std::uint64_t sequence);
  bool takes_want(const Contribution& segment) const;
  bool can_be_withdrawn(const Letter& receive) const;
  void answer_absence(std::uint32_t want);
  bool fits(const Letter& receive, const Contribution& segment) const;
  void take_data(Letter& receive, std::uint32_t number, const Contribution& segment);
  void forget_withdrawal(std::uint32_t number);
  void acknowledge();

  Mailroom& room_;
  bcube::ServerId peer_;
  std::size_t most_in_flight_;
  std::uint32_t segment_bytes_;
  std::deque<Flow> flows_;
  std::vector<Path> paths_;
  MailMatcher matcher_;
  LetterQueue untold_;                         // receives whose want has not been taken by a flow
  LetterQueue withdrawals_;                    // those whose withdrawal has not
  std::vector<std::uint32_t> withdrawn_;       // wants of the peer's; it is yet to be told
  std::vector<std::uint32_t> absences_;        // the peer's receives, to be told
  std::array<Unsent, kMostMailPaths> unsent_;  // by the number of paths less 1
  std::uint64_t turns_ = 0;
};

static_assert(FlowUser<MailChannel>);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_MESSAGES_MAIL_CHANNEL_H_
