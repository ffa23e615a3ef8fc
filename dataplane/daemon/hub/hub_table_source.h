// Where the table of a hub's keys lies (shared::HubTable) until a thread has copied it: in the
// memory of the trainer that wishes for the hub, or in a copy that came with a message.
//
// It keeps what it lies in: a trainer's region stays mapped, also after the trainer has gone. The
// bytes are hostile and may change at any time: copy them once, and read the copy.
//
// Threads: any may read. The last of a region's sources goes at the control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_HUB_HUB_TABLE_SOURCE_H_
#define GRADCUBE_DATAPLANE_DAEMON_HUB_HUB_TABLE_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "dataplane/engine/memory/session_region.h"

namespace gradcube::dataplane {

class HubTableSource {
 public:
  HubTableSource() = default;
  explicit HubTableSource(std::string table) {
    auto owned = std::make_shared<const std::string>(std::move(table));
    bytes_ = *owned;
    owner_ = std::move(owned);
  }
  // [offset, offset + bytes) is confirmed.
  HubTableSource(std::shared_ptr<const SessionRegion> region, std::uint64_t offset,
                 std::uint64_t bytes)
      : bytes_(reinterpret_cast<const char*>(region->base() + offset), bytes),
        owner_(std::move(region)) {}

  std::string_view bytes() const { return bytes_; }

 private:
  std::string_view bytes_;
  std::shared_ptr<const void> owner_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_HUB_HUB_TABLE_SOURCE_H_
