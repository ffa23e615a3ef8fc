// gradcube_merge_layers(): what the policies choose, compared with searches and with the papers'
// text.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

namespace {

using testing::ElementsAre;

constexpr std::array kPolicies = {GRADCUBE_WFBP, GRADCUBE_SYNCEASGD, GRADCUBE_MGWFBP,
                                  GRADCUBE_OPTIMAL};

// An all-reduce of M bytes takes a + b * M seconds.
struct Network {
  double a = 0;
  double b = 0;
  std::vector<gradcube_layer> layers;
};

// The gradients of layers first..last.
struct Message {
  std::size_t first = 0;
  std::size_t last = 0;

  friend bool operator==(const Message&, const Message&) = default;
  friend void PrintTo(const Message& message, std::ostream* stream) {
    *stream << message.first << ".." << message.last;
  }
};

// In the order of sending. Each layer is in one message, and adjacent ones are.
std::vector<Message> messages_of(int policy, const Network& network) {
  const std::size_t layers = network.layers.size();
  std::vector<std::size_t> numbers(layers);
  EXPECT_EQ(gradcube_merge_layers(policy, network.a, network.b, network.layers.data(), layers,
                                  numbers.data()),
            GRADCUBE_OK)
      << gradcube_last_error(nullptr);
  std::vector<Message> messages;
  for (std::size_t l = layers; l-- > 0;) {
    if (numbers[l] == messages.size()) messages.push_back({.first = l, .last = l});
    EXPECT_EQ(numbers[l] + 1, messages.size()) << "policy " << policy << ", layer " << l;
    messages.back().first = l;
  }
  return messages;
}

std::vector<double> ready_seconds(const Network& network) {
  std::vector<double> ready(network.layers.size());
  double now = 0;
  for (std::size_t l = ready.size(); l-- > 0;) ready[l] = now += network.layers[l].backward_seconds;
  return ready;
}

// The end of a message that is ready at one time, after one that ends at another (Eq. 7).
double end_seconds(const Network& network, std::uint64_t bytes, double ready, double before) {
  return std::max(before, ready) + (network.a + network.b * static_cast<double>(bytes));
}

// t_iter (Eq. 8): the end of the last message.
double seconds_of(int policy, const Network& network) {
  const std::vector<double> ready = ready_seconds(network);
  double end = 0;
  for (const auto& [first, last] : messages_of(policy, network)) {
    std::uint64_t bytes = 0;
    for (std::size_t l = first; l <= last; ++l) bytes += network.layers[l].bytes;
    end = end_seconds(network, bytes, ready[first], end);
  }
  return end;
}

// The least over all 2^(L-1) ways to merge adjacent layers.
double exhaustive_seconds(const Network& network) {
  const std::size_t layers = network.layers.size();
  const std::vector<double> ready = ready_seconds(network);
  double least = std::numeric_limits<double>::infinity();
  // Layers above `last` have travelled at `before`.
  const auto search = [&](const auto& self, std::size_t above, double before) -> void {
    if (above == 0) {
      least = std::min(least, before);
      return;
    }
    std::uint64_t bytes = 0;
    for (std::size_t first = above; first-- > 0;) {
      bytes += network.layers[first].bytes;
      self(self, first, end_seconds(network, bytes, ready[first], before));
    }
  };
  search(search, layers, 0);
  return least;
}

// Algorithm 1 as its text reads: from the last layer on, a layer joins the one before where its
// message would begin less than a startup time before that one is ready. What was decided before
// says what travels with what.
std::vector<Message> read_algorithm1(const Network& network) {
  const std::size_t layers = network.layers.size();
  const std::vector<double> ready = ready_seconds(network);
  std::vector<std::size_t> last(layers);  // of the message whose first layer this is
  for (std::size_t l = 0; l < layers; ++l) last[l] = l;
  std::vector<Message> messages;
  double travelled = 0;  // all that was sent before this layer's message
  for (std::size_t l = layers; l-- > 0;) {
    const double begin = std::max(travelled, ready[l]);
    if (l > 0 && ready[l - 1] - begin < network.a) {
      last[l - 1] = last[l];
      continue;
    }
    std::uint64_t bytes = 0;
    for (std::size_t m = l; m <= last[l]; ++m) bytes += network.layers[m].bytes;
    travelled = end_seconds(network, bytes, ready[l], travelled);
    messages.push_back({.first = l, .last = last[l]});
  }
  return messages;
}

// Small numbers, and those of real networks: startup times, passes and transfers of like size,
// because only then is there something to decide.
class RandomNetworks : public testing::Test {
 protected:
  Network draw(std::size_t most_layers) {
    Network network;
    const bool small = below(2) == 0;
    network.a = small ? 1.0 * below(6) : 1e-6 * below(1000);
    network.b = small ? 1 : 1e-9 * below(20);
    network.layers.resize(1 + below(most_layers));
    for (gradcube_layer& layer : network.layers) {
      layer = small ? gradcube_layer{1 + below(5), 1.0 * below(6)}
                    : gradcube_layer{1ull << below(22), 1e-6 * below(3000)};
    }
    return network;
  }

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  const std::uint64_t seed_ = std::getenv("GRADCUBE_TEST_SEED") != nullptr
                                  ? std::stoull(std::getenv("GRADCUBE_TEST_SEED"))
                                  : 20180614;

