// More threads for a plan: each is cut into equal parts of its share of the buffer, which go
// through the same steps. So a server adds up on as many lcores as it is given, where BML's plan
// has a thread for each level alone.
//
// The parts of a thread stand side by side, so each element of a buffer goes through the same steps
// as before. Where all steps are meshes the result has the same bits; the order of additions in a
// ring depends on who owns a piece, and the pieces are others. The parts share the ports of their
// steps, so a plan that is cut promises no port to one thread (LinkUse::shared).
#ifndef GRADCUBE_CONTROL_PLAN_ALGORITHMS_CUT_THREADS_H_
#define GRADCUBE_CONTROL_PLAN_ALGORITHMS_CUT_THREADS_H_

#include "control/plan/base/plan.h"

namespace gradcube::control {

// A cut plan has no more threads. Frames have room for those of all plans that a lane may choose
// from.
inline constexpr unsigned kMostCutThreads = 20;

// So many parts of each thread that all lcores of a server have as many of them; where these are
// more than kMostCutThreads, a part for each lcore at least, or as many as there may be. A plan
// whose steps double is left as it is: its buffers are too short to be shared.
Plan cut_threads(Plan plan);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_ALGORITHMS_CUT_THREADS_H_
