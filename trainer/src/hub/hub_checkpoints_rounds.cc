// How trainers push what is saved or restored: a few keys at a time, in blocks of shared memory,
// the keys by name, and of a hub with an aggregator plane by plane
// (control/checkpoint/hub_planes.h), the last one first.

#include <cstring>
#include <utility>
#include <vector>

#include "control/checkpoint/hub_planes.h"
#include "trainer/push_kind.h"
#include "trainer/src/base/failure.h"
#include "trainer/src/hub/hub_checkpoints.h"
#include "trainer/src/hub/hub_parts.h"
#include "trainer/src/hub/hub_saving.h"

namespace gradcube::trainer {
namespace {

using aggregation::DataType;
using shared::PushKind;

constexpr std::size_t kMostKeysPerRound = 64;
constexpr std::size_t kMostBytesPerRound = std::size_t{64} << 20;

DataType type_of(const Hub::Key& key) { return static_cast<DataType>(key.dtype); }

HubCopy empty_copy(const Hub& hub) {
  HubCopy copy;
  for (const Hub::Owned& all : hub.to_restore()) {
    copy.ranges.push_back({all.key, all.first_element, all.elements});
    for (std::size_t i = 0; i < hub.arrays(); ++i) copy.arrays.emplace_back(all.elements);
  }
  return copy;
}

}  // namespace

// What a trainer pushes of each key, by the kind of its pushes:
//
//   saved     nothing: rank 0's copy grows by the plane that comes to the place of the weights
//   loaded    planes, from what rank 0 has read of its files. That lies in the key's block as
//             shared::restored_array() says, with room for halves of arrays behind it
//   restored  all that the server takes back, at once; a hub without an aggregator has no planes
class KeyRounds {
 public:
  // parts, copy: null where another trainer has them, whose word counts.
  KeyRounds(Session& session, const Hub& hub, PushKind kind, HubParts* parts, HubCopy* copy)
      : session_(session), hub_(hub), kind_(kind), parts_(parts), copy_(copy) {}

  bool has_planes() const { return kind_ != PushKind::restored; }
  unsigned planes(std::size_t number) const {
    if (!has_planes()) return 1;
    return control::hub_planes(type_of(hub_.key_by_name(number)), hub_.arrays() - 1);
  }
  std::size_t block_bytes(std::size_t number) const {
    const Hub::Key& key = hub_.key_by_name(number);
    if (!has_planes()) return hub_.bytes_to_restore(key);
    return parts_ == nullptr ? key.bytes : hub_.bytes_to_restore(key) + key.bytes;
  }

  // The key's planes are about to be pushed.
  void begin(std::size_t number, std::byte* block) const {
    if (has_planes()) read(number, block);
  }
  PushWish wish(std::size_t number, unsigned plane, std::byte* block) const {
    return {.kind = kind_,
            .key = hub_.place_by_name(number),
            .buffer = buffer(number, plane, block),
            .steps = parts_ == nullptr ? 0 : parts_->steps(number),
            .plane = plane,
            .has_plane = parts_ != nullptr};
  }
  // The push of the plane has ended.
  void take(std::size_t number, unsigned plane) const {
    if (copy_ == nullptr) return;
    const Hub::Key& key = hub_.key_by_name(number);
    const bool whole = type_of(key) == DataType::float32;
    if (plane == 0 && !whole) return;  // rounded from what came before
    const unsigned array = plane == 0 ? 0 : control::array_of_plane(type_of(key), plane);
    float* to = copy_->arrays[number * hub_.arrays() + array].data();
    if (whole) {
      std::memcpy(to, hub_.weights(key), key.bytes);
    } else {
      control::write_halves(to, plane, key.elements, hub_.weights(key));
    }
  }

 private:
  void read(std::size_t number, std::byte* block) const {
    if (parts_ != nullptr) parts_->read_key(session_, number, block);
  }

  const void* buffer(std::size_t number, unsigned plane, std::byte* block) const {
    if (!has_planes()) read(number, block);  // while the keys before it travel
    if (parts_ == nullptr || plane == 0) return block;
    const Hub::Key& key = hub_.key_by_name(number);
    const std::size_t size = aggregation::element_bytes(type_of(key));
    const unsigned array = control::array_of_plane(type_of(key), plane);
    if (size == sizeof(float)) return block + shared::restored_array(key.elements, size, array - 1);
    std::byte* halves = block + hub_.bytes_to_restore(key);
    const std::byte* from = block + shared::restored_array(key.elements, size, array);
    session_.require_touch(block, [&] {
      control::read_halves(reinterpret_cast<const float*>(from), plane, key.elements, halves);
    });
    return halves;
  }

