#include "dataplane/host/eal.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <latch>
#include <rte_config.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_memory.h>
#include <sched.h>
#include <stdexcept>
#include <sys/mman.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include "control/base/cores.h"
#include "dataplane/host/interrupt_thread.h"
#include "dataplane/host/memory_units.h"

// As in rte_vect.h, which forgets in 22.11 that C++ has to be told that this is a C function.
extern "C" std::uint16_t rte_vect_get_max_simd_bitwidth();

namespace gradcube::dataplane {

namespace {

constexpr std::uint64_t kMebibyte = 1024 * 1024;
constexpr unsigned kMaxWorkers = RTE_MAX_LCORE - 1;
// Of EAL beside those of the workers: for interrupts.
constexpr std::size_t kOwnThreads = 1;
constexpr const char* kHugePageFolder = "/sys/kernel/mm/hugepages";

// DPDK numbers CPUs like lcores: it can name none from here on.
constexpr unsigned kCpuLimit = RTE_MAX_LCORE;

std::string joined(const std::vector<unsigned>& numbers) {
  std::string text;
  for (const unsigned number : numbers) {
    if (!text.empty()) text += ',';
    text += std::to_string(number);
  }
  return text;
}

void check_cores(const std::vector<unsigned>& cores, const std::vector<unsigned>& usable) {
  if (cores.empty()) {
    throw std::runtime_error("no core to poll on: name at least one of " + joined(usable));
  }
  if (cores.size() > kMaxWorkers) {
    throw std::runtime_error("too many cores: DPDK was built for " + std::to_string(kMaxWorkers) +
                             " pollers at most");
  }
  for (const unsigned core : cores) {
    if (!std::binary_search(usable.begin(), usable.end(), core)) {
      throw std::runtime_error("this process may not run on CPU " + std::to_string(core) +
                               ": choose among " + joined(usable) +
                               ", or widen its affinity (taskset, cpuset, container limits)");
    }
  }
}

std::string advice(int error) {
  switch (error) {
    case ENOMEM:
      return "ask for less memory, raise the limit of this process (ulimit -v, the container's "
             "memory), or do without huge pages";
    case EAGAIN:
      return "raise what this user or container may have of processes (ulimit -u, pids.max)";
    case EALREADY:
      return "DPDK can be started only once in a process";
    case EACCES:
    case EPERM:
      return "this user must be allowed to use the huge pages and the NICs (bound to vfio-pci) "
             "that were asked for; the embedded fabric on ordinary pages needs no permission";
    case ENODEV:
    case EINVAL:
      return "check the names of PCI devices and the list of cores";
    default:
      return "what DPDK has written before says more";
  }
}

// Address space that is not used.
class Reserved {
 public:
  explicit Reserved(std::uint64_t bytes)
      : bytes_(bytes),
        begin_(
            mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (begin_ == MAP_FAILED) throw std::runtime_error("DPDK does not start: " + advice(ENOMEM));
  }
  ~Reserved() { munmap(begin_, bytes_); }
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;

