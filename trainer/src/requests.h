// The collectives of a session whose end was not reported to the trainer yet: at most kRingEntries,
// so neither ring of the shared region can overflow. A fixed table; no allocation. One thread.
#ifndef GRADCUBE_TRAINER_SRC_REQUESTS_H_
#define GRADCUBE_TRAINER_SRC_REQUESTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "trainer/shared_layout.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

struct Request {
  std::uint64_t number = 0;     // 0: this place of the table is free
  std::span<std::byte> buffer;  // the trainer's own
  // The copy in the heap that the daemon works on; null when `buffer` itself lies in the heap.
  std::byte* staging = nullptr;
  bool ended = false;
  int code = GRADCUBE_OK;  // valid once ended
  std::string message;     // why, when code is negative
  // How long the trainer has waited for the end, in all its calls since the last timeout.
  std::int64_t waited_ns = 0;

  // Where the daemon works.
  std::span<std::byte> shared_memory() const {
    return staging == nullptr ? buffer : std::span<std::byte>(staging, buffer.size());
  }
};

inline bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  const auto begin_a = reinterpret_cast<std::uintptr_t>(a.data());
  const auto begin_b = reinterpret_cast<std::uintptr_t>(b.data());
  return begin_a < begin_b + b.size() && begin_b < begin_a + a.size();
}

class Requests {
 public:
  using Places = std::array<Request, shared::kRingEntries>;

  // Null when every place is taken.
  Request* free_place() { return find(0); }

  // Null when no request has this number.
  Request* find(std::uint64_t number) {
    for (Request& request : places_) {
      if (request.number == number) return &request;
    }
    return nullptr;
  }

  // The request whose buffer or staging shares bytes with `memory`; null when there is none.
  const Request* using_memory(std::span<const std::byte> memory) const {
    for (const Request& request : places_) {
      if (request.number == 0) continue;
      if (overlap(request.buffer, memory) || overlap(request.shared_memory(), memory)) {
        return &request;
      }
    }
    return nullptr;
  }

  Places& places() { return places_; }

 private:
  Places places_;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_REQUESTS_H_
