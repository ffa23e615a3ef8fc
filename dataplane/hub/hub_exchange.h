// One executor of a hub at one server (control/hub/hub_model.h): the exchange of its chunks. It
// lands what other servers contribute, adds it, takes the optimizer's step where a piece is owned,
// and hands the new weights on. PHub 3.2, on the streams of BML's Algorithm 1.
//
// It knows no packets and no order: who drives it asks next() of each peer for what can be sent,
// and tells it what has arrived, in any order. HubExecutor drives it with an engine's flows; tests
// do without.
//
// Rounds. A key's round is one push by every trainer: each of its chunks is aggregated along the
// steps of the thread, at the end of which the owner of each piece steps its weights, and the
// weights come back along the same steps. A trainer pushes a key again only when its round has
// ended at this server. So what a chunk's round needs at a server is consumed there before anything
// of the next round can come: landing memory for one round of each chunk is enough, and nothing
// that arrives ever has to wait for anything else. Keys may be pushed in any order, another one on
// each server, and none can block another. An asynchronous root (stale_peers.h) is the exception: a
// round of all servers waits there until all have done as many.
//
// Order of addition: as in an all-reduce of the chunk by this thread alone (docs/algorithms.md), so
// the weights have the same bits whatever arrives first, is lost or is sent again.
//
// A hostile peer. What does not fit is refused: another chunk, round, position or length than can
// come now, and what has come before. What fits can make this hub's weights and norms wrong, or its
// rounds endless, and nothing else.
//
// Accumulated rounds (PushKind). The owner adds the last contributions to an array of its own. What
// goes out as results is the norm of each unit of 64 bytes (byte_range.h) of what is accumulated by
// then, as a float. Every server keeps those of all chunks in their order, and has the same bits of
// their sum as all others, whatever the plan and the order of arrivals. What is applied is
// contributed without gradients. So a step of both takes hardly more bytes than one round.
//
// Landing. What arrives before all that it is added with is copied to a slot. Slots are taken from
// stacks, so the same few are used again and again, and lie in the caches, as long as little waits;
// there is one for each contribution that a round can have. The last contribution to come is added
// from where it arrived.
//
// Memory. Weights are the server's copy of the whole model; this writes the parts of its chunks
// there: of pieces that are owned here the weights themselves (float32) or their rounded form (16
// bits), of others what their owners send. State is that of the pieces that are owned here
// (hub_state.h). The caller owns both, and may read them while none of its trainers' pushes is in
// flight: nothing that others send changes them then. Landing memory is allocated at construction.
// Gradients stay where the trainers have them until their round ends; sums are made in the first
// trainer's buffer, so what is in there then is of no use.
//
// One thread: the engine's. Nothing allocates but the constructor.
#ifndef GRADCUBE_DATAPLANE_HUB_HUB_EXCHANGE_H_
#define GRADCUBE_DATAPLANE_HUB_HUB_EXCHANGE_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "aggregation/kernels.h"
#include "aggregation/optimizer.h"
#include "control/hub/hub_model.h"
#include "control/plan/collective_layout.h"
#include "control/plan/thread_schedule.h"
#include "dataplane/hub/hub_labels.h"
#include "dataplane/hub/hub_queues.h"
#include "dataplane/hub/hub_shapes.h"
#include "dataplane/hub/hub_state.h"
#include "dataplane/hub/landing_slots.h"
#include "dataplane/hub/stale_peers.h"

