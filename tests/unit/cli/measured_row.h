// An all-reduce of 12.5 MB as `gradcube perf` has measured it.
#ifndef GRADCUBE_TESTS_UNIT_CLI_MEASURED_ROW_H_
#define GRADCUBE_TESTS_UNIT_CLI_MEASURED_ROW_H_

#include "cli/measure/perf_row.h"

namespace gradcube::cli {

inline PerfRow measured_row() {
  return {.count = 3125000,
          .type = aggregation::DataType::float32,
          .operation = aggregation::Operation::sum,
          .in_flight = 1,
          .seconds = {0.5, 0.9, 0.46, 0.48},
          .wrong = 0,
          .work = WorkCounts{.segments = 1440,
                             .resent = 7,
                             .acknowledgements = 100,
                             .sleeps = 30,
                             .cpu_ns = 5'000'000},
          .operations = 10};
}

inline constexpr PerfLinks kBcube32{
    .ranks = 9, .busiest_share = 2.0 * 8 / (2 * 9), .rate_bps = 200e6};

}  // namespace gradcube::cli

#endif  // GRADCUBE_TESTS_UNIT_CLI_MEASURED_ROW_H_
