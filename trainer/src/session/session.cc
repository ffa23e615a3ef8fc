#include "trainer/src/session/session.h"

#include <new>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

Session::Session(Connection connection, const std::string& job, std::uint64_t heap_bytes,
                 const Wish& wish)
    : connection_(std::move(connection)),
      offering_(connection_.ask(job, heap_bytes, wish)),
      region_(std::move(offering_.region), offering_.offer.region_bytes, heap_bytes),
      trainers_(wish.hello.trainers),
      job_(job),
      heap_(region_.heap(), 0),
      sleeper_(connection_.fd()),
      submissions_(region_.header(), region_.submissions()),
      completions_(region_.header(), region_.completions()),
      private_in_child_(
          region_.memory(), [this] { return blocks_to_copy(); }, [this] { close_in_child(); }) {
  // Last: a trainer that was admitted and fails then ends what the others have begun.
  admission_ = connection_.join();
  place_ = {admission_.welcome.rank, admission_.welcome.size, wish.hello.lane_count,
            wish.hello.reproducible == 1};
  sleeper_.set_doorbell(admission_.doorbell.get());
}

Session::~Session() {
  if (!is_forked_copy()) leave();
}

std::vector<std::span<const std::byte>> Session::blocks_to_copy() const {
  if (region_.is_gone()) throw std::bad_alloc();  // the child has nothing there either
  return heap_.blocks();
}

bool Session::close_forked_copy() {
  if (std::try_lock(mutex_, heap_.mutex(), failures_.mutex()) < 0) {
    mutex_.unlock();
    heap_.mutex().unlock();
    failures_.mutex().unlock();
    return true;
  }
  region_.unmap();
  close_in_child();
  return false;
}

// What the daemon watches ends with this process's parent, though the child lives.
void Session::close_in_child() {
  region_.close_file();
  sleeper_.close();
  events_.reset();
  admission_.doorbell.reset();
  connection_.close();
}

Session::Lock Session::enter() {
  Lock lock(mutex_);
  if (aborted_) lose(GRADCUBE_EABORTED, "");
  return lock;
}

void Session::leave() {
  const Lock lock = enter();
  if (lost_code_ == GRADCUBE_OK) {
    // Before the daemon takes it back; who leaves waits for that.
    hub_->keep_shown();
    connection_.say(shared::MessageType::goodbye);
  }
  lose(GRADCUBE_EINVAL, "this session has left its job: open another one");
}

// A thread that sleeps is woken by the socket that shuts down, and wakes the others. None of them
// holds the mutex for long, so what was submitted is this process's own when this returns.
void Session::abort() noexcept {
  if (!aborted_.exchange(true)) {
    hub_->keep_shown();  // before the daemon takes it back
    connection_.tell(shared::MessageType::abort);
    connection_.shut_down();  // also ends a wait for room in it
  }
  const std::scoped_lock lock(mutex_);
  lose(GRADCUBE_EABORTED, "");
}

int Session::submit(const gradcube_collective& asked, std::uint64_t& number,
                    shared::Gathered gathered) {
  Lock lock = enter();
  if (lost_code_ != GRADCUBE_OK) return fail(lost_code_, lost_message_);
  Collective collective;
  if (std::string problem = read_collective(&asked, place_, heap_.capacity(), collective);
      !problem.empty()) {
    return fail(GRADCUBE_EINVAL, std::move(problem));
  }
  if (gathered != shared::Gathered::buffers) {
    collective.submission.collective.gathered = gathered;
  }
  return start(lock, collective, {}, number);
}

int Session::submit(const gradcube_message& asked, std::uint64_t& number) {
  Lock lock = enter();
  if (lost_code_ != GRADCUBE_OK) return fail(lost_code_, lost_message_);
  Collective message;
  if (std::string problem = read_message(&asked, place_, heap_.capacity(), message);
      !problem.empty()) {
    return fail(GRADCUBE_EINVAL, std::move(problem));
  }
  std::size_t* received = message.is_receive() ? asked.received : nullptr;
  return start(lock, message, {.received = received, .push = {}}, number);
}

