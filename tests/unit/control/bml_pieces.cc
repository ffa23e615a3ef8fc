#include "tests/unit/control/bml_pieces.h"

namespace gradcube::control {

bool check_digits(const bcube::AddressSpace& space, PieceId g, bcube::ServerId s, unsigned w,
                  unsigned t) {
  const unsigned k = space.levels();
  for (unsigned i = 0; i <= w; ++i) {
    const unsigned j = (i + t) % k;
    if (space.digit(g.owner, j) != space.digit(s, j) || g.thread != t) return false;
  }
  return true;
}

std::vector<PieceId> calc_gset(const bcube::AddressSpace& space, bcube::ServerId s, unsigned w,
                               unsigned t, const std::vector<PieceId>& all) {
  std::vector<PieceId> result;
  for (const PieceId g : all) {
    if (check_digits(space, g, s, w, t)) result.push_back(g);
  }
  return result;
}

std::vector<PieceId> full_gradient_set(const bcube::AddressSpace& space) {
  std::vector<PieceId> result;
  for (unsigned e = 0; e < space.levels(); ++e) {
    for (bcube::ServerId server = 0; server < space.servers(); ++server) {
      result.push_back({e, server});
    }
  }
  return result;
}

}  // namespace gradcube::control
