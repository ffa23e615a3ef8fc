// PHub's models of training with parameter servers (PHub, sections 2.3.1 and 3.4).
//
//   M    bytes of the model, and of each worker's gradients
//   T    seconds of an iteration's computation
//   N    workers; in section 3.4, of each rack
//   R    racks
//
// Every function throws std::invalid_argument for an N or R below 2, or a value that is not above
// 0.
#ifndef GRADCUBE_CONTROL_MODEL_PHUB_MODEL_H_
#define GRADCUBE_CONTROL_MODEL_PHUB_MODEL_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace gradcube::control::model {

// Figure 4: where the parameter servers are. Colocated ones run on the workers' hosts; a central
// one has the whole model, and of sharded ones each has 1/N of it.
enum class PsLayout { cc, cs, ncc, ncs };

// Of the table of section 4.2: what one GPU, a GTX 1080 Ti, takes for a batch.
struct PhubNetwork {
  std::string_view name;
  double bytes;
  double seconds;
};

inline constexpr std::array kPhubNetworks = {
    PhubNetwork{"alexnet", 194e6, 0.016},     PhubNetwork{"vgg11", 505e6, 0.121},
    PhubNetwork{"vgg19", 548e6, 0.268},       PhubNetwork{"googlenet", 38e6, 0.100},
    PhubNetwork{"inception-v3", 91e6, 0.225}, PhubNetwork{"resnet18", 45e6, 0.054},
    PhubNetwork{"resnet50", 97e6, 0.161},     PhubNetwork{"resnet269", 390e6, 0.350},
    PhubNetwork{"resnext269", 390e6, 0.386}};

inline constexpr std::array kPsLayouts = {PsLayout::cc, PsLayout::cs, PsLayout::ncc, PsLayout::ncs};

std::string_view name_of(PsLayout layout);         // "cc", as in Table 2
std::string_view description_of(PsLayout layout);  // "colocated, centralized"

// The least bits per second, sent and received together, with which the host of a parameter server
// hides its communication behind T: all gradients come in and all updates go out meanwhile. Figure
// 4 has the equations in a picture; these give all four numbers of each row of Table 2 (N = 8) from
// one M/T. With the times of section 4.2 they are 2 % to 10 % above the table, which rounds, and
// whose times are not given:
//
//   cc   2(N-1) M/T    one of the workers is on the server's own host
//   cs   4(N-1)/N M/T  each host serves its share to N-1 workers, and its worker needs N-1 shares
//   ncc  2N M/T
//   ncs  2 M/T         N servers beside the N workers, each with N shares of M/N
double hiding_bits_per_second(PsLayout layout, std::uint64_t N, double M, double T);

// Rates in bits per second.
struct HubRates {
  double hub = 0;     // of a rack's PBox, B_PBox
  double core = 0;    // of a rack's uplink into the network core, B_Core
  double worker = 0;  // B_Wkr
};

// Section 3.4: what the inequality compares, by the M that it leaves out.
//
//   flat          N(R-1)/R M / B_Core, what crosses racks if the hubs share the model
//   hierarchical  (max(N / B_PBox, 1 / B_Wkr) + (R-1)/R / min(B_PBox, B_Core)) M
//
// The text's r in C is taken for R: a ring of the racks' hubs, or their shards.
struct HierarchyTimes {
  double flat = 0;          // seconds
  double hierarchical = 0;  // seconds
  bool pays() const { return flat > hierarchical; }
};
HierarchyTimes hierarchy_times(std::uint64_t N, std::uint64_t R, const HubRates& rates, double M);

}  // namespace gradcube::control::model

#endif  // GRADCUBE_CONTROL_MODEL_PHUB_MODEL_H_