int Session::start(Lock& lock, const Collective& collective, const Wanted& wanted,
                   std::uint64_t& number) {
  std::byte* staging = nullptr;
  if (const int code = place_in_heap(lock, collective, staging); code != GRADCUBE_OK) return code;
  Request& request = requests_.take_place();
  request.collective = collective;
  request.staging = staging;
  request.wanted = wanted;
  if (events_.has_value()) request.in_flight = Stopwatch();
  busy_.add(collective.held(), collective.only_reads());
  if (staging != nullptr) {
    busy_.add({staging, collective.carried_bytes});
    touch(lock, staging, [&] { request.collective.write_input(staging); });
  }
  if (lost_code_ != GRADCUBE_OK) {  // while it copied
    withdraw(request);
    return fail(lost_code_, lost_message_);
  }
  number = next_number_++;
  if (collective.is_in_lane()) {
    request.number_in_lane = ++submitted_[request.collective.submission.collective.lane];
  }
  requests_.list(request, number);
  if (++in_flight_ == 1 && events_.has_value()) {
    sleeper_.silence_doorbell();  // late rings for those that have ended
  }
  publish(request);
  update_events();  // a ring that has come meanwhile counts from here on, too
  return GRADCUBE_OK;
}

void Session::publish(Request& request) {
  shared::Submission submission = request.collective.submission;
  submission.request = request.number;
  if (request.collective.is_message()) submission.message.place = requests_.place_of(request);
  submission.offset = request.collective.carried_bytes == 0
                          ? shared::kHeapOffset
                          : region_.offset_of(request.shared_memory());
  // The ring has room for all that the table of requests holds and as many withdrawals, so it is
  // full only if its head is wrong. The request then ends at once.
  if (submissions_.push(submission)) {
    ring_daemon();
  } else {
    lose_ring("an invalid head to the submission ring");
  }
}

int Session::cancel(std::uint64_t number) {
  const Lock lock = enter();
  Request* request = look_for(number);
  update_events();
  if (request == nullptr) return unknown(number);
  if (!request->collective.is_message()) {
    return fail(GRADCUBE_EINVAL, "request " + std::to_string(number) +
                                     " is no message: the other trainers count on it, so it "
                                     "cannot be withdrawn");
  }
  if (request->ended || request->withdrawn) return GRADCUBE_OK;
  if (submissions_.unread() >= shared::kRingEntries) {
    return fail(GRADCUBE_EAGAIN, "the daemon has yet to read " +
                                     std::to_string(submissions_.unread()) +
                                     " submissions: call again");
  }
  shared::Submission withdrawal{};
  withdrawal.type = static_cast<std::uint8_t>(shared::SubmissionType::withdrawal);
  withdrawal.request = number;
  withdrawal.message.place = requests_.place_of(*request);
  request->withdrawn = true;
  submissions_.push(withdrawal);
  ring_daemon();
  return GRADCUBE_OK;
}

int Session::forget(std::uint64_t number) {
  const Lock lock = enter();
  Request* request = look_for(number);
  update_events();
  if (request == nullptr) return unknown(number);
  Collective& collective = request->collective;
  const bool is_in_place = collective.bytes != 0 && request->staging == nullptr;
  std::optional<Push>& push = request->wanted.push;
  if (push.has_value() && std::exchange(push->weights, nullptr) != nullptr) request->loses = true;
  if (is_in_place && !request->ended) {
    return fail(GRADCUBE_EINVAL, "request " + std::to_string(number) +
                                     " cannot be forgotten, as the daemon works on its buffer "
                                     "itself: wait for its end");
  }
  busy_.remove(collective.held(), collective.only_reads());
  collective.buffer = nullptr;
  if (!is_in_place && collective.output.bytes != 0 && !collective.compares) request->loses = true;
  return GRADCUBE_OK;
}

