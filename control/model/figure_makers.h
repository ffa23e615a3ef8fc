// The functions that make the figures of figure.h, a file for those of each paper.
#ifndef GRADCUBE_CONTROL_MODEL_FIGURE_MAKERS_H_
#define GRADCUBE_CONTROL_MODEL_FIGURE_MAKERS_H_

#include "control/model/figure.h"

namespace gradcube::control::model {

// gst_figures.cc
Figure hips_figure_6(const FigureOptions& options);
Figure hips_figure_7(const FigureOptions& options);
Figure bml_figure_5(const FigureOptions& options);
Figure bml_figure_7(const FigureOptions& options);
Figure scale_figure(const FigureOptions& options);

// blueconnect_figures.cc
Figure blueconnect_figure_5(const FigureOptions& options);
Figure blueconnect_figure_6(const FigureOptions& options);

}  // namespace gradcube::control::model

#endif  // GRADCUBE_CONTROL_MODEL_FIGURE_MAKERS_H_
