#include "cli/plan/measured_paths.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <tuple>

#include "cli/cluster/comes_true.h"
#include "cli/cluster/control_client.h"
#include "cli/text/json_fields.h"
#include "control/base/errors.h"
#include "control/base/printable.h"

namespace gradcube::cli {
namespace {

using bcube::AddressSpace;
using bcube::Route;
using bcube::ServerId;
using nlohmann::json;

constexpr auto kAskEvery = std::chrono::milliseconds(10);
constexpr auto kProbePatience = std::chrono::seconds(1);

[[noreturn]] void refuse(const json& what) {
  throw control::SetupError(
      fmt::format("the daemon's answer has a path that there is not: {}; is it of another version?",
                  control::printable(what.dump(-1, ' ', true, json::error_handler_t::replace))));
}

Route route_of(const json& path, const AddressSpace& space, ServerId from, ServerId to) {
  Route route;
  ServerId at = from;
  for (const json& hop : items(path, "hops")) {
    if (!hop.is_array() || hop.size() != 2 || !hop[0].is_number_unsigned() ||
        !hop[1].is_number_unsigned() || route.size() == bcube::kMaxLevels) {
      refuse(path);
    }
    const auto level = hop[0].get<std::uint64_t>();
    const auto digit = hop[1].get<std::uint64_t>();
    if (level >= space.levels()) refuse(path);
    const auto l = static_cast<unsigned>(level);
    if (digit >= space.hop_digits(l)) refuse(path);
    const auto d = static_cast<unsigned>(digit);
    const ServerId next = space.with_digit(at, l, d);
    const bool has_rail = d / space.radix(l) < space.rails(at, next);
    if (!has_rail || !space.joins(l, space.digit(at, l), d % space.radix(l))) refuse(path);
    route.append({static_cast<std::uint8_t>(l), static_cast<std::uint8_t>(d)});
    at = next;
  }
  if (at != to) refuse(path);
  return route;
}

}  // namespace

std::vector<MeasuredPath> read_measured_paths(const json& answer, const AddressSpace& space,
                                              ServerId from, ServerId to) {
  std::vector<MeasuredPath> paths;
  for (const json& path : items(answer, "paths")) {
    paths.push_back({route_of(path, space, from, to), cell_text(path, "state"),
                     count_field(path, "round_trip_ns"), count_field(path, "left_bps")});
  }
  const auto key = [&](const MeasuredPath& path) {
    const bcube::Hop first = path.route[0];
    return std::tuple(path.route.size(), space.port_of(from, first.level, first.digit),
                      first.digit);
  };
  std::stable_sort(
      paths.begin(), paths.end(),
      [&](const MeasuredPath& one, const MeasuredPath& other) { return key(one) < key(other); });
  return paths;
}

std::vector<MeasuredPath> measure_paths(const control::RunDirectory& directory,
                                        const AddressSpace& space, ServerId from, ServerId to) {
  json request = {
      {"command", "paths"}, {"from", space.text(from)}, {"to", space.text(to)}, {"begin", true}};
  json answer;
  const bool is_ready = comes_true(kProbePatience, kAskEvery, [&] {
    answer = ask_daemon(directory, request);
    request["begin"] = false;
    return flag_field(answer, "ready").value_or(false);
  });
  if (is_ready) return read_measured_paths(answer, space, from, to);
  throw control::SetupError(
      "the daemon has not probed the paths within a second; is its host overloaded?");
}

}  // namespace gradcube::cli
