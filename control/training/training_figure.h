// MG-WFBP's Fig. 9: the speedup of training on 4 to 64 nodes over one, by policy.
#ifndef GRADCUBE_CONTROL_TRAINING_TRAINING_FIGURE_H_
#define GRADCUBE_CONTROL_TRAINING_TRAINING_FIGURE_H_

#include <string_view>

#include "control/model/figure.h"

namespace gradcube::control::training {

inline constexpr std::string_view kFigure9 = "mg-wfbp-9";

// A panel for each of the paper's two networks. The paper's own lines cannot be read from its text;
// what it says of 64 nodes in numbers is shown as `paper`.
model::Figure mgwfbp_figure_9();

}  // namespace gradcube::control::training

#endif  // GRADCUBE_CONTROL_TRAINING_TRAINING_FIGURE_H_
