// The gradient synchronization time (GST) of every algorithm that the papers give for a topology,
// by the names that the project uses for them.
//
//   bml               BML. On a star and a Fat-Tree, whose servers have one NIC, that of BCube(N,1)
//   ps                one parameter server for all, under one switch or a Fat-Tree: that of
//                     hips:root with one group
//   mesh              PS and MS, which the papers do not tell apart: every server is the parameter
//                     server for 1/N of the gradient (bml_model.h, hips_model.h)
//   ring              one ring of all servers
//   hips:mesh,        HiPS, with mesh, ring or one parameter server in every group
//   hips:ring, hips:root
//   blueconnect       BlueConnect with a factor for each level: its Eq. 10 with one learner in a
//                     node on BCube and Torus, each of whose levels has its own links; its Eq. 9
//                     with the one factor N on a star and a Fat-Tree. On a Torus every stage is a
//                     ring, as in the plan: half of a ring is not one hop away
//   halving_doubling  recursive halving, then doubling, of all servers: for powers of two
//   two-level         groups of n servers under one level-0 switch, then a ring, or halving and
//                     doubling, of one of each group: BlueConnect's Eq. 7 with p_0 = n. On a star
//                     and a Fat-Tree, which have one level, p_0 is the load's group
//
// BML and HiPS have one radix n for all levels. On a generalized BCube their levels carry different
// shares, and the time is that of the busiest: 2(n-1)/n for the largest n with mesh, and
// bml_gst()'s sum with bml and hips, a lower bound there. hips:root has no row then. BlueConnect's
// equations take any radices.
//
// Latency is a time for every message. BlueConnect's equations have it (alpha); those of BML and
// HiPS do not. To these is added the latency of all messages that a server's busiest port passes
// one after the other in the steps of the algorithm, which is alpha's meaning and gives the ring
// of HiPS that of BlueConnect's Eq. 6. A flat mesh on BCube counts relayed messages, too.
#ifndef GRADCUBE_CONTROL_MODEL_GST_TABLE_H_
#define GRADCUBE_CONTROL_MODEL_GST_TABLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/model/model_topology.h"

namespace gradcube::control::model {

// What is synchronized, and over which links; all links are equal.
struct ModelLoad {
  double bytes = 0;            // of each server's gradient
  double bits_per_second = 0;  // of a link
  double latency_seconds = 0;  // of a message
  // Of two-level: servers in a group, where the topology has one level; 0: not known.
  std::uint64_t group = 0;
};

struct ModelRow {
  std::string topology;  // "bcube:3,2"
  std::string algorithm;
  std::uint64_t servers = 0;
  double seconds = 0;
  // seconds / T_F, where T_F is the time that one link takes for the full gradient (BML, Table 1)
  // without any latency.
  double relative = 0;
  std::string source;  // where the equation is: "BML 3.2"
};

// All names, in the order above.
std::vector<std::string_view> gst_algorithms();

// Nothing when no paper gives the algorithm's time on the topology. Throws std::invalid_argument
// for an algorithm that is none of gst_algorithms(), and for a load without bytes, without a rate
// or with a negative latency.
std::optional<ModelRow> gst_row(const ModelTopology& topology, std::string_view algorithm,
                                const ModelLoad& load);

}  // namespace gradcube::control::model

#endif  // GRADCUBE_CONTROL_MODEL_GST_TABLE_H_
