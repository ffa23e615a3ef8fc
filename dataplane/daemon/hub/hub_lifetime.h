// The life of a job's hubs at one server: from the trainers' wish for one until none of them reads
// it any more. There is one at a time.
//
// Trainers of a server wish for the same hub, each with a message of its own; the first wish makes
// it (hub_making.h), and all are answered when it is there, or cannot be. The table of the first
// one counts: the library has compared the keys of all ranks before it asks (hub_client.h in
// trainer/src/hub/). Who asks with another table harms itself alone: it takes weights for others.
//
//   state    | wished for | made       | cannot be  | ends (*)                   | unread
//   none     | making     |            |            | none                       | none
//   making   | making     | stands     | none       | none; who waits is refused |
//   stands   | stands     |            | ended      | ended                      |
//   ended    | refused    |            |            | ended                      | none
//
// (*) All its trainers have freed it, the job is reset, or the job is over.
//
// Ended, engines have let it go and what was being pushed has failed. Its memory stays for
// trainers, who find there how it has ended and, of each key whose last push has ended well, the
// weights of that step; "unread" is when each of them has freed it or has gone, or one, as all have
// freed it, wishes for the next hub.
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_HUB_HUB_LIFETIME_H_
#define GRADCUBE_DATAPLANE_DAEMON_HUB_HUB_LIFETIME_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/daemon/hub/hub_making.h"

namespace gradcube::dataplane {

// To a trainer that has wished for a hub.
struct HubAnswer {
  unsigned local = 0;
  std::uint32_t number = 0;  // of the hub
  std::int32_t code = 0;     // 0, or a GRADCUBE_E... code, for the reason in `text`
  std::string text;
  std::uint64_t bytes = 0;  // of the weights
  int descriptor = -1;      // of their memory: the hub's
};

class HubLifetime {
 public:
  // A trainer wishes for a hub; an answer follows from work(). design and charge: as of HubMaking.
  void ask(unsigned local, HubWish wish, const HubDesign& design, MemoryQuota::Charge charge);
  void refuse(unsigned local, std::uint32_t number, std::int32_t code, std::string text);
  // To be called about every 20 ms: what is to be told. use: gives a new hub to the engines, and
  // throws a std::exception if they cannot have it. is_whole: whether others have what a hub needs
  // of them; before, nobody is told that it is there. Null: no hub needs any.
  using IsWhole = std::function<bool(const ServerHub&)>;
  std::vector<HubAnswer> work(const std::function<void(const std::shared_ptr<ServerHub>&)>& use,
                              const IsWhole& is_whole = nullptr);
  // It has ended, and who waits for one is told so by the next work(). notice: of trainers, which
  // says why.
  void end(std::int32_t code, const std::string& text, std::uint32_t notice = 0);
  // It cannot be, as others have not what it needs of them. Also told to those that ask later.
  void fail(std::int32_t code, const std::string& text, std::uint32_t notice = 0);
  // This trainer does not read it any more.
  void freed_by(unsigned local) {
    if (!is_freed_by(local)) freed_.push_back(local);
  }
  bool is_freed_by(unsigned local) const;
  // What this trainer may read: who keeps it keeps its memory, for a trainer that was evicted and
  // does not know it yet. Null: nothing.
  std::shared_ptr<ServerHub> read_by(unsigned local) const;
  // No trainer reads what has ended, or what is there once it ends.
  void forget();
  // The daemon ends, and leaves trainers what there is.
  void outlive_daemon();

  // Whether the trainer has asked, and was not answered.
  bool waits(unsigned local) const;
  // What was made last, or is being made: without its table.
  const HubWish& wish() const { return wish_; }
  // Of the hub, if there is one.
  const std::shared_ptr<const std::string>& table() const { return making_->table(); }
  // Null if there is none.
  const std::shared_ptr<ServerHub>& hub() const { return hub_; }
  // What still runs for hubs that nobody waits for: to be kept until each is_idle().
  std::vector<std::unique_ptr<UnfinishedWork>> take_dropped();

 private:
  void make(HubWish wish, const HubDesign& design, MemoryQuota::Charge charge);
  void drop();
  std::string why_not(std::string_view reason) const;
  void answer_all(std::int32_t code, const std::string& text);

  HubWish wish_;                       // of what is being made, or is there
  std::unique_ptr<HubMaking> making_;  // of that, and while it is there
  std::shared_ptr<ServerHub> hub_;
  std::shared_ptr<ServerHub> ended_;  // the one before, which trainers may still read
  std::vector<unsigned> freed_;       // by these of them
  // Why there is none of what was wished for last, where it was made in vain.
  std::int32_t code_ = 0;
  std::string why_;
  std::vector<unsigned> waiting_;  // trainers
  std::vector<HubAnswer> answers_;
  std::vector<std::unique_ptr<UnfinishedWork>> dropped_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_HUB_HUB_LIFETIME_H_
