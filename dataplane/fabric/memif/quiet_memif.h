// While it exists, the driver of memifs logs nothing: for what is no news, but would fill the log.
//
// The log's level is the process's, so what other threads let the driver do meanwhile is not logged
// either.
#ifndef GRADCUBE_DATAPLANE_FABRIC_MEMIF_QUIET_MEMIF_H_
#define GRADCUBE_DATAPLANE_FABRIC_MEMIF_QUIET_MEMIF_H_

#include <cstdint>
#include <rte_log.h>

namespace gradcube::dataplane {

class QuietMemif {
 public:
  QuietMemif() : log_(rte_log_register("pmd.net.memif")), level_(rte_log_get_level(log_)) {
    rte_log_set_level(static_cast<std::uint32_t>(log_), RTE_LOG_EMERG);
  }
  ~QuietMemif() {
    rte_log_set_level(static_cast<std::uint32_t>(log_), static_cast<std::uint32_t>(level_));
  }
  QuietMemif(const QuietMemif&) = delete;
  QuietMemif& operator=(const QuietMemif&) = delete;

 private:
  int log_;
  int level_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_MEMIF_QUIET_MEMIF_H_
