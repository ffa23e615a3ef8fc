#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <vector>

#include "cli/status/status_parts.h"
#include "cli/text/json_fields.h"
#include "cli/text/report.h"
#include "cli/text/units_text.h"
#include "control/base/printable.h"

namespace gradcube::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kNamedTrainers = 4;
constexpr std::size_t kLongestReason = 500;

const json* trainer_at(const json& job, const json& address) {
  for (const json& trainer : items(job, "trainers")) {
    if (field(trainer, "address") == address) return &trainer;
  }
  return nullptr;
}

bool waits_for(const json& job, const json& address) {
  const json& late = items(job, "waiting_for");
  return std::find(late.begin(), late.end(), address) != late.end();
}

// " 2 s"; empty where a daemon does not know.
std::string waited_text(const json& job) {
  const auto milliseconds = number_field(job, "waiting_ms");
  return milliseconds ? " " + human_seconds(*milliseconds / 1e3) : "";
}

std::string not_joined_text(const json& job) {
  const std::string waited = waited_text(job);
  return waited.empty() ? "has not joined" : "has not joined in" + waited;
}

std::uint64_t most_submitted(const json& job) {
  std::uint64_t most = 0;
  for (const json& trainer : items(job, "trainers")) {
    most = std::max(most, count_field(trainer, "submitted").value_or(0));
  }
  return most;
}

// Trainers; what a daemon does not tell is one.
std::uint64_t per_server(const json& job) {
  return count_field(job, "trainers_per_server").value_or(1);
}

// "[0,1]", and with several trainers on each server "[0,1] #2".
std::string place_text(const json& job, const json& trainer) {
  std::string text = address_text(field(trainer, "address"));
  if (per_server(job) > 1) text += fmt::format(" #{}", id_text(trainer, "local"));
  return text;
}

// How many trainers have joined there.
std::uint64_t joined_at(const json& job, const json& address) {
  const json& trainers = items(job, "trainers");
  return static_cast<std::uint64_t>(
      std::count_if(trainers.begin(), trainers.end(),
                    [&](const json& trainer) { return field(trainer, "address") == address; }));
}

// How far a trainer is, and what is to be said about it.
std::string remark_on(const json& job, const json& trainer, std::uint64_t most) {
  const auto submitted = count_field(trainer, "submitted");
  // Of several trainers of a server, the ones behind.
  const bool is_late = per_server(job) == 1 ||
                       (submitted && *submitted < most && text_field(job, "state") != "gathering");
  if (is_late && waits_for(job, field(trainer, "address"))) {
    return fmt::format("the others have waited{} for it", waited_text(job));
  }
  // Whoever goes on to submit is ahead of what was taken before the stop.
  const bool stopping = text_field(job, "state") == "stopping";
  if (submitted && *submitted < most && !stopping)
    return fmt::format("{} behind", grouped(most - *submitted));
  return "";
}

// Whether the job has what it gets without asking: one lane of the cluster's algorithm. What a
// daemon does not tell is the default.
bool has_default_lanes(const json& status, const json& job) {
  const json& lanes = items(job, "lanes");
  if (lanes.size() > 1 || number_field(job, "weight").value_or(1) != 1) return false;
  if (lanes.empty()) return true;
  const auto algorithm = text_field(lanes[0], "algorithm");
  return number_field(lanes[0], "priority").value_or(0) == 0 &&
         (!algorithm || algorithm == text_field(status, "algorithm"));
}

void add_lanes(const json& job, ReportTable& table) {
  std::string name = cell_text(job, "name");
  std::string weight = cell_text(job, "weight");
  std::size_t number = 0;
  for (const json& lane : items(job, "lanes")) {
    table.add({name, weight, std::to_string(number++), cell_text(lane, "algorithm"),
               cell_text(lane, "priority")});
    name.clear();
    weight.clear();
  }
}

// "2 of 3", or "2" where a daemon does not tell the members.
std::string joined_text(const json& job) {
  const std::string joined = grouped(items(job, "trainers").size());
  const json& members = items(job, "members");
  return members.empty()
             ? joined
             : fmt::format("{} of {}", joined, grouped(members.size() * per_server(job)));
}

// Of a job on some of the servers.
void add_members(const json& status, const json& job, ReportTable& table) {
  const json& members = items(job, "members");
  const auto servers = count_field(status, "topology/servers");
  if (members.empty() || members.size() == servers.value_or(members.size())) return;
  table.add({cell_text(job, "name"), addresses_text(members)});
}

