// The figures of the papers, as data: what their series are by the equations of the models.
//
//   hips-6, hips-7   GST of HiPS, PSS/MS and RS on BCube and on Torus, of (n,h) = (4,2), (8,3) and
//                    (16,4) (HiPS, section 4.2)
//   bml-5            GST of BML and PS on BCube and on Fat-Tree, with 16 and with 1024 servers
//   bml-7            time of 1000 iterations of VGG-19 on BCube(3,2) and on a Fat-Tree
//   blueconnect-5    all-reduce on two nodes of four learners, over the number of floats
//   blueconnect-6    ResNet-50 on up to 192 learners: overhead, scaling efficiency, images per
//                    second
//   scale            not of a paper: every row of gst_table.h on BCube(16,4), over the bytes
//
// docs/figures.md says what the papers' texts give of them, and what is assumed. A figure has
// panels, a panel has series. What the papers' authors measured is a series where their text says
// it in numbers; place() adds what a cluster of one's own has measured.
//
// Values and pure functions; drawing them is cli/model/figure_drawing.h.
#ifndef GRADCUBE_CONTROL_MODEL_FIGURE_H_
#define GRADCUBE_CONTROL_MODEL_FIGURE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gradcube::control::model {

// Where a series has its numbers from.
enum class Origin { model, paper, measured };
std::string_view origin_name(Origin origin);

struct Series {
  std::string name;
  std::vector<double> x;  // of bars, the number of the category
  std::vector<double> y;
  Origin origin = Origin::model;
  // Of bars that a cluster can measure: the topology in each category, and the names of the
  // algorithms that are this series.
  std::vector<std::string> topologies{};
  std::vector<std::string> algorithms{};
  // Of points that belong to bars: the number of the series that these are.
  std::optional<unsigned> beside = std::nullopt;
};

// What place() makes of a measured time.
enum class Measure {
  none,                // it has no place in the panel
  relative,            // time / T_F, beside the bar of its topology and algorithm
  milliseconds_count,  // over the number of 4-byte floats
  milliseconds_bytes,
};

struct Panel {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<std::string> categories;  // of bars; empty: lines over x
  bool logarithmic = false;             // both axes
  Measure measure = Measure::none;
  std::vector<Series> series{};
};

struct Figure {
  std::string name;
  std::string title;
  std::vector<Panel> panels;
};

struct FigureOptions {
  double latency_seconds = 0;     // of a message, where the figure's equations have one
  double seconds_per_sample = 0;  // that a server computes; in bml-7
};

// In the order above.
std::vector<std::string_view> figure_names();

// Throws std::invalid_argument for a name that is none of figure_names().
Figure make_figure(std::string_view name, const FigureOptions& options = {});

// What a cluster has measured: `gradcube perf allreduce`.
struct MeasuredRun {
  std::string topology;  // "bcube:4,2"
  std::string algorithm;
  std::optional<double> bits_per_second;                  // of all links
  std::vector<std::pair<std::uint64_t, double>> results;  // bytes, and the median time in seconds
  // Another topology, whose bars it belongs to as well: of a tree that is a Fat-Tree "star:16".
  std::string like{};
};

// Adds it to every panel that it fits; false if it fits none. Beside bars goes the result of the
// most bytes.
bool place(Figure& figure, const MeasuredRun& run);

}  // namespace gradcube::control::model

#endif  // GRADCUBE_CONTROL_MODEL_FIGURE_H_
