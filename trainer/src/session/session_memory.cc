// The half of a session that deals with memory: the trainer's blocks, the copies that collectives
// work on, and the growth of the heap.
//
// The heap uses a part of the region, from its beginning, and the part grows when no free block is
// large enough. The memory of what is added comes from this process, which touches it; then the
// daemon confirms it. The part grows by a quarter of what it is, so growing is rare, and up to the
// end of a huge page.

#include <algorithm>
#include <optional>
#include <string>
#include <unistd.h>

#include "trainer/shared_mapping.h"
#include "trainer/src/session/session.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {
namespace {

constexpr std::size_t kLeastGrowth = std::size_t{1} << 20;
// At a time: the daemon looks at every page, and the trainer waits for its answer.
constexpr std::size_t kMostGrowth = std::size_t{1} << 30;
constexpr int kConfirmationMilliseconds = 5000;
// A page that was touched and is swapped out again counts as missing.
constexpr int kAttempts = 3;

}  // namespace

void* Session::allocate(std::size_t bytes) {
  Lock lock = enter();
  return allocate(lock, bytes);
}

std::byte* Session::require_memory(std::size_t bytes) {
  void* block = allocate(bytes);
  if (block == nullptr) throw Failure(last_failure().code, last_failure().message);
  return static_cast<std::byte*>(block);
}

// While a thread gets memory, others wait for it; however it ends, they go on.
class Session::Growing {
 public:
  explicit Growing(Session& session) : session_(session) { session_.growing_ = true; }
  ~Growing() {
    session_.growing_ = false;
    session_.call_served();
  }
  Growing(const Growing&) = delete;
  Growing& operator=(const Growing&) = delete;

 private:
  Session& session_;
};

// Null, and the failure is set, when there is no memory. May release the lock meanwhile.
void* Session::allocate(Lock& lock, std::size_t bytes) {
  while (true) {
    if (region_.is_gone()) {
      out_of_region();
      return nullptr;
    }
    if (void* block = heap_.allocate(bytes); block != nullptr) return block;
    const std::optional<std::size_t> missing = heap_.missing(bytes);
    if (!missing.has_value()) {
      out_of_heap(bytes);
      return nullptr;
    }
    if (growing_) {
      Waiters::Waiter waiter(waiters_, Waiters::For::memory);
      sleep(lock, waiter, Deadline::in_milliseconds(-1), OnSignal::go_on);
    } else if (lost_code_ != GRADCUBE_OK) {
      // Nothing can be submitted any more: the daemon need not know. So a trainer whose session is
      // lost while it allocates learns it where it submits.
      heap_.extend(heap_.usable() + *missing);
    } else if (grow(lock, *missing) != GRADCUBE_OK && lost_code_ == GRADCUBE_OK) {
      return nullptr;
    }
  }
}

int Session::out_of_heap(std::size_t bytes) {
  return fail(GRADCUBE_ENOMEM,
              "the shared heap has no " + std::to_string(bytes) + " free bytes in one piece (" +
                  std::to_string(heap_.used()) + " of " + std::to_string(heap_.capacity()) +
                  " are in use, the largest free piece is " + std::to_string(heap_.largest_free()) +
                  "): free buffers, or set GRADCUBE_HEAP to more");
}

int Session::out_of_region() noexcept {
  return fail_with(GRADCUBE_ENOMEM, [] {
    return std::string(
        "this session has ended, and the system had no room to keep its memory, which is not there "
        "any more: free memory, or raise this process's limits, and open another session");
  });
}

// By `missing` bytes, or more, or by a part of them if they are many. The daemon is asked for all
// of them before any is touched.
int Session::grow(Lock& lock, std::size_t missing) {
  const Growing growing(*this);
  const std::size_t usable = heap_.usable();
  const auto up_by = [&](std::size_t bytes, std::size_t page) {
    return std::min((usable + bytes + page - 1) / page * page, heap_.capacity());
  };
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (missing > kMostGrowth) {
    const std::uint64_t all = shared::kHeapOffset + up_by(missing, page);
    const int code = await_confirmation(lock, shared::kHeapOffset + usable, all);
    if (code != GRADCUBE_OK) return code;
  }
  const std::size_t least = up_by(std::min(missing, kMostGrowth), page);
  const std::size_t generous = up_by(
      std::min(std::max({missing, usable / 4, kLeastGrowth}), kMostGrowth), shared::kHugePage);
  const int code = get_memory(lock, generous);
  return code == GRADCUBE_ENOMEM && generous > least ? get_memory(lock, least) : code;
}

int Session::get_memory(Lock& lock, std::size_t usable) {
  const std::uint64_t end = shared::kHeapOffset + usable;
  int code = await_confirmation(lock, shared::kHeapOffset + heap_.usable(), end);
  const auto is_due = [&] { return code == GRADCUBE_OK && heap_.usable() < usable; };
  for (int attempt = 0; attempt < kAttempts && is_due(); ++attempt) {
    const std::uint64_t begin = shared::kHeapOffset + heap_.usable();
    lock.unlock();
    const int error = region_.touch(begin, end);
    lock = enter();
    if (error != 0) {
      return fail(GRADCUBE_ENOMEM,
                  with_system_error("the system has no memory for " + std::to_string(end - begin) +
                                        " more bytes of the shared heap",
                                    error) +
                      ": free memory, or raise the limit of this process's control group");
    }
    touched_ = std::max(touched_, end);
    code = await_confirmation(lock, end, end);
    if (code == GRADCUBE_EAGAIN) code = GRADCUBE_OK;  // not all of it was there
  }
  if (!is_due()) return code;
  return fail(GRADCUBE_ENOMEM, "memory of the shared heap was swapped out " +
                                   std::to_string(kAttempts) +
                                   " times before the daemon saw it: free memory on this host");
}

