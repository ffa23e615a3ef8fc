// The rings that a server's trainers share with the daemon. The input is a byte that says how many
// trainers there are, and whether their job is reproducible, and a list of their stores into the
// rings; after each the session takes a submission, if it finds one.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <sys/socket.h>
#include <tuple>
#include <unistd.h>

#include "dataplane/engine/session/session.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/ring_store.h"
#include "tests/unit/dataplane/engine/small_hub.h"

namespace gradcube::fuzz {

const unsigned kMutations = 10'000;

namespace {

constexpr std::uint64_t kHeap = 1 << 20;  // the confirmed part of the session's
constexpr unsigned kLanes = 2;
constexpr unsigned kRanks = 6;
constexpr unsigned kMostTrainers = 3;  // of the server

void require_in_heap(const dataplane::Session& session, unsigned local, const std::uint8_t* buffer,
                     std::uint64_t bytes) {
  if (bytes == 0) return;
  const std::uint8_t* heap = session.region(local).base() + shared::kHeapOffset;
  require(buffer >= heap && buffer + bytes <= heap + kHeap, "a buffer lies in its trainer's heap");
}

// What an element takes in the buffer.
std::size_t bytes_in_buffer(const dataplane::CollectiveRequest& request, bool reproducible) {
  if (!reproducible || !control::reduces(request.kind)) {
    return aggregation::element_bytes(request.dtype);
  }
  const aggregation::Parts parts = aggregation::parts_of(request.dtype);
  const auto carrier = aggregation::carrier_of(
      {parts.type, aggregation::operation_on_parts(request.dtype, request.operation), kRanks});
  require(carrier.has_value(), "what nothing carries is refused");
  return parts.count * aggregation::element_bytes(carrier->type);
}

// What a trainer has submitted last on the lane.
void require_right(const dataplane::Session& session, unsigned local, unsigned lane,
                   bool reproducible) {
  const std::uint64_t number = session.submitted(lane, local);
  const dataplane::CollectiveRequest& request = session.request(lane, number, local);
  require(request.number == number && request.lane == lane, "a lane's requests have its numbers");
  require(request.root < kRanks, "a root is a rank");
  require(request.count <= kHeap && request.bytes <= kHeap, "a buffer is no longer than the heap");
  const bool chunks = control::is_rank_ordered(request.kind);
  require(request.bytes ==
              request.count * bytes_in_buffer(request, reproducible) * (chunks ? kRanks : 1),
          "a buffer's bytes are its elements'");
  require_in_heap(session, local, request.buffer, request.bytes);
}

// What all trainers have submitted on the lane, of which the last is new.
void require_published(const dataplane::Session& session, unsigned lane) {
  const std::uint64_t number = session.published(lane);
  bool alike = true;
  for (unsigned local = 1; local < session.trainers(); ++local) {
    const auto facts = [&](unsigned trainer) {
      const dataplane::CollectiveRequest& request = session.request(lane, number, trainer);
      return std::tuple(request.kind, request.root, request.count, request.dtype,
                        request.operation);
    };
    alike = alike && facts(local) == facts(0);
  }
  require(session.request(lane, number).agreed == alike,
          "trainers agree if they have submitted the same");
}

std::uint64_t least_submitted(const dataplane::Session& session, unsigned lane) {
  std::uint64_t least = UINT64_MAX;
  for (unsigned local = 0; local < session.trainers(); ++local) {
    least = std::min(least, session.submitted(lane, local));
  }
  return least;
}

class Rings {
 public:
  explicit Rings(std::uint8_t shape)
      : reproducible_(shape % 2 != 0),
        trainers_(1 + shape / 2 % kMostTrainers),
        hub_(dataplane::small_hub(1, trainers_)) {
    for (unsigned local = 0; local < trainers_; ++local) {
      const auto region = std::make_shared<dataplane::SessionRegion>(2 * kHeap);
      region->confirm(shared::kHeapOffset + kHeap);
      int ends[2];
      require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0,
              "a doorbell can be made");
      doorbells_.push_back(ends[1]);
      if (local == 0) {
        const dataplane::SessionShape of{kRanks, std::vector(kLanes, 1U), reproducible_, trainers_};
        session_ = std::make_unique<dataplane::Session>(region, ends[0], of,
                                                        std::vector<dataplane::Doorbell*>{});
      } else {
        session_->add(local, region, ends[0]);
      }
    }
    session_->set_hub(*hub_);
  }
  ~Rings() {
    for (const int doorbell : doorbells_) close(doorbell);
  }
  Rings(const Rings&) = delete;
  Rings& operator=(const Rings&) = delete;

