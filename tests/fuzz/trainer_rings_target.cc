// The rings that a trainer shares with the daemon. The input is a list of the trainer's stores into
// them; after each the session takes a submission, if it finds one.

#include <cstring>
#include <memory>
#include <sys/socket.h>
#include <unistd.h>

#include "dataplane/engine/session.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/unit/dataplane/engine/submission_entry.h"

namespace gradcube::fuzz {

const unsigned kMutations = 10'000;

namespace {

constexpr std::uint64_t kHeap = 1 << 20;  // the confirmed part of the session's
constexpr unsigned kLanes = 2;
constexpr unsigned kRanks = 3;

// One store: a byte that says where, and the value.
constexpr std::size_t kStoreBytes = 1 + sizeof(std::uint64_t);
enum class Where : std::uint8_t {
  submission_tail,
  completion_head,
  request,
  offset,
  count,
  dtype,
  operation,
  kind,
  root,
  lane,
  places,
};

void store(dataplane::Session& session, Where where, std::uint64_t value) {
  // The entry that the session looks at next.
  shared::Submission& submission =
      dataplane::submission_entry(session.region(), session.published());
  switch (where) {
    case Where::submission_tail:
      session.region().header().submission_tail.store(value);
      break;
    case Where::completion_head:
      session.region().header().completion_head.store(value);
      break;
    case Where::request:
      submission.request = value;
      break;
    case Where::offset:
      submission.offset = value;
      break;
    case Where::count:
      submission.count = value;
      break;
    case Where::dtype:
      submission.dtype = static_cast<std::uint8_t>(value);
      break;
    case Where::operation:
      submission.op = static_cast<std::uint8_t>(value);
      break;
    case Where::kind:
      submission.kind = static_cast<std::uint8_t>(value);
      break;
    case Where::root:
      submission.root = static_cast<std::uint32_t>(value);
      break;
    case Where::lane:
      submission.lane = static_cast<std::uint8_t>(value);
      break;
    case Where::places:
      break;
  }
}

void require_within_heap(const dataplane::Session& session, unsigned lane) {
  const std::uint64_t number = session.published(lane);
  const dataplane::CollectiveRequest& request = session.request(lane, number);
  require(request.number == number && request.lane == lane, "a lane's requests have its numbers");
  require(request.root < kRanks, "a root is a rank");
  require(request.count <= kHeap && request.bytes <= kHeap, "a buffer is no longer than the heap");
  const bool chunks = control::is_rank_ordered(request.kind);
  require(request.bytes ==
              request.count * aggregation::element_bytes(request.dtype) * (chunks ? kRanks : 1),
          "a buffer's bytes are its elements'");
  if (request.bytes == 0) return;
  const std::uint8_t* heap = session.region().base() + shared::kHeapOffset;
  require(request.buffer >= heap && request.buffer + request.bytes <= heap + kHeap,
          "a buffer lies in the heap");
}

void require_within_heap(const dataplane::Session& session, const dataplane::MailRequest& mail) {
  require(mail.peer < kRanks, "the other trainer of a message is a rank");
  require(mail.bytes <= kHeap, "a message is no longer than the heap");
  const std::uint8_t* heap = session.region().base() + shared::kHeapOffset;
  require(mail.buffer >= heap && mail.buffer + mail.bytes <= heap + kHeap,
          "a message's buffer lies in the heap");
}

}  // namespace

void read_hostile(std::span<const std::uint8_t> input) {
  int ends[2];
  require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0, "a doorbell can be made");
  const auto region = std::make_shared<dataplane::SessionRegion>(2 * kHeap);
  region->confirm(shared::kHeapOffset + kHeap);
  dataplane::Session session(region, ends[0], {kRanks, std::vector(kLanes, 1U)}, {});
  bool violated = false;
  while (input.size() >= kStoreBytes) {
    std::uint64_t value;
    std::memcpy(&value, &input[1], sizeof value);
    store(session, static_cast<Where>(input[0] % static_cast<unsigned>(Where::places)), value);
    input = input.subspan(kStoreBytes);

    const std::uint64_t before = session.published();
    const std::uint64_t before_on_lane_0 = session.published(0);
    const dataplane::Session::Take take = session.take();
    require(!violated || take == dataplane::Session::Take::violation, "a violation stays one");
    violated = take == dataplane::Session::Take::violation;
    require(!violated || session.violation() != nullptr, "a violation has a reason");
    const bool taken = take == dataplane::Session::Take::taken;
    const auto mail = session.mail().next_fresh();
    require(!mail.has_value() || taken, "only what is taken is mail");
    require(session.published() == before + (taken && !mail.has_value() ? 1 : 0),
            "what is taken is published, or is mail");
    if (!taken) continue;
    if (mail.has_value()) {
      require_within_heap(session, session.mail().at(*mail));
      if (*mail % 2 == 0) session.end_mail(*mail, 0, 0);
      continue;
    }
    const unsigned lane = session.published(0) == before_on_lane_0 ? 1 : 0;
    require_within_heap(session, lane);
    if (session.published() % 2 == 0) session.complete_through(lane, session.published(lane), 0);
  }
  close(ends[1]);
}

std::vector<Bytes> seeds() {
  const auto append = [](Bytes& bytes, Where where, std::uint64_t value) {
    bytes.push_back(static_cast<std::uint8_t>(where));
    const std::size_t at = bytes.size();
    bytes.resize(at + sizeof value);
    std::memcpy(&bytes[at], &value, sizeof value);
  };
  std::vector<Bytes> inputs;
  for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{16}, kHeap / 4}) {
    Bytes bytes;
    for (std::uint64_t request = 1; request <= 7; ++request) {
      append(bytes, Where::request, request);
      append(bytes, Where::offset, shared::kHeapOffset);
      append(bytes, Where::count, count);
      append(bytes, Where::dtype, request);
      append(bytes, Where::kind, request);
      append(bytes, Where::lane, request % kLanes);
      append(bytes, Where::submission_tail, request);
    }
    inputs.push_back(bytes);
  }
  return inputs;
}

}  // namespace gradcube::fuzz
