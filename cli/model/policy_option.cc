#include "cli/model/policy_option.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/text/closest.h"
#include "cli/text/option_checks.h"

namespace gradcube::cli {
namespace {

std::vector<std::string> policy_names() {
  std::vector<std::string> names = {"all"};
  for (const control::merge::Policy policy : control::merge::kPolicies) {
    names.emplace_back(control::merge::name_of(policy));
  }
  return names;
}

}  // namespace

void add_policy_option(CLI::App* command, std::string& policy) {
  add_text(command, "--policy", policy, fmt::format("{}", fmt::join(policy_names(), ", ")));
}

std::vector<control::merge::Policy> policies_of(const std::string& asked) {
  require_known("--policy", "policy", asked, policy_names());
  std::vector<control::merge::Policy> policies;
  for (const control::merge::Policy policy : control::merge::kPolicies) {
    if (asked == "all" || asked == control::merge::name_of(policy)) policies.push_back(policy);
  }
  return policies;
}

}  // namespace gradcube::cli