 private:
  std::uint64_t bytes_;
  void* begin_;
};

// DPDK ends the process where it has its memory and can start no thread: so as many as it starts
// are started before, beside as much address space, and end.
void require_threads(std::size_t count, std::uint64_t megabytes) {
  const Reserved memory((megabytes + kEalMegabytes) * kMebibyte);
  std::latch over(1);
  std::vector<std::jthread> threads;
  threads.reserve(count);
  std::string refusal;
  try {
    while (threads.size() < count) threads.emplace_back([&over] { over.wait(); });
  } catch (const std::exception& error) {
    refusal = error.what();
  }
  over.count_down();
  if (refusal.empty()) return;
  throw std::runtime_error(
      fmt::format("cannot start {} threads: {}: raise what this user or container may have of "
                  "processes (ulimit -u, pids.max) and of memory (ulimit -v)",
                  count, refusal));
}

bool choose_huge_pages(const EalOptions& options) {
  if (options.huge_pages == HugePages::never) return false;
  const std::uint64_t wanted = options.memory_megabytes * kMebibyte;
  const std::uint64_t free = free_huge_page_bytes();
  if (options.huge_pages == HugePages::always && free < wanted) {
    throw std::runtime_error(
        fmt::format("{} MB of huge pages are needed and {} MB are free: reserve them with "
                    "`scripts/bringup.sh --huge-pages {}M` as root",
                    options.memory_megabytes, free / kMebibyte, options.memory_megabytes));
  }
  return free >= wanted;
}

std::vector<std::string> arguments_for(const EalOptions& options,
                                       const std::vector<unsigned>& usable, bool huge_pages) {
  // Lcore 0 is the main thread, on any CPU; lcore i + 1 is pinned to the i-th CPU asked for.
  std::string lcores = "0@(";
  lcores.append(joined(usable)).append(")");
  for (std::size_t i = 0; i < options.cores.size(); ++i) {
    lcores.append(",").append(std::to_string(i + 1));
    lcores.append("@").append(std::to_string(options.cores[i]));
  }
  std::vector<std::string> arguments{"gradcube",
                                     "--lcores=" + lcores,
                                     "--main-lcore=0",
                                     "-m",
                                     std::to_string(options.memory_megabytes),
                                     "--no-telemetry",
                                     "--file-prefix=gradcube-" + std::to_string(getpid())};
  if (huge_pages) {
    arguments.emplace_back("--in-memory");
  } else {
    // DPDK 22.11 refuses --in-memory here, whose other half is this:
    arguments.emplace_back("--no-huge");
    arguments.emplace_back("--no-shconf");
  }
  if (options.pci_devices.empty()) {
    arguments.emplace_back("--no-pci");
    // Without a device that wants physical addresses nobody has to be allowed to read them.
    arguments.emplace_back("--iova-mode=va");
  }
  for (const std::string& device : options.pci_devices) arguments.push_back("--allow=" + device);
  return arguments;
}

// DPDK makes an (empty) folder for files shared between processes even where none are shared.
void remove_runtime_folder() {
  const char* folder = rte_eal_get_runtime_dir();
  if (folder == nullptr || *folder == '\0') return;
  const std::filesystem::path path(folder);
  std::error_code ignored;
  if (std::filesystem::remove(path, ignored)) {
    // The parent only goes when no other DPDK process is using it: remove refuses a full folder.
    std::filesystem::remove(path.parent_path(), ignored);
  }
}

}  // namespace

std::vector<unsigned> usable_cores() {
  std::vector<unsigned> cores = control::allowed_cores();
  std::erase_if(cores,
                [](unsigned core) { return core >= kCpuLimit || !control::is_described(core); });
  if (cores.empty()) {
    throw std::runtime_error(
        "DPDK can use no core of this process: those under /sys/devices/system/cpu, and below " +
        std::to_string(kCpuLimit) +
        ", are none of its; is /sys there (mount -t sysfs sysfs /sys)?");
  }
  return cores;
}

std::uint64_t free_huge_page_bytes() {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (const auto& folder : std::filesystem::directory_iterator(kHugePageFolder, error)) {
    // The folder is called hugepages-<size>kB.
    const std::string name = folder.path().filename().string();
    const std::size_t dash = name.find('-');
    std::uint64_t pages = 0;
    if (dash == std::string::npos) continue;
    if (!(std::ifstream(folder.path() / "free_hugepages") >> pages)) continue;
    bytes += pages * std::strtoull(name.c_str() + dash + 1, nullptr, 10) * 1024;
  }
  return bytes;
}

Eal::Eal(const EalOptions& options) {
  const std::vector<unsigned> usable = usable_cores();
  check_cores(options.cores, usable);
  huge_pages_ = choose_huge_pages(options);
  std::vector<std::string> arguments = arguments_for(options, usable, huge_pages_);
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);

  require_threads(options.cores.size() + kOwnThreads, options.memory_megabytes);
  rte_log_set_global_level(RTE_LOG_WARNING);
  if (options.log != nullptr) rte_openlog_stream(options.log);
  const int started = rte_eal_init(static_cast<int>(arguments.size()), pointers.data());
  remove_runtime_folder();
  if (started < 0) {
    const int error = rte_errno;
    throw std::runtime_error(std::string("DPDK does not start: ") + rte_strerror(error) + "; " +
                             advice(error));
  }
  for (unsigned i = 0; i < options.cores.size(); ++i) workers_.push_back(i + 1);
}

Eal::~Eal() {
  stop_interrupt_thread();
  rte_eal_cleanup();
}

EalFacts Eal::facts() const {
  EalFacts facts;
  facts.huge_pages = huge_pages_;
  facts.simd_bits = rte_vect_get_max_simd_bitwidth();
  return facts;
}

}  // namespace gradcube::dataplane
