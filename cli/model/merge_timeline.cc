#include "cli/model/merge_timeline.h"

#include <fmt/format.h>
#include <string>

namespace gradcube::cli {
namespace {

using control::merge::Iteration;
using control::merge::Message;
using nlohmann::ordered_json;

constexpr unsigned kComputation = 1;  // a track
constexpr unsigned kCommunication = 2;

// The name of a process, or of one of its tracks.
ordered_json name_event(const char* what, std::size_t process, unsigned track,
                        std::string_view name) {
  return {
      {"name", what}, {"ph", "M"}, {"pid", process}, {"tid", track}, {"args", {{"name", name}}}};
}

ordered_json span_event(const std::string& name, std::size_t process, unsigned track, double begin,
                        double end, ordered_json arguments) {
  return {{"name", name},
          {"ph", "X"},
          {"pid", process},
          {"tid", track},
          {"ts", begin * 1e6},
          {"dur", (end - begin) * 1e6},
          {"args", std::move(arguments)}};
}

void add_computation(ordered_json& events, std::size_t process, const Iteration& iteration) {
  if (iteration.forward_seconds > 0) {
    events.push_back(span_event("forward", process, kComputation, 0, iteration.forward_seconds,
                                ordered_json::object()));
  }
  const std::vector<double> ready = control::merge::ready_seconds(iteration);
  double begin = iteration.forward_seconds;
  for (std::size_t l = ready.size(); l-- > 0;) {
    events.push_back(span_event(fmt::format("layer {}", l + 1), process, kComputation, begin,
                                ready[l], {{"bytes", iteration.layers[l].bytes}}));
    begin = ready[l];
  }
}

void add_communication(ordered_json& events, std::size_t process, const Iteration& iteration,
                       const std::vector<Message>& messages) {
  const auto times = control::merge::times(iteration, messages);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& [first, last] = messages[i];
    std::uint64_t bytes = 0;
    for (std::size_t l = first; l <= last; ++l) bytes += iteration.layers[l].bytes;
    const std::string layers = first == last ? fmt::format("layer {}", first + 1)
                                             : fmt::format("layers {}-{}", first + 1, last + 1);
    events.push_back(span_event(layers, process, kCommunication, times[i].begin, times[i].end,
                                {{"bytes", bytes}, {"ready_us", times[i].ready * 1e6}}));
  }
}

}  // namespace

ordered_json merge_timeline(const Iteration& iteration,
                            const std::vector<PolicyMessages>& policies) {
  ordered_json events = ordered_json::array();
  std::size_t process = 0;
  for (const auto& [policy, messages] : policies) {
    ++process;
    events.push_back(
        name_event("process_name", process, kComputation, control::merge::name_of(policy)));
    events.push_back(name_event("thread_name", process, kComputation, "computation"));
    events.push_back(name_event("thread_name", process, kCommunication, "communication"));
    add_computation(events, process, iteration);
    add_communication(events, process, iteration, messages);
  }
  return {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
}

}  // namespace gradcube::cli
