#include "dataplane/fabric/emulated/impairments.h"

#include <stdexcept>
#include <string>

#include "dataplane/fabric/frame_fields.h"

namespace gradcube::dataplane {

namespace {

// Draws have 63 bits, so that a probability of 1 has a limit that no draw reaches.
constexpr int kDrawBits = 63;

std::uint64_t limit_of(double probability, const char* name) {
  if (!(probability >= 0.0 && probability <= 1.0)) {
    throw std::invalid_argument(std::string("the probability of ") + name +
                                " must be within 0 and 1, not " + std::to_string(probability));
  }
  return static_cast<std::uint64_t>(probability *
                                    static_cast<double>(std::uint64_t{1} << kDrawBits));
}

bool hits(std::uint64_t limit, SeededRandom& random) {
  return (random.next() >> (64 - kDrawBits)) < limit;
}

}  // namespace

ImpairmentLimits limits_of(const Impairments& impairments) {
  ImpairmentLimits limits;
  limits.loss = limit_of(impairments.loss, "loss");
  limits.duplicate = limit_of(impairments.duplicate, "duplication");
  limits.reorder = limit_of(impairments.reorder, "reordering");
  limits.corrupt = limit_of(impairments.corrupt, "corruption");
  if (impairments.mtu != 0) limits.frame_bytes = impairments.mtu + kEthernetBytes;
  limits.up = impairments.up ? 1 : 0;
  return limits;
}

FrameFault draw_fault(const ImpairmentLimits& limits, SeededRandom& random) {
  FrameFault fault;
  fault.lost = hits(limits.loss, random);
  fault.duplicated = hits(limits.duplicate, random);
  fault.reordered = hits(limits.reorder, random);
  fault.corrupted = hits(limits.corrupt, random);
  fault.details = random.next();
  return fault;
}

ImpairmentPublisher::ImpairmentPublisher(std::size_t ports) : current_(ports), words_(ports) {}

void ImpairmentPublisher::publish(std::size_t port, const Impairments& impairments) {
  if (port >= words_.size()) {
    throw std::invalid_argument("the switch has no port " + std::to_string(port));
  }
  const ImpairmentLimits limits = limits_of(impairments);
  const std::lock_guard<std::mutex> lock(writers_);
  current_[port] = impairments;
  const std::uint64_t version = version_.load(std::memory_order_relaxed);
  version_.store(version + 1, std::memory_order_relaxed);
  // Release, and acquire in read(): a reader that meets one of these words also meets the odd
  // version before it.
  Words& words = words_[port];
  words.loss.store(limits.loss, std::memory_order_release);
  words.duplicate.store(limits.duplicate, std::memory_order_release);
  words.reorder.store(limits.reorder, std::memory_order_release);
  words.corrupt.store(limits.corrupt, std::memory_order_release);
  words.frame_bytes.store(limits.frame_bytes, std::memory_order_release);
  words.up.store(limits.up, std::memory_order_release);
  version_.store(version + 2, std::memory_order_release);
}

Impairments ImpairmentPublisher::current(std::size_t port) const {
  const std::lock_guard<std::mutex> lock(writers_);
  return current_.at(port);
}

bool ImpairmentPublisher::read(std::uint64_t version, std::uint64_t& seen,
                               std::vector<ImpairmentLimits>& limits) const {
  if ((version & 1) != 0) return false;
  // Each port's words are taken as one, and taken over only when no writer has come between.
  for (std::size_t port = 0; port < words_.size(); ++port) {
    const Words& words = words_[port];
    ImpairmentLimits fresh;
    fresh.loss = words.loss.load(std::memory_order_acquire);
    fresh.duplicate = words.duplicate.load(std::memory_order_acquire);
    fresh.reorder = words.reorder.load(std::memory_order_acquire);
    fresh.corrupt = words.corrupt.load(std::memory_order_acquire);
    fresh.frame_bytes = words.frame_bytes.load(std::memory_order_acquire);
    fresh.up = words.up.load(std::memory_order_acquire);
    if (version_.load(std::memory_order_relaxed) != version) return false;
    limits[port] = fresh;
  }
  seen = version;
  return true;
}

}  // namespace gradcube::dataplane
