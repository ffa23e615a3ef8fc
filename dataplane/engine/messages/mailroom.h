// All mail of one server's trainers in one job (docs/messages.md): takes what they submit, gives it
// to the channel of the other trainer's server, and ends it. Mail between trainers of this server
// is copied here, some of it in each iteration.
//
// The leader engine of the server has it, and sends all mail itself, through its queue of every
// port: so no state is shared between engines, and a message may take all paths.
//
// Memory: a channel for each server that there was mail with, and what the trainers can have in
// flight, for which the constructor allocates, with a bit for each segment that fits into their
// memory; and a little for each trainer that has left. Nothing else depends on the size of the job.
// While the host has no memory for a channel, mail to its server waits, as does what was submitted
// after it, and the first mail from there is dropped, and sent again.
//
// Resets. Mail knows no epochs: it waits while the job is reset and then goes on. It ends with the
// job.
//
// Departures (control/jobs/departures.h). What waits for a trainer that has left is DESERTED: a
// receive when the sender's server says that no such message was sent, a send when this server
// knows of the departure. It waits in a row for that trainer, and ends, in parts, when the control
// thread, which sees that there is some (MailTable::deserters()), has told who waits why.
//
// Owned by its EngineJob; touched only by the leader engine's thread, but for its construction.
#ifndef GRADCUBE_DATAPLANE_ENGINE_MESSAGES_MAILROOM_H_
#define GRADCUBE_DATAPLANE_ENGINE_MESSAGES_MAILROOM_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "control/plan/base/placement.h"
#include "dataplane/engine/messages/arrived_segments.h"
#include "dataplane/engine/messages/letter.h"
#include "dataplane/engine/messages/mail_channel.h"
#include "dataplane/engine/session/mail_table.h"
#include "dataplane/engine/session/rank_order.h"
#include "trainer/shared_layout.h"

namespace gradcube::dataplane {

class EngineJob;
class Session;

// A trainer of a job: its server, and its number there.
using MailPeer = std::pair<bcube::ServerId, unsigned>;
static_assert(shared::kMaxLocalTrainers <= 32, "a bit for each of a server's trainers");

class Mailroom {
 public:
  // What one call of work() begins and takes back at most, how far it looks for what waits for
  // trainers that have left, how much of that it ends, and what it copies between trainers of this
  // server, in turns and in bytes: so that none of it keeps the engine from its packets for long,
  // or waits for the others. A message has at most so many bytes in its turn.
  static constexpr unsigned kBegunAtOnce = 64;
  static constexpr unsigned kWithdrawnAtOnce = 64;
  static constexpr std::size_t kSweptAtOnce = 256;
  static constexpr unsigned kDesertedAtOnce = 256;
  static constexpr unsigned kTurnsAtOnce = 64;
  static constexpr std::uint64_t kCopiedAtOnce = 256 * 1024;
  static constexpr std::uint64_t kCopiedInTurn = 64 * 1024;

  // The job, its session and its ranks must outlive it. window: of a flow.
  Mailroom(EngineJob& job, Session& session, const RankOrder& ranks,
           const control::Placement& placement, bcube::ServerId server, std::uint32_t segment_bytes,
           unsigned window, const FlowSettings& flows, std::uint64_t hash_key);
  Mailroom(const Mailroom&) = delete;
  Mailroom& operator=(const Mailroom&) = delete;

  // Calls open(channel) for each new channel: who gives its flows to an engine, or throws.
  void set_opener(std::function<void(MailChannel&)> open) { open_ = std::move(open); }

  // Begins what trainers have submitted, takes back what they have withdrawn, deserts what waits
  // for those that have left, ends what end_deserted() was told of, and copies mail between
  // trainers of this server. How much it found to do: while that is not 0 there may be more.
  unsigned work();
  // Tells the trainers what has ended since.
  void publish_ends();

  // This trainer of the job has left; of one of this server all that it had submitted was taken.
  // What waits for it is deserted by the next calls of work().
  void depart(bcube::ServerId server, unsigned local);
  // Whether work() has something to do for trainers that have gone.
  bool has_departures() const {
    return !falling_silent_.empty() || !sweeping_.empty() || !ending_.empty();
  }
  // Some that have left (depart()) and that something deserted waits for, at most so many, and for
  // which of this server's trainers it waits: a bit each.
  std::map<MailPeer, std::uint32_t> deserters(std::size_t most) const;
  // What is deserted of this one by now ends with GRADCUBE_EPEER by the next calls of work().
  void end_deserted(const MailPeer& peer, std::uint32_t notice);

