// What the trainers of one server push to a hub, and which rounds have ended: between the leader
// engine, which talks with the trainers, and the executors of all engines.
//
//   leader: push(), once for each trainer; the last one opens the key's round at this server
//             -> next_pushed() of each executor -> HubExchange::push()
//   executor: HubExchange::next_ended() -> end() -> leader: take_ended(), which is called once for
//             each trainer's push when all executors have ended the key, and what they have
//             computed may be believed
//
// A key is written by the leader between its rounds, and read by executors within one. No locks.
//
// Threads: the leader engine's, but next_pushed(), has_pushed(), pushed() and end() with an
// executor's number: its engine's. Where no engine has it, the control thread's.
#ifndef GRADCUBE_DATAPLANE_HUB_HUB_BOARD_H_
#define GRADCUBE_DATAPLANE_HUB_HUB_BOARD_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "control/plan/base/placement.h"
#include "dataplane/hub/hub_exchange.h"
#include "dataplane/hub/key_log.h"

namespace gradcube::dataplane {

class HubBoard {
 public:
  // Of a server with so many trainers and executors.
  HubBoard(std::size_t keys, unsigned trainers, std::size_t executors);
  HubBoard(const HubBoard&) = delete;
  HubBoard& operator=(const HubBoard&) = delete;

  // What one trainer pushes. `request` is its name for it: any number.
  struct Push {
    std::uint64_t request = 0;
    PushKind kind{};
    double learning_rate = 0;
    std::uint64_t digest = 0;  // of weights, and of what is applied
    std::uint8_t* buffer = nullptr;
    // Of what is restored or loaded. The first trainer's count.
    std::uint64_t steps = 0;
    std::array<const float*, kHubArrays> arrays{};
    std::uint8_t plane = 0;  // of what is saved or loaded
  };

  // Whether the trainer may push the key: its last push of it has ended.
  bool may_push(std::uint32_t key, unsigned local) const {
    return (keys_[key].pushers & bit_of(local)) == 0;
  }
  void push(std::uint32_t key, unsigned local, const Push& push);
  // A trainer that the key waits for, while others of the server have pushed it.
  std::optional<unsigned> latest(std::uint32_t key) const;
  // The first key that trainers of this server have pushed otherwise than others. No round of such
  // a key opens.
  const std::optional<std::uint32_t>& disagreement() const { return disagreement_; }
  // That the optimizer has taken of the key, as far as rounds have ended here.
  std::uint64_t steps(std::uint32_t key) const { return keys_[key].steps; }
  // Pushes that have not ended, of all trainers.
  std::uint64_t in_flight() const { return in_flight_; }

  // Calls end(local, request, squares) for each push whose round has ended; squares: of all that is
  // accumulated of the key, if the round has. Returns how many rounds have.
  // is_sound(): whether all that executors have told so far may be believed. It is asked behind
  // each end that is there to be read, so that it knows all that its executor knew; where it says
  // no, the rest waits for the next call.
  template <typename IsSound, typename End>
  unsigned take_ended(const IsSound& is_sound, const End& end) {
    unsigned rounds = 0;
    for (Executor& executor : executors_) {
      while (executor.ended.any() && is_sound()) {
        const std::optional<std::uint32_t> key = executor.ended.next();
        if (--keys_[*key].executors_left != 0) continue;
        keys_[*key].arrived = 0;
        keys_[*key].note_end();
        finish(*key, end);
        ++rounds;
      }
    }
    return rounds;
  }
  // The same for all that is in flight: nothing will end any more, and no squares mean anything.
  template <typename End>
  void fail_all(const End& end) {
    for (std::uint32_t key = 0; key < keys_.size(); ++key) finish(key, end);
  }

  // An executor's engine ------------------------------------------------------

  bool has_pushed(std::size_t executor) const { return executors_[executor].pushed.any(); }
  std::optional<std::uint32_t> next_pushed(std::size_t executor) {
    return executors_[executor].pushed.next();
  }
  const HubPush& pushed(std::uint32_t key) const { return keys_[key].push; }
  void end(std::size_t executor, std::uint32_t key, double squares) {
    executors_[executor].squares[key] = squares;
    executors_[executor].ends.tell(key);
  }

  // Bytes that a board takes.
  static std::uint64_t needs(std::size_t keys, unsigned trainers, std::size_t executors);

 private:
  struct Key {
    HubPush push;
    unsigned arrived = 0;  // trainers that have pushed
    // Whose pushes have not ended: a bit for each trainer. Their requests cannot tell, as a trainer
    // gives its own any number.
    std::uint32_t pushers = 0;
    bool differs = false;  // what they have pushed
    std::size_t executors_left = 0;
    std::uint64_t steps = 0;

    void note_end() {
      const bool drops = push.kind == PushKind::applied &&
                         std::bit_cast<float>(static_cast<std::uint32_t>(push.digest)) == 0;
      if (shared::has_rate(push.kind) && !drops) ++steps;
      if (push.kind == PushKind::weights) steps = 0;
      if (push.kind == PushKind::restored) steps = push.steps;
    }
  };
  struct Executor {
    Executor(const KeyLog& log, std::size_t keys)
        : pushed(log), ends(keys), ended(ends), squares(keys) {}
    Executor(const Executor&) = delete;
    Executor& operator=(const Executor&) = delete;

    KeyLog::Reader pushed;
    KeyLog ends;
    KeyLog::Reader ended;
    std::vector<double> squares;  // by key, of the round that has ended last
  };

  static std::uint32_t bit_of(unsigned local) { return std::uint32_t{1} << local; }
  static_assert(control::kMaxLocalTrainers <= 32, "a key has a bit for each trainer");
  std::size_t place(std::uint32_t key, unsigned local) const {
    return std::size_t{key} * trainers_ + local;
  }
  // Always in one order, so all servers have the same bits.
  double squares_of(std::uint32_t key) const {
    if (keys_[key].push.kind != PushKind::accumulated) return 0;
    double sum = 0;
    for (const Executor& executor : executors_) sum += executor.squares[key];
    return sum;
  }
  template <typename End>
  void finish(std::uint32_t key, const End& end) {
    for (unsigned local = 0; local < trainers_; ++local) {
      if (may_push(key, local)) continue;
      end(local, requests_[place(key, local)], squares_of(key));
      keys_[key].pushers &= ~bit_of(local);
      --in_flight_;
    }
  }

  unsigned trainers_;
  std::vector<Key> keys_;
  std::vector<std::uint64_t> requests_;  // by key and trainer; of pushers alone
  KeyLog pushed_;
  std::deque<Executor> executors_;
  std::optional<std::uint32_t> disagreement_;
  std::uint64_t in_flight_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HUB_HUB_BOARD_H_
