// The weights of a hub at one server: daemon's memory, which its trainers map to read.
//
// A memfd that can neither shrink nor grow nor be mapped anew to write to. The daemon wrote zeros
// to all of it at construction, so no access to it allocates. Who may write and read it when:
// dataplane/hub/hub_exchange.h. A trainer reads a key's weights between the end of a push of the
// key and its next one.
//
// Threads: any makes and destroys; the engines write.
#ifndef GRADCUBE_DATAPLANE_ENGINE_HUB_WEIGHTS_H_
#define GRADCUBE_DATAPLANE_ENGINE_HUB_WEIGHTS_H_

#include <cstdint>
#include <optional>

#include "control/base/descriptor.h"

namespace gradcube::dataplane {

class HubWeights {
 public:
  // numa_node: where its memory should be. Throws control::SetupError.
  HubWeights(std::uint64_t bytes, std::optional<unsigned> numa_node);
  ~HubWeights();
  HubWeights(const HubWeights&) = delete;
  HubWeights& operator=(const HubWeights&) = delete;

  std::uint8_t* base() const { return base_; }
  std::uint64_t bytes() const { return bytes_; }
  int descriptor() const { return file_.get(); }

 private:
  control::Descriptor file_;
  std::uint64_t bytes_;
  std::uint8_t* base_ = nullptr;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_HUB_WEIGHTS_H_
