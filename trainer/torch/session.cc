#include "trainer/torch/session.h"

#include <stdexcept>

#include "trainer/torch/of_process.h"

namespace gradcube::pytorch {

Session::Session(const Membership& wanted) : owner_(process_number()) {
  gradcube_options options = GRADCUBE_OPTIONS_INIT;
  options.rank = wanted.rank;
  options.trainers_per_server = wanted.trainers_per_server;
  options.reproducible = wanted.reproducible ? 1 : 0;
  options.weight = wanted.weight;
  std::vector<gradcube_lane> lanes;
  for (unsigned lane = 0; lane < wanted.lanes; ++lane) {
    lanes.push_back({wanted.algorithm.c_str(), static_cast<int>(lane)});
  }
  options.lanes = lanes.data();
  options.lane_count = lanes.size();
  if (!wanted.servers.empty()) {
    options.members = wanted.servers.data();
    options.member_count = wanted.servers.size();
  }
  if (gradcube_open(wanted.socket.c_str(), wanted.job.c_str(), &options, &session_) !=
      GRADCUBE_OK) {
    throw std::runtime_error(gradcube_last_error(nullptr));
  }
}

Session::~Session() { gradcube_close(session_); }

bool Session::is_own() const { return process_number() == owner_; }

void* Session::allocate(std::size_t bytes) {
  if (!is_own()) return nullptr;
  void* block = gradcube_alloc(session_, bytes);
  if (block == nullptr) return nullptr;
  const std::lock_guard<std::mutex> lock(mutex_);
  blocks_[reinterpret_cast<std::uintptr_t>(block)] = bytes;
  return block;
}

void Session::release(void* block) {
  if (!is_own()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    blocks_.erase(reinterpret_cast<std::uintptr_t>(block));
  }
  gradcube_free(session_, block);
}

bool Session::is_shared(const void* buffer, std::size_t bytes) const {
  if (bytes == 0 || !is_own()) return false;
  const auto begin = reinterpret_cast<std::uintptr_t>(buffer);
  const std::lock_guard<std::mutex> lock(mutex_);
  auto block = blocks_.upper_bound(begin);
  if (block == blocks_.begin()) return false;
  --block;
  const std::uintptr_t offset = begin - block->first;
  return offset % kAlignment == 0 && offset <= block->second && bytes <= block->second - offset;
}

}  // namespace gradcube::pytorch
