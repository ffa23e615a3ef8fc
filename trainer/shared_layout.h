// The memory that a trainer and its daemon share, and the messages on the session's Unix socket.
//
// Included by both sides; knows nothing of either. The daemon creates the region, a memfd, and
// passes it by SCM_RIGHTS. Both sides map it; then the trainer seals it (kSeals). From then on the
// file can lose no page: it cannot be cut, and no hole can be punched into it. What a trainer has
// written to once stays there until the session ends, and a freed buffer serves later ones.
//
// A page gets its memory from the process that touches it first. This is to be the trainer: it
// touches what its heap begins to use, and then tells the daemon how far its memory reaches (Grow).
// The daemon looks at the pages, and at the quota of the trainer's user. A submission that lies
// beyond what the daemon has confirmed closes the session.
//
//   offset 0       RegionHeader: control words, each written by one side only
//   kSubmissions   Submission[kSubmissionEntries]: written by the trainer, read by the daemon
//   kCompletions   Completion[kRingEntries]: written by the daemon, read by the trainer
//   kHeapOffset    the trainer's heap; the daemon keeps nothing in it
//
// Rings are single producer, single consumer: head is the consumer's, tail the producer's, both
// count entries since the start and are never reduced; entry i lies at i modulo the ring's entries.
// A tail is published with release order after the entry.
//
// The daemon trusts nothing in the region. It keeps its own copies of the words it writes, reads
// each submission once into its own memory, and checks every field; an invalid field closes the
// session (GRADCUBE_EPROTOCOL).
//
// Sleeping. A side about to sleep sets its `..._asleep` word to 1 (sequentially consistent), looks
// at its ring once more, and then polls its doorbell. A side that has published an entry
// (sequentially consistent fence after it) sends one byte on its doorbell if the other's word is 1.
// A doorbell is one end of a socket pair, used with MSG_DONTWAIT: unlike an eventfd, whose file
// flags both holders share, nothing that a trainer does to its end can make the daemon block.
#ifndef GRADCUBE_TRAINER_SHARED_LAYOUT_H_
#define GRADCUBE_TRAINER_SHARED_LAYOUT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <string_view>

#include "trainer/push_kind.h"
#include "trainer/shared_hub.h"

namespace gradcube::shared {

inline constexpr std::uint32_t kLayoutVersion = 16;
inline constexpr std::uint64_t kMagic = 0x4542554344415247;  // "GRADCUBE", little-endian
// What one side can do beyond the version that both speak, one bit each. Each side sends its own
// bits and uses what both have. No bit is defined yet.
inline constexpr std::uint64_t kFeatures = 0;
inline constexpr std::uint32_t kRingEntries = 1024;  // the most collectives in flight per session
// Beside those, as many that withdraw one of them: a trainer writes a withdrawal only where fewer
// than kRingEntries entries wait to be read.
inline constexpr std::uint32_t kSubmissionEntries = 2 * kRingEntries;
inline constexpr std::uint32_t kMaxLanes = 8;              // of a job
inline constexpr std::uint32_t kMostWeight = 1000;         // of a job
inline constexpr std::uint32_t kMaxMembers = 4096;         // that a Hello names
inline constexpr std::uint32_t kMaxLocalTrainers = 16;     // of a job on one server
inline constexpr std::uint64_t kLargeMessage = 64 * 1024;  // bytes: it takes all parallel paths
inline constexpr std::size_t kCacheLine = 64;
inline constexpr std::size_t kSubmissions = 4096;
inline constexpr std::size_t kCompletions = 1 << 18;
inline constexpr std::size_t kHeapOffset = 1 << 21;  // a multiple of a huge page
inline constexpr std::size_t kBufferAlignment = 64;  // of every submitted buffer's offset

struct RegionHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t ring_entries;
  std::uint64_t region_bytes;

