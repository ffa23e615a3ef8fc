// One trainer's session at the fake daemon. Used by the fake daemon's thread alone.
#ifndef GRADCUBE_TESTS_UNIT_TRAINER_FAKE_SESSION_H_
#define GRADCUBE_TESTS_UNIT_TRAINER_FAKE_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/trainer/fake_hub.h"
#include "trainer/shared_layout.h"
#include "trainer/src/base/descriptor.h"

namespace gradcube::trainer {

class FakeSession {
 public:
  FakeSession(Descriptor socket, int rank, int size)
      : socket_(std::move(socket)), rank_(rank), size_(size) {}
  ~FakeSession();

  enum class Message {
    nothing,
    hello,
    mapped,
    grow,
    inquiry,
    make_hub,
    end_hub,
    goodbye,
    abort,
    death,
  };

  // Refuses, and reads nothing; the owner drops the session then.
  void turn_away();

  Message hear();            // takes one message from the socket
  void answer();             // the hello that was heard
  void welcome();            // the trainer that has mapped its memory
  bool work(bool released);  // takes submissions, completes what can be; true if one came
  bool about_to_sleep();     // false when there is work after all
  int awake();               // returns how often the trainer rang
  bool finished() const { return finished_; }
  int socket() const { return socket_.get(); }
  int doorbell() const { return doorbell_.get(); }

  const shared::Hello& hello() const { return hello_; }
  const std::vector<std::uint32_t>& members() const { return members_; }
  const shared::Submission& last_submission() const { return last_submission_; }
  const shared::Inquiry& last_inquiry() const { return last_inquiry_; }
  const shared::Grow& last_grow() const { return last_grow_; }
  const shared::MakeHub& last_wish() const { return last_wish_; }
  const FakeHub* hub() const { return hub_.get(); }
  int seals() const;                     // of the trainer's memory
  std::uint64_t resident_bytes() const;  // of it

 private:
  shared::RegionHeader& header() const { return *reinterpret_cast<shared::RegionHeader*>(region_); }
  Message understand(const char* packet, std::size_t bytes);
  bool read_hello(const char* packet, std::size_t bytes);
  void offer();
  void make_region(std::uint64_t bytes);
  void send_with(const void* bytes, std::size_t size, int descriptor);
  void confirm();
  void make_hub();
  bool push(const shared::Submission& submission);
  void notify(shared::MessageType type, int code, const std::string& message,
              std::uint32_t number = 0, std::uint64_t request = 0);
  void strike_hub(const shared::Submission& submission);
  void dissent(const shared::Submission& submission);
  bool may_serve(bool released);
  void serve_all(bool released);
  void withdraw(const shared::Submission& withdrawal);
  void serve(const shared::Submission& submission);
  bool fail(const shared::Submission& submission);
  void complete(std::uint64_t request, int code, std::uint32_t notice = 0, std::uint64_t bytes = 0);
  bool exchange(const shared::Submission& submission);
  bool misbehave();

  Descriptor socket_;
  int rank_;
  int size_;
  Descriptor doorbell_;
  Descriptor trainers_doorbell_;
  Descriptor memory_;
  shared::Hello hello_{};
  std::vector<std::uint32_t> members_;
  std::string job_;
  std::byte* region_ = nullptr;
  std::size_t region_bytes_ = 0;
  std::deque<shared::Submission> waiting_;
  shared::Submission last_submission_{};
  shared::Inquiry last_inquiry_{};
  shared::Grow last_grow_{};
  shared::MakeHub last_wish_{};
  std::unique_ptr<FakeHub> hub_;
  bool was_pushed_to_ = false;
  unsigned restored_ = 0;  // pushes of what is restored
  int gathers_ = 0;
  std::uint64_t confirmed_ = shared::kHeapOffset;
  int swapped_out_ = 0;
  int turns_waited_ = 0;
  std::uint32_t notices_ = 0;
  std::uint64_t submission_head_ = 0;
  std::uint64_t completion_tail_ = 0;
  bool finished_ = false;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TESTS_UNIT_TRAINER_FAKE_SESSION_H_
