// The daemon's log of what clients (trainers, tools) do: refusals, deaths, evictions, aborted jobs.
//
// Clients cause these lines, so their number is limited: up to kBurst lines at once, and one per
// kInterval in the long run. Lines beyond that are counted, and the next line that is written says
// how many were left out. So no client can fill the disk.
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_SOCKETS_CLIENT_LOG_H_
#define GRADCUBE_DATAPLANE_SOCKETS_CLIENT_LOG_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace gradcube::dataplane {

class ClientLog {
 public:
  using SteadyClock = std::chrono::steady_clock;
  static constexpr unsigned kBurst = 100;
  static constexpr auto kInterval = std::chrono::seconds(1);

  // write: puts a line into the log; by default as a warning of the daemon's log.
  ClientLog();
  explicit ClientLog(std::function<void(const std::string&)> write);

  void line(const std::string& text, SteadyClock::time_point now = SteadyClock::now());

 private:
  std::function<void(const std::string&)> write_;
  // The time at which a full burst is allowed again. Each line adds kInterval.
  SteadyClock::time_point full_at_;
  std::uint64_t left_out_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_SOCKETS_CLIENT_LOG_H_
