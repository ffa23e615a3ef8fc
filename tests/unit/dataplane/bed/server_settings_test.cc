#include "dataplane/bed/server_settings.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gradcube::dataplane {
namespace {

using Json = nlohmann::ordered_json;

TEST(ServerSettings, TakeTheCoresInTurnAndDivideTheMemory) {
  control::ClusterSettings settings;
  settings.packet_memory_bytes = 90'000'000;
  settings.trainer_memory_bytes = 900'000'000;
  const std::vector<unsigned> cores = {2, 5};
  EXPECT_EQ(server_settings(settings, 0, cores).lcores, std::vector<unsigned>{2});
  EXPECT_EQ(server_settings(settings, 3, cores).lcores, std::vector<unsigned>{5});
  settings.server_lcores = 2;
  EXPECT_EQ(server_settings(settings, 1, {1, 2, 5}).lcores, (std::vector<unsigned>{5, 1}));
  EXPECT_EQ(server_settings(settings, 3, cores).packet_memory_bytes, 10'000'000u);
  EXPECT_EQ(server_settings(settings, 3, cores).trainer_memory_bytes, 100'000'000u);
  settings.trainer_memory_bytes.reset();
  settings.packet_memory_bytes.reset();
  EXPECT_TRUE(server_settings(settings, 0, cores).trainer_memory_bytes.has_value());
  EXPECT_FALSE(server_settings(settings, 0, cores).packet_memory_bytes.has_value());
}

TEST(ServerSettings, BecomeTheArgumentsOfADaemon) {
  const control::ClusterSettings settings;
  const auto program =
      server_program("/bin/gradcubed", settings, 7, {"--interfaces", "level0,level1"},
                     control::RunDirectory("/run/g"));
  const std::vector<std::string> start(program.begin(), program.end() - 1);
  EXPECT_EQ(start, (std::vector<std::string>{"/bin/gradcubed", "--server", "2,1", "--interfaces",
                                             "level0,level1", "--run-dir", "/run/g/2-1",
                                             "--socket-dir", "/run/g", "--settings"}));
  EXPECT_EQ(control::settings_from_json(Json::parse(program.back())), settings);
}

}  // namespace
}  // namespace gradcube::dataplane
