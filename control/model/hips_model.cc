#include "control/model/hips_model.h"

#include "control/model/grid.h"

namespace gradcube::control::model {
namespace {

double by_network(HipsNetwork network, double bcube_seconds) {
  return network == HipsNetwork::bcube ? bcube_seconds : bcube_seconds / 2;
}

}  // namespace

double hips_gst(HipsNetwork network, std::uint64_t n, unsigned h, double w_by_b) {
  return hips_ring_gst(network, n, h, w_by_b) / h;
}

double hips_mesh_gst(HipsNetwork network, std::uint64_t n, unsigned h, double w_by_b) {
  grid_servers(n, h);
  const auto group = static_cast<double>(n);
  return by_network(network, 2 * (group - 1) / group * w_by_b);
}

double hips_ring_gst(HipsNetwork network, std::uint64_t n, unsigned h, double w_by_b) {
  const auto N = static_cast<double>(grid_servers(n, h));
  return by_network(network, 2 * (N - 1) / N * w_by_b);
}

double hips_root_gst(std::uint64_t n, unsigned h, double w_by_b) {
  grid_servers(n, h);
  return 2 * (static_cast<double>(n) - 1) * w_by_b;
}

}  // namespace gradcube::control::model
