// DPDK's environment (EAL), alive as long as an Eal object is. Once per process: DPDK cannot be
// started again after it has been stopped. Everything that holds mbufs, rings or ports must be
// destroyed before it.
//
// It needs no root, no huge pages, no NIC and no writable /var/run, and leaves no file behind. Any
// number of processes may run at once on one host, because they share nothing: no shared
// configuration, no telemetry socket, memory without a name.
//
// Threads: the main thread makes and destroys it. The main thread is lcore 0 and may run on every
// CPU of the process, so that the control plane does not occupy a poller's core. Each worker lcore
// is pinned to its CPU and sleeps there until rte_eal_remote_launch.
//
// Errors: std::runtime_error, which says what is wrong and what to do about it.
#ifndef GRADCUBE_DATAPLANE_HOST_EAL_H_
#define GRADCUBE_DATAPLANE_HOST_EAL_H_

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace gradcube::dataplane {

// Where DPDK's memory comes from.
enum class HugePages {
  automatic,  // huge pages when enough of them are free, ordinary pages otherwise
  never,
  always,  // where there are not enough of them, DPDK does not start
};

struct EalOptions {
  // The CPUs of the pollers, one worker lcore each, in this order. At least one. A CPU may be
  // listed twice: then two pollers share it and must yield to each other.
  std::vector<unsigned> cores;
  // Memory for packet pools and rings. Without huge pages DPDK has no other memory.
  unsigned memory_megabytes = 256;
  HugePages huge_pages = HugePages::automatic;
  // Where DPDK writes its log; nullptr leaves it to DPDK. Must outlive the Eal; not closed.
  std::FILE* log = nullptr;
  // PCI addresses of the NICs to use; empty: DPDK does not scan the PCI bus.
  std::vector<std::string> pci_devices;
};

// What has been started, for reports to the operator.
struct EalFacts {
  bool huge_pages = false;
  unsigned simd_bits = 0;  // widest vector allowed (--force-max-simd-bitwidth)
};

class Eal {
 public:
  explicit Eal(const EalOptions& options);
  ~Eal();
  Eal(const Eal&) = delete;
  Eal& operator=(const Eal&) = delete;

  // The worker lcores, one for each of options.cores in the same order.
  const std::vector<unsigned>& workers() const { return workers_; }
  EalFacts facts() const;

 private:
  bool huge_pages_ = false;
  std::vector<unsigned> workers_;
};

// The CPUs that this process may run on and that DPDK can number (Debian's DPDK: below 128),
// ascending.
std::vector<unsigned> usable_cores();

// Bytes of huge pages of all sizes that are free on this host now.
std::uint64_t free_huge_page_bytes();

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HOST_EAL_H_
