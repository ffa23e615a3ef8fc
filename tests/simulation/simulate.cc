// Plays random clusters from seeds, and a job with a hub on each: one seed again, or many in a row.
//
// Each seed's line begins before the seed is played, so that a seed that ends the program (a failed
// assertion, a sanitizer's report) is named by the last line. Exit code: 0 when every seed ended as
// it must, 1 when one did not, 2 when the command line is wrong.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <exception>

#include "tests/simulation/eal_options.h"
#include "tests/simulation/random_hub.h"
#include "tests/simulation/scenario.h"

namespace gradcube::simulation {
namespace {

// Returns whether the run ended as it must.
bool play_seed(std::uint64_t seed, bool verbose) {
  const Scenario scenario = draw_scenario(seed);
  std::printf("seed %ju: ", static_cast<std::uintmax_t>(seed));
  if (verbose) std::printf("%s\n  ", describe(scenario).c_str());
  std::fflush(stdout);

  Outcome outcome = play(scenario);
  const Outcome of_hub = play_hub(seed);
  outcome.complaints.insert(outcome.complaints.end(), of_hub.complaints.begin(),
                            of_hub.complaints.end());
  std::printf(
      "%s, %u collectives and %u pushes succeeded, %u and %u failed, %.3f ms of virtual time, "
      "trace %016jx\n",
      outcome.complaints.empty() ? "ok" : "WRONG", outcome.succeeded, of_hub.succeeded,
      outcome.failed, of_hub.failed, static_cast<double>(outcome.virtual_time) * 1e-6,
      static_cast<std::uintmax_t>(outcome.trace));
  if (outcome.complaints.empty()) return true;
  if (!verbose) std::printf("  %s\n", describe(scenario).c_str());
  for (const std::string& complaint : outcome.complaints) std::printf("  %s\n", complaint.c_str());
  std::printf("  again: simulate --seed %ju\n", static_cast<std::uintmax_t>(seed));
  return false;
}

int simulate(int argc, char** argv) {
  std::uint64_t seed = 0;
  std::uint64_t first = 1;
  std::uint64_t seeds = 100;
  CLI::App app("Plays whole clusters under a virtual clock, drawn from seeds.", "simulate");
  CLI::Option* one = app.add_option("--seed", seed, "Play this seed alone, and say what it draws");
  app.add_option("--seeds", seeds, "Play this many seeds")->capture_default_str()->excludes(one);
  app.add_option("--first", first, "Begin with this seed")->capture_default_str()->excludes(one);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  const dataplane::Eal eal(eal_options());
  if (one->count() != 0) return play_seed(seed, true) ? 0 : 1;
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < seeds; ++i) wrong += play_seed(first + i, false) ? 0 : 1;
  std::printf("%ju seeds ok, %ju wrong\n", static_cast<std::uintmax_t>(seeds - wrong),
              static_cast<std::uintmax_t>(wrong));
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace gradcube::simulation

int main(int argc, char** argv) {
  try {
    return gradcube::simulation::simulate(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "simulate: %s\n", error.what());
    return 1;
  }
}