  Session& session_;
  const Hub& hub_;
  PushKind kind_;
  HubParts* parts_;
  HubCopy* copy_;
};

std::optional<HubCopy> HubCheckpoints::save_planes(Hub& hub, const Deadline& deadline) {
  // The aggregator saves nothing before all trainers have pushed as often.
  if (hub.is_asynchronous()) gather(session_, {.step = Step::save_planes}, deadline);
  std::optional<HubCopy> copy;
  if (has_files(hub)) copy = empty_copy(hub);
  HubCopy* const own = copy.has_value() ? &*copy : nullptr;
  push_keys(hub, {session_, hub, PushKind::saved, nullptr, own}, deadline);
  return copy;
}

void HubCheckpoints::push_parts(Hub& hub, HubParts* parts, const Deadline& deadline) {
  const PushKind kind = hub.has_aggregator() ? PushKind::loaded : PushKind::restored;
  push_keys(hub, {session_, hub, kind, parts, nullptr}, deadline);
}

void HubCheckpoints::push_keys(Hub& hub, const KeyRounds& rounds, const Deadline& deadline) {
  const bool copied = set_copies(hub, rounds.has_planes());
  hub.mapping()->set_has_weights(false);
  bool has_begun = rounds.has_planes();  // other trainers may have
  std::vector<std::byte*> blocks;
  const auto free_all = [&] {
    for (std::byte* block : blocks) session_.free(block);
    blocks.clear();
  };
  try {
    for (std::size_t first = 0; first < hub.size(); first += blocks.size(), free_all()) {
      allocate_blocks(hub, rounds, first, blocks);
      for (unsigned plane = control::kMostHubPlanes; plane-- > 0;) {
        push_plane(rounds, hub, plane, first, blocks, has_begun, deadline);
      }
    }
  } catch (...) {
    free_all();
    const Session::Lock lock = session_.enter();
    hub.torn = has_begun;
    hub.copies = copied;
    if (has_begun) hub.mapping()->close_shown();
    hub.mapping()->set_has_weights(!has_begun);
    throw;
  }
  hub.mapping()->set_has_weights(true);
  set_copies(hub, copied);
}

bool HubCheckpoints::set_copies(Hub& hub, bool copies) {
  const Session::Lock lock = session_.enter();
  return std::exchange(hub.copies, copies);
}

// For some keys from `first` on. Planes need the same keys on all trainers: a plane of a key waits
// for all that push it. Other keys are as many as there is memory for.
void HubCheckpoints::allocate_blocks(const Hub& hub, const KeyRounds& rounds, std::size_t first,
                                     std::vector<std::byte*>& blocks) {
  std::size_t bytes = 0;
  for (std::size_t number = first; number < hub.size() && blocks.size() < kMostKeysPerRound;
       ++number) {
    const Hub::Key& key = hub.key_by_name(number);
    bytes += hub.bytes_to_restore(key) + key.bytes;
    if (!blocks.empty() && bytes > kMostBytesPerRound) return;
    void* const block = session_.allocate(rounds.block_bytes(number));
    if (block == nullptr && !rounds.has_planes() && !blocks.empty()) return;
    if (block == nullptr) session_.require(session_.last_failure().code);
    blocks.push_back(static_cast<std::byte*>(block));
    rounds.begin(number, blocks.back());
  }
}

// Of the keys from `first` on that have it. What has failed one fails all, so that the hub can be
// freed then.
void HubCheckpoints::push_plane(const KeyRounds& rounds, Hub& hub, unsigned plane,
                                std::size_t first, const std::vector<std::byte*>& blocks,
                                bool& has_begun, const Deadline& deadline) {
  std::vector<std::pair<std::size_t, std::uint64_t>> pushed;  // keys and requests
  pushed.reserve(blocks.size());
  try {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const std::size_t number = first + i;
      if (plane >= rounds.planes(number)) continue;
      std::uint64_t request = 0;
      session_.require(client_.push(hub, rounds.wish(number, plane, blocks[i]), request));
      pushed.emplace_back(number, request);
      has_begun = true;
    }
    for (const auto& [number, request] : pushed) {
      session_.require(session_.wait(request, deadline.poll_timeout()));
      rounds.take(number, plane);
    }
  } catch (...) {
    for (const auto& [number, request] : pushed) session_.give_up(request, deadline);
    throw;
  }
}

}  // namespace gradcube::trainer