 private:
  std::mt19937_64 random_{seed_};
  testing::ScopedTrace trace_{__FILE__, __LINE__, "GRADCUBE_TEST_SEED=" + std::to_string(seed_)};
};

TEST(MergePolicies, SendEachLayerAloneOrAllTogether) {
  const Network network{.a = 1, .b = 1, .layers = {{1, 1}, {1, 1}, {1, 1}}};
  EXPECT_THAT(messages_of(GRADCUBE_WFBP, network),
              ElementsAre(Message{2, 2}, Message{1, 1}, Message{0, 0}));
  EXPECT_THAT(messages_of(GRADCUBE_SYNCEASGD, network), ElementsAre(Message{0, 2}));
}

TEST(MergePolicies, HaveOnlyOneWayToSendOneLayer) {
  const Network network{.a = 3, .b = 1, .layers = {{7, 11}}};
  for (const int policy : kPolicies) {
    EXPECT_THAT(messages_of(policy, network), ElementsAre(Message{0, 0})) << policy;
    EXPECT_EQ(seconds_of(policy, network), 11 + 3 + 7);
  }
}

// Fig. 4: layers 4 and 3 share a message, so layer 2's ends before layer 1 is ready.
TEST(MergePolicies, MergeWhereThatHidesTheRestOfTheMessages) {
  const Network network{.a = 4, .b = 1, .layers = {{1, 6}, {1, 6}, {1, 2}, {1, 2}}};
  EXPECT_EQ(seconds_of(GRADCUBE_WFBP, network), 2 + 4 * 5);
  for (const int policy : {GRADCUBE_MGWFBP, GRADCUBE_OPTIMAL}) {
    EXPECT_THAT(messages_of(policy, network),
                ElementsAre(Message{2, 3}, Message{1, 1}, Message{0, 0}))
        << policy;
    EXPECT_EQ(seconds_of(policy, network), 16 + 5);
  }
}

// Case 1 of section III: each layer travels within the pass of the next.
TEST(MergePolicies, LeaveLayersAloneWhoseMessagesAreHidden) {
  const Network network{.a = 1, .b = 1, .layers = {{1, 9}, {1, 9}, {1, 9}, {1, 9}}};
  EXPECT_EQ(messages_of(GRADCUBE_MGWFBP, network), messages_of(GRADCUBE_WFBP, network));
  EXPECT_EQ(seconds_of(GRADCUBE_OPTIMAL, network), seconds_of(GRADCUBE_WFBP, network));
}

// docs/mg-wfbp.md: layer 3 is ready at 1 and could have travelled by 4, when layer 1 is ready. The
// algorithm merges it into layer 2, because 2 - 1 < a, and then does not merge that into layer 1.
TEST(MergePolicies, ShowThatAlgorithm1IsNotOptimal) {
  const Network network{.a = 2, .b = 1, .layers = {{1, 2}, {1, 1}, {1, 1}}};
  EXPECT_THAT(messages_of(GRADCUBE_MGWFBP, network), ElementsAre(Message{1, 2}, Message{0, 0}));
  EXPECT_EQ(seconds_of(GRADCUBE_MGWFBP, network), 9);
  EXPECT_THAT(messages_of(GRADCUBE_OPTIMAL, network), ElementsAre(Message{2, 2}, Message{0, 1}));
  EXPECT_EQ(seconds_of(GRADCUBE_OPTIMAL, network), 8);
}

TEST_F(RandomNetworks, HaveEachLayerInOneMessageUnderEveryPolicy) {
  for (int i = 0; i < 1000; ++i) {
    const Network network = draw(40);
    for (const int policy : kPolicies) {
      std::size_t above = network.layers.size();
      for (const Message& message : messages_of(policy, network)) {
        ASSERT_LE(message.first, message.last);
        ASSERT_EQ(message.last + 1, above) << policy;
        above = message.first;
      }
      ASSERT_EQ(above, 0u) << policy;
    }
  }
}

TEST_F(RandomNetworks, EndFirstWithTheOptimalMessagesOfAllThereAre) {
  for (int i = 0; i < 3000; ++i) {
    const Network network = draw(16);
    ASSERT_EQ(seconds_of(GRADCUBE_OPTIMAL, network), exhaustive_seconds(network)) << i;
  }
}

TEST_F(RandomNetworks, NeverEndLaterWithTheOptimalMessagesThanUnderAnotherPolicy) {
  for (int i = 0; i < 1000; ++i) {
    const Network network = draw(200);
    const double optimal = seconds_of(GRADCUBE_OPTIMAL, network);
    for (const int policy : kPolicies) {
      ASSERT_LE(optimal, seconds_of(policy, network)) << policy << ", " << i;
    }
  }
}

TEST_F(RandomNetworks, AreMergedAsTheTextOfAlgorithm1Says) {
  for (int i = 0; i < 3000; ++i) {
    const Network network = draw(40);
    ASSERT_EQ(messages_of(GRADCUBE_MGWFBP, network), read_algorithm1(network)) << i;
  }
}

// Two layers leave Algorithm 1 one decision, and it takes the right one.
TEST_F(RandomNetworks, OfTwoLayersAreMergedRightByAlgorithm1) {
  for (int i = 0; i < 1000; ++i) {
    Network network = draw(1);
    network.layers = {{1 + below(5), 1.0 * below(6)}, {1 + below(5), 1.0 * below(6)}};
    ASSERT_EQ(seconds_of(GRADCUBE_MGWFBP, network), exhaustive_seconds(network)) << i;
  }
}

}  // namespace
}  // namespace gradcube::trainer
