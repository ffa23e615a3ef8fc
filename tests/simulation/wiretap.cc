#include "tests/simulation/wiretap.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "protocol/wire.h"
#include "tests/support/chance.h"

namespace gradcube::simulation {

namespace {

constexpr std::size_t kEthernetBytes = 14;

dataplane::PacketPoolOptions pool_of(std::uint32_t mtu) {
  dataplane::PacketPoolOptions options;
  options.name = "wiretap";
  options.count = 1023;
  options.frame_bytes = kEthernetBytes + mtu;
  options.cache = 0;
  return options;
}

std::vector<std::uint8_t> bytes_of(const rte_mbuf* packet) {
  std::vector<std::uint8_t> bytes(packet->pkt_len);
  const void* whole = rte_pktmbuf_read(packet, 0, packet->pkt_len, bytes.data());
  if (whole != bytes.data()) std::memcpy(bytes.data(), whole, bytes.size());
  return bytes;
}

}  // namespace

Attack drawn_attack(std::uint64_t seed) {
  dataplane::SeededRandom random(dataplane::SeededRandom(seed + 3).next());
  Attack attack;
  if (random.below(2) != 0) return attack;
  const auto probability = [&random](double most) {
    return random.below(3) == 0 ? 0 : most * static_cast<double>(1 + random.below(100)) / 100;
  };
  constexpr std::uint64_t kMillisecond = 1'000'000;
  attack.from = static_cast<std::int64_t>(random.below(20 * kMillisecond));
  attack.until =
      attack.from + static_cast<std::int64_t>(kMillisecond + random.below(2'000 * kMillisecond));
  attack.cuts = probability(0.02);
  attack.delays = probability(0.02);
  attack.sends = probability(1);
  return attack;
}

Wiretap::Wiretap(const Attack& attack, std::uint64_t seed, std::uint32_t mtu,
                 dataplane::Clock& clock)
    : attack_(attack), random_(seed), clock_(clock), pool_(pool_of(mtu)) {}

std::uint16_t Wiretap::touch(rte_mbuf** packets, std::uint16_t received, std::uint16_t room) {
  const std::int64_t now = clock_.now();
  if (!attack_.any() || now < attack_.from) return received;
  const bool is_over = now >= attack_.until;
  std::uint16_t count = 0;
  for (std::uint16_t i = 0; i < received; ++i) {
    if (!is_over && keeps_back(packets[i])) {
      rte_pktmbuf_free(packets[i]);
      continue;
    }
    packets[count++] = packets[i];
    if (is_over) continue;
    note(packets[i]);
    if (left_ != 0 && hits(random_, attack_.sends)) {
      --left_;
      ++owed_;
    }
  }
  for (auto each = delayed_.begin(); each != delayed_.end() && count < room;) {
    if (now < each->until && !is_over) {
      ++each;
      continue;
    }
    if (!put(each->bytes, packets, count)) break;
    each = delayed_.erase(each);
  }
  if (is_over) owed_ = 0;
  for (; owed_ != 0 && count < room && !heard_.empty(); --owed_) {
    if (!put(next_frame(), packets, count)) break;
  }
  return count;
}

bool Wiretap::keeps_back(const rte_mbuf* packet) {
  if (hits(random_, attack_.cuts)) {
    ++done_["kept"];
    note(packet);  // he may send it later
    return true;
  }
  if (!hits(random_, attack_.delays)) return false;
  ++done_["delayed"];
  delayed_.push_back(
      {clock_.now() + static_cast<std::int64_t>(random_.below(kLongestDelay)), bytes_of(packet)});
  return true;
}

// Most of what he keeps is old.
void Wiretap::note(const rte_mbuf* packet) {
  if (heard_.size() < kMostKept) {
    heard_.push_back(bytes_of(packet));
  } else if (random_.below(10) == 0) {
    heard_[random_.below(kMostKept)] = bytes_of(packet);
  }
}

Wiretap::Bytes Wiretap::next_frame() {
  const Bytes& frame = random_.below(2) == 0 ? heard_.back() : heard_[random_.below(heard_.size())];
  if (random_.below(3) == 0) {
    ++done_["again"];
    return frame;
  }
  return forged(frame);
}

// What looks like the frame and is not.
Wiretap::Bytes Wiretap::forged(const Bytes& frame) {
  Bytes forged = frame;
  const std::size_t begin = std::min(protocol::kOuterHeaderBytes, frame.size() - 1);
  switch (random_.below(4)) {
    case 0: {
      // In the headers mostly.
      const std::size_t end =
          random_.below(2) == 0 ? frame.size() : std::min(frame.size(), begin + 60);
      const std::uint64_t changes = 1 + random_.below(3);
      for (std::uint64_t i = 0; i < changes; ++i) {
        forged[begin + random_.below(end - begin)] ^=
            static_cast<std::uint8_t>(1U << random_.below(8));
      }
      ++done_["changed"];
      break;
    }
    case 1: {
      const Bytes& other = heard_[random_.below(heard_.size())];
      const std::size_t end = std::min(frame.size(), begin + 50);
      if (other.size() != frame.size() || end == frame.size()) {
        forged.back() ^= 1;
      } else {
        std::copy(other.begin() + static_cast<std::ptrdiff_t>(end), other.end(),
                  forged.begin() + static_cast<std::ptrdiff_t>(end));
      }
      ++done_["spliced"];
      break;
    }
    case 2:
      forged.resize(random_.below(frame.size()));
      ++done_["cut short"];
      break;
    default:
      for (std::size_t at = begin; at < forged.size(); ++at) {
        forged[at] = static_cast<std::uint8_t>(random_.next());
      }
      ++done_["made up"];
      break;
  }
  return forged;
}

// False: there is no memory for it now.
bool Wiretap::put(const Bytes& bytes, rte_mbuf** packets, std::uint16_t& count) {
  rte_mbuf* packet = pool_.allocate();
  if (packet == nullptr) return false;
  char* room = rte_pktmbuf_append(packet, static_cast<std::uint16_t>(bytes.size()));
  if (room == nullptr) {
    rte_pktmbuf_free(packet);
    return true;
  }
  if (!bytes.empty()) std::memcpy(room, bytes.data(), bytes.size());
  packets[count++] = packet;
  return true;
}

}  // namespace gradcube::simulation
