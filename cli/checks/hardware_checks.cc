#include <cstdint>
#include <cstdlib>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <system_error>
#include <vector>

#include "aggregation/kernels.h"
#include "cli/checks/host_checks.h"
#include "cli/cluster/host_load.h"
#include "cli/text/units_text.h"
#include "control/base/cores.h"
#include "control/base/descriptors.h"
#include "control/base/printable.h"
#include "trainer/heap_size.h"

namespace gradcube::cli {
namespace {

// Thresholds for a BCube(3,2) with nine trainers, on the safe side: nine gradients of 97 MB
// (ResNet-50) alone take 0.9 GB.
constexpr std::uint64_t kLeastMemory = 512'000'000;
constexpr std::uint64_t kGoodMemory = 2'000'000'000;
constexpr std::size_t kGoodCores = 2;

// The trainers of these are one daemon's.
std::size_t servers_of_a_daemon(const control::ClusterSettings& settings) {
  return settings.fabric == control::FabricKind::embedded ? settings.topology.servers() : 1;
}

HostCheck check_cores() {
  std::vector<unsigned> cores;
  try {
    cores = control::allowed_cores();
  } catch (const std::system_error& error) {
    return {"cores", Verdict::warn, error.what(), ""};
  }
  std::erase_if(cores, [](unsigned core) { return !control::is_described(core); });
  if (cores.empty()) {
    return {"cores", Verdict::fail,
            "DPDK looks for them under /sys/devices/system/cpu: none is there",
            "mount -t sysfs sysfs /sys"};
  }
  const std::string list = fmt::format("{}", fmt::join(cores, ","));
  if (cores.size() >= kGoodCores) {
    return good("cores", fmt::format("{} for --lcores: {}", cores.size(), list));
  }
  return {"cores", Verdict::warn,
          fmt::format("only core {}: the daemon and the trainers take turns on it", list),
          "nproc tells what a process gets; a container may be given more with --cpuset-cpus"};
}

HostCheck check_vector_instructions() {
  // DPDK's default limit for code that is linked to it.
  constexpr unsigned kWidestVectors = 256;
  const auto best = aggregation::select_kernels(kWidestVectors).instruction_set;
  return good("vectors",
              fmt::format("gradients are added with {} kernels", instruction_set_name(best)));
}

HostCheck check_memory() {
  const auto available = available_memory();
  if (!available) return {"memory", Verdict::warn, "cannot tell how much is available", ""};
  const std::string amount = human_bytes(static_cast<double>(*available)) + " available";
  if (*available >= kGoodMemory) return good("memory", amount);
  return {"memory", Verdict::warn,
          fmt::format("{}: a BCube(3,2) with its trainers needs {} for small models, {} for "
                      "ResNet-50's gradients",
                      amount, human_bytes(kLeastMemory), human_bytes(kGoodMemory)),
          "end other programs, or take a smaller topology: gradcube up --topology bcube:2,2"};
}

// The daemon raises its limit to the hard one.
HostCheck check_open_files(const control::ClusterSettings& settings) {
  const std::size_t servers = servers_of_a_daemon(settings);
  const std::size_t least = control::descriptors_for(servers, servers);
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max == RLIM_INFINITY) return good("open files", "unlimited");
  if (limit.rlim_max >= least) {
    return good("open files", fmt::format("{} at most", limit.rlim_max));
  }
  return {"open files", Verdict::fail,
          fmt::format("{} at most: the daemon of {} with a trainer on each server needs {}",
                      limit.rlim_max, settings.topology.spec(), least),
          "raise the hard limit: ulimit -Hn"};
}

std::string_view heap_setting() {
  const char* text = std::getenv("GRADCUBE_HEAP");
  return text == nullptr ? "" : text;
}

// What trainers ask for that have this environment; nothing if they refuse it.
std::optional<std::uint64_t> heap_bytes() {
  const std::string_view text = heap_setting();
  return text.empty() ? shared::kDefaultHeapBytes : shared::parse_heap_bytes(text);
}

HostCheck check_heap() {
  const std::optional<std::uint64_t> bytes = heap_bytes();
  if (bytes.has_value()) {
    return good("heap", fmt::format("a trainer has {} of address space for its tensors{}",
                                    human_bytes(static_cast<double>(*bytes)),
                                    heap_setting().empty() ? "" : " (GRADCUBE_HEAP)"));
  }
  return {
      "heap", Verdict::warn,
      fmt::format("GRADCUBE_HEAP is {}, which trainers refuse", control::printable(heap_setting())),
      fmt::format("unset GRADCUBE_HEAP; {}", shared::kHeapForm)};
}

HostCheck check_cpu_time() {
  rlimit limit{};
  getrlimit(RLIMIT_CPU, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return good("CPU time", "unlimited");
  return {"CPU time", Verdict::warn,
          fmt::format("the system ends a daemon that has used {} s", limit.rlim_cur),
          "ulimit -t unlimited before `gradcube up`"};
}

}  // namespace

std::vector<HostCheck> check_hardware(const control::ClusterSettings& settings) {
  return {check_cores(),  check_vector_instructions(),
          check_memory(), check_open_files(settings),
          check_heap(),   check_cpu_time()};
}

}  // namespace gradcube::cli
