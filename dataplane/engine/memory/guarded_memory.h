// Memory whose faults do not end the process.
//
// The kernel may fail to give the page of a shared mapping: the memory has failed, it cannot be
// swapped in, or the host has none. It then sends SIGBUS to the thread that touches the page, and
// the default is the process's end. Trainers' regions are such mappings, and a daemon must outlive
// them. So each region is registered here. The handler maps zero pages over the kChunk of memory
// around a fault in a registered region, and marks the region: the thread goes on with zeros. A
// fault anywhere else has the effect that it had before the handler was installed.
//
// Who goes on with zeros computes nonsense, and hands it to others of the same job. So engines
// complete nothing while a fault is pending(), and those that have the job send nothing; the
// control thread ends the jobs of faulted regions and then settles the faults. Pages of a message,
// and of what goes to a hub, are read before their frames leave: so no zeros leave in their place.
//
// Threads: any may fault and ask. The control thread makes and destroys, and settles. Nobody may
// touch memory whose registration ends.
#ifndef GRADCUBE_DATAPLANE_ENGINE_MEMORY_GUARDED_MEMORY_H_
#define GRADCUBE_DATAPLANE_ENGINE_MEMORY_GUARDED_MEMORY_H_

#include <cstddef>
#include <cstdint>

namespace gradcube::dataplane {

class GuardedMemory {
 public:
  static constexpr std::size_t kMost = 1 << 15;  // registered at a time
  static constexpr std::uint64_t kChunk = 1 << 21;

  // Once per process, before the first fault. Throws control::SetupError.
  static void install_handler();

  // base: at a page. Throws control::SetupError when kMost are registered.
  GuardedMemory(std::uint8_t* base, std::uint64_t bytes);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  // Whether a part of it has been replaced by zeros. Stays so.
  bool faulted() const;

  // Faults in registered memory since the process began.
  static std::uint32_t faults();
  // All faults up to this count concern nobody any more.
  static void settle(std::uint32_t faults);
  static bool pending();

  // Reads a byte of each page, so that a fault there is known before a frame with them leaves.
  static void touch(const std::uint8_t* bytes, std::uint32_t count) {
    constexpr std::uint32_t kPage = 4096;
    const volatile std::uint8_t* page = bytes;
    for (std::uint32_t at = 0; at < count; at += kPage) (void)page[at];
    if (count != 0) (void)page[count - 1];
  }

 private:
  std::size_t slot_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_MEMORY_GUARDED_MEMORY_H_