  void store(std::uint8_t where, std::uint64_t value) {
    fuzz::store(*session_, where / kPlaces % trainers_, static_cast<Where>(where % kPlaces), value);
  }

  void take() {
    const Counts before = submitted();
    const std::uint64_t published = session_->published();
    const std::uint64_t pushes = hub_->board().in_flight();
    const dataplane::Session::Take take = session_->take();
    require(!violated_ || take == dataplane::Session::Take::violation, "a violation stays one");
    violated_ = take == dataplane::Session::Take::violation;
    require(!violated_ || session_->violation() != nullptr, "a violation has a reason");
    const bool taken = take == dataplane::Session::Take::taken;
    const auto mail = session_->mail().next_fresh();
    require(!mail.has_value() || taken, "only what is taken is mail");
    if (mail.has_value()) {
      require(submitted() == before, "what is mail belongs to no lane");
      take_mail(*mail);
    } else if (hub_->board().in_flight() != pushes) {
      require(taken && hub_->board().in_flight() == pushes + 1, "a push is what is taken");
      require(submitted() == before, "a push belongs to no lane");
      take_rounds();
    } else if (taken && submitted() == before) {
      require(session_->published() == published, "a withdrawal belongs to no lane");
      take_withdrawn();
    } else if (taken) {
      take_collective(before);
    } else {
      require(submitted() == before && session_->published() == published,
              "only what is taken counts");
    }
  }

 private:
  using Counts = std::array<std::array<std::uint64_t, kMostTrainers>, kLanes>;

  Counts submitted() const {
    Counts counts{};
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      for (unsigned local = 0; local < trainers_; ++local) {
        counts[lane][local] = session_->submitted(lane, local);
      }
    }
    return counts;
  }

  void take_mail(std::uint32_t number) {
    const dataplane::MailRequest& mail = session_->mail().at(number);
    require(mail.peer < kRanks, "the other trainer of a message is a rank");
    require(mail.local < trainers_, "a message is of one of the trainers");
    require(mail.bytes <= kHeap, "a message is no longer than the heap");
    require_in_heap(*session_, mail.local, mail.buffer, mail.bytes);
    if (number % 2 == 0) session_->end_mail(number, 0, 0);
  }

  void take_withdrawn() {
    const auto number = session_->mail().next_withdrawn();
    if (!number.has_value()) return;  // of what has ended
    session_->end_mail(*number, 0, 0);
    require(!session_->mail().next_withdrawn().has_value(), "a withdrawal is of one message");
  }

  // Of keys that all trainers have pushed alike. They end at once.
  void take_rounds() {
    dataplane::HubBoard& board = hub_->board();
    while (const std::optional<std::uint32_t> key = board.next_pushed(0)) {
      const dataplane::HubPush& push = board.pushed(*key);
      require(push.learning_rate >= 0 && std::isfinite(push.learning_rate),
              "a learning rate is one");
      for (unsigned local = 0; local < trainers_; ++local) {
        require(!board.may_push(*key, local), "a round begins when all have pushed");
        require_in_heap(*session_, local, push.buffers[local], hub_->model().keys()[*key].bytes());
      }
      board.end(0, *key, 0);
      require(session_->end_pushes().rounds == 1, "a round ends once");
    }
  }

  void take_collective(const Counts& before) {
    unsigned more = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      for (unsigned local = 0; local < trainers_; ++local) {
        if (session_->submitted(lane, local) == before[lane][local]) continue;
        more += session_->submitted(lane, local) == before[lane][local] + 1 ? 1 : 2;
        require_right(*session_, local, lane, reproducible_);
      }
      require(session_->published(lane) == least_submitted(*session_, lane),
              "what all have submitted is published");
      const bool news = session_->published(lane) != published_[lane];
      published_[lane] = session_->published(lane);
      if (!news) continue;
      require_published(*session_, lane);
      if (published_[lane] % 2 == 0) session_->complete_through(lane, published_[lane], 0);
    }
    require(more == 1, "what is taken is one trainer's next on its lane");
    require(session_->published() == published_[0] + published_[1],
            "the lanes' counts are the session's");
  }

  bool reproducible_;
  unsigned trainers_;
  std::shared_ptr<dataplane::ServerHub> hub_;
  std::vector<int> doorbells_;  // the trainers' ends
  std::unique_ptr<dataplane::Session> session_;
  std::array<std::uint64_t, kLanes> published_{};
  bool violated_ = false;
};

}  // namespace

