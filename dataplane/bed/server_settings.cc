#include "dataplane/bed/server_settings.h"

#include <cstdint>
#include <nlohmann/json.hpp>

#include "control/base/host_memory.h"

namespace gradcube::dataplane {

namespace {

// "2,1", as --server takes it.
std::string address(const bcube::AddressSpace& space, bcube::ServerId server) {
  const std::string text = space.text(server);
  return text.substr(1, text.size() - 2);
}

}  // namespace

control::ClusterSettings server_settings(control::ClusterSettings settings, bcube::ServerId server,
                                         const std::vector<unsigned>& cores) {
  const std::uint64_t servers = settings.topology.servers();
  settings.lcores.clear();
  for (std::uint64_t i = 0; i < settings.server_lcores; ++i) {
    settings.lcores.push_back(cores[(server * settings.server_lcores + i) % cores.size()]);
  }
  if (settings.packet_memory_bytes.has_value()) *settings.packet_memory_bytes /= servers;
  settings.trainer_memory_bytes =
      settings.trainer_memory_bytes.value_or(control::half_of_host_memory()) / servers;
  return settings;
}

std::vector<std::string> server_program(const std::string& executable,
                                        const control::ClusterSettings& settings,
                                        bcube::ServerId server,
                                        const std::vector<std::string>& ports,
                                        const control::RunDirectory& directory) {
  const bcube::AddressSpace& space = settings.topology.space();
  std::vector<std::string> program = {executable, "--server", address(space, server)};
  program.insert(program.end(), ports.begin(), ports.end());
  program.insert(
      program.end(),
      {"--run-dir", directory.of_server(space.suffix(server)).path().string(), "--socket-dir",
       directory.path().string(), "--settings", control::to_json(settings).dump()});
  return program;
}

}  // namespace gradcube::dataplane
