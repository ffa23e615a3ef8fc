// One trainer's session at the fake daemon. Used by the fake daemon's thread alone.
#ifndef GRADCUBE_TESTS_UNIT_TRAINER_FAKE_SESSION_H_
#define GRADCUBE_TESTS_UNIT_TRAINER_FAKE_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "trainer/shared_layout.h"
#include "trainer/src/descriptor.h"

namespace gradcube::trainer {

class FakeSession {
 public:
  FakeSession(Descriptor socket, int rank, int size)
      : socket_(std::move(socket)), rank_(rank), size_(size) {}
  ~FakeSession();

  enum class Heard { nothing, inquiry, goodbye, death };

  // Refuses, and reads nothing; the owner drops the session then.
  void turn_away();

  Heard hear();              // takes one message from the socket
  void work(bool released);  // takes submissions, completes what can be completed
  bool about_to_sleep();     // false when there is work after all
  int awake();               // returns how often the trainer rang
  bool finished() const { return finished_; }
  int socket() const { return socket_.get(); }
  int doorbell() const { return doorbell_.get(); }

 private:
  void answer(const shared::Hello& hello);
  void welcome(std::uint64_t heap_bytes);
  void make_region(std::uint64_t bytes);
  void notify(shared::MessageType type, int code, const char* message, std::uint64_t first,
              std::uint64_t last);
  void serve(const shared::Submission& submission);
  void add_up(const shared::Submission& submission);
  void complete(std::uint64_t request, int code);
  bool misbehave();

  Descriptor socket_;
  int rank_;
  int size_;
  Descriptor doorbell_;
  Descriptor trainers_doorbell_;
  Descriptor memory_;
  std::string job_;
  std::byte* region_ = nullptr;
  std::size_t region_bytes_ = 0;
  std::deque<shared::Submission> waiting_;
  std::uint64_t submission_head_ = 0;
  std::uint64_t completion_tail_ = 0;
  bool finished_ = false;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TESTS_UNIT_TRAINER_FAKE_SESSION_H_
