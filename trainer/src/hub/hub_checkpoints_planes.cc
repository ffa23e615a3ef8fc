// How trainers save what their hub's aggregator has, and load it: by planes of keys
// (control/checkpoint/hub_planes.h), a few keys at a time.

#include <cstring>
#include <utility>

#include "control/checkpoint/hub_planes.h"
#include "trainer/src/base/failure.h"
#include "trainer/src/hub/hub_checkpoints.h"
#include "trainer/src/hub/hub_parts.h"
#include "trainer/src/hub/hub_saving.h"
#include "trainer/src/hub/plane_pushes.h"

namespace gradcube::trainer {
namespace {

using aggregation::DataType;

constexpr std::size_t kMostKeysPerRound = 64;
constexpr std::size_t kMostBytesPerRound = std::size_t{64} << 20;

DataType type_of(const Hub::Key& key) { return static_cast<DataType>(key.dtype); }

unsigned planes_of(const Hub& hub, const Hub::Key& key) {
  return control::hub_planes(type_of(key), aggregation::optimizer_states(hub.optimizer().rule));
}

// Rank 0's copy grows by the plane that is in the place of the key's weights.
class PlanesSaved final : public PlanePushes {
 public:
  PlanesSaved(const Hub& hub, HubCopy* copy)
      : PlanePushes(shared::PushKind::saved),
        hub_(hub),
        copy_(copy),
        arrays_(1 + aggregation::optimizer_states(hub.optimizer().rule)) {
    if (copy_ == nullptr) return;
    for (const Hub::Owned& all : hub.to_restore()) {
      copy_->ranges.push_back({all.key, all.first_element, all.elements});
      for (std::size_t i = 0; i < arrays_; ++i) copy_->arrays.emplace_back(all.elements);
    }
  }

  std::size_t block_bytes(std::size_t number) const override {
    return hub_.key_by_name(number).bytes;
  }
  void take_end(std::size_t number, unsigned plane) const override {
    if (copy_ == nullptr) return;
    const Hub::Key& key = hub_.key_by_name(number);
    const bool whole = type_of(key) == DataType::float32;
    if (plane == 0 && !whole) return;  // rounded from what came before
    const unsigned array = plane == 0 ? 0 : control::array_of_plane(type_of(key), plane);
    float* to = copy_->arrays[number * arrays_ + array].data();
    if (whole) {
      std::memcpy(to, hub_.weights(key), key.bytes);
    } else {
      control::write_halves(to, plane, key.elements, hub_.weights(key));
    }
  }

 private:
  const Hub& hub_;
  HubCopy* copy_;  // null: another trainer's
  std::size_t arrays_;
};

// What rank 0 has read of its files lies in its block as shared::restored_array() says, with room
// for halves of arrays behind it.
class PlanesLoaded final : public PlanePushes {
 public:
  PlanesLoaded(Session& session, const Hub& hub, HubParts* parts)
      : PlanePushes(shared::PushKind::loaded), session_(session), hub_(hub), parts_(parts) {}

  bool has_plane() const override { return parts_ != nullptr; }
  std::uint64_t steps(std::size_t number) const override {
    return parts_ == nullptr ? 0 : parts_->steps(number);
  }
  std::size_t block_bytes(std::size_t number) const override {
    const Hub::Key& key = hub_.key_by_name(number);
    return parts_ == nullptr ? key.bytes : hub_.bytes_to_restore(key) + key.bytes;
  }
  void begin(std::size_t number, std::byte* block) const override {
    if (parts_ != nullptr) parts_->read_key(session_, number, block);
  }
  const void* buffer(std::size_t number, unsigned plane, std::byte* block) const override {
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

 private:
  Session& session_;
  const Hub& hub_;
  HubParts* parts_;  // null: another trainer's
};

}  // namespace

std::optional<HubCopy> HubCheckpoints::save_planes(Hub& hub, const Deadline& deadline) {
  // The aggregator saves nothing before all trainers have pushed as often.
  if (hub.is_asynchronous()) gather(session_, {.step = Step::save_planes}, deadline);
  std::optional<HubCopy> copy;
  if (has_files(hub)) copy.emplace();
  push_planes(hub, PlanesSaved(hub, copy.has_value() ? &*copy : nullptr), deadline);
  return copy;
}

void HubCheckpoints::load_planes(Hub& hub, HubParts* parts, const Deadline& deadline) {
  push_planes(hub, PlanesLoaded(session_, hub, parts), deadline);
}

void HubCheckpoints::push_planes(Hub& hub, const PlanePushes& pushes, const Deadline& deadline) {
  const bool copied = set_copies(hub, true);
  hub.mapping()->set_has_weights(false);
  std::vector<std::byte*> blocks;
  const auto free_all = [&] {
    for (std::byte* block : blocks) session_.free(block);
    blocks.clear();
  };
  try {
    for (std::size_t first = 0; first < hub.size(); first += blocks.size(), free_all()) {
      // The same keys on all trainers: a plane of a key waits for all that push it.
      std::size_t bytes = 0;
      for (std::size_t number = first; number < hub.size() && blocks.size() < kMostKeysPerRound;
           ++number) {
        const Hub::Key& key = hub.key_by_name(number);
        bytes += hub.bytes_to_restore(key) + key.bytes;
        if (!blocks.empty() && bytes > kMostBytesPerRound) break;
        blocks.push_back(session_.require_memory(pushes.block_bytes(number)));
        pushes.begin(number, blocks.back());
      }
      for (unsigned plane = control::kMostHubPlanes; plane-- > 0;) {
        push_plane(hub, pushes, plane, first, blocks, deadline);
      }
    }
  } catch (...) {
    free_all();
    const Session::Lock lock = session_.enter();
    hub.torn = true;
    hub.copies = copied;
    hub.mapping()->close_shown();
    throw;
  }
  hub.mapping()->set_has_weights(true);
  set_copies(hub, copied);
}

bool HubCheckpoints::set_copies(Hub& hub, bool copies) {
  const Session::Lock lock = session_.enter();
  return std::exchange(hub.copies, copies);
}

// Of the keys from `first` on that have it.
void HubCheckpoints::push_plane(Hub& hub, const PlanePushes& pushes, unsigned plane,
                                std::size_t first, const std::vector<std::byte*>& blocks,
                                const Deadline& deadline) {
  std::vector<std::pair<std::size_t, std::uint64_t>> pushed;  // keys and requests
  const auto fail_with = [&](int code) {
    const std::string why = session_.last_failure().message;
    // What has failed one fails all, so that the hub can be freed then.
    for (const auto& [number, request] : pushed) session_.give_up(request, deadline);
    throw Failure(code, why);
  };
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::size_t number = first + i;
    if (plane >= planes_of(hub, hub.key_by_name(number))) continue;
    std::uint64_t request = 0;
    if (const int code = client_.push(hub,
                                      {.kind = pushes.kind(),
                                       .key = hub.place_by_name(number),
                                       .buffer = pushes.buffer(number, plane, blocks[i]),
                                       .steps = pushes.steps(number),
                                       .plane = plane,
                                       .has_plane = pushes.has_plane()},
                                      request);
        code != GRADCUBE_OK) {
      fail_with(code);
    }
    pushed.emplace_back(number, request);
  }
  for (const auto& [number, request] : pushed) {
    if (const int code = session_.wait(request, deadline.poll_timeout()); code != GRADCUBE_OK) {
      fail_with(code);
    }
    pushes.take_end(number, plane);
  }
}

}  // namespace gradcube::trainer
