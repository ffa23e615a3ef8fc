// A trainer that pushes by gradcube_hub.hpp: hub_pusher SOCKET JOB ROUNDS CHECKPOINT.
//
// The hub has "vector", 1000 floats, by momentum, and "bits", 3 of bfloat16. In each round the
// trainer pushes its rank + 1 + the round. Then prints one line: the weights "vector"[0] and [999],
// those that weights() and pull() give, and what the binding has refused; and another line with the
// step and "vector"[0] of a hub that goes on from the checkpoint of this one. At last the norm and
// a weight of a hub that has accumulated 16 times the rank + 1, and has applied it by half; and the
// weight when it has done so once more.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gradcube/gradcube_hub.hpp"

namespace {

using gradcube::BFloat16;
using std::chrono::seconds;

template <typename Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const gradcube::Error& error) {
    return std::to_string(error.code()) + ": " + error.what();
  }
  return "nothing";
}

gradcube::Hub make(gradcube::Session& session) {
  return {session,
          {{"vector", 1000}, {"bits", 3, GRADCUBE_BFLOAT16}},
          {.optimizer = "momentum:lr=0.5,momentum=0.5"},
          seconds(30)};
}

void go_on(gradcube::Session& session, const std::string& path) {
  gradcube::Hub hub = make(session);
  const bool is_there = hub.restore(path + "-none", seconds(30)).has_value();
  const auto step = hub.restore(path, seconds(30));
  std::printf("%d %d %.9g\n", is_there ? 1 : 0, static_cast<int>(step.value_or(0)),
              hub.weights<float>(0)[0]);
  hub.free(seconds(30));
}

void accumulate(gradcube::Session& session) {
  gradcube::Hub hub(session, {{"vector", 16}}, {.accumulate = 1}, seconds(30));
  std::vector<float> weights(16, 1.0F);
  hub.init(0, std::span(weights)).wait(seconds(30));
  const std::vector<float> gradients(16, static_cast<float>(session.rank() + 1));
  hub.accumulate(0, std::span(gradients)).wait(seconds(30));
  const double norm = hub.norm();
  hub.apply(0, std::span(weights), 0.5, 0.25).wait(seconds(30));
  const float weight = weights[15];
  hub.accumulate(0, std::span(gradients)).wait(seconds(30));
  hub.apply(0, 0.5, 0.25).wait(seconds(30));
  std::printf("%.9g %.9g %.9g %.9g\n", norm, weight, weights[15], hub.weights<float>(0)[15]);
  hub.free(seconds(30));
}

void train(gradcube::Session& session, int rounds, const std::string& path) {
  std::vector<float> weights(1000, 1.0F);
  std::vector<BFloat16> bits(3, BFloat16{0x3f80});  // 1
  gradcube::Hub made = make(session);
  gradcube::Hub hub = std::move(made);
  auto first = hub.init(0, std::span(std::as_const(weights)));
  auto second = hub.init(1, std::span(bits));
  first.wait(seconds(30));
  second.wait(seconds(30));
  auto gradients = session.buffer<float>(1000);
  for (int round = 0; round < rounds; ++round) {
    for (float& each : gradients) each = static_cast<float>(session.rank() + 1 + round);
    auto request = hub.push_pull(0, gradients.span(), std::span(weights), 0.25);
    auto others = hub.push(1, std::span(std::as_const(bits)));
    if (round == 0) {
      std::printf("%s\n", refusal([&] { hub.pull(1, std::span(bits)); }).c_str());
      std::printf("%s\n", refusal([&] { hub.free(seconds(30)); }).c_str());
    }
    request.wait(seconds(30));
    others.wait(seconds(30));
  }
  std::vector<float> pulled(1000);
  hub.pull(0, std::span(pulled));
  std::printf("%s\n", refusal([&] { hub.push(1, std::span(pulled)).wait(); }).c_str());
  std::printf("%s\n", refusal([&] { hub.pull(0, std::span(pulled).first(999)); }).c_str());
  std::printf("%s\n", refusal([&] { hub.pull(2, std::span(pulled)); }).c_str());
  std::printf("%.9g %.9g %.9g %.9g %x\n", weights[0], weights[999], pulled[999],
              hub.weights<float>(0)[5], hub.weights<BFloat16>(1)[2].bits);
  hub.begin_checkpoint(path, static_cast<std::uint64_t>(rounds));
  hub.end_checkpoint(seconds(30));
  hub.free(seconds(30));
  std::printf("%s\n", refusal([&] { hub.free(); }).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  try {
    gradcube::Session session(argv[2], argv[1]);
    train(session, std::atoi(argv[3]), argv[4]);
    go_on(session, argv[4]);
    accumulate(session);
    // Destroyed without free(), on all trainers.
    const gradcube::Hub another(session, {{"vector", 10}}, {}, seconds(30));
  } catch (const gradcube::Error& error) {
    std::printf("failed: %s\n", error.what());
    return 1;
  }
  std::puts("done");
  return 0;
}
