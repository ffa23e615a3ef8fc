// gradcube.hpp: the C++ binding of gradcube.h. Header only; C++20.
//
//     gradcube::Session session("mnist");
//     auto gradients = session.buffer<float>(count);
//     ... fill gradients.span() ...
//     auto request = session.all_reduce(gradients.span(), gradcube::Op::average);
//     ... other work ...
//     request.wait(std::chrono::seconds(60));
//
// Errors are exceptions: gradcube::Error, with the C ABI's code and the message as what().
//
// Lifetime. A Session leaves its job when it is destroyed, closed or assigned to; the shared memory
// stays mapped until its last Buffer is gone, too. A Request may be destroyed before its end, but
// then its collective keeps one of the session's 1024 places.
//
// Threads. Any thread may call a session, its buffers and its requests, as the C ABI says; but an
// object is moved, assigned to, closed or destroyed by one thread, while no other uses that object.
//
// Fork. In a forked child, calls throw with GRADCUBE_EINVAL, and destructors free the child's
// copies alone: the parent's session goes on.
//
// gradcube_elements.hpp says which types a buffer may hold; gradcube_hub.hpp has the parameter hub.
#ifndef GRADCUBE_HPP_
#define GRADCUBE_HPP_

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <gradcube/gradcube.h>
#include <gradcube/gradcube_elements.hpp>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace gradcube {

// The code of the library that runs: GRADCUBE_VERSION_CODE of its gradcube.h.
inline int version() { return gradcube_version(); }

class Error : public std::runtime_error {
 public:
  Error(int code, const std::string& message) : std::runtime_error(message), code_(code) {}
  int code() const { return code_; }  // GRADCUBE_E...

 private:
  int code_;
};

enum class Op {
  sum = GRADCUBE_SUM,
  average = GRADCUBE_AVERAGE,
  min = GRADCUBE_MIN,
  max = GRADCUBE_MAX
};

namespace detail {

inline void check(int code, const gradcube_session* session) {
  if (code != GRADCUBE_OK) throw Error(code, gradcube_last_error(session));
}

// A timeout as the C ABI takes it: rounded up, -1 for no limit. More than the 24 days that an int
// of milliseconds holds become those.
inline int milliseconds(std::chrono::duration<double, std::milli> timeout) {
  const double count = std::ceil(timeout.count());
  if (std::isnan(count)) throw Error(GRADCUBE_EINVAL, "invalid timeout: not a number");
  if (timeout.count() < 0) return -1;
  constexpr int kMost = std::numeric_limits<int>::max();
  return count >= kMost ? kMost : static_cast<int>(count);
}

}  // namespace detail

// A lane of a job: see gradcube_lane. The algorithm "" is the cluster's default, "auto" a choice.
struct Lane {
  std::string algorithm;
  int priority = 0;
};

// What a trainer may ask for: see gradcube_options, which has the same fields and defaults.
struct Options {
  std::string algorithm;  // of the only lane where `lanes` is empty
  std::vector<Lane> lanes;
  unsigned weight = 1;
  int rank = -1;
  std::vector<std::uint32_t> members;  // empty: all servers
  bool reproducible = false;
  unsigned trainers_per_server = 1;
  int local = -1;  // this trainer's number among its server's; -1: the lowest that is free
};

// Memory shared with the daemon: combined without a copy. Owned; the library does not initialise
// its elements (fresh memory is zero, recycled memory is not).
template <Element T>
class Buffer {
 public:
  Buffer(Buffer&& other) noexcept
      : session_(std::move(other.session_)), memory_(std::exchange(other.memory_, {})) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(session_, other.session_);
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~Buffer() {
    if (session_ != nullptr) gradcube_free(session_.get(), memory_.data());
  }

  std::span<T> span() const { return memory_; }
  T* data() const { return memory_.data(); }
  std::size_t size() const { return memory_.size(); }
  T& operator[](std::size_t i) const { return memory_[i]; }
  T* begin() const { return memory_.data(); }
  T* end() const { return memory_.data() + memory_.size(); }

 private:
  friend class Session;
  Buffer(std::shared_ptr<gradcube_session> session, std::span<T> memory)
      : session_(std::move(session)), memory_(memory) {}

  std::shared_ptr<gradcube_session> session_;
  std::span<T> memory_;
};

// A collective or message in flight. Its end is reported once, by the wait() or test() that sees
// it.
class [[nodiscard]] Request {
 public:
  // Blocks until the collective has ended; throws when it failed.
  void wait() { detail::check(gradcube_wait(session_.get(), number_, -1), session_.get()); }

