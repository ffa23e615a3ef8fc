#include "trainer/src/session.h"

#include <algorithm>
#include <cstring>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "trainer/src/elements.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

Session::Session(Connection connection, const std::string& job, std::uint64_t heap_bytes)
    : connection_(std::move(connection)),
      admission_(connection_.join(job, heap_bytes)),
      region_(admission_.region.get(), admission_.welcome.region_bytes, heap_bytes),
      submissions_(region_.header(), region_.submissions()),
      completions_(region_.header(), region_.completions()),
      heap_(region_.heap()),
      sleeper_(admission_.doorbell.get(), connection_.fd()) {
  admission_.region.reset();  // the mapping keeps the memory alive
}

Session::~Session() {
  if (!is_forked_copy()) leave();
}

void Session::leave() {
  if (lost_code_ == GRADCUBE_OK) connection_.send_goodbye();
  lose(GRADCUBE_EINVAL, "this session has left its job: open another one");
}

int Session::fail(int code, std::string message) {
  last_code_ = code;
  last_error_ = std::move(message);
  return code;
}

int Session::fail(int code) noexcept {
  last_code_ = code;
  last_error_.clear();
  return code;
}

int Session::refuse_forked_copy() {
  return fail(GRADCUBE_EINVAL, "this session belongs to process " + std::to_string(owner_) +
                                   "; open one in the child");
}

void* Session::allocate(std::size_t bytes) {
  void* block = heap_.allocate(bytes);
  if (block == nullptr) out_of_heap(bytes);
  return block;
}

int Session::out_of_heap(std::size_t bytes) {
  return fail(GRADCUBE_ENOMEM,
              "the shared heap has no " + std::to_string(bytes) + " free bytes in one piece (" +
                  std::to_string(heap_.used()) + " of " + std::to_string(heap_.capacity()) +
                  " are in use, the largest free piece is " + std::to_string(heap_.largest_free()) +
                  "): free buffers, or set GRADCUBE_HEAP to more");
}

int Session::free(void* block) {
  if (block == nullptr) return GRADCUBE_OK;
  const auto memory = heap_.block_of(block);
  const bool freed_already =
      std::find(deferred_frees_.begin(), deferred_frees_.end(), block) != deferred_frees_.end();
  if (memory.data() != block || freed_already) {
    return fail(GRADCUBE_EINVAL,
                "invalid pointer in gradcube_free: expected memory from gradcube_alloc on this "
                "session that was not freed before");
  }
  if (requests_.using_memory(memory) != nullptr) {
    deferred_frees_.push_back(block);
  } else {
    heap_.release(block);
  }
  return GRADCUBE_OK;
}

void Session::free_deferred() {
  std::erase_if(deferred_frees_, [this](void* block) {
    if (requests_.using_memory(heap_.block_of(block)) != nullptr) return false;
    heap_.release(block);
    return true;
  });
}

int Session::allreduce(void* buffer, std::size_t count, int dtype, int op, std::uint64_t& number) {
  if (lost_code_ != GRADCUBE_OK) return fail(lost_code_, lost_message_);
  if (const int code = check_arguments(buffer, count, dtype, op); code != GRADCUBE_OK) return code;
  Request* request = requests_.free_place();
  if (request == nullptr) {
    return fail(GRADCUBE_EAGAIN,
                std::to_string(shared::kRingEntries) +
                    " collectives are in flight, which is the limit: wait for one");
  }
  const std::size_t bytes = count * element_size(dtype);
  request->buffer = {static_cast<std::byte*>(bytes == 0 ? nullptr : buffer), bytes};
  if (const int code = place(*request); code != GRADCUBE_OK) {
    *request = Request();
    return code;
  }
  number = next_number_;
  return submit(*request, count, dtype, op);
}