  alignas(kCacheLine) std::atomic<std::uint64_t> submission_tail;  // trainer
  alignas(kCacheLine) std::atomic<std::uint64_t> submission_head;  // daemon
  alignas(kCacheLine) std::atomic<std::uint64_t> completion_tail;  // daemon
  alignas(kCacheLine) std::atomic<std::uint64_t> completion_head;  // trainer
  alignas(kCacheLine) std::atomic<std::uint32_t> trainer_asleep;   // trainer
  alignas(kCacheLine) std::atomic<std::uint32_t> daemon_asleep;    // daemon
};
static_assert(sizeof(RegionHeader) <= kSubmissions);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// gradcube_kind has the same numbers.
enum class CollectiveKind : std::uint8_t {
  all_reduce = 0,
  reduce_scatter = 1,
  all_gather = 2,
  broadcast = 3,
  reduce = 4,
  barrier = 5,
};
inline constexpr unsigned kCollectiveKinds = 6;
// gradcube_direction has the same numbers.
enum class Direction : std::uint8_t { send = 0, receive = 1 };
inline constexpr double kOwnRate = -1;
inline constexpr std::uint64_t kMostLoadedSteps = 0xfffffffe;  // of a key with an aggregator
inline constexpr std::uint32_t kHubLane = UINT32_MAX;          // of an Inquiry about a push

enum class SubmissionType : std::uint8_t {
  collective = 0,
  message = 1,     // between two trainers
  withdrawal = 2,  // of a message in flight: no request of its own, and no Completion
  push = 3,        // of a key of the job's hub
};

// What an all_gather brings: trainers' buffers, digests of memory that is compared, or steps of a
// call of all trainers about a hub. Who gathers another thing disagrees, and gets no result.
enum class Gathered : std::uint8_t { buffers = 0, digests = 1, steps = 2 };
inline constexpr unsigned kGatheredThings = 3;

// The buffer has `count` elements of the call's dtype, and `count` times the job's size for
// reduce_scatter and all_gather, whose count is that of one rank's chunk. A barrier has count,
// dtype and op 0, and the offset of any empty buffer. The collective's number, by which the
// trainers' calls are matched, is its place in its lane.
//
// In a reproducible job dtype and op are those of the trainer's call, and an element of a reduction
// has the size of what carries it (aggregation/reproducible.h).
struct SubmittedCollective {
  std::uint32_t root;  // a rank, for broadcast and reduce; else 0
  std::uint8_t kind;   // CollectiveKind
  std::uint8_t op;     // gradcube_op; 0 where nothing is added
  std::uint8_t lane;   // below the job's number of lanes
  Gathered gathered;   // of an all_gather; else 0
};

// Of a message `count` is that of the buffer's bytes. It has no number in a lane. A withdrawal has
// the `request` and the `place` of a message, and nothing else. The message ends with
// GRADCUBE_ECANCELED if it has not met the other trainer's; else it ends as it would have. Of a
// message that has ended a withdrawal means nothing.
struct SubmittedMessage {
  std::uint64_t tag;       // any number
  std::uint32_t peer;      // the other trainer's rank
  std::uint32_t paths;     // the most that a send may take; 0: by its length
  std::uint32_t place;     // below kRingEntries: no other message in flight of the trainer has it
  std::uint8_t direction;  // Direction
  std::uint8_t reserved[3];
};

// Of a push count and dtype are the key's, and the buffer is as long as the key's gradients; of
// what is restored it is the key's weights, and behind them its arrays, as restored_array() says:
// where the weights have 16 bits, these as float32; then the optimizer's. What is applied has no
// buffer, and the offset of any empty one. A trainer pushes a key
// again when its last push of it has ended. A field that the push's kind has not is 0.
struct SubmittedPush {
  std::uint32_t key;  // its number among those of the hub, ordered by name
  std::uint32_t hub;  // its number
  // Of gradients and of what is applied: the learning rate, or kOwnRate for the optimizer's own.
  double rate;
  // How many steps the optimizer has taken: of what is restored; of what is loaded one more, from
  // the trainer that has the plane in its buffer, the first of its server.
  std::uint64_t steps;
  // Of weights: half of their bytes' XXH3, by which all push the same. Of what is applied: the bits
  // of the scale, a float.
  std::uint32_t digest;
  std::uint8_t kind;   // PushKind
  std::uint8_t plane;  // of what is saved or loaded
  std::uint16_t reserved;
};

// `request` is the trainer's name for it: any number, which comes back in the Completion. It is
// unique among what the trainer has in flight. The buffer begins at `offset` from the region's
// start, a multiple of kBufferAlignment, and lies wholly inside the heap's confirmed part.
struct Submission {
  std::uint64_t request;
  std::uint64_t offset;
  std::uint64_t count;
  std::uint8_t type;   // SubmissionType: what of the union it has
  std::uint8_t dtype;  // gradcube_dtype
  std::uint8_t reserved[6];
  union {
    SubmittedPush push;  // the largest: {} makes all of them zero
    SubmittedMessage message;
    SubmittedCollective collective;
  };
};
static_assert(sizeof(Submission) == 64 && sizeof(SubmittedPush) == 32);
static_assert(kSubmissions + kSubmissionEntries * sizeof(Submission) <= kCompletions);

