#include "cli/measure/work_counts.h"

#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "cli/cluster/control_client.h"
#include "cli/cluster/host_load.h"
#include "cli/text/json_fields.h"

namespace gradcube::cli {

namespace {

std::uint64_t nanoseconds(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_usec) * 1'000;
}

}  // namespace

WorkCounts& WorkCounts::operator+=(const WorkCounts& other) {
  segments += other.segments;
  resent += other.resent;
  acknowledgements += other.acknowledgements;
  sleeps += other.sleeps;
  cpu_ns += other.cpu_ns;
  return *this;
}

std::optional<WorkCounts> WorkCounts::since(const WorkCounts& before) const {
  const bool grows = segments >= before.segments && resent >= before.resent &&
                     acknowledgements >= before.acknowledgements && sleeps >= before.sleeps &&
                     cpu_ns >= before.cpu_ns;
  if (!grows) return std::nullopt;
  return WorkCounts{segments - before.segments, resent - before.resent,
                    acknowledgements - before.acknowledgements, sleeps - before.sleeps,
                    cpu_ns - before.cpu_ns};
}

WorkCounts work_of_this_thread() {
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  WorkCounts counts;
  counts.sleeps = static_cast<std::uint64_t>(used.ru_nvcsw);
  counts.cpu_ns = nanoseconds(used.ru_utime) + nanoseconds(used.ru_stime);
  return counts;
}

std::optional<WorkCounts> work_of_daemons(const control::RunDirectory& directory) {
  const nlohmann::json status = ask_status(directory);
  const auto segments = count_field(status, "counters/segments_sent");
  const auto resent = count_field(status, "counters/resent");
  const auto acknowledgements = count_field(status, "counters/acknowledgements_sent");
  if (!segments || !resent || !acknowledgements) return std::nullopt;
  WorkCounts counts{*segments, *resent, *acknowledgements};
  for (const auto& [thread, load] : thread_loads(daemon_processes(status))) {
    counts.sleeps += load.sleeps;
    counts.cpu_ns += load.ran_ns;
  }
  return counts;
}

}  // namespace gradcube::cli
