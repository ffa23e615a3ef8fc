// A hub at the fake daemon, of a server that owns all: its keys' weights are what was pushed last,
// and each array of the optimizer's state has how often gradients were.
#ifndef GRADCUBE_TESTS_UNIT_TRAINER_FAKE_HUB_H_
#define GRADCUBE_TESTS_UNIT_TRAINER_FAKE_HUB_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/shared_layout.h"
#include "trainer/src/base/descriptor.h"

namespace gradcube::trainer {

struct FakeHubKey {
  std::string name;
  std::uint64_t elements = 0;
  std::uint32_t dtype = 0;
  std::size_t begin = 0;
  std::size_t bytes = 0;
  std::size_t range = 0;  // its place in the memory
};

class FakeHub {
 public:
  // table: shared::HubTable, which has to be right.
  FakeHub(const std::byte* table, std::size_t bytes);
  ~FakeHub();
  FakeHub(const FakeHub&) = delete;
  FakeHub& operator=(const FakeHub&) = delete;

  void push(const shared::Submission& submission, const std::byte* values);

  std::uint64_t chunk_bytes() const { return chunk_bytes_; }
  const std::vector<std::uint32_t>& aggregators() const { return aggregators_; }
  std::uint32_t staleness() const { return staleness_; }
  const std::string& optimizer() const { return optimizer_; }
  const std::vector<FakeHubKey>& keys() const { return keys_; }
  std::size_t bytes() const { return bytes_; }
  int descriptor() const { return memory_.get(); }

  // As a daemon tells trainers of its end, and takes the memory of a trainer that has gone.
  void end(int code, std::uint32_t notice);
  void take_back();

 private:
  std::uint64_t chunk_bytes_ = 0;
  std::vector<std::uint32_t> aggregators_;
  std::uint32_t staleness_ = 0;
  std::string optimizer_;
  std::vector<FakeHubKey> keys_;
  shared::HubHeader& state() const;
  void list_ranges();
  float* array(const FakeHubKey& key, unsigned number) const;

  std::size_t bytes_ = 0;  // of the weights
  std::size_t all_bytes_ = 0;
  unsigned states_ = 0;
  std::uint32_t rule_ = 0;
  Descriptor memory_;
  std::byte* weights_ = nullptr;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TESTS_UNIT_TRAINER_FAKE_HUB_H_