// The end of a collective: 0 or a negative GRADCUBE_E... code. The collectives of a lane end in the
// order of their submission, those of different lanes and messages in any order. A send or a
// receive that does not fit the other ends with GRADCUBE_EMISMATCH and no notice: `notice` is then
// one more than the other trainer's dtype if the two differ, else 0: the message is too long.
struct Completion {
  std::uint64_t request;
  std::int32_t code;
  std::uint32_t notice;  // the number of the Notice that says why; 0 if there is none
  // Of a send or a receive: of the message. Of an accumulated push: the bits of a float64, the sum
  // of the squares of what is accumulated of the key. Else 0.
  std::uint64_t bytes;
};
static_assert(sizeof(Completion) == 24);
static_assert(kCompletions + kRingEntries * sizeof(Completion) <= kHeapOffset);

// Messages on the session's socket (SOCK_SEQPACKET: one message, one packet). Text is
// NUL-terminated and padded with NULs.
enum class MessageType : std::uint32_t {
  hello = 1,      // trainer: Hello. The first message; answered by Offer or Refused
  welcome = 2,    // daemon: Welcome, with a descriptor: the trainer's doorbell
  refused = 3,    // daemon: Notice; then it closes the socket
  failure = 4,    // daemon: Notice. Sent before the completions of the collectives that it is about
  inquiry = 5,    // trainer: Inquiry: why is this request not done?
  report = 6,     // daemon: Notice, the answer
  goodbye = 7,    // trainer: an orderly leave: a bare MessageType. Closing the socket without it
                  // counts as a death
  closing = 8,    // daemon: Notice: it is about to close this session, for this reason
  abort = 9,      // trainer: end the whole job now: a bare MessageType. The trainer then closes
                  // its socket
  offer = 10,     // daemon: Offer, with a descriptor: the region
  mapped = 11,    // trainer: it has mapped and sealed the region: a bare MessageType. Answered by
                  // Welcome or Refused
  grow = 12,      // trainer: Grow. The next one only after the answer
  grown = 13,     // daemon: Notice, the answer: its code is 0, or says why it is not confirmed; its
                  // `request` is how far the memory is confirmed now, from the region's start
  make_hub = 14,  // trainer: MakeHub. The next one only after the answer
  hub_made = 15,  // daemon: Notice, the answer: its code is 0, or says why there is none. With 0,
                  // `request` is how long the hub's weights are, in bytes, and a descriptor comes
                  // with it: the hub's memory, which begins with them, and goes on with HubHeader,
                  // to be mapped for reading. `number` is the hub's, `epoch` the job's: as resets
                  // of the job end its hubs, it is one hub only where all have it in one epoch
  end_hub = 16,   // trainer: EndHub: its server needs the hub no more
};

// Of a mapped region.
inline constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;

inline constexpr std::size_t kJobNameBytes = 64;  // with the NUL
inline constexpr std::string_view kJobNameCharacters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

// For messages about a name that is none.
inline constexpr char kJobNameRule[] =
    "expected 1 to 63 of the characters A-Z, a-z, 0-9, '.', '_' and '-'";
static_assert(kJobNameBytes == 64, "kJobNameRule says how many characters a name has");

constexpr bool is_job_name(std::string_view text) {
  return !text.empty() && text.size() < kJobNameBytes &&
         text.find_first_not_of(kJobNameCharacters) == std::string_view::npos;
}

inline constexpr std::size_t kJobSecretBytes = 256;
inline constexpr std::size_t kLeastJobSecretBytes = 16;

inline constexpr std::size_t kNoticeTextBytes = 1024;

inline constexpr std::size_t kAlgorithmNameBytes = 56;  // with the NUL

struct Lane {
  char algorithm[kAlgorithmNameBytes];  // "": the cluster's default
  std::int32_t priority;                // a lane of higher priority is served first, within the job
  std::uint32_t reserved;
};
static_assert(sizeof(Lane) == 64);

