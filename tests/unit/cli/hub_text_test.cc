#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/status/status_parts.h"

namespace gradcube::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json status_of(const json& hub) { return {{"hubs", {hub}}}; }

json running() {
  return json::parse(R"({"job":"digits","id":1234567,"number":1,"address":[2,2],"state":"running",
    "why":"","members":[[0,1],[0,2],[1,0]],"trainers_per_server":2,"uid":1000,"keys":1062,
    "weights_bytes":46800000,"memory_bytes":190000000,"packets_reserved_bytes":2500000})");
}

TEST(HubText, ShowsWhoCallsAndWhatTheHubTakes) {
  EXPECT_EQ(hubs_text(status_of(running())), R"(
hubs that are aggregated for jobs of other servers
job          id  server  state    called by  trainers   keys  weights  memory  packets  user
digits  1234567   [2,2]  running      [0,1]         6  1,062  46.8 MB  190 MB   2.5 MB  1000
)");
}

TEST(HubText, ShowsNothingOfWhatIsNotMadeYetAndWhyItCannotBe) {
  json hub = running();
  hub["state"] = "failed";
  hub["why"] = "the host has not so much\x1b[2J";
  for (const char* key : {"keys", "weights_bytes", "memory_bytes", "packets_reserved_bytes"}) {
    hub[key] = 0;
  }
  EXPECT_THAT(hubs_text(status_of(hub)),
              HasSubstr("6     -        -       -        -  1000  the host has not so much\\x1b"));
}

TEST(HubText, IsEmptyWithoutHubsAndToleratesWhatIsNone) {
  EXPECT_EQ(hubs_text({{"hubs", json::array()}}), "");
  EXPECT_EQ(hubs_text(json::object()), "") << "a daemon of another version";
  const json odd = {{"hubs", {json(), json(3), json("x"), json::array(), json::object()}}};
  EXPECT_NO_THROW(hubs_text(odd));
}

}  // namespace
}  // namespace gradcube::cli