namespace gradcube::dataplane {

struct HubExchangeContext {
  const control::hub::HubModel& model;
  const control::hub::HubExecution& execution;
  const control::Plan& plan;
  control::Rank rank;  // this server's
  const aggregation::Kernels& kernels;
  std::uint32_t segment_bytes;
  std::uint32_t block_bytes;
  unsigned trainers;      // of this server
  std::uint32_t divisor;  // all trainers, whose mean is taken
  // The root has no trainers: rates are floats, and labels have them; and planes are saved and
  // loaded.
  bool rates_are_told;
  // The same, and each server's gradients are stepped with alone, at most so many rounds ahead of
  // the slowest one's (stale_peers.h).
  std::optional<std::uint32_t> staleness;
  bool accumulates;       // rounds may be accumulated and applied; not with a staleness
  std::uint8_t* weights;  // model.bytes() of them; the same of all executors of the server
  float* state;           // as needs() says: zeros
};

struct HubNeeds {
  HubStateShape state;
  std::uint64_t bytes = 0;  // about as many as it allocates: all but weights and state
};

class HubExchange {
 public:
  explicit HubExchange(const HubExchangeContext& context);
  HubExchange(const HubExchange&) = delete;
  HubExchange& operator=(const HubExchange&) = delete;

  const control::ThreadSchedule& schedule() const { return schedule_; }
  // Elements of its chunks whose weights are stepped here.
  std::uint64_t owned() const { return state_.owned; }
  // Calls use(HubOwnedRange) for each chunk with elements that are owned here, in their order.
  template <typename Use>
  void for_each_owned(const Use& use) const {
    for (const ChunkState& chunk : chunks_) {
      if (shape_of(chunk).owned.size() != 0) use(owned_of(chunk));
    }
  }
  // What one will have. Allocates little.
  static HubNeeds needs(const HubExchangeContext& context);
  // Bytes that it has allocated: all but weights and state.
  std::uint64_t memory() const;

  // The trainers' next push of a key whose round has ended here. Its chunks begin with begin().
  void push(std::uint32_t key, const HubPush& push);
  // Begins chunks of what was pushed, key by key, until about so many bytes are worked off: a key
  // may be long, and the engine has others to serve. False: there was none.
  bool begin(std::uint64_t bytes);

  // What has arrived from the peer of a stream. False: it was refused, and nothing has changed.
  bool arrive(const HubStream& from, const HubLabel& label, const std::uint8_t* payload,
              std::uint32_t bytes);

  // The next segment that can be sent to the peer of a stream; each once. Its bytes stay as they
  // are until the peer has them.
  std::optional<HubLabel> next(const HubStream& to);
  HubSegment segment(const HubStream& to, const HubLabel& label) const;
  // A key that this server's trainers have pushed otherwise than another's: gradients and weights,
  // or with another learning rate. Its round cannot end.
  const std::optional<std::uint32_t>& disagreement() const { return disagreement_; }

  // Of a key whose accumulated round has ended here: the sum of the squares of what all owners have
  // accumulated of its chunks here.
  double squares(std::uint32_t key) const;

  // How many segments can be sent.
  std::uint64_t waiting(const HubStream& to) const { return sends_[number_of(to)].segments; }
  // Calls wake(number) for each stream that more can be sent to since it was called last. Streams
  // are numbered by stage, step and peer.
  template <typename Wake>
  void take_woken(const Wake& wake) {
    for (const std::uint32_t number : woken_) {
      sends_[number].woken = false;
      wake(number);
    }
    woken_.clear();
  }
  // Whether the executor has rounds that its trainers have pushed and that have not ended here.
  bool any_pushed() const { return pushed_ != 0; }

  // Of a key that is being pushed: from whom the first of its chunks that has not ended misses
  // something; nothing if none misses anything. The peers of a step come before those of the next.
  std::vector<HubStream> missing(std::uint32_t key) const;

  // Keys whose round has ended here since: the server has their new weights.
  std::optional<std::uint32_t> next_ended();

 private:
  using SegmentRange = control::SegmentRange;
  using Stage = control::Stage;
  static constexpr std::uint64_t kWordBits = 64;

