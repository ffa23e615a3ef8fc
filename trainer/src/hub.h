// One hub as this trainer sees it: its keys, where their weights lie, and which of them are being
// pushed.
//
// Keys have two numbers: their place in the trainer's own list, and that among all ordered by name,
// which every trainer and daemon knows.
//
// Guarded by the session's mutex, but for what never changes. The mapping of the weights is read by
// any thread, between a push's end and the next push of its key.
#ifndef GRADCUBE_TRAINER_SRC_HUB_H_
#define GRADCUBE_TRAINER_SRC_HUB_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gradcube/gradcube_hub.h"

namespace gradcube::trainer {

class Hub {
 public:
  struct Key {
    std::string name;
    std::size_t elements = 0;
    int dtype = 0;
    std::uint32_t number = 0;  // by name
    std::size_t begin = 0;     // in the memory of the weights
    std::size_t bytes = 0;
    bool pushed = false;  // the end of a push of it was not reported
  };

  // Throws Failure for settings that are none. number: 1, 2, 3, ... of the session's hubs.
  Hub(const gradcube_hub_settings& given, std::uint32_t number);
  ~Hub();
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  std::uint32_t number() const { return number_; }
  unsigned lane() const { return lane_; }
  std::size_t size() const { return keys_.size(); }
  // By the trainer's own list.
  Key& key(std::size_t place) { return keys_[place]; }
  // Of all keys together, as daemons lay them out.
  std::size_t bytes() const { return bytes_; }

  // What the daemon is told (shared::HubTable), and a digest of it and the lane, by which trainers
  // compare theirs.
  std::vector<char> table() const;
  std::uint64_t digest() const;

  // Throws Failure.
  void map_weights(int descriptor);
  const std::byte* weights(const Key& key) const { return weights_ + key.begin; }

  // Pushes whose end was not reported.
  unsigned in_flight = 0;

 private:
  std::uint32_t number_;
  unsigned lane_ = 0;
  std::size_t chunk_bytes_ = 0;
  std::string optimizer_;
  std::vector<Key> keys_;
  std::vector<std::size_t> by_name_;  // places in keys_
  std::size_t bytes_ = 0;
  std::byte* weights_ = nullptr;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_HUB_H_
