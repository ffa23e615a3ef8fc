#include "control/hub/chunks.h"

#include <algorithm>
#include <fmt/format.h>

#include "control/base/errors.h"

namespace gradcube::control::hub {

std::uint64_t default_chunk_bytes(std::span<const HubKey> keys, std::size_t executors) {
  constexpr std::uint64_t kEach = 32;  // chunks, whose lengths then differ little in sum
  constexpr std::uint64_t kStep = 4096;
  std::uint64_t bytes = 0;
  for (const HubKey& key : keys) bytes += key.bytes();
  const std::uint64_t wanted = bytes / (kEach * executors);
  return std::clamp((wanted + kStep - 1) / kStep * kStep, kDefaultChunkBytes,
                    kMostDefaultChunkBytes);
}

void require_chunk_bytes(std::uint64_t chunk_bytes, std::string_view where) {
  if (chunk_bytes >= kLeastChunkBytes && chunk_bytes <= kMostChunkBytes &&
      chunk_bytes % kChunkStep == 0) {
    return;
  }
  throw UsageError(
      fmt::format("{}: chunks of {} bytes; expected a multiple of {} from {} to {}, for example "
                  "32Ki",
                  where, chunk_bytes, kChunkStep, kLeastChunkBytes, kMostChunkBytes));
}

std::vector<Chunk> cut_into_chunks(std::span<const HubKey> keys, std::uint64_t chunk_bytes,
                                   std::string_view where) {
  require_chunk_bytes(chunk_bytes, where);
  std::uint64_t count = 0;
  for (const HubKey& key : keys) count += (key.bytes() + chunk_bytes - 1) / chunk_bytes;
  if (count > kMostChunks) {
    throw UsageError(fmt::format("{}: {} chunks of {} bytes; expected at most {}: cut larger ones",
                                 where, count, chunk_bytes, kMostChunks));
  }
  std::vector<Chunk> chunks;
  chunks.reserve(count);
  for (std::uint32_t k = 0; k < keys.size(); ++k) {
    const std::uint64_t size = aggregation::element_bytes(keys[k].type);
    const std::uint64_t whole = chunk_bytes / size;
    for (std::uint64_t first = 0; first < keys[k].elements; first += whole) {
      const std::uint64_t elements = std::min(whole, keys[k].elements - first);
      chunks.push_back({k, first, elements, elements * size});
    }
  }
  return chunks;
}

}  // namespace gradcube::control::hub
