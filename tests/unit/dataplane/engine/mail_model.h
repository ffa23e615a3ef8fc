// What has to become of messages between the trainers of two servers, as a few lists: a reference
// for Mailroom and MailChannel. It is told what trainers do, what a server sends over its first
// path and in which order that counts at the other, and says what ends, how, and what may be sent.
//
// Of a notice it knows who may send it and when, not which of several goes first.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_MAIL_MODEL_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_MAIL_MODEL_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "dataplane/engine/messages/letter.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

class MailModel {
 public:
  // Trainers: those of one server are even, those of the other odd.
  static unsigned server_of(unsigned trainer) { return trainer % 2; }

  struct Post {
    unsigned trainer = 0;
    bool sends = false;
    unsigned peer = 0;
    std::uint64_t tag = 0;
    std::uint64_t bytes = 0;
  };
  enum class State : std::uint8_t { untold, waits, withdrawing, asked, met, deserted, ended };
  struct Item {
    Post post{};
    State state = State::waits;
    std::size_t other{};  // once it has met it
    std::uint32_t segments = 0;
    std::uint32_t taken = 0;    // segments that were sent
    std::uint32_t arrived = 0;  // or, of a send, acknowledged
    std::int32_t code{};
    std::uint64_t bytes = 0;
  };
  // What a server has to tell the other one of a receive of that one's.
  using Answer = std::pair<MailKind, std::size_t>;

  explicit MailModel(std::uint32_t segment_bytes) : segment_bytes_(segment_bytes) {}

  const Item& item(std::size_t which) const { return items_[which]; }
  std::size_t size() const { return items_.size(); }
  // Ended since the last call.
  std::set<std::size_t> take_ended() { return std::exchange(ended_, {}); }

  std::size_t post(const Post& post) {
    const std::size_t which = items_.size();
    items_.push_back({.post = post});
    const unsigned server = server_of(post.trainer);
    if (!post.sends) {
      if (is_local(which)) {
        count_want(which);
      } else {
        items_[which].state = State::untold;
      }
    } else if (gone_[server].contains(post.peer)) {
      items_[which].state = State::deserted;
    } else if (std::deque<std::size_t>& wants = wants_[stream(which)]; !wants.empty()) {
      const std::size_t want = wants.front();
      wants.pop_front();
      meet(which, want);
    } else {
      sends_[stream(which)].push_back(which);
    }
    return which;
  }
  void withdraw(std::size_t which) {
    Item& item = items_[which];
    if (item.post.sends || is_local(which)) {
      auto& waiting = (item.post.sends ? sends_ : wants_)[stream(which)];
      if (std::erase(waiting, which) != 0) end(which, GRADCUBE_ECANCELED);
    } else if (item.state == State::untold) {
      end(which, GRADCUBE_ECANCELED);
    } else if (item.state == State::waits) {
      item.state = State::withdrawing;
    }
  }
  // It has left, as its own server knows.
  void leave(unsigned trainer) {
    silent_.insert(trainer);
    for (auto& [stream, wants] : wants_) {
      if (std::get<0>(stream) != trainer) continue;
      for (const std::size_t want : std::exchange(wants, {})) miss(want);
    }
    tell(server_of(trainer), trainer);
  }
  // As this server knows.
  void tell(unsigned server, unsigned trainer) {
    gone_[server].insert(trainer);
    for (auto& [stream, sends] : sends_) {
      if (std::get<1>(stream) != trainer) continue;
      std::erase_if(sends, [&](std::size_t send) {
        if (server_of(items_[send].post.trainer) != server) return false;
        items_[send].state = State::deserted;
        return true;
      });
    }
  }
  // The control thread of a server tells its trainers who has left them.
  void explain(unsigned server) {
    for (std::size_t which = 0; which < items_.size(); ++which) {
      const Item& item = items_[which];
      if (item.state == State::deserted && server_of(item.post.trainer) == server &&
          gone_[server].contains(item.post.peer)) {
        end(which, GRADCUBE_EPEER);
      }
    }
  }

