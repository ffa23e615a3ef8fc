#include "trainer/src/session/comparison.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace gradcube::trainer {
namespace {

struct Digest {
  std::uint64_t hash;
  std::uint64_t bytes;
  bool operator==(const Digest&) const = default;
};
static_assert(sizeof(Digest) == kDigestBytes);

// Ranks whose memory has the same bytes.
struct Party {
  Digest digest;
  std::vector<std::size_t> ranks;
};

constexpr std::size_t kMostNamed = 16;

// "rank 3", "ranks 1, 2 and 5", "ranks 0, 1, ... and 84 more".
std::string text_of(const std::vector<std::size_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  const std::size_t named = std::min(ranks.size(), kMostNamed);
  const bool is_whole = named == ranks.size();
  for (std::size_t i = 0; i < named; ++i) {
    if (i != 0) text += is_whole && i + 1 == named ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  return is_whole ? text : text + " and " + std::to_string(ranks.size() - named) + " more";
}

std::string length_of(const Digest& digest) {
  return " (" + std::to_string(digest.bytes) + " bytes)";
}

// The largest first; of equal ones that of the lowest rank.
std::vector<Party> parties_of(std::span<const std::byte> digests) {
  std::vector<Party> parties;
  for (std::size_t rank = 0; rank < digests.size() / kDigestBytes; ++rank) {
    Digest digest{};
    std::memcpy(&digest, digests.data() + rank * kDigestBytes, kDigestBytes);
    auto party = std::find_if(parties.begin(), parties.end(),
                              [&](const Party& one) { return one.digest == digest; });
    if (party == parties.end()) party = parties.insert(party, {digest, {}});
    party->ranks.push_back(rank);
  }
  std::stable_sort(parties.begin(), parties.end(), [](const Party& one, const Party& other) {
    return one.ranks.size() > other.ranks.size();
  });
  return parties;
}

// How many ranks the parties behind the first ones have.
std::string unnamed(const std::vector<Party>& parties, std::size_t named) {
  std::size_t ranks = 0;
  for (std::size_t i = named; i < parties.size(); ++i) ranks += parties[i].ranks.size();
  return ranks == 0 ? "" : " and " + std::to_string(ranks) + " more ranks";
}

bool all_are_the_same(std::span<const std::byte> digests) {
  return std::equal(digests.begin() + kDigestBytes, digests.end(), digests.begin());
}

}  // namespace

void write_digest(std::span<const std::byte> memory, std::byte* to) {
  const Digest digest{XXH3_64bits(memory.data(), memory.size()), memory.size()};
  std::memcpy(to, &digest, sizeof digest);
}

std::string find_difference(std::span<const std::byte> digests) {
  if (all_are_the_same(digests)) return "";
  const std::vector<Party> parties = parties_of(digests);
  const std::size_t ranks = digests.size() / kDigestBytes;
  const Party& largest = parties.front();
  if (2 * largest.ranks.size() > ranks) {
    std::string text;
    const std::size_t named = std::min(parties.size(), kMostNamed);
    for (std::size_t i = 1; i < named; ++i) {
      const Digest& digest = parties[i].digest;
      text += (i == 1 ? "" : ", ") + text_of(parties[i].ranks);
      if (digest.bytes != largest.digest.bytes) text += length_of(digest);
    }
    return text + unnamed(parties, named) +
           (ranks - largest.ranks.size() == 1 ? " differs" : " differ") + " from the other " +
           std::to_string(largest.ranks.size()) + ", which have " +
           std::to_string(largest.digest.bytes) + " bytes";
  }
  std::string text = "there are " + std::to_string(parties.size()) + " contents, that of ";
  const std::size_t named = std::min(parties.size(), kMostNamed);
  for (std::size_t i = 0; i < named; ++i) {
    text += (i == 0 ? "" : ", of ") + text_of(parties[i].ranks) + length_of(parties[i].digest);
  }
  return text + unnamed(parties, named);
}

}  // namespace gradcube::trainer