// All trainers of a job ask for the same lanes, weight, members and trainers per server, and all or
// none for reproducible reductions. `type` and `version` have the same place in every version of
// the layout.
//
// The message goes on after the struct with member_count server numbers, 32 bits each, ascending,
// each once.
struct Hello {
  MessageType type = MessageType::hello;
  std::uint32_t version;
  std::uint64_t features;
  std::uint64_t heap_bytes;  // the heap wanted; the daemon rounds up to pages and may refuse
  std::uint32_t pid;     // as the trainer sees itself: for messages; the daemon trusts SO_PEERCRED
  std::int32_t rank;     // the rank wanted; -1: by the server's place and the trainer's there
  std::uint32_t weight;  // of this job among the jobs that share its links, 1 to kMostWeight
  std::uint32_t lane_count;    // 1 to kMaxLanes
  std::uint32_t member_count;  // at most kMaxMembers; 0: every server of the cluster
  std::uint8_t trainers;       // on each of them, 1 to kMaxLocalTrainers
  std::uint8_t reproducible;   // 1: results do not depend on an order (docs/arithmetic.md); or 0
  std::int16_t local;          // which of its server's trainers it wants to be, from 0; -1: any
  char job[kJobNameBytes];     // is_job_name()
  Lane lanes[kMaxLanes];
  // What trainers of different users give to be in one job; without, a job is of its user's
  // trainers alone. NULs fill it up.
  char secret[kJobSecretBytes];
};
static_assert(sizeof(Hello) == 48 + kJobNameBytes + kMaxLanes * sizeof(Lane) + kJobSecretBytes);

struct Offer {
  MessageType type;
  std::uint32_t version;
  std::uint64_t features;
  std::uint64_t region_bytes;
};

struct Welcome {
  MessageType type;
  std::uint32_t rank;
  std::uint32_t size;
  std::uint32_t server_number;  // as Hello counts members
  char server[64];              // this server's address as people write it: "[2,1]"
};

// "My memory reaches from the region's start up to `end`, and is going to reach up to `wanted`":
// both are ends of pages. Refused if the user's quota does not suffice for `wanted`. A trainer
// first asks with the `end` that is confirmed already; so it touches nothing in vain.
struct Grow {
  MessageType type = MessageType::grow;
  std::uint32_t reserved = 0;
  std::uint64_t end = 0;
  std::uint64_t wanted = 0;
};

// "Make the job's hub." All trainers of the job ask for the same one. Its table lies in the heap,
// in its confirmed part, and stays as it is until the answer.
struct MakeHub {
  MessageType type = MessageType::make_hub;
  std::uint32_t number = 0;  // 1, 2, 3, ...: of the hubs that this session has asked for
  std::uint64_t offset = 0;  // of the table, in the region; a multiple of kBufferAlignment
  std::uint64_t bytes = 0;
  std::uint32_t lane = 0;  // whose plan the hub exchanges its chunks by
  std::uint32_t reserved = 0;
};

// "My server needs hub `number` no more." Of a hub that is over it means nothing.
struct EndHub {
  MessageType type = MessageType::end_hub;
  std::uint32_t number = 0;
};

// How many arrays of float32 a key with the optimizer's `states` has beside its weights, and where
// the one with this number, from 0, begins in what is restored; of the number behind the last,
// where all ends.
constexpr std::uint64_t restored_arrays(std::uint64_t element_bytes, std::uint64_t states) {
  return states + (element_bytes == sizeof(float) ? 0 : 1);
}
constexpr std::uint64_t restored_array(std::uint64_t elements, std::uint64_t element_bytes,
                                       std::uint64_t number) {
  const auto align = [](std::uint64_t bytes) {
    return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  };
  return align(elements * element_bytes) + number * align(elements * sizeof(float));
}

struct Notice {
  MessageType type;
  std::int32_t code;  // GRADCUBE_E...
  // A failure's number, 1, 2, 3, ...: the completions that it explains name it.
  std::uint32_t number;
  std::uint32_t epoch;    // of a hub_made: that of the job in which the hub was made
  std::uint64_t request;  // of a report: the request that was asked about; of a grown: a byte
  char text[kNoticeTextBytes];
};

struct Inquiry {
  MessageType type = MessageType::inquiry;
  std::uint32_t lane = 0;
  std::uint64_t request = 0;  // comes back in the report
  // Which collective of its lane it is: 1, 2, 3, ...; 0: a message. In lane kHubLane: which key of
  // the hub is being pushed.
  std::uint64_t number = 0;
};

}  // namespace gradcube::shared

#endif  // GRADCUBE_TRAINER_SHARED_LAYOUT_H_
