#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>
#include <vector>

#include "cli/plan/plan_forms.h"
#include "cli/text/command.h"
#include "cli/text/option_checks.h"
#include "cli/text/progress_line.h"
#include "cli/text/units_text.h"
#include "control/plan/verify.h"

namespace gradcube::cli {
namespace {

using nlohmann::ordered_json;
using LinkPieces = std::vector<std::uint64_t>;

constexpr std::uint32_t kMostExact = 100;  // what verify() is meant for
constexpr unsigned kDrawn = 4;

std::vector<std::string> server_names(const control::Plan& plan, const control::Sample& sample) {
  std::vector<std::string> names;
  for (const control::Rank rank : sample.ranks) {
    names.push_back(plan.space().text(plan.placement().server(rank)));
  }
  return names;
}

std::vector<std::string> piece_names(const control::Plan& plan, const control::Sample& sample) {
  std::vector<std::string> names;
  for (const control::PieceId piece : sample.pieces) {
    names.push_back(plan.owned(piece.owner, piece.thread).text());
  }
  return names;
}

// "links: at most 16 pieces on every level, in each direction over both stages"
std::string links_text(std::string_view whose, const LinkPieces& link_pieces) {
  if (link_pieces.empty()) return "links: not examined, as servers relay or share uplinks";
  const std::uint64_t first = link_pieces.front();
  const bool alike = std::all_of(link_pieces.begin(), link_pieces.end(),
                                 [&](std::uint64_t pieces) { return pieces == first; });
  std::string text =
      fmt::format("{} pieces on {}", grouped(first), alike ? "every level" : "level 0");
  for (std::size_t level = 1; !alike && level < link_pieces.size(); ++level) {
    text += fmt::format(", {} on level {}", grouped(link_pieces[level]), level);
  }
  return fmt::format("{}: at most {}, in each direction over both stages", whose, text);
}

// What is found says which sample finds it.
LinkPieces verify_drawn(const control::Plan& plan, const control::Sample& sample,
                        std::uint64_t seed) {
  try {
    return control::verify(plan, sample).link_pieces;
  } catch (const control::PlanError& error) {
    throw control::PlanError(fmt::format("{} (--seed {})", error.what(), seed));
  }
}

void add_exact(Report& report, const control::Plan& plan) {
  const LinkPieces link_pieces = control::verify(plan).link_pieces;
  report.fact("proof", "exact");
  report.fact("link_pieces", link_pieces);
  report.line(
      "proved: every piece gets each server's contribution once, and every server every result");
  report.line(links_text("links", link_pieces));
}

void add_sampled(Report& report, const control::Plan& plan, std::uint64_t seed) {
  const control::Sample sample = control::draw_sample(plan, seed, kDrawn);
  const LinkPieces link_pieces = verify_drawn(plan, sample, seed);
  const std::vector<std::string> servers = server_names(plan, sample);
  const std::vector<std::string> pieces = piece_names(plan, sample);
  report.fact("proof", "sample");
  report.fact("seed", seed);
  report.fact("sampled_servers", servers);
  report.fact("sampled_pieces", pieces);
  report.fact("link_pieces",
              link_pieces.empty() ? ordered_json(nullptr) : ordered_json(link_pieces));
  report.line(fmt::format("proved for a sample, drawn by --seed {}", seed));
  report.line(fmt::format("pieces {}:", fmt::join(pieces, " ")));
  report.line("  each gets every server's contribution once, and every server its result");
  report.line(fmt::format("servers {}:", fmt::join(servers, " ")));
  report.line("  what each sends and waits for is what its peers expect");
  report.line(links_text("  their links", link_pieces));
}

}  // namespace

void add_plan_verify(CLI::App& command, PlanVerifyOptions& options) {
  CLI::Option* verify = command.add_flag(
      "--verify", options.wanted,
      fmt::format("Prove that the plan is an all-reduce; beyond {} servers for a sample",
                  kMostExact));
  // It is about all servers with a trainer each, and about no core.
  for (const char* other : {"--server", "--lcores", "--trainers"}) {
    verify->excludes(command.get_option(other));
  }
  command.add_option("--seed", options.seed, "Of the sample (default: another one each time)")
      ->check(whole_number_in(0, UINT32_MAX))
      ->needs(verify);
}

Report verified(const control::Plan& plan, const PlanVerifyOptions& options) {
  const ProgressLine progress([&plan] {
    return fmt::format("proving {} on {}", plan.algorithm(), plan.topology().spec());
  });
  Report report;
  report.fact("topology", plan.topology().spec());
  report.fact("algorithm", plan.algorithm());
  report.fact("servers", plan.ranks());
  report.fact("pieces", plan.pieces());
  report.line(fmt::format("{} on {}: {} servers, {} pieces", plan.algorithm(),
                          plan.topology().spec(), grouped(plan.ranks()), grouped(plan.pieces())));
  if (plan.ranks() <= kMostExact) {
    add_exact(report, plan);
  } else {
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    add_sampled(report, plan, options.seed.value_or(static_cast<std::uint64_t>(now) % 1'000'000));
  }
  return report;
}

}  // namespace gradcube::cli
