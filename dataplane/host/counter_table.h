// Counters as a table. A struct that counts things lists each of its counters once, with its name,
// in a static for_each(). Sums, the JSON of `gradcube status` and the test of docs/counters.md walk
// that list: a new counter is one member, one line in for_each() and one line in the document.
//
//     struct DoorCounters {
//       std::uint64_t opened = 0;
//
//       template <typename Visit, typename... Objects>
//       static void for_each(Visit&& visit, Objects&... objects) {
//         visit(CounterEntry{"opened"}, objects.opened...);
//       }
//     };
//
// With no object, for_each() lists the names. With several, it visits the same counter of each of
// them together, also where one object holds RelaxedCounters and another plain numbers.
#ifndef GRADCUBE_DATAPLANE_HOST_COUNTER_TABLE_H_
#define GRADCUBE_DATAPLANE_HOST_COUNTER_TABLE_H_

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "dataplane/host/relaxed_counter.h"

namespace gradcube::dataplane {

// How the numbers of several counting objects become one.
enum class Merge { sum, maximum };

struct CounterEntry {
  std::string_view name;
  Merge merge = Merge::sum;
  std::string_view group = {};  // "dropped": the counter is one of several of that kind
};

inline std::uint64_t counter_value(std::uint64_t value) { return value; }
inline std::uint64_t counter_value(const RelaxedCounter& counter) { return counter.value(); }

// Adds the counters of `one` to those of `sum`, which holds plain numbers.
template <typename Sum, typename One>
void add_counters(Sum& sum, const One& one) {
  Sum::for_each(
      [](const CounterEntry& entry, std::uint64_t& total, const auto& counter) {
        const std::uint64_t value = counter_value(counter);
        total = entry.merge == Merge::sum ? total + value : std::max(total, value);
      },
      sum, one);
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HOST_COUNTER_TABLE_H_