  // To another server of the job, or this one; null for any other. Made when it is asked for first;
  // where that throws std::bad_alloc, nothing of it stays.
  MailChannel* channel_to(bcube::ServerId server);
  template <typename Function>
  void for_each_channel(const Function& function) const {
    for (const auto& [server, channel] : channels_) function(*channel);
  }

  // For the channels ----------------------------------------------------------

  unsigned trainers() const;
  Letter& letter(std::uint32_t number) { return letters_[number]; }
  Letters& letters() { return letters_; }
  MailTable& table() const;
  // Of the trainer that has submitted it.
  ArrivedSegments& arrived(const Letter& letter) { return arrived_[letter.request.local]; }
  const std::uint8_t* region_of(const Letter& letter) const;
  // A receive from this server that has not ended; null if there is none of this number.
  Letter* find_receive(std::uint32_t number, bcube::ServerId from);
  // bytes: of the message.
  void end(std::uint32_t number, std::int32_t code, std::uint64_t bytes, std::uint32_t notice = 0);
  // It does not fit the other trainer's, which is of this type.
  void refuse(std::uint32_t number, std::uint64_t bytes, aggregation::DataType other);
  // Of wants and withdrawals of this server's trainers among themselves: the next one, and how many
  // there were.
  std::uint64_t next_own_sequence() { return own_sequence_++; }
  std::uint64_t own_sequence() const { return own_sequence_; }
  // The other trainer of this letter has left.
  void desert(std::uint32_t number);
  bool has_left(const MailPeer& peer) const {
    const auto found = departed_.find(peer);
    return found != departed_.end() && found->second.known;
  }
  // One of this server has left, and all that it had sent has begun.
  bool sends_no_more(unsigned local) const { return (silent_ >> local & 1) != 0; }
  // Both are of trainers of this server.
  void copy(std::uint32_t send, std::uint32_t receive);
  bool is_own(bcube::ServerId server) const { return server == server_; }

 private:
  struct End {
    std::uint32_t number;
    std::int32_t code;
    std::uint64_t bytes;
    std::uint32_t notice;
  };
  // A trainer that has left, or may.
  struct Departed {
    bool known = false;        // depart() was called
    LetterQueue deserted;      // what waits for it; nobody was told yet
    std::uint32_t locals = 0;  // whose that is: a bit each
  };
  struct Ending {
    LetterQueue letters;
    std::uint32_t notice;
  };

  std::size_t most_in_flight() const;
  unsigned begin_some();
  void begin(std::uint32_t number, MailChannel& channel);
  unsigned copy_some();
  void fall_silent(unsigned local);
  void begin_sweep(MailChannel& channel);
  unsigned sweep_some();
  unsigned end_some();
  Departed& record_of(const MailPeer& peer);
  void add_deserter(const MailPeer& peer);
  void add_flows(MailChannel& channel);
  MailPeer other_of(std::uint32_t number) const;

  EngineJob& job_;  // of its flows
  Session& session_;
  const RankOrder& ranks_;
  control::Placement placement_;
  bcube::ServerId server_;
  std::uint32_t segment_bytes_;
  unsigned window_;
  FlowSettings flow_settings_;
  std::function<void(MailChannel&)> open_;
  std::map<bcube::ServerId, std::unique_ptr<MailChannel>> channels_;
  Letters letters_;
  std::vector<ArrivedSegments> arrived_;  // by trainer
  LetterQueue copies_;     // sends to trainers of this server, under way; the first one is next
  std::vector<End> ends_;  // not published yet
  std::uint64_t own_sequence_ = 0;
  std::map<MailPeer, Departed> departed_;  // with all trainers that there is a channel to
  std::vector<MailPeer> deserters_;        // those that are known, and that something waits for
  std::vector<Ending> ending_;
  // Of this server's, each with what has begun when all that it had sent has.
  std::vector<std::pair<unsigned, std::uint64_t>> falling_silent_;
  std::uint32_t silent_ = 0;  // a bit each
  std::uint64_t begun_ = 0;   // letters
  std::vector<MailChannel*> sweeping_;
  std::uint64_t key_;  // of the matchers' hashes
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_MESSAGES_MAILROOM_H_