  // The rest of a chunk's state lies in bits_, counts_ and landed_, at the places of its shape.
  struct ChunkState {
    std::uint32_t number = 0;  // in the model
    std::uint32_t shape = 0;
    std::uint64_t bits = 0;     // its first in bits_
    std::uint64_t counts = 0;   // its first in counts_
    std::uint64_t landing = 0;  // its first in landed_
    std::uint64_t state = 0;    // its first owned element in the optimizer's arrays
    std::uint64_t norms = 0;    // its first in norms_
    double squares = 0;         // the sum of theirs
    // Rounds: those of which something has been pushed or contributed here, those that were pushed
    // here, whose results go out, and that have ended here. Each is at most the one before it.
    std::uint32_t opened = 0;
    std::uint32_t pushes = 0;
    std::uint32_t spread = 0;
    std::uint32_t ended = 0;
    std::uint32_t reductions = 0;  // of the last round opened, that are done
    std::uint32_t results = 0;     // of the last round pushed, that are here
    std::uint32_t digest = 0;      // of the last round opened
    PushKind kind{};               // the same
    std::uint8_t plane = 0;        // the same
    std::uint8_t spread_plane = 0;
    PushKind spread_kind{};    // of the last round whose results go out
    bool pushed = false;       // the last round opened
    std::uint16_t loader = 0;  // who has what is loaded in it: the offset
  };
  struct KeyState {
    HubPush push;
    HubNumbers told{};  // of what is applied
    aggregation::OptimizerStep numbers{};
    std::uint64_t steps = 0;        // that the optimizer has taken
    std::uint32_t first_chunk = 0;  // in chunks_
    std::uint32_t chunks = 0;       // of this executor
    std::uint32_t left = 0;         // of these, whose round has not ended
    std::uint32_t begun = 0;        // of these, in the round that was pushed last
    std::uint32_t rounds = 0;       // that were opened; where there are no trainers
    std::uint32_t digest = 0;       // of the last of these
  };
  const HubShape& shape_of(const ChunkState& chunk) const { return shapes_[chunk.shape]; }
  const control::CollectiveLayout& layout_of(const ChunkState& chunk) const {
    return shapes_[chunk.shape].layout;
  }
  const control::hub::Chunk& place_of(const ChunkState& chunk) const {
    return context_.model.chunks()[chunk.number];
  }
  aggregation::DataType type_of(const ChunkState& chunk) const {
    return context_.model.keys()[place_of(chunk).key].type;
  }
  std::size_t number_of(const HubStream& stream) const {
    const std::size_t stage =
        stream.stage == Stage::aggregation ? 0 : first_peer_[schedule_.steps()];
    return stage + first_peer_[stream.step] +
           schedule_.step(stream.step).number_of_peer(stream.offset);
  }
  template <typename Function>
  void for_each_send(Stage stage, const Function& function) {
    const std::size_t peers = first_peer_[schedule_.steps()];
    const std::size_t first = stage == Stage::aggregation ? 0 : peers;
    for (std::size_t i = first; i < first + peers; ++i) function(sends_[i]);
  }
  bool bit(std::uint64_t at) const { return (bits_[at / kWordBits] >> (at % kWordBits) & 1) != 0; }
  void set_bit(std::uint64_t at) { bits_[at / kWordBits] |= std::uint64_t{1} << (at % kWordBits); }
  void clear_bit(std::uint64_t at) {
    bits_[at / kWordBits] &= ~(std::uint64_t{1} << (at % kWordBits));
  }
  static std::uint8_t on_wire(std::uint32_t round) { return static_cast<std::uint8_t>(round); }
  static std::ptrdiff_t first_word(std::uint64_t at) {
    return static_cast<std::ptrdiff_t>(at / kWordBits);
  }
  std::uint8_t* own_values(const ChunkState& chunk) const {
    const control::hub::Chunk& place = place_of(chunk);
    return keys_[place.key].push.buffers[0] +
           place.first_element * aggregation::element_bytes(type_of(chunk));
  }
  std::uint8_t* weights_of(const ChunkState& chunk) const {
    return context_.weights + context_.model.begin_of(place_of(chunk));
  }