  // The same, at most for `timeout`; then throws with GRADCUBE_ETIMEDOUT, and the collective goes
  // on. A negative `timeout` means no limit, as in C.
  template <typename Rep, typename Period>
  void wait(std::chrono::duration<Rep, Period> timeout) {
    const int limit = detail::milliseconds(timeout);
    detail::check(gradcube_wait(session_.get(), number_, limit), session_.get());
  }

  // True when the collective has ended; throws when it failed.
  bool test() {
    int done = 0;
    detail::check(gradcube_test(session_.get(), number_, &done), session_.get());
    return done != 0;
  }

  // Withdraws a message that has not met the other trainer's: it then ends with GRADCUBE_ECANCELED;
  // else as it would have. wait() or test() reports which: see gradcube_cancel().
  void cancel() { detail::check(gradcube_cancel(session_.get(), number_), session_.get()); }

  std::uint64_t number() const { return number_; }

  // Of a receive, once wait() or test() has reported its end: the message's bytes. Else 0.
  std::size_t received() const { return received_ == nullptr ? 0 : *received_; }

 private:
  friend class Session;
  friend class Hub;
  Request(std::shared_ptr<gradcube_session> session, std::uint64_t number,
          std::shared_ptr<std::size_t> received = nullptr)
      : session_(std::move(session)), number_(number), received_(std::move(received)) {}

  std::shared_ptr<gradcube_session> session_;
  std::uint64_t number_;
  std::shared_ptr<std::size_t> received_;
};

class Hub;  // gradcube_hub.hpp

class Session {
 public:
  // `socket_path` empty: the default of gradcube_open().
  explicit Session(const std::string& job, const std::string& socket_path = "",
                   const Options& options = {}) {
    std::vector<gradcube_lane> lanes;
    for (const Lane& lane : options.lanes) lanes.push_back({lane.algorithm.c_str(), lane.priority});
    gradcube_options wanted = GRADCUBE_OPTIONS_INIT;
    if (!options.algorithm.empty()) wanted.algorithm = options.algorithm.c_str();
    if (!lanes.empty()) wanted.lanes = lanes.data();
    wanted.lane_count = lanes.size();
    wanted.weight = options.weight;
    wanted.rank = options.rank;
    if (!options.members.empty()) wanted.members = options.members.data();
    wanted.member_count = options.members.size();
    wanted.reproducible = options.reproducible ? 1 : 0;
    wanted.trainers_per_server = options.trainers_per_server;
    wanted.local = options.local;
    gradcube_session* session = nullptr;
    const int code = gradcube_open(socket_path.c_str(), job.c_str(), &wanted, &session);
    if (code != GRADCUBE_OK) throw Error(code, gradcube_last_error(nullptr));
    session_.reset(session, gradcube_close);
  }
  Session(Session&&) noexcept = default;
  Session& operator=(Session&& other) noexcept {
    if (this != &other) {
      close();
      session_ = std::move(other.session_);
    }
    return *this;
  }
  ~Session() { close(); }

  // Leaves the job at once, even while buffers live on.
  void close() {
    if (session_ != nullptr) gradcube_leave(session_.get());
    session_.reset();
  }

  int rank() const { return gradcube_rank(session_.get()); }
  int size() const { return gradcube_size(session_.get()); }
  int server() const { return gradcube_server(session_.get()); }

