#include "dataplane/links/port_loads.h"

namespace gradcube::dataplane {

namespace {

constexpr std::uint64_t kBesideAFrame = 24;  // preamble, FCS and gap

std::uint64_t bits(std::uint64_t bytes, std::uint64_t packets) {
  return 8 * (bytes + packets * kBesideAFrame);
}

}  // namespace

std::uint64_t PortLoads::bits_sent(const Port& port) {
  const PortCounts counts = port.counts();
  return bits(counts.sent_bytes, counts.sent_packets);
}

std::uint64_t PortLoads::bits_received(const Port& port) {
  const PortCounts counts = port.counts();
  return bits(counts.received_bytes, counts.received_packets);
}

void PortLoads::sample(protocol::Nanoseconds now) {
  const protocol::Nanoseconds passed = now - sampled_at_;
  if (passed < kShortest) return;
  sampled_at_ = now;
  const double weight = static_cast<double>(passed) / static_cast<double>(passed + kAverage);
  const auto take = [&](Direction& direction, std::uint64_t in_all) {
    const double carried = static_cast<double>(in_all - direction.bits) *
                           protocol::kNanosecondsPerSecond / static_cast<double>(passed);
    direction.bits = in_all;
    direction.average += weight * (carried - direction.average);
  };
  for (Load& load : ports_) {
    if (load.bits_per_second == 0) continue;
    take(load.out, bits_sent(*load.port));
    take(load.in, bits_received(*load.port));
  }
}

std::uint64_t PortLoads::left(const Load& load, const Direction& direction) {
  if (load.bits_per_second == 0) return UINT64_MAX;
  const auto carried = static_cast<std::uint64_t>(direction.average);
  return load.bits_per_second > carried ? load.bits_per_second - carried : 0;
}

}  // namespace gradcube::dataplane
