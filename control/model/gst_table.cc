#include "control/model/gst_table.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <stdexcept>

#include "control/model/blueconnect_model.h"
#include "control/model/bml_model.h"
#include "control/model/hips_model.h"
#include "control/model/transfer_time.h"

namespace gradcube::control::model {
namespace {

using Kind = ModelTopology::Kind;

struct Estimate {
  double seconds;
  std::string_view source;
};

// One topology and load, as the equations take them.
struct Question {
  const ModelTopology& topology;
  std::uint64_t most;  // the largest radix: n where all are equal
  std::uint64_t N;
  double t_f;
  ModelLoad load;

  bool is_torus() const { return topology.kind == Kind::torus; }
  bool is_fattree() const { return topology.kind == Kind::fattree; }
  bool is_uniform() const { return topology.uniform(); }
  unsigned levels() const { return topology.levels(); }
  HipsNetwork network() const { return is_torus() ? HipsNetwork::torus : HipsNetwork::bcube; }
  double latency(double messages) const { return messages * load.latency_seconds; }

  // Of both stages, at each of the levels in turn n-1 messages.
  double latency_by_levels() const {
    double messages = 0;
    for (const std::uint64_t n : topology.radices) messages += 2 * static_cast<double>(n - 1);
    return latency(messages);
  }
  double latency_of_ring() const { return latency(2 * static_cast<double>(N - 1)); }
  // In each stage a port passes what goes to the N (n-1)/n servers with another digit at its
  // level. A torus has two ports for them.
  double latency_of_flat_mesh() const {
    const std::uint64_t per_stage = N / most * (most - 1);
    return latency(static_cast<double>(is_torus() ? per_stage : 2 * per_stage));
  }
};

using Answer = std::optional<Estimate>;

Answer bml(const Question& q) {
  if (q.is_torus()) return std::nullopt;
  if (!q.is_uniform()) {
    return Estimate{bml_gst(q.topology.radices, q.t_f) + q.latency_by_levels(),
                    "BML 3.2, the busiest level: a lower bound"};
  }
  return Estimate{bml_gst(q.most, q.levels(), q.t_f) + q.latency_by_levels(),
                  q.is_fattree() ? "BML 3.3" : "BML 3.2"};
}

// A level's ports carry (n-1)/n of a gradient, so those of the largest radix are the busiest.
Answer mesh(const Question& q) {
  const double latency = q.latency_of_flat_mesh();
  if (q.is_fattree()) return Estimate{fat_tree_gst(q.N, q.t_f) + latency, "BML 2"};
  return Estimate{hips_mesh_gst(q.network(), q.most, 1, q.t_f) + latency,
                  q.is_torus()      ? "HiPS Table 3, PSS/MS: a lower bound"
                  : !q.is_uniform() ? "HiPS Table 3, PSS/MS, the busiest level"
                                    : "HiPS Table 3, PSS/MS"};
}

Answer ring(const Question& q) {
  if (q.is_fattree()) return Estimate{fat_tree_gst(q.N, q.t_f) + q.latency_of_ring(), "BML 2"};
  return Estimate{hips_ring_gst(q.network(), q.N, 1, q.t_f) + q.latency_of_ring(),
                  "HiPS Table 3, RS"};
}

// Mesh and ring bring the same bytes over each link as BML.
Answer hips_ring(const Question& q) {
  if (q.is_fattree()) return std::nullopt;
  if (!q.is_uniform()) {
    return Estimate{bml_gst(q.topology.radices, q.t_f) + q.latency_by_levels(),
                    "HiPS Table 3, HiPS, the busiest level: a lower bound"};
  }
  return Estimate{hips_gst(q.network(), q.most, q.levels(), q.t_f) + q.latency_by_levels(),
                  "HiPS Table 3, HiPS"};
}

Answer hips_mesh(const Question& q) { return q.is_torus() ? std::nullopt : hips_ring(q); }

// One group, of all servers.
Answer ps(const Question& q) {
  if (q.is_torus() || q.levels() > 1) return std::nullopt;
  return Estimate{hips_root_gst(q.most, 1, q.t_f) + q.latency_by_levels(), "HiPS Algorithm 1"};
}

// In a stage the processes are at different levels: of different radices, none has a time for all.
Answer hips_root(const Question& q) {
  if (q.is_torus() || q.is_fattree() || !q.is_uniform()) return std::nullopt;
  return Estimate{hips_root_gst(q.most, q.levels(), q.t_f) + q.latency_by_levels(),
                  "HiPS Algorithm 1"};
}

Answer blueconnect(const Question& q) {
  const ModelLoad& load = q.load;
  std::vector<BlueConnectStage> stages;
  for (const std::uint64_t n : q.topology.radices) stages.push_back({n, load.bits_per_second});
  if (q.topology.kind == Kind::star || q.is_fattree()) {
    return Estimate{blueconnect_tree_seconds(stages, load.bytes, load.latency_seconds),
                    "BlueConnect Eq. 9"};
  }
  // Half of a ring of cables is not one hop away, so no stage is halved there, and Eq. 3 has no
  // choice. All links are equal, and no stage waits for a slower one before it.
  if (q.is_torus()) {
    double seconds = 0;
    double bytes = load.bytes;
    for (const std::uint64_t n : q.topology.radices) {
      seconds += 2 * ring_stage_seconds(n, bytes, load.latency_seconds, load.bits_per_second);
      bytes /= static_cast<double>(n);
    }
    return Estimate{seconds, "BlueConnect Eq. 10"};
  }
  stages.insert(stages.begin(), {1, load.bits_per_second});  // one learner in a node
  return Estimate{blueconnect_torus_seconds(stages, load.bytes, load.latency_seconds),
                  "BlueConnect Eq. 10"};
}

Answer halving_doubling(const Question& q) {
  // Eq. 2 wants the same latency between any two servers.
  if (q.is_torus() || !std::has_single_bit(q.N)) return std::nullopt;
  const ModelLoad& load = q.load;
  return Estimate{
      halving_doubling_seconds(q.N, load.bytes, load.latency_seconds, load.bits_per_second),
      "BlueConnect Eq. 2"};
}

Answer two_level(const Question& q) {
  const ModelLoad& load = q.load;
  const std::uint64_t n = q.levels() > 1 ? q.topology.radices.front() : load.group;
  if (q.is_torus() || n < 2 || n >= q.N || q.N % n != 0) return std::nullopt;
  return Estimate{two_level_seconds(n, q.N / n, load.bytes, load.latency_seconds,
                                    load.bits_per_second, load.bits_per_second),
                  "BlueConnect Eq. 7"};
}

struct Algorithm {
  std::string_view name;
  Answer (*answer)(const Question&);
};

constexpr Algorithm kAlgorithms[] = {{"bml", bml},
                                     {"ps", ps},
                                     {"mesh", mesh},
                                     {"ring", ring},
                                     {"hips:mesh", hips_mesh},
                                     {"hips:ring", hips_ring},
                                     {"hips:root", hips_root},
                                     {"blueconnect", blueconnect},
                                     {"halving_doubling", halving_doubling},
                                     {"two-level", two_level}};

const Algorithm& algorithm_of(std::string_view name) {
  for (const Algorithm& algorithm : kAlgorithms) {
    if (algorithm.name == name) return algorithm;
  }
  throw std::invalid_argument(fmt::format("there is no algorithm {}", name));
}

}  // namespace

std::vector<std::string_view> gst_algorithms() {
  std::vector<std::string_view> names;
  for (const Algorithm& algorithm : kAlgorithms) names.push_back(algorithm.name);
  return names;
}

std::optional<ModelRow> gst_row(const ModelTopology& topology, std::string_view algorithm,
                                const ModelLoad& load) {
  const Algorithm& known = algorithm_of(algorithm);
  const double t_f = transfer_seconds(load.bytes, load.bits_per_second);
  if (t_f <= 0) throw std::invalid_argument("0 bytes take no time: there is nothing to compare");
  if (!(load.latency_seconds >= 0)) {
    throw std::invalid_argument(fmt::format("a latency of {} s", load.latency_seconds));
  }
  const Question question{
      .topology = topology,
      .most = *std::max_element(topology.radices.begin(), topology.radices.end()),
      .N = topology.servers(),
      .t_f = t_f,
      .load = load};
  const Answer answer = known.answer(question);
  if (!answer) return std::nullopt;
  return ModelRow{.topology = topology.spec(),
                  .algorithm = std::string(known.name),
                  .servers = question.N,
                  .seconds = answer->seconds,
                  .relative = answer->seconds / t_f,
                  .source = std::string(answer->source)};
}

}  // namespace gradcube::control::model
