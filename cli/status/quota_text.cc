#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <set>
#include <vector>

#include "cli/status/status_parts.h"
#include "cli/text/json_fields.h"
#include "control/base/printable.h"

namespace gradcube::cli {
namespace {

using nlohmann::json;

// What a user has where he has the most: a limit is of each server, and of each daemon.
struct Usage {
  std::string bytes = "0 B";
  std::map<std::string, std::size_t> jobs;      // by server
  std::map<std::string, std::size_t> trainers;  // by server
};

using Usages = std::map<std::uint64_t, Usage>;  // by user

void add_job(const json& job, Usages& users) {
  std::set<std::pair<std::uint64_t, std::string>> seen;
  for (const json& trainer : items(job, "trainers")) {
    const auto user = count_field(trainer, "uid");
    if (!user) continue;
    const std::string server = address_text(field(trainer, "address"));
    ++users[*user].trainers[server];
    if (seen.emplace(*user, server).second) ++users[*user].jobs[server];
  }
}

Usages usages_of(const json& status) {
  Usages users;
  for (const json& user : items(field(status, "memory"), "users")) {
    if (const auto uid = count_field(user, "uid")) users[*uid].bytes = bytes_text(user, "bytes");
  }
  for (const json& job : items(status, "jobs")) add_job(job, users);
  return users;
}

std::size_t most(const std::map<std::string, std::size_t>& counts) {
  std::size_t most = 0;
  for (const auto& [server, count] : counts) most = std::max(most, count);
  return most;
}

std::size_t sum(const std::map<std::string, std::size_t>& counts) {
  std::size_t sum = 0;
  for (const auto& [server, count] : counts) sum += count;
  return sum;
}

// "users alice, 1001"
void add_names(const json& names, const char* what, std::vector<std::string>& parts) {
  std::vector<std::string> all;
  for (const json& name : names) {
    if (name.is_string()) all.push_back(control::printable(name.get<std::string>()));
  }
  if (!all.empty()) parts.push_back(fmt::format("{} {}", what, fmt::join(all, ", ")));
}

}  // namespace

std::string quota_text(const json& status) {
  const auto jobs = count_field(status, "user_jobs");
  const auto trainers = count_field(status, "user_trainers");
  const bool one_daemon = field(status, "fabric") == "embedded";
  std::string text =
      fmt::format("{} of trainers' buffers", bytes_text(status, "memory/trainer_quota_bytes"));
  if (jobs && trainers) {
    text += fmt::format(", {} jobs on a server and {} trainers{}", *jobs, *trainers,
                        one_daemon ? "" : " on a server");
  }
  text += " per user";
  if (!allowed_text(status).empty()) text += ", and no more places than are left for others";
  for (const auto& [user, usage] : usages_of(status)) {
    text += fmt::format("; user {} has {}", user, usage.bytes);
    if (!jobs || !trainers) continue;
    text += fmt::format(", jobs {} of {}, trainers {} of {}", most(usage.jobs), *jobs,
                        one_daemon ? sum(usage.trainers) : most(usage.trainers), *trainers);
  }
  return text;
}

std::string allowed_text(const json& status) {
  std::vector<std::string> parts;
  add_names(items(field(status, "allowed"), "users"), "users", parts);
  add_names(items(field(status, "allowed"), "groups"), "groups", parts);
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace gradcube::cli