  // Of a step's contribution: where it says in which slot it lies.
  std::uint64_t landing_of(const ChunkState& chunk, unsigned w, unsigned place,
                           std::uint32_t position) const {
    return chunk.landing + shape_of(chunk).landing_place(w, place, position);
  }
  const std::uint8_t* contribution(const ChunkState& chunk, unsigned w, unsigned place,
                                   std::uint32_t position) {
    const std::uint64_t landing = landing_of(chunk, w, place, position);
    if (landing == arriving_.landing) return arriving_.payload;
    return pools_[shape_of(chunk).pool[w]].at(landed_[landing]);
  }
  void give_back(const ChunkState& chunk, unsigned w, std::uint32_t position);

  void allocate();
  void find_pools(const std::map<std::uint32_t, std::uint32_t>& slots);
  void find_arrays();
  void disagree(const ChunkState& chunk);
  void count_step(std::uint32_t number);
  aggregation::OptimizerStep step_of(std::uint32_t key, double rate, std::uint64_t step) const {
    return aggregation::optimizer_step(context_.model.settings_of(key), rate, step,
                                       context_.divisor);
  }
  void begin_chunk(ChunkState& chunk);
  std::uint32_t digest_of(const HubPush& push) const;
  void open_round(ChunkState& chunk, PushKind kind, std::uint8_t plane, std::uint32_t digest);
  bool may_open(const ChunkState& chunk) const;
  void open_without_trainers(ChunkState& chunk, const std::uint8_t* payload);
  void reset_sends(const ChunkState& chunk, Stage stage);
  bool all_sent(const ChunkState& chunk, Stage stage) const;

  bool take_contribution(ChunkState& chunk, const HubStream& from, const HubLabel& label,
                         const std::uint8_t* payload, std::uint32_t bytes);
  bool take_result(ChunkState& chunk, const HubStream& from, const HubLabel& label,
                   const std::uint8_t* payload, const SegmentRange& range);

  bool has_sum(const ChunkState& chunk, unsigned w, unsigned r, std::uint32_t position) const;
  void reduce_if_complete(ChunkState& chunk, unsigned w, std::uint32_t position);
  void enter_ring(ChunkState& chunk, unsigned w, const control::StreamPositions::NextStep& sum);
  void combine(ChunkState& chunk, unsigned w, std::uint32_t position, SegmentRange range,
               bool is_last);
  unsigned find_sources(ChunkState& chunk, unsigned w, std::uint32_t position, SegmentRange range);
  void add_local(const ChunkState& chunk);
  aggregation::OptimizerArrays arrays_at(const ChunkState& chunk, SegmentRange range) const;
  void step(ChunkState& chunk, unsigned sources, SegmentRange range,
            const aggregation::OptimizerStep& numbers);
  void assign(const ChunkState& chunk, const void* values, SegmentRange range);
  void restore(const ChunkState& chunk, SegmentRange range);
  void write_rounded(const ChunkState& chunk, SegmentRange range);
  // hub_exchange_accumulate.cc
  static SegmentRange carried(Stage stage, PushKind kind, SegmentRange range);
  void accumulate(const ChunkState& chunk, unsigned sources, SegmentRange range);
  void apply(const ChunkState& chunk, SegmentRange range);
  void drop_accumulated(const ChunkState& chunk, SegmentRange range);
  void add_squares(ChunkState& chunk) const;
  std::uint8_t* results_of(const ChunkState& chunk, PushKind kind);
  // hub_exchange_planes.cc
  bool may_come(const ChunkState& chunk, const HubLabel& label) const;
  bool fits(ChunkState& chunk, const HubStream& from, const HubLabel& label,
            const std::uint8_t* payload);
  void save_plane(const ChunkState& chunk, SegmentRange range);
  void load_plane(ChunkState& chunk, unsigned w, std::uint32_t position, SegmentRange range);
  const std::uint8_t* spread_values(const ChunkState& chunk, const HubLabel& label) const;
  // hub_exchange_stale.cc
  bool take_alone(ChunkState& chunk, const HubStream& from, const HubLabel& label,
                  const std::uint8_t* payload, std::uint32_t bytes);
  bool may_open_alone(const ChunkState& chunk, unsigned offset) const;
  void open_alone(ChunkState& chunk, unsigned offset, std::uint32_t digest);
  void forget_results(ChunkState& chunk, unsigned offset);
  SegmentRange range_of(const ChunkState& chunk, unsigned offset, std::uint32_t position) const;
  void step_alone(ChunkState& chunk, unsigned offset, std::uint32_t position);
  void step_with_held(ChunkState& chunk);
  bool is_together(ChunkState& chunk, const HubStream& from, const HubLabel& label);
  bool may_open_together(const ChunkState& chunk, const StalePeers::Peer& peer);
  void open_together(ChunkState& chunk, PushKind kind);
  void keep_results(ChunkState& chunk, std::uint32_t position, SegmentRange range);
  unsigned place_of_source(unsigned offset) const;
  const StalePeers::Peer* alone(const ChunkState& chunk, const HubStream& to) const;
  const std::uint8_t* stale_result(const ChunkState& chunk, unsigned offset,
                                   std::uint32_t position) const;
  std::uint64_t state_at(const ChunkState& chunk, SegmentRange range) const {
    return chunk.state +
           (range.begin - shape_of(chunk).owned.begin) / aggregation::element_bytes(type_of(chunk));
  }
  HubOwnedRange owned_of(const ChunkState& chunk) const;

