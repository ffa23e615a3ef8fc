// The cluster file's parser: it returns settings that a cluster can have, or throws a UsageError.

#include <string_view>

#include "control/base/errors.h"
#include "control/settings/cluster_file.h"
#include "tests/fuzz/fuzz_target.h"

namespace gradcube::fuzz {

const unsigned kMutations = 50'000;

void read_hostile(std::span<const std::uint8_t> input) {
  const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  try {
    const control::ClusterSettings settings = control::parse_cluster_file(text, "cluster.toml");
    require(settings.topology.servers() >= 1, "a cluster has a server");
    require(settings.mtu >= control::kMinMtu && settings.mtu <= control::kMaxMtu,
            "the MTU is within its bounds");
    for (const double probability :
         {settings.loss, settings.duplicate, settings.reorder, settings.corrupt}) {
      require(probability >= 0 && probability <= 1, "a probability is one");
    }
  } catch (const control::UsageError& error) {
    require(std::string_view(error.what()).size() > 10, "a refusal has a message");
  }
}

std::vector<Bytes> seeds() {
  constexpr std::string_view kTexts[] = {
      "[topology]\nspec = \"bcube:3,2\"\n",
      "[topology]\nspec = \"bcube:4,2\"\n[link]\nrate = \"200mbit\"\nmtu = 9000\n",
      "[topology]\nspec = \"star:8\"\n[impair]\nloss = 0.001\nduplicate = 0.5\nseed = 7\n",
      "[link]\nrate = \"10gbit\"\ndelay = \"50us\"\nqueue = \"128K\"\necn-threshold = \"64K\"\n"
      "[impair]\nreorder = 1.0\ncorrupt = 1e-3\n",
      "# nothing but engines\n[engine]\nlcores = [0, 1]\nidle = \"spin\"\n",
      "[engine]\nlcores = \"0-3\"\nidle = \"adaptive\"\n",
      "[topology]\nspec = \"bcube:2,1\"\nhosts = [[\"10.0.0.1:5000\"], \"10.0.0.2\"]\n"
      "[link]\nfabric = \"udp\"\nmtu = 1280\n",
  };
  std::vector<Bytes> inputs;
  for (const std::string_view text : kTexts) inputs.emplace_back(text.begin(), text.end());
  return inputs;
}

}  // namespace gradcube::fuzz
