#include "cli/job_text.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

#include "cli/json_fields.h"
#include "cli/text_table.h"

namespace gradcube::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kNamedTrainers = 4;

// A number that names something: without separators, so that it can be searched for.
std::string id_text(const json& object, std::string_view path) {
  const auto id = count_field(object, path);
  return id ? std::to_string(*id) : "-";
}

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

std::string waited_text(const json& job) {
  return human_seconds(number_field(job, "waiting_ms").value_or(0) / 1e3);
}

std::uint64_t most_submitted(const json& job) {
  std::uint64_t most = 0;
  for (const json& trainer : items(job, "trainers")) {
    most = std::max(most, count_field(trainer, "submitted").value_or(0));
  }
  return most;
}

// How far a trainer is, and what is to be said about it.
std::string remark_on(const json& job, const json& trainer, std::uint64_t most) {
  const auto submitted = count_field(trainer, "submitted");
  if (waits_for(job, field(trainer, "address"))) {
    return fmt::format("the others have waited {} for it", waited_text(job));
  }
  if (submitted && *submitted < most) return fmt::format("{} behind", grouped(most - *submitted));
  return "";
}

void add_trainers(const json& job, TextTable& table) {
  const std::uint64_t most = most_submitted(job);
  std::string name = cell_text(job, "name");
  for (const json& trainer : items(job, "trainers")) {
    table.add_row({name, address_text(field(trainer, "address")), id_text(trainer, "pid"),
                   cell_text(trainer, "submitted"), cell_text(trainer, "completed"),
                   remark_on(job, trainer, most)});
    name.clear();
  }
  for (const json& address : items(job, "waiting_for")) {
    if (trainer_at(job, address) != nullptr) continue;
    table.add_row({name, address_text(address), "-", "-", "-",
                   fmt::format("has not joined in {}", waited_text(job))});
    name.clear();
  }
}

}  // namespace

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
  return fmt::format("has waited {} for {}{}", waited_text(job), fmt::join(names, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

std::string jobs_text(const json& status) {
  TextTable jobs({{"job", Align::left},
                  {"id"},
                  {"epoch"},
                  {"state", Align::left},
                  {"trainers"},
                  {"collectives"},
                  {"", Align::left}});
  TextTable trainers(
      {{"job", Align::left}, {"server"}, {"pid"}, {"submitted"}, {"completed"}, {"", Align::left}});
  for (const json& job : items(status, "jobs")) {
    jobs.add_row({cell_text(job, "name"), id_text(job, "id"), id_text(job, "epoch"),
                  cell_text(job, "state"), grouped(items(job, "trainers").size()),
                  cell_text(job, "collectives"), wait_text(job)});
    add_trainers(job, trainers);
  }
  if (jobs.empty()) return "\njobs: none\n";
  std::string text = fmt::format("\njobs\n{}", jobs.text());
  if (!trainers.empty()) text += fmt::format("\ntrainers\n{}", trainers.text());
  return text;
}

}  // namespace gradcube::cli