int Session::check_arguments(const void* buffer, std::size_t count, int dtype, int op) {
  const std::size_t size = element_size(dtype);
  if (size == 0) {
    return fail(GRADCUBE_EINVAL, "invalid dtype " + std::to_string(dtype) +
                                     ": expected GRADCUBE_FLOAT32 to GRADCUBE_INT64");
  }
  if (!is_op(op)) {
    return fail(GRADCUBE_EINVAL, "invalid operation " + std::to_string(op) +
                                     ": expected GRADCUBE_SUM to GRADCUBE_MAX");
  }
  if (buffer == nullptr && count != 0) {
    return fail(GRADCUBE_EINVAL, "the buffer is NULL but the count is " + std::to_string(count));
  }
  if (count > heap_.capacity() / size) {
    return fail(GRADCUBE_EINVAL, "a count of " + std::to_string(count) + " is larger than the " +
                                     std::to_string(heap_.capacity()) +
                                     " bytes of the shared heap: set GRADCUBE_HEAP to more");
  }
  return GRADCUBE_OK;
}

// Decides where in the heap the daemon works for this request: on the buffer itself, or on a copy
// of it.
int Session::place(Request& request) {
  const std::span<std::byte> buffer = request.buffer;
  if (buffer.empty()) return GRADCUBE_OK;
  if (const Request* other = requests_.using_memory(buffer);
      other != nullptr && other != &request) {
    return fail(GRADCUBE_EINVAL, "the buffer overlaps the buffer of request " +
                                     std::to_string(other->number) +
                                     ": wait for that request first");
  }
  if (heap_.contains(buffer.data())) {
    const std::span<std::byte> block = heap_.block_of(buffer.data());
    const auto skipped = static_cast<std::size_t>(buffer.data() - block.data());
    if (block.empty() || buffer.size() > block.size() - skipped) {
      return fail(GRADCUBE_EINVAL,
                  "the buffer's " + std::to_string(buffer.size()) +
                      " bytes do not lie inside one piece of memory from gradcube_alloc");
    }
    if (skipped % shared::kBufferAlignment == 0) return GRADCUBE_OK;
  }
  request.staging = static_cast<std::byte*>(heap_.allocate(buffer.size()));
  if (request.staging == nullptr) return out_of_heap(buffer.size());
  std::memcpy(request.staging, buffer.data(), buffer.size());
  return GRADCUBE_OK;
}

int Session::submit(Request& request, std::size_t count, int dtype, int op) {
  shared::Submission submission{};
  submission.request = next_number_;
  submission.offset = request.buffer.empty() ? shared::kHeapOffset
                                             : region_.offset_of(request.shared_memory().data());
  submission.count = count;
  submission.dtype = static_cast<std::uint8_t>(dtype);
  submission.op = static_cast<std::uint8_t>(op);
  submission.kind = static_cast<std::uint8_t>(shared::Kind::allreduce);
  request.number = next_number_;
  // The table of requests is no larger than the ring, so the ring is full only if its head is
  // wrong.
  if (!submissions_.push(submission)) {
    lose(GRADCUBE_EPROTOCOL,
         "the daemon at " + connection_.path() +
             " wrote an invalid head to the submission ring: open a new session");
    return report(request);
  }
  ++next_number_;
  if (submissions_.consumer_sleeps()) {
    const char ring = 1;
    ::send(admission_.doorbell.get(), &ring, sizeof(ring), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  return GRADCUBE_OK;
}

int Session::unknown(std::uint64_t number) {
  return fail(GRADCUBE_EINVAL, "invalid request " + std::to_string(number) +
                                   ": it was never submitted, or its end was reported before");
}

int Session::poll(std::uint64_t number, int timeout_ms, bool& done) {
  done = false;
  Request* request = number == 0 ? nullptr : requests_.find(number);
  if (request == nullptr) return unknown(number);
  await(*request, timeout_ms, OnSignal::stop);
  if (!request->ended) return GRADCUBE_OK;
  done = true;
  return report(*request);
}

int Session::wait(std::uint64_t number, int timeout_ms) {
  Request* request = number == 0 ? nullptr : requests_.find(number);
  if (request == nullptr) return unknown(number);
  await(*request, timeout_ms, OnSignal::go_on);
  return request->ended ? report(*request) : time_out(*request);
}

int Session::report(Request& request) {
  const int code = request.code;
  if (code != GRADCUBE_OK) fail(code, std::move(request.message));
  if (request.staging != nullptr) {
    if (code == GRADCUBE_OK) {
      std::memcpy(request.buffer.data(), request.staging, request.buffer.size());
    }
    heap_.release(request.staging);
  }
  request = Request();
  if (!deferred_frees_.empty()) free_deferred();
  return code;
}

}  // namespace gradcube::trainer
