#include "cli/launch/launch_environment.h"

#include <map>
#include <string_view>

#include "cli/cluster/cluster_hosts.h"

namespace gradcube::cli {
namespace {

using Variables = std::map<std::string, std::string>;

Variables variables_of(const char* const* inherited) {
  Variables variables;
  for (; *inherited != nullptr; ++inherited) {
    const std::string_view text = *inherited;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    // Where a name is there twice, the first counts, as for getenv().
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

}  // namespace

std::vector<std::string> launch_environment(const char* const* inherited, const LaunchWorld& world,
                                            const PerfTrainer& trainer) {
  const auto text = [](std::uint64_t number) { return std::to_string(number); };
  const std::uint64_t processes = std::uint64_t{world.servers} * world.trainers_per_server;
  Variables variables = variables_of(inherited);
  variables.emplace("OMP_NUM_THREADS", "1");   // else each takes all cores
  variables.emplace("PYTHONUNBUFFERED", "1");  // else lines come when a buffer is full
  const Variables ours = {
      {"RANK", text(trainer.rank)},
      {"WORLD_SIZE", text(processes)},
      {"LOCAL_RANK", text(trainer.local)},
      {"LOCAL_WORLD_SIZE", text(world.trainers_per_server)},
      {"GROUP_RANK", text(trainer.rank / world.trainers_per_server)},
      {"GROUP_WORLD_SIZE", text(world.servers)},
      {"ROLE_NAME", "default"},
      {"ROLE_RANK", text(trainer.rank)},
      {"ROLE_WORLD_SIZE", text(processes)},
      {"MASTER_ADDR", world.master},
      {"MASTER_PORT", text(world.port)},
      {"TORCHELASTIC_RUN_ID", world.run_id},
      {"TORCHELASTIC_RESTART_COUNT", "0"},
      {"TORCHELASTIC_MAX_RESTARTS", "0"},
      {"TORCHELASTIC_USE_AGENT_STORE", "False"},  // the process of rank 0 listens at MASTER_PORT
      {"GRADCUBE_SOCKET", trainer.socket},
  };
  for (const auto& [name, value] : ours) variables[name] = value;
  variables.erase(kThisHostAlone);  // it concerns the command that starts them
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables) {
    std::string variable = name;
    environment.push_back(variable.append("=").append(value));
  }
  return environment;
}

}  // namespace gradcube::cli
