// BML's theory: what gradient synchronization takes on BCube and on Fat-Tree, and what the two
// networks cost in switches (BML, sections 2, 3.1, 3.2 and 3.3).
//
//   N    servers: n^k in BCube(n,k), which has k levels of n-port switches
//   t_f  T_F: seconds that one link takes for the full gradient (Table 1); transfer_time.h
//   GST  gradient synchronization time, in seconds
//
// Assumed: every link has the same rate, both directions at once; latency and addition take no
// time; the Fat-Tree is non-blocking.
//
// Where the text leaves a choice:
//   - "PS" on a Fat-Tree is the P2P one, in which every server is a worker and a parameter server
//     for 1/N of the gradient: the paper takes it, and gives no time for any other.
//   - Section 3.3 says that PS on BCube "will double the GST" of BML, without an equation.
//     hips_mesh_gst() (hips_model.h) has one. Over bml_gst() it is k n^(k-1) (n-1) / (n^k - 1), or
//     nearly k: for the k = 2 of the paper's Figure 5, 1.6 at n = 4 and 1.94 at n = 32.
//
// Every function throws std::invalid_argument for less than two servers, n < 2 or k < 1 (grid.h).
#ifndef GRADCUBE_CONTROL_MODEL_BML_MODEL_H_
#define GRADCUBE_CONTROL_MODEL_BML_MODEL_H_

#include <cstdint>
#include <span>

namespace gradcube::control::model {

// T_C: seconds that one link takes for one of the kN pieces of the gradient (section 3.2).
double bml_piece_seconds(std::uint64_t n, unsigned k, double t_f);

// Step w of the aggregation stage, 0..k-1: N / n^(w+1) * (n-1) * T_C (section 3.2). The broadcast
// stage has the same steps in reverse. Throws std::invalid_argument for w >= k, too.
double bml_step_seconds(std::uint64_t n, unsigned k, unsigned w, double t_f);

// GST of BML on BCube(n,k): 2(N-1) * T_C = 2(N-1)/(kN) * T_F (section 3.2).
double bml_gst(std::uint64_t n, unsigned k, double t_f);

// The paper has one radix for all levels. On a generalized BCube, radices[l] at level l, thread t
// of k begins with level t, as it does there, and takes its k-th of the gradient; then levels carry
// different shares. This is what a port of the level sends in one stage, as a share of the
// gradient: a thread that comes to level l from level t has 1 / (n_t ... n_(l-1)) of its k-th left,
// and sends (n_l - 1) / n_l of that. Of equal radices it is (N-1)/(kN). Throws
// std::invalid_argument for a level that is none, too.
double bml_level_share(std::span<const std::uint64_t> radices, unsigned level);

// The GST that follows: the time that a port of the busiest level needs for both stages. The
// threads of a server take different times for a step, so it is a lower bound unless the radices
// are equal.
double bml_gst(std::span<const std::uint64_t> radices, double t_f);

// GST on a Fat-Tree: 2(N-1)/N * T_F by P2P-based PS and by ring all-reduce (section 2), and the
// same by a hierarchical algorithm as BML's (section 3.3). With several NICs at every server it is
// divided by their number (section 3.3). Throws std::invalid_argument for 0 NICs, too.
double fat_tree_gst(std::uint64_t N, double t_f, unsigned nics = 1);

// Switches of BCube(n,k): k * n^(k-1) = kN/n (section 3.1).
std::uint64_t bcube_switches(std::uint64_t n, unsigned k);

// Switches of n ports of a 3-layer Fat-Tree for N servers: 5N/n (section 3.1), times the NICs of a
// server (section 3.3). A fraction when no Fat-Tree has exactly N servers: one of n-port switches
// has n^3/4.
double fat_tree_switches(std::uint64_t N, std::uint64_t n, unsigned nics = 1);

}  // namespace gradcube::control::model

#endif  // GRADCUBE_CONTROL_MODEL_BML_MODEL_H_
