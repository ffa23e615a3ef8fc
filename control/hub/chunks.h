// Keys cut into chunks (PHub, section 3.2.3): what is sent, added and optimized as one. A chunk is
// of one key, and the last one of a key may be smaller. Chunks are numbered by key and place.
#ifndef GRADCUBE_CONTROL_HUB_CHUNKS_H_
#define GRADCUBE_CONTROL_HUB_CHUNKS_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "control/checkpoint/hub_key.h"

namespace gradcube::control::hub {

inline constexpr std::uint64_t kDefaultChunkBytes = 32 << 10;  // PHub's best, Figure 16
inline constexpr std::uint64_t kMostDefaultChunkBytes = 1 << 20;
inline constexpr std::uint64_t kLeastChunkBytes = 256;
inline constexpr std::uint64_t kMostChunkBytes = 4 << 20;
inline constexpr std::uint64_t kMostChunks = 1 << 22;
inline constexpr std::uint64_t kChunkStep = 64;  // so that no two chunks share a line of a cache

struct Chunk {
  std::uint32_t key = 0;  // its number in the ordered keys
  std::uint64_t first_element = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;

  bool operator==(const Chunk&) const = default;
};

// For who names none: as many chunks as each executor needs to have its share, and no more, because
// each is cut into a piece for every server, and short pieces make short packets. Between PHub's
// best, which was found where a chunk has one owner, and 1 MiB.
std::uint64_t default_chunk_bytes(std::span<const HubKey> keys, std::size_t executors);

// Throws a UsageError that begins with `where` unless it is a multiple of kChunkStep within
// [kLeastChunkBytes, kMostChunkBytes].
void require_chunk_bytes(std::uint64_t chunk_bytes, std::string_view where);

// Of keys that ordered_keys() has returned. Throws a UsageError that begins with `where` for a
// length that require_chunk_bytes() refuses, and for more chunks than kMostChunks.
std::vector<Chunk> cut_into_chunks(std::span<const HubKey> keys, std::uint64_t chunk_bytes,
                                   std::string_view where);

}  // namespace gradcube::control::hub

#endif  // GRADCUBE_CONTROL_HUB_CHUNKS_H_