  template <Element T>
  Buffer<T> buffer(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) {
      throw Error(GRADCUBE_EINVAL,
                  "a buffer of " + std::to_string(count) + " elements is too large");
    }
    void* memory = gradcube_alloc(session_.get(), count * sizeof(T));
    if (memory == nullptr) detail::check(gradcube_last_code(session_.get()), session_.get());
    return Buffer<T>(session_, {static_cast<T*>(memory), count});
  }

  // Collectives, in place. `memory` belongs to the daemon until the request's end was reported.

  template <Number T>
  Request all_reduce(std::span<T> memory, Op op = Op::sum, unsigned lane = 0) {
    return start(GRADCUBE_ALL_REDUCE, memory, memory.size(), op, 0, lane);
  }

  // `memory` has size() chunks of the same length. That of this trainer's rank gets its result; the
  // rest is undefined then.
  template <Number T>
  Request reduce_scatter(std::span<T> memory, Op op = Op::sum, unsigned lane = 0) {
    return start(GRADCUBE_REDUCE_SCATTER, memory, chunk_of(memory.size()), op, 0, lane);
  }

  // `memory` has size() chunks of the same length. This trainer gives that of its rank.
  template <Element T>
  Request all_gather(std::span<T> memory, unsigned lane = 0) {
    return start(GRADCUBE_ALL_GATHER, memory, chunk_of(memory.size()), Op::sum, 0, lane);
  }

  template <Element T>
  Request broadcast(std::span<T> memory, unsigned root, unsigned lane = 0) {
    return start(GRADCUBE_BROADCAST, memory, memory.size(), Op::sum, root, lane);
  }

  // Undefined content is left where the trainer is not the root.
  template <Number T>
  Request reduce(std::span<T> memory, unsigned root, Op op = Op::sum, unsigned lane = 0) {
    return start(GRADCUBE_REDUCE, memory, memory.size(), op, root, lane);
  }

  // Fails with GRADCUBE_ECORRUPT on every trainer unless all have the same bytes in `memory`.
  Request compare(std::span<const std::byte> memory, unsigned lane = 0) {
    gradcube_collective comparison = GRADCUBE_COLLECTIVE_INIT;
    comparison.kind = GRADCUBE_COMPARE;
    comparison.buffer = const_cast<std::byte*>(memory.data());  // it is only read
    comparison.count = memory.size();
    comparison.dtype = GRADCUBE_BYTES;
    comparison.lane = lane;
    return submit(comparison);
  }

  // Waits until all trainers of the job have called it.
  void barrier(unsigned lane = 0) {
    gradcube_collective barrier = GRADCUBE_COLLECTIVE_INIT;
    barrier.kind = GRADCUBE_BARRIER;
    barrier.lane = lane;
    submit(barrier).wait();
  }

  // Messages: see gradcube_send() and gradcube_recv(). `memory` belongs to the daemon until the
  // request's end was reported, and that of several sends may be the same. What is received has the
  // type of what was sent; std::byte fits all.

  // paths: the most that it may take, as in gradcube_message.
  template <typename T>
  requires Element<std::remove_const_t<T>> Request send(std::span<T> memory, unsigned to,
                                                        std::uint64_t tag = 0, unsigned paths = 0) {
    gradcube_message message = GRADCUBE_MESSAGE_INIT;
    message.peer = to;
    message.buffer = const_cast<std::remove_const_t<T>*>(memory.data());  // a send only reads it
    message.bytes = memory.size_bytes();
    message.tag = tag;
    message.paths = paths;
    message.dtype = detail::DtypeOf<std::remove_const_t<T>>::value;
    return submit(message, nullptr);
  }

  // Takes a message that is as long or shorter: see Request::received().
  template <Element T>
  Request receive(std::span<T> memory, unsigned from, std::uint64_t tag = 0) {
    auto received = std::make_shared<std::size_t>(0);
    gradcube_message message = GRADCUBE_MESSAGE_INIT;
    message.direction = GRADCUBE_RECEIVE;
    message.peer = from;
    message.buffer = memory.data();
    message.bytes = memory.size_bytes();
    message.tag = tag;
    message.received = received.get();
    message.dtype = detail::DtypeOf<T>::value;
    return submit(message, std::move(received));
  }

  // Any collective, as C describes it.
  Request submit(const gradcube_collective& collective) {
    std::uint64_t number = 0;
    detail::check(gradcube_submit(session_.get(), &collective, &number), session_.get());
    return Request(session_, number);
  }

  // Ends the job at once, also while other threads wait: see gradcube_abort().
  void abort() { detail::check(gradcube_abort(session_.get()), session_.get()); }

  // For poll() and epoll: see gradcube_event_fd().
  int event_fd() {
    const int fd = gradcube_event_fd(session_.get());
    if (fd < 0) detail::check(fd, session_.get());
    return fd;
  }

  gradcube_session* handle() const { return session_.get(); }

 private:
  friend class Hub;

  Request submit(const gradcube_message& message, std::shared_ptr<std::size_t> received) {
    std::uint64_t number = 0;
    detail::check(gradcube_submit_message(session_.get(), &message, &number), session_.get());
    return Request(session_, number, std::move(received));
  }

  template <Element T>
  Request start(gradcube_kind kind, std::span<T> memory, std::size_t count, Op op, unsigned root,
                unsigned lane) {
    gradcube_collective collective = GRADCUBE_COLLECTIVE_INIT;
    collective.kind = kind;
    collective.buffer = memory.data();
    collective.count = count;
    collective.dtype = detail::DtypeOf<T>::value;
    collective.op = static_cast<int>(op);
    collective.root = root;
    collective.lane = lane;
    return submit(collective);
  }

  std::size_t chunk_of(std::size_t elements) const {
    const int trainers = size();
    if (trainers < 1) detail::check(trainers, session_.get());
    const auto chunks = static_cast<std::size_t>(trainers);
    if (elements % chunks == 0) return elements / chunks;
    throw Error(GRADCUBE_EINVAL, "a buffer of " + std::to_string(elements) +
                                     " elements has no chunks of one length for " +
                                     std::to_string(chunks) +
                                     " trainers: expected a multiple of that number");
  }

  std::shared_ptr<gradcube_session> session_;
};

}  // namespace gradcube

#endif  // GRADCUBE_HPP_