// Whether trainers of different users are there: only then it is said whose they are.
bool has_several_users(const json& status) {
  std::set<std::string> users;
  for (const json& job : items(status, "jobs")) {
    for (const json& trainer : items(job, "trainers")) users.insert(id_text(trainer, "uid"));
  }
  return users.size() > 1;
}

// "user 1001: 3 behind".
std::string with_user(const json& trainer, const std::string& remark) {
  return fmt::format("user {}{}{}", id_text(trainer, "uid"), remark.empty() ? "" : ": ", remark);
}

void add_trainers(const json& job, bool several_users, ReportTable& table) {
  const std::uint64_t most = most_submitted(job);
  std::string name = cell_text(job, "name");
  for (const json& trainer : items(job, "trainers")) {
    table.add({name, place_text(job, trainer), id_text(trainer, "pid"),
               cell_text(trainer, "submitted"), cell_text(trainer, "completed"),
               several_users ? with_user(trainer, remark_on(job, trainer, most))
                             : remark_on(job, trainer, most)});
    name.clear();
  }
  for (const json& address : items(job, "waiting_for")) {
    const std::uint64_t joined = joined_at(job, address);
    if (joined >= per_server(job)) continue;
    const std::string remark = joined == 0 ? not_joined_text(job)
                                           : fmt::format("{} of {} {}", per_server(job) - joined,
                                                         per_server(job), not_joined_text(job));
    table.add({name, address_text(address), "-", "-", "-", remark});
    name.clear();
  }
}

// "16", or "8 of 16" where packet memory was short.
std::string window_text(const json& status, const json& job) {
  const auto window = count_field(job, "window");
  if (!window || *window == 0) return "-";
  const std::uint64_t full = count_field(status, "window").value_or(*window);
  return *window < full ? fmt::format("{} of {}", *window, full) : std::to_string(*window);
}

// "has waited 3.2 s for [2,1] (pid 4711)"; empty when the job waits for no trainer. When many are
// late, the first few are named and the others counted.
std::string wait_text(const json& job) {
  std::vector<std::string> names;
  for (const json& address : items(job, "waiting_for")) {
    std::string name = address_text(address);
    if (const json* trainer = trainer_at(job, address)) {
      name += fmt::format(" (pid {})", id_text(*trainer, "pid"));
    }
    names.push_back(std::move(name));
  }
  if (names.empty()) return "";
  const std::size_t more = names.size() - std::min(names.size(), kNamedTrainers);
  names.resize(names.size() - more);
  return fmt::format("has waited{} for {}{}", waited_text(job), fmt::join(names, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

// Whom the job waits for, or why it stops or was aborted.
std::string remark_on(const json& job) {
  const std::string why = text_field(job, "why").value_or("");
  return why.empty() ? wait_text(job) : control::printable(why, kLongestReason);
}

}  // namespace

std::string jobs_text(const json& status) {
  ReportTable jobs({{"job", "", Align::left},
                    {"id"},
                    {"epoch"},
                    {"state", "", Align::left},
                    {"trainers"},
                    {"collectives"},
                    {"window"},
                    {"packets"},
                    {"", "", Align::left}});
  ReportTable lanes({{"job", "", Align::left},
                     {"weight"},
                     {"lane"},
                     {"algorithm", "", Align::left},
                     {"priority"}});
  ReportTable members({{"job", "", Align::left}, {"servers", "", Align::left}});
  ReportTable trainers({{"job", "", Align::left},
                        {"server"},
                        {"pid"},
                        {"submitted"},
                        {"completed"},
                        {"", "", Align::left}});
  const bool several_users = has_several_users(status);
  for (const json& job : items(status, "jobs")) {
    jobs.add({cell_text(job, "name"), id_text(job, "id"), id_text(job, "epoch"),
              cell_text(job, "state"), joined_text(job), cell_text(job, "collectives"),
              window_text(status, job), bytes_text(job, "packets_reserved_bytes"), remark_on(job)});
    if (!has_default_lanes(status, job)) add_lanes(job, lanes);
    add_members(status, job, members);
    add_trainers(job, several_users, trainers);
  }
  if (jobs.empty()) return "\njobs: none\n";
  return jobs.text_below("jobs") + lanes.text_below("lanes") +
         members.text_below("jobs on some of the servers") + trainers.text_below("trainers");
}

}  // namespace gradcube::cli