  // A server sends this of a receive: may it?
  bool send(unsigned server, MailKind kind, std::size_t receive, std::uint32_t segment) {
    Item& item = items_[receive];
    const auto moves = [&](State from, State to) {
      return std::exchange(item.state, item.state == from ? to : item.state) == from &&
             server_of(item.post.trainer) == server;
    };
    if (kind == MailKind::want) return moves(State::untold, State::waits);
    if (kind == MailKind::withdrawal) return moves(State::withdrawing, State::asked);
    if (kind == MailKind::withdrawn || kind == MailKind::absence) {
      return server_of(item.post.trainer) != server && answers_.erase({kind, receive}) == 1;
    }
    const auto met = met_.find(receive);
    if (met == met_.end()) return false;
    Item& sent = items_[met->second];
    return refused(sent) == (kind == MailKind::refusal) && sent.taken++ == segment &&
           sent.taken <= sent.segments;
  }
  // All that was sent before it is here as well.
  void count(MailKind kind, std::size_t receive) {
    if (kind == MailKind::want) return count_want(receive);
    if (kind == MailKind::withdrawal && std::erase(wants_[stream(receive)], receive) != 0) {
      answers_.emplace(MailKind::withdrawn, receive);
    }
  }
  // Whether or not what was sent before it is here.
  void arrive(MailKind kind, std::size_t receive) {
    Item& item = items_[receive];
    if (kind == MailKind::withdrawn) end(receive, GRADCUBE_ECANCELED);
    if (kind == MailKind::absence) item.state = State::deserted;
    if (kind != MailKind::data && kind != MailKind::refusal) return;
    const Item& sent = items_[met_.at(receive)];
    if (++item.arrived == sent.segments) end_well(receive, sent);
  }
  void acknowledge(MailKind kind, std::size_t receive) {
    if (kind != MailKind::data && kind != MailKind::refusal) return;
    const std::size_t send = met_.at(receive);
    Item& item = items_[send];
    if (++item.arrived == item.segments) end_well(send, item);
  }
  bool owes(unsigned server) const {
    return std::any_of(answers_.begin(), answers_.end(), [&](const Answer& answer) {
      return server_of(items_[answer.second].post.trainer) != server;
    });
  }

 private:
  using Stream = std::tuple<unsigned, unsigned, std::uint64_t>;  // from, to, tag

  bool is_local(std::size_t which) const {
    return server_of(items_[which].post.trainer) == server_of(items_[which].post.peer);
  }
  Stream stream(std::size_t which) const {
    const Post& post = items_[which].post;
    return post.sends ? Stream{post.trainer, post.peer, post.tag}
                      : Stream{post.peer, post.trainer, post.tag};
  }
  void count_want(std::size_t receive) {
    std::deque<std::size_t>& sends = sends_[stream(receive)];
    if (!sends.empty()) {
      const std::size_t send = sends.front();
      sends.pop_front();
      meet(send, receive);
    } else if (silent_.contains(items_[receive].post.peer)) {
      miss(receive);
    } else {
      wants_[stream(receive)].push_back(receive);
    }
  }
  // Its sender has left.
  void miss(std::size_t receive) {
    if (is_local(receive)) {
      items_[receive].state = State::deserted;
    } else {
      answers_.emplace(MailKind::absence, receive);
    }
  }
  bool refused(const Item& send) const { return send.post.bytes > items_[send.other].post.bytes; }
  void meet(std::size_t send, std::size_t receive) {
    Item& item = items_[send];
    item.state = State::met;
    item.other = receive;
    items_[receive].other = send;
    met_[receive] = send;
    const bool whole = refused(item) || item.post.bytes == 0;
    item.segments =
        whole ? 1
              : static_cast<std::uint32_t>((item.post.bytes + segment_bytes_ - 1) / segment_bytes_);
    if (!is_local(send)) return;
    end_well(receive, item);
    end_well(send, item);
  }
  void end_well(std::size_t which, const Item& send) {
    end(which, refused(send) ? GRADCUBE_EMISMATCH : 0, send.post.bytes);
  }
  void end(std::size_t which, std::int32_t code, std::uint64_t bytes = 0) {
    Item& item = items_[which];
    item.state = State::ended;
    item.code = code;
    item.bytes = bytes;
    ended_.insert(which);
  }

  std::uint32_t segment_bytes_;
  std::vector<Item> items_;
  std::map<Stream, std::deque<std::size_t>> sends_;
  std::map<Stream, std::deque<std::size_t>> wants_;  // that count
  std::map<std::size_t, std::size_t> met_;           // sends, by receive
  std::set<Answer> answers_;
  std::set<unsigned> silent_;
  std::set<unsigned> gone_[2];  // by who knows
  std::set<std::size_t> ended_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_MAIL_MODEL_H_
