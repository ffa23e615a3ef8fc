#include "dataplane/fabric/emulated/impairments.h"

#include <algorithm>
#include <cassert>

namespace gradcube::dataplane {

namespace {

// Draws have 63 bits, so that a probability of 1 has a limit that no draw reaches.
constexpr int kDrawBits = 63;

bool hits(double probability, SeededRandom& random) {
  const double limit = probability * static_cast<double>(std::uint64_t{1} << kDrawBits);
  return (random.next() >> (64 - kDrawBits)) < static_cast<std::uint64_t>(limit);
}

}  // namespace

FrameFault draw_fault(const Impairments& impairments, SeededRandom& random) {
  FrameFault fault;
  fault.lost = hits(impairments.loss, random);
  fault.duplicated = hits(impairments.duplicate, random);
  fault.reordered = hits(impairments.reorder, random);
  fault.corrupted = hits(impairments.corrupt, random);
  fault.details = random.next();
  return fault;
}

void ImpairmentPublisher::publish(std::size_t port, const Impairments& impairments) {
  assert(port < current_.size());
  assert(std::ranges::all_of(control::kProbabilities, [&](const control::Probability& one) {
    return impairments.*one.member >= 0 && impairments.*one.member <= 1;
  }));
  const std::lock_guard<std::mutex> lock(mutex_);
  current_[port] = impairments;
  version_.fetch_add(1, std::memory_order_relaxed);
}

Impairments ImpairmentPublisher::current(std::size_t port) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return current_.at(port);
}

bool ImpairmentPublisher::refresh(std::uint64_t& seen,
                                  std::vector<Impairments>& impairments) const {
  if (version_.load(std::memory_order_relaxed) == seen) return false;
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  seen = version_.load(std::memory_order_relaxed);
  impairments = current_;
  return true;
}

}  // namespace gradcube::dataplane