void Session::ring_daemon() {
  if (!submissions_.consumer_sleeps()) return;
  const char ring = 1;
  ::send(admission_.doorbell.get(), &ring, sizeof(ring), MSG_DONTWAIT | MSG_NOSIGNAL);
}

int Session::unknown(std::uint64_t number) {
  return fail(GRADCUBE_EINVAL, "invalid request " + std::to_string(number) +
                                   ": it was never submitted, or its end was reported before");
}

// Reports the end to the caller: no other thread finds the request from here on. So nothing is
// thrown before all that it holds was given back.
int Session::report(Lock& lock, Request& request) {
  int code = request.code;
  const Collective& collective = request.collective;
  const bool brings = request.staging != nullptr && collective.output.bytes != 0;
  const std::uint64_t number = request.number;
  requests_.unlist(request);
  --unreported_ends_;
  update_events();
  if (code != GRADCUBE_OK) {
    fail_with(code,
              [&] { return request.message.empty() ? lost_message_ : std::move(request.message); });
  } else if (region_.is_gone() && request.collective.output.bytes != 0) {
    code = out_of_region();
  }
  if (request.wanted.received != nullptr) {
    *request.wanted.received = code == GRADCUBE_OK && !request.loses ? request.message_bytes : 0;
  }
  if (request.wanted.push.has_value()) code = hub_->end_push(lock, request, code);
  if (code == GRADCUBE_OK && request.loses) {
    code = fail(GRADCUBE_ECANCELED, text_if_any([number] {
                  return "request " + std::to_string(number) +
                         " was forgotten: what it has brought is in no buffer";
                }));
  } else if (code == GRADCUBE_OK && brings) {
    try {
      std::string difference;
      touch(lock, request.staging, [&] { difference = collective.read_output(request.staging); });
      if (!difference.empty()) code = fail(GRADCUBE_ECORRUPT, why_corrupt(request, difference));
    } catch (const std::bad_alloc&) {  // what the request holds is given back all the same
      code = fail(GRADCUBE_ENOMEM, "");
    }
  }
  withdraw(request);
  return code;
}

std::string Session::why_corrupt(const Request& request, const std::string& difference) const {
  return "collective " + std::to_string(request.number_in_lane) + " of lane " +
         std::to_string(request.collective.submission.collective.lane) + " of job \"" + job_ +
         "\" compares memory that should be the same on all trainers: " + difference;
}

int Session::run(const gradcube_collective& asked, const Deadline& deadline,
                 shared::Gathered gathered) {
  std::uint64_t number = 0;
  int code = submit(asked, number, gathered);
  if (code == GRADCUBE_OK) code = wait(number, deadline.poll_timeout());
  if (code == GRADCUBE_OK) return code;
  std::string why = text_if_any([this] { return last_failure().message; });
  give_up(number, Deadline::in_milliseconds(0));
  return fail(code, std::move(why));
}

// Waits for the end of a request that nobody asks for any more. What has not ended in time is taken
// when it ends.
void Session::give_up(std::uint64_t number, const Deadline& deadline) {
  Lock lock = enter();
  Request* request = await(lock, number, deadline.poll_timeout(), OnSignal::go_on);
  if (request == nullptr) return;
  request->abandoned = true;
  ++abandoned_;
  end_abandoned();
  update_events();
}

void Session::end_abandoned() {
  if (abandoned_ == 0) return;
  requests_.for_each_listed([this](Request& request) {
    if (!request.abandoned || !request.ended) return;
    --abandoned_;
    --unreported_ends_;
    requests_.unlist(request);
    if (request.wanted.push.has_value()) hub_->settle(request, request.code);
    withdraw(request);
  });
}

// Gives back what the request holds, and its place.
void Session::withdraw(Request& request) noexcept {
  busy_.remove(request.collective.held(), request.collective.only_reads());
  if (request.staging != nullptr) {
    busy_.remove({request.staging, request.collective.carried_bytes});
    heap_.release(request.staging);
  }
  requests_.give_back_place(request);
  if (!deferred_frees_.empty()) free_deferred();
}

}  // namespace gradcube::trainer
