// One collective, message or push to a hub as this trainer sees it: gradcube_collective or
// gradcube_message, checked against the job, and which parts of its buffer go in and come out here.
#ifndef GRADCUBE_TRAINER_SRC_SESSION_COLLECTIVE_H_
#define GRADCUBE_TRAINER_SRC_SESSION_COLLECTIVE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "aggregation/reproducible.h"
#include "trainer/shared_layout.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

// The trainer's place in its job.
struct Place {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint32_t lanes = 1;
  bool reproducible = false;  // of the job
};

// Bytes of a buffer, from its start.
struct Part {
  std::size_t offset = 0;
  std::size_t bytes = 0;  // 0: nothing
};

struct Collective {
  shared::Submission submission{};  // all but request and offset
  std::byte* buffer = nullptr;      // null when it is empty, or the trainer's own again
  std::size_t bytes = 0;            // of the whole buffer
  std::size_t carried_bytes = 0;    // of what the daemon works on in its place
  bool compares = false;            // comparison.h: the buffer is only read
  // How elements are turned into what the daemon adds; nothing if it adds them as they are.
  std::optional<aggregation::ReproducibleReduction> reduction;
  // What the daemon must see of the trainer's buffer, and the trainer of the daemon's result. Of a
  // comparison: the bytes of the copy that are the trainer's digest, and those of all digests.
  Part input;
  Part output;

  bool is(shared::SubmissionType type) const {
    return submission.type == static_cast<std::uint8_t>(type);
  }
  bool is_message() const { return is(shared::SubmissionType::message); }
  bool is_send() const { return goes(shared::Direction::send); }
  bool is_receive() const { return goes(shared::Direction::receive); }
  bool is_in_lane() const { return is(shared::SubmissionType::collective); }
  // Others that only read may share its bytes.
  bool only_reads() const { return is_send() || compares; }
  // What is not the trainer's own until the end: a comparison reads its buffer at its beginning.
  std::span<std::byte> held() const {
    return compares || buffer == nullptr ? std::span<std::byte>() : std::span(buffer, bytes);
  }
  bool is_carried_as_it_is() const { return !reduction.has_value() && !compares; }

  // Between the trainer's buffer and a copy in the heap, of carried_bytes: the daemon works there.
  void write_input(std::byte* copy) const;
  // What a comparison has found; else empty. Where the buffer is the trainer's own again, for
  // comparisons alone.
  std::string read_output(const std::byte* copy) const;

 private:
  bool goes(shared::Direction direction) const {
    return is_message() && submission.message.direction == static_cast<std::uint8_t>(direction);
  }
};

// Fills `collective`. `most_bytes` is the heap's size: no buffer is larger. Returns what is wrong
// with `given`; empty if nothing is.
std::string read_collective(const gradcube_collective* given, const Place& place,
                            std::size_t most_bytes, Collective& collective);
// The same of a message.
std::string read_message(const gradcube_message* given, const Place& place, std::size_t most_bytes,
                         Collective& collective);

// "float32"; "?" of a number that is no gradcube_dtype.
std::string type_name(int dtype);

// For messages: `the receive of up to 100 bytes from rank 3 with tag 7`.
std::string text_of_message(const Collective& message);

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_SESSION_COLLECTIVE_H_
