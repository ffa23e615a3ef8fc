#include "control/plan/plan_output.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "control/base/units.h"

namespace gradcube::control {
namespace {

constexpr Stage kInOrder[] = {Stage::aggregation, Stage::broadcast};

std::string list_json(const std::vector<std::string>& items) {
  return fmt::format("[{}]", fmt::join(items, ","));
}

// The digits of a rank's server, most significant first.
std::string digits_json(const Plan& plan, Rank rank) {
  std::vector<std::string> digits;
  for (unsigned l = plan.space().levels(); l-- > 0;) {
    digits.push_back(std::to_string(plan.space().digit(plan.placement().server(rank), l)));
  }
  return list_json(digits);
}

// The thread and the digits of the owners, most significant first. A server of a large plan has
// tens of thousands of these: so they are appended.
void add_entry(std::string& text, const PieceSet& set) {
  text += '[';
  text += fmt::format_int(set.thread).c_str();
  for (unsigned i = 0; i < set.size; ++i) {
    const int value = set.digits[i].value;
    text += ',';
    text += value == PieceSet::kAnyDigit ? "null" : fmt::format_int(value).c_str();
  }
  text += ']';
}

std::string pieces_json(const Plan& plan, const PieceSet& set) {
  std::string text = "[";
  if (set.count() > kMaxListedPieces) {
    add_entry(text, set);
  } else {
    set.for_each([&](PieceId piece) {
      if (text.size() > 1) text += ',';
      add_entry(text, plan.owned(piece.owner, piece.thread));
    });
  }
  return text += ']';
}

std::string step_json(const Plan& plan, Rank rank, unsigned thread, Stage stage, unsigned w) {
  const unsigned aggregation_step = plan.mirrored(thread, stage, w);
  const bool ring = plan.step(thread, aggregation_step).is_ring();
  std::vector<std::string> exchanges;
  for (const Exchange& exchange : plan.exchanges(rank, thread, stage, w)) {
    const std::string source = ring
                                   ? fmt::format("\"source\":{},\"round\":{},",
                                                 digits_json(plan, exchange.source), exchange.round)
                                   : "";
    exchanges.push_back(fmt::format(
        "{{\"peer\":{},{}\"send\":{},\"receive\":{}}}", digits_json(plan, exchange.peer), source,
        pieces_json(plan, exchange.send), pieces_json(plan, exchange.receive)));
  }
  const std::optional<unsigned> level = plan.level(thread, aggregation_step);
  return fmt::format("{{\"stage\":\"{}\",\"step\":{},\"level\":{},\"exchanges\":{}}}",
                     stage_name(stage), w, level ? std::to_string(*level) : "null",
                     list_json(exchanges));
}

std::string rank_json(const Plan& plan, const Assignment& assignment, Rank rank) {
  std::vector<std::string> threads;
  for (unsigned t = 0; t < plan.threads(); ++t) {
    std::vector<std::string> steps;
    for (const Stage stage : kInOrder) {
      for (unsigned w = 0; w < plan.steps(t); ++w) {
        steps.push_back(step_json(plan, rank, t, stage, w));
      }
    }
    std::string owns;
    if (const PieceSet owned = plan.owned(rank, t); !owned.none) add_entry(owns, owned);
    threads.push_back(
        fmt::format("{{\"thread\":{},\"lcore\":{},\"weight\":{},\"owns\":{},\"steps\":{}}}", t,
                    assignment.lcore(plan.placement().server(rank), t), plan.thread(t).weight,
                    owns.empty() ? "null" : owns, list_json(steps)));
  }
  return fmt::format("{{\"address\":{},\"threads\":{}}}", digits_json(plan, rank),
                     list_json(threads));
}

// The level of a step's peers; nothing for a step over several.
std::string level_text(const Plan& plan, unsigned thread, unsigned step) {
  const std::optional<unsigned> level = plan.level(thread, step);
  return level ? std::to_string(*level) : "-";
}

std::string server_text(const Plan& plan, Rank rank) {
  return plan.space().text(plan.placement().server(rank));
}

// In a ring a rank sends to one server and receives from another.
bool has_ring(const Plan& plan, unsigned thread) {
  for (unsigned w = 0; w < plan.steps(thread); ++w) {
    if (plan.step(thread, w).is_ring()) return true;
  }
  return false;
}

void write_rank(std::ostream& out, const Plan& plan, const Assignment& assignment, Rank rank) {
  const ServerId server = plan.placement().server(rank);
  out << "\nserver " << server_text(plan, rank) << "\n";
  if (const unsigned trainers = plan.placement().trainers_per_server(); trainers > 1) {
    out << fmt::format(
        "  local: before step 0 the {} trainers of ranks {} to {} are added in this order, and "
        "results go to all of them, in the server's memory\n",
        trainers, rank * trainers, rank * trainers + trainers - 1);
  }
  for (unsigned t = 0; t < plan.threads(); ++t) {
    out << fmt::format("  thread {} on lcore {}, owns {}\n", t, assignment.lcore(server, t),
                       plan.owned(rank, t).none ? "nothing" : plan.owned(rank, t).text());
    const bool rings = has_ring(plan, t);
    out << fmt::format("    {:<12} {:>4} {:>5}  {:<12} {:<16} {:<16} {:>7}", "stage", "step",
                       "level", rings ? "to" : "peer", "sends", "receives", "pieces");
    out << (rings ? fmt::format("  {:<12} {:>5}\n", "from", "round") : "\n");
    for (const Stage stage : kInOrder) {
      for (unsigned w = 0; w < plan.steps(t); ++w) {
        const std::string level = level_text(plan, t, plan.mirrored(t, stage, w));
        for (const Exchange& exchange : plan.exchanges(rank, t, stage, w)) {
          out << fmt::format("    {:<12} {:>4} {:>5}  {:<12} {:<16} {:<16} {:>7}",
                             stage_name(stage), w, level, server_text(plan, exchange.peer),
                             exchange.send.text(), exchange.receive.text(),
                             std::max(exchange.send.count(), exchange.receive.count()));
          out << (rings ? fmt::format("  {:<12} {:>5}\n", server_text(plan, exchange.source),
                                      exchange.round)
                        : "\n");
        }
      }
    }
  }
}

}  // namespace

void write_plan_json(std::ostream& out, const Plan& plan, const Assignment& assignment,
                     std::optional<Rank> rank) {
  const unsigned trainers = plan.placement().trainers_per_server();
  out << fmt::format("{{\"topology\":{},\"algorithm\":{},{}\"pieces\":{},\"servers\":[",
                     topology_json(plan.topology()).dump(), nlohmann::json(plan.algorithm()).dump(),
                     trainers > 1 ? fmt::format("\"trainers_per_server\":{},", trainers) : "",
                     plan.pieces());
  const Rank first = rank.value_or(0);
  const Rank end = rank ? *rank + 1 : plan.ranks();
  for (Rank r = first; r < end && out.good(); ++r) {
    out << (r == first ? "" : ",") << rank_json(plan, assignment, r);
  }
  out << "]}\n";
}

void write_plan_text(std::ostream& out, const Plan& plan, const Assignment& assignment,
                     std::optional<Rank> rank) {
  const unsigned trainers = plan.placement().trainers_per_server();
  out << fmt::format("{} on {}: {} servers, {}{}, {}, {}{}\n", plan.algorithm(),
                     plan.topology().spec(), plan.ranks(),
                     trainers == 1 ? "" : fmt::format("{} trainers on each, ", trainers),
                     counted(plan.threads(), "thread"), counted(plan.pieces(), "piece"),
                     counted(plan.steps(), "step"), plan.doubles() ? "" : " in each stage");
  if (rank) {
    write_rank(out, plan, assignment, *rank);
    return;
  }
  for (Rank r = 0; r < plan.ranks() && out.good(); ++r) write_rank(out, plan, assignment, r);
}

}  // namespace gradcube::control