void read_hostile(std::span<const std::uint8_t> input) {
  if (input.empty()) return;
  Rings rings(input[0]);
  for (input = input.subspan(1); input.size() >= kStoreBytes; input = input.subspan(kStoreBytes)) {
    std::uint64_t value;
    std::memcpy(&value, &input[1], sizeof value);
    rings.store(input[0], value);
    rings.take();
  }
}

namespace {

// A trainer's submission of this number, from 1.
void append_push(Bytes& bytes, unsigned local, const shared::Submission& push,
                 std::uint64_t number) {
  append(bytes, local, Where::request, push.request);
  append(bytes, local, Where::offset, push.offset);
  append(bytes, local, Where::count, push.count);
  append(bytes, local, Where::dtype, push.dtype);
  append(bytes, local, Where::type, push.type);
  append(bytes, local, Where::key, push.push.key);
  append(bytes, local, Where::hub, push.push.hub);
  append(bytes, local, Where::rate, std::bit_cast<std::uint64_t>(push.push.rate));
  append(bytes, local, Where::steps, push.push.steps);
  append(bytes, local, Where::digest, push.push.digest);
  append(bytes, local, Where::push_kind, push.push.kind);
  append(bytes, local, Where::plane, push.push.plane);
  append(bytes, local, Where::submission_tail, number);
}

// What the trainers' submission of this number is: each collective, a send, a receive.
void append_kind(Bytes& bytes, unsigned local, std::uint64_t number) {
  const std::uint64_t kind = number - 1;
  const bool is_collective = kind < shared::kCollectiveKinds;
  const auto type =
      is_collective ? shared::SubmissionType::collective : shared::SubmissionType::message;
  append(bytes, local, Where::type, static_cast<std::uint64_t>(type));
  if (!is_collective) {
    append(bytes, local, Where::tag, 0);
    append(bytes, local, Where::peer, 0);
    append(bytes, local, Where::paths, 0);
    append(bytes, local, Where::place, number);
    append(bytes, local, Where::direction, kind - shared::kCollectiveKinds);
    return;
  }
  append(bytes, local, Where::root, 0);
  append(bytes, local, Where::operation, number % aggregation::kOperations);
  append(bytes, local, Where::kind, kind);
  append(bytes, local, Where::lane, number % kLanes);
}

// Of one key, which the first trainer pushes a second time before the others have pushed it. The
// pushes have the largest name that there is.
Bytes pushes_of_the_first_trainer_twice(std::uint8_t shape, unsigned trainers) {
  Bytes bytes = {shape};
  const auto push = dataplane::small_push(UINT64_MAX, 0, shared::PushKind::gradients);
  append_push(bytes, 0, push, 1);
  append_push(bytes, 0, push, 2);
  for (unsigned local = 1; local < trainers; ++local) append_push(bytes, local, push, 1);
  return bytes;
}

}  // namespace

// Of each shape of session some collectives of each kind, messages and pushes to a hub, that all
// trainers submit, and pushes that they may not.
std::vector<Bytes> seeds() {
  using shared::PushKind;
  // Collectives, a send and a receive.
  constexpr std::uint64_t kSubmissions = shared::kCollectiveKinds + 2;
  std::vector<Bytes> inputs;
  for (std::uint8_t shape = 0; shape < 2 * kMostTrainers; ++shape) {
    const unsigned trainers = 1 + shape / 2U;
    inputs.push_back(pushes_of_the_first_trainer_twice(shape, trainers));
    for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{16}, kHeap / 16}) {
      Bytes bytes = {shape};
      for (std::uint64_t request = 1; request <= kSubmissions; ++request) {
        for (unsigned local = 0; local < trainers; ++local) {
          append(bytes, local, Where::request, request);
          append(bytes, local, Where::offset, shared::kHeapOffset);
          append(bytes, local, Where::count, count);
          append(bytes, local, Where::dtype, request - 1);
          append_kind(bytes, local, request);
          append(bytes, local, Where::submission_tail, request);
        }
      }
      // Of each key of the hub.
      std::uint64_t request = kSubmissions;
      for (std::uint32_t key = 0; key < 2 * dataplane::small_keys().size(); ++key) {
        const auto push = dataplane::small_push(
            ++request, key / 2, key % 2 == 0 ? PushKind::weights : PushKind::gradients);
        for (unsigned local = 0; local < trainers; ++local) {
          append_push(bytes, local, push, request);
        }
      }
      inputs.push_back(bytes);
    }
  }
  return inputs;
}

}  // namespace gradcube::fuzz