  bool has_result(const ChunkState& chunk, unsigned w, std::uint32_t position) const;
  bool is_ready(const ChunkState& chunk, const HubStream& to, std::uint32_t position) const;
  // Looks which more positions of a step's streams can be sent now.
  void advance(ChunkState& chunk, Stage stage, unsigned w);
  void advance_to(ChunkState& chunk, const HubStream& to);
  // After a result of step w, or this server's own.
  void advance_results(ChunkState& chunk, unsigned w);

  void end_if_complete(ChunkState& chunk);
  void tell_end(std::uint32_t key);

  HubExchangeContext context_;
  control::ThreadSchedule schedule_;
  std::vector<HubShape> shapes_;
  std::vector<ChunkState> chunks_;                                // by number
  std::vector<KeyState> keys_;                                    // by key
  std::vector<std::uint32_t> index_;                              // in chunks_, by number
  std::vector<HubSendStream> sends_;                              // by number_of()
  std::vector<std::uint32_t> woken_;                              // streams that have become longer
  std::array<std::size_t, control::kMaxSteps + 1> first_peer_{};  // of each step
  std::vector<std::uint64_t> bits_;
  std::vector<std::uint16_t> counts_;
  std::vector<std::uint32_t> landed_;  // slots
  std::vector<LandingSlots> pools_;
  // What arrives now, and has not been landed yet.
  struct Arriving {
    std::uint64_t landing = UINT64_MAX;
    const std::uint8_t* payload = nullptr;
  };
  Arriving arriving_;
  HubStateShape state_;
  // Of what is owned: 16-bit weights in float32, the optimizer's state, and what is accumulated;
  // null where not needed.
  std::array<float*, kHubArrays + 1> arrays_{};
  std::vector<float> norms_;           // of each unit of a chunk, by ChunkState::norms
  std::vector<std::uint8_t> rounded_;  // of 16 bits: what optimize() rounds and nobody wants
  std::optional<StalePeers> stale_;    // of an asynchronous hub's root
  std::optional<std::uint32_t> disagreement_;
  std::vector<const void*> sources_;
  HubKeyRing beginning_;  // keys with chunks that have not begun
  HubKeyRing ended_;
  std::uint32_t pushed_ = 0;  // keys whose push has not ended
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HUB_HUB_EXCHANGE_H_
