// From which size on which algorithm takes the least time.
//
// In every model of gst_table.h the time is a line over the bytes, a + b M: a is the latency of the
// messages that follow each other, and b what the busiest link carries of the buffer. So the least
// time over all sizes is made of a few of these lines, one after the other: those with few messages
// win for short buffers, those that use the most links for long ones.
#ifndef GRADCUBE_CONTROL_MODEL_CROSSOVER_H_
#define GRADCUBE_CONTROL_MODEL_CROSSOVER_H_

#include <string>
#include <vector>

#include "control/model/gst_table.h"

namespace gradcube::control::model {

// The time of an algorithm for any number of bytes.
struct GstLine {
  std::string algorithm;
  double latency_seconds = 0;   // a
  double seconds_per_byte = 0;  // b

  double seconds(double bytes) const { return latency_seconds + seconds_per_byte * bytes; }
};

// Of all algorithms that have a row on the topology, in the order of gst_algorithms(). The bytes of
// the load do not count.
std::vector<GstLine> gst_lines(const ModelTopology& topology, const ModelLoad& load);

// From so many bytes on, to before those of the next: all algorithms of one time.
struct Winners {
  double from_bytes = 0;
  std::vector<GstLine> lines;  // never empty, and all alike
};

// By ascending size, from 0 bytes on. Who is in none of them never wins. There is a line at least.
std::vector<Winners> crossovers(const std::vector<GstLine>& lines);

}  // namespace gradcube::control::model

#endif  // GRADCUBE_CONTROL_MODEL_CROSSOVER_H_
