#include "dataplane/host/packet_memory.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace gradcube::dataplane {

namespace {

PacketPoolOptions segment_pool(const PacketMemoryOptions& options) {
  PacketPoolOptions pool;
  pool.name = "segments-" + options.name;
  pool.numa_node = options.numa_node;
  pool.count = kPacketsPerSegment * options.segments + options.idle;
  pool.at_start = options.idle;
  return pool;
}

PacketPoolOptions answer_pool(const PacketMemoryOptions& options) {
  PacketPoolOptions pool;
  pool.name = "answers-" + options.name;
  pool.numa_node = options.numa_node;
  pool.count = options.answers;
  return pool;
}

PacketPoolOptions received_pool(const PacketMemoryOptions& options) {
  PacketPoolOptions pool;
  pool.name = "received-" + options.name;
  pool.numa_node = options.numa_node;
  pool.at_start = options.received_beside + options.idle;
  pool.count = std::max(options.segments, options.received_segments) + pool.at_start;
  pool.frame_bytes = options.received_frame_bytes;
  return pool;
}

}  // namespace

PacketReservation& PacketReservation::operator=(PacketReservation&& other) noexcept {
  if (this == &other) return *this;
  release();
  share_ = std::exchange(other.share_, nullptr);
  segments_ = std::exchange(other.segments_, 0);
  committed_ = std::exchange(other.committed_, false);
  return *this;
}

void PacketReservation::commit(std::uint32_t segments) {
  if (share_ == nullptr || committed_) return;
  share_->reserved_ -= segments_ - segments;
  segments_ = segments;
  if (share_->memory_ == nullptr) return;
  share_->memory_->commit(segments);
  committed_ = true;
}

void PacketReservation::release() {
  if (share_ == nullptr) return;
  share_->reserved_ -= segments_;
  if (committed_) share_->memory_->uncommit(segments_);
  share_ = nullptr;
  segments_ = 0;
  committed_ = false;
}

std::optional<PacketReservation> PacketShare::reserve(std::uint32_t segments) {
  if (segments > free()) return std::nullopt;
  reserved_ += segments;
  return PacketReservation(*this, segments);
}

std::uint64_t PacketShare::bytes_of_segment() const {
  return memory_ == nullptr ? 0 : memory_->bytes_of_segment();
}

PacketMemory::PacketMemory(const PacketMemoryOptions& options, Poller& poller)
    : poller_(poller),
      most_(options.segments),
      idle_(options.idle),
      received_beside_(options.received_beside + options.idle),
      segments_(segment_pool(options)),
      answers_(answer_pool(options)) {
  if (options.received_frame_bytes == 0) return;
  received_ = std::make_unique<PacketPool>(received_pool(options));
}

std::uint64_t PacketMemory::reserved() const {
  return std::accumulate(
      shares_.begin(), shares_.end(), std::uint64_t{0},
      [](std::uint64_t sum, const PacketShare& share) { return sum + share.reserved(); });
}

// The memory is taken from the host on this thread; the poller only stands still while the chunk's
// packets are put into the pool.
void PacketMemory::commit(std::uint32_t segments) {
  grow(segments_, kPacketsPerSegment * (committed_ + segments) + idle_);
  for (PacketMemory* memory : receiving_) {
    if (memory->received_ == nullptr) continue;
    memory->grow(*memory->received_, memory->receivable_ + segments + memory->received_beside_);
  }
  committed_ += segments;
  for (PacketMemory* memory : receiving_) memory->receivable_ += segments;
}

void PacketMemory::uncommit(std::uint32_t segments) {
  committed_ -= segments;
  for (PacketMemory* memory : receiving_) memory->receivable_ -= segments;
}

void PacketMemory::receive_for_each_other(const std::vector<PacketMemory*>& memories) {
  for (PacketMemory* memory : memories) memory->receiving_ = memories;
}

void PacketMemory::make_ready(const std::vector<PacketMemory*>& memories, std::uint32_t segments) {
  const auto of = [segments](const PacketMemory& memory) {
    return std::min(segments, memory.most_);
  };
  // What a pool has grown stays.
  for (PacketMemory* memory : memories) memory->commit(of(*memory));
  for (PacketMemory* memory : memories) memory->uncommit(of(*memory));
}

void PacketMemory::grow(PacketPool& pool, std::uint32_t packets) {
  while (pool.made() < packets) {
    PacketPool::Chunk chunk = pool.make_chunk(packets - pool.made());
    std::memset(chunk.memory.get(), 0, chunk.bytes);
    poller_.call([&] { pool.add(std::move(chunk)); });
  }
}

std::uint64_t PacketMemory::bytes_of_segment() const {
  return kPacketsPerSegment * segments_.bytes_of_packet() +
         (received_ == nullptr ? 0 : receiving_.size() * received_->bytes_of_packet());
}

std::uint64_t PacketMemory::bytes() const {
  return segments_.bytes() + answers_.bytes() + (received_ == nullptr ? 0 : received_->bytes());
}

}  // namespace gradcube::dataplane
