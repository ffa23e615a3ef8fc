// The functions CalcGset and CheckDigits of the BML paper's Algorithm 1 (lines 16..25), word for
// word: they look at every piece of a set. Plan answers the same questions by arithmetic; the tests
// hold the two against each other.
//
// In the paper t, the thread that runs the algorithm, is not an argument because it never changes;
// here it is one.
#ifndef GRADCUBE_TESTS_UNIT_CONTROL_BML_PIECES_H_
#define GRADCUBE_TESTS_UNIT_CONTROL_BML_PIECES_H_

#include <vector>

#include "bcube_forwarding/address.h"
#include "control/plan/base/pieces.h"

namespace gradcube::control {

// Whether the piece g agrees with server s in thread t's first w+1 digits, and is of thread t.
bool check_digits(const bcube::AddressSpace& space, PieceId g, bcube::ServerId s, unsigned w,
                  unsigned t);

// Those of the pieces `all` that check_digits accepts, in their order.
std::vector<PieceId> calc_gset(const bcube::AddressSpace& space, bcube::ServerId s, unsigned w,
                               unsigned t, const std::vector<PieceId>& all);

// The paper's a.GF: all k*N pieces, by thread and owner.
std::vector<PieceId> full_gradient_set(const bcube::AddressSpace& space);

}  // namespace gradcube::control

#endif  // GRADCUBE_TESTS_UNIT_CONTROL_BML_PIECES_H_