// Tells the daemon how far the memory reaches, and is going to reach. Its code.
int Session::await_confirmation(Lock& lock, std::uint64_t end, std::uint64_t wanted) {
  const Deadline deadline = Deadline::in_milliseconds(kConfirmationMilliseconds);
  const auto fail_unconfirmed = [this](const std::string& what) {
    return fail(GRADCUBE_ENODAEMON, "the daemon at " + connection_.path() + what +
                                        ": look at it with `gradcube status`");
  };
  // First the answer to an earlier report, which was not waited for any longer.
  for (const bool is_sent : {false, true}) {
    if (is_sent && lost_code_ == GRADCUBE_OK) {
      reported_ = connection_.say(shared::Grow{.end = end, .wanted = wanted});
      if (!reported_) return fail_unconfirmed(" takes no more messages");
    }
    Waiters::Waiter waiter(waiters_, Waiters::For::confirmation);
    sleep(lock, waiter, deadline, OnSignal::go_on);
    if (lost_code_ != GRADCUBE_OK) return fail(lost_code_, lost_message_);
    if (reported_) {
      return fail_unconfirmed(" did not confirm memory within " +
                              std::to_string(kConfirmationMilliseconds / 1000) + " seconds");
    }
  }
  if (confirmation_code_ != GRADCUBE_OK) return fail(confirmation_code_, confirmation_text_);
  return GRADCUBE_OK;
}

void Session::take_confirmation(const shared::Notice& notice) {
  // Only what was reported is confirmed.
  if (notice.request < shared::kHeapOffset + heap_.usable() || notice.request > touched_) {
    lose_daemon();
    return;
  }
  reported_ = false;
  confirmation_code_ = notice.code;
  confirmation_text_ = text_if_any([&] { return std::string(notice.text); });
  try {
    heap_.extend(notice.request - shared::kHeapOffset);
  } catch (const std::bad_alloc&) {  // the next confirmation has this memory, too
    confirmation_code_ = GRADCUBE_ENOMEM;
    confirmation_text_.clear();
  }
  call_served();
}

int Session::free(void* block) {
  if (block == nullptr) return GRADCUBE_OK;
  const Lock lock = enter();
  const auto memory = heap_.block_of(block);
  const bool freed_already =
      std::find(deferred_frees_.begin(), deferred_frees_.end(), block) != deferred_frees_.end();
  if (memory.data() != block || freed_already) {
    return fail(GRADCUBE_EINVAL,
                "invalid pointer in gradcube_free: expected memory from gradcube_alloc on this "
                "session that was not freed before");
  }
  if (busy_.overlaps(memory)) {
    deferred_frees_.push_back(block);
  } else {
    heap_.release(block);
  }
  return GRADCUBE_OK;
}

void Session::free_deferred() {
  std::erase_if(deferred_frees_, [this](void* block) {
    if (busy_.overlaps(heap_.block_of(block))) return false;
    heap_.release(block);
    return true;
  });
}

int Session::may_submit(const Collective& collective) {
  if (lost_code_ != GRADCUBE_OK) return fail(lost_code_, lost_message_);
  if (requests_.full()) {
    return fail(GRADCUBE_EAGAIN,
                std::to_string(shared::kRingEntries) +
                    " collectives and messages are in flight, which is the limit: wait for one");
  }
  if (collective.bytes != 0 &&
      busy_.overlaps({collective.buffer, collective.bytes}, collective.only_reads())) {
    return fail(
        GRADCUBE_EINVAL,
        "the buffer overlaps that of a collective or message in flight: wait for its request "
        "first");
  }
  return GRADCUBE_OK;
}

// Decides where the daemon works: on the buffer itself, or on a copy of it in the heap, `staging`.
int Session::place_in_heap(Lock& lock, const Collective& collective, std::byte*& staging) {
  if (const int code = may_submit(collective); code != GRADCUBE_OK) return code;
  if (collective.carried_bytes == 0) return GRADCUBE_OK;
  const std::span<std::byte> buffer(collective.buffer, collective.bytes);
  if (!buffer.empty() && heap_.contains(buffer.data())) {
    const std::span<std::byte> block = heap_.block_of(buffer.data());
    const auto skipped = static_cast<std::size_t>(buffer.data() - block.data());
    if (block.empty() || buffer.size() > block.size() - skipped) {
      return fail(GRADCUBE_EINVAL,
                  "the buffer's " + std::to_string(buffer.size()) +
                      " bytes do not lie inside one piece of memory from gradcube_alloc");
    }
    const bool is_aligned = skipped % shared::kBufferAlignment == 0;
    if (is_aligned && collective.is_carried_as_it_is()) return GRADCUBE_OK;
  }
  staging = static_cast<std::byte*>(allocate(lock, collective.carried_bytes));
  if (staging == nullptr) return last_failure().code;
  // Other threads may have submitted while the heap grew.
  const int code = may_submit(collective);
  if (code != GRADCUBE_OK) heap_.release(staging);
  return code;
}

}  // namespace gradcube::trainer
