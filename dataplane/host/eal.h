#ifndef GRADCUBE_DATAPLANE_HOST_EAL_H_
#define GRADCUBE_DATAPLANE_HOST_EAL_H_

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace gradcube::dataplane {

/// Where DPDK's memory comes from.
enum class HugePages {
  kAutomatic,  // huge pages when enough of them are free, ordinary pages otherwise
  kNever,
  kRequired,
};

struct EalOptions {
  /// The CPUs that pollers own, one worker lcore each, in this order; a CPU may stand here twice
  /// (two pollers share it and must yield to each other). At least one.
  std::vector<unsigned> cores;
  /// Packet pools and rings live in this; it is all there is without huge pages.
  unsigned memory_megabytes = 256;
  HugePages huge_pages = HugePages::kAutomatic;
  /// rte_log's levels: 1 emergency ... 5 warning ... 8 debug.
  std::uint32_t log_level = 5;
  /// Where DPDK writes its log; nullptr leaves it to DPDK. Must outlive the Eal; not closed.
  std::FILE* log = nullptr;
  /// PCI addresses of the NICs to take; empty: the PCI bus is not even looked at.
  std::vector<std::string> pci_devices;
  /// Virtual devices, as EAL's --vdev takes them.
  std::vector<std::string> virtual_devices;
};

/// What has been started, to be told to the operator.
struct EalFacts {
  bool huge_pages = false;
  std::uint64_t memory_bytes = 0;  // reserved by DPDK's allocator now
  unsigned simd_bits = 0;  // the widest vector the operator allows (--force-max-simd-bitwidth)
  unsigned sockets = 0;    // NUMA nodes seen
};

/// DPDK's environment, alive as long as this object is. Once per process: DPDK cannot be started
/// again after it has been stopped. Everything that holds mbufs, rings or ports must be destroyed
/// before it.
///
/// Needs no root, no huge pages, no NIC and no writable /var/run, leaves no file behind, and any
/// number of processes may run at once on one host, because nothing is shared between them: no
/// shared configuration, no telemetry socket, memory without a name.
///
/// Threads: made and destroyed by the main thread. The main thread is lcore 0 and may run on every
/// CPU that the process has, so that the control plane does not sit on a poller's core; each worker
/// lcore is pinned to its CPU and waits there (asleep) for rte_eal_remote_launch.
class Eal {
 public:
  /// Throws std::runtime_error with what is wrong and what to do about it.
  explicit Eal(const EalOptions& options);
  ~Eal();
  Eal(const Eal&) = delete;
  Eal& operator=(const Eal&) = delete;

  /// The worker lcores, one for each of options.cores in the same order.
  const std::vector<unsigned>& workers() const { return workers_; }
  EalFacts facts() const;

 private:
  bool huge_pages_ = false;
  std::vector<unsigned> workers_;
};

/// The CPUs that this process may run on and DPDK can name (Debian's: below 128), ascending.
std::vector<unsigned> usable_cores();

/// Bytes of huge pages that are free on this host now, over all sizes.
std::uint64_t free_huge_page_bytes();

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HOST_EAL_H_
