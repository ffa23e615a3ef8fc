#include "dataplane/daemon/impair_request.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/base/errors.h"
#include "control/base/printable.h"

namespace gradcube::dataplane {

namespace {

using control::UsageError;
using Json = nlohmann::ordered_json;
using LinkAt = EmbeddedFabric::LinkAt;

constexpr std::size_t kNamedSwitches = 8;

struct Probability {
  const char* name;
  double Impairments::*member;
};
constexpr Probability kProbabilities[] = {{"loss", &Impairments::loss},
                                          {"duplicate", &Impairments::duplicate},
                                          {"reorder", &Impairments::reorder},
                                          {"corrupt", &Impairments::corrupt}};

constexpr std::string_view kOtherKeys[] = {"command", "server", "level", "port",
                                           "switch",  "clear",  "up"};

void check_keys(const nlohmann::json& request) {
  for (const auto& [key, value] : request.items()) {
    const std::string& name = key;
    const bool probability = std::any_of(std::begin(kProbabilities), std::end(kProbabilities),
                                         [&](const Probability& p) { return p.name == name; });
    if (probability ||
        std::find(std::begin(kOtherKeys), std::end(kOtherKeys), name) != std::end(kOtherKeys)) {
      continue;
    }
    throw UsageError(
        fmt::format("impair: unknown key {}; expected loss, duplicate, reorder, corrupt, up, "
                    "clear, server, level, port and switch",
                    control::quoted(key)));
  }
}

// The names of the switches that fit, and how many more there are when they are many.
std::string switch_list(const EmbeddedFabric& fabric,
                        const std::function<bool(std::size_t)>& fits) {
  std::vector<std::string> names;
  std::size_t more = 0;
  for (std::size_t i = 0; i < fabric.switches().size(); ++i) {
    if (!fits(i)) continue;
    if (names.size() < kNamedSwitches) {
      names.push_back(fabric.switches()[i].name);
    } else {
      ++more;
    }
  }
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (more > 0) text += fmt::format(" and {} more: `gradcube status` lists them", more);
  return text;
}

std::string text_of(const nlohmann::json& request, const char* key) {
  if (!request[key].is_string()) {
    throw UsageError(fmt::format("impair: \"{}\" must be a text", key));
  }
  return request[key].get<std::string>();
}

std::optional<bool> flag_of(const nlohmann::json& request, const char* key) {
  if (!request.contains(key)) return std::nullopt;
  if (!request[key].is_boolean()) {
    throw UsageError(fmt::format("impair: \"{}\" is {}; expected true or false", key,
                                 control::printable(request[key].dump())));
  }
  return request[key].get<bool>();
}

// Which links a request is about.
class Selection {
 public:
  Selection(const EmbeddedFabric& fabric, const control::Topology& topology,
            const nlohmann::json& request)
      : fabric_(fabric) {
    if (request.contains("server")) {
      server_ = control::parse_server(topology, text_of(request, "server"), "impair:");
    }
    if (request.contains("level")) {
      level_ = number_of(request["level"], "level", fabric_.space().levels());
    }
    if (request.contains("port")) {
      port_ = number_of(request["port"], "port", fabric_.space().ports());
    }
    if (request.contains("switch")) switch_ = switch_of(text_of(request, "switch"));
  }

  std::vector<LinkAt> links() const {
    std::vector<LinkAt> links;
    std::copy_if(fabric_.links().begin(), fabric_.links().end(), std::back_inserter(links),
                 [this](const LinkAt& link) { return fits(link); });
    if (links.empty()) refuse();
    return links;
  }

 private:
  bool fits(const LinkAt& link) const {
    return link.server == server_.value_or(link.server) &&
           link.level == level_.value_or(link.level) &&
           link.server_port == port_.value_or(link.server_port) &&
           link.switch_index == switch_.value_or(link.switch_index);
  }

  static unsigned number_of(const nlohmann::json& value, std::string_view what, unsigned count) {
    // A negative number becomes one that is too large.
    if (!value.is_number_integer() || value.get<std::uint64_t>() >= count) {
      throw UsageError(fmt::format("impair: {} {}: this cluster has the {}s 0 to {}", what,
                                   control::printable(value.dump()), what, count - 1));
    }
    return value.get<unsigned>();
  }

  std::size_t switch_of(const std::string& name) const {
    const auto& switches = fabric_.switches();
    for (std::size_t i = 0; i < switches.size(); ++i) {
      if (switches[i].name == name) return i;
    }
    throw UsageError(fmt::format("--switch {}: there is no such switch; there are {}",
                                 control::quoted(name),
                                 switch_list(fabric_, [](std::size_t) { return true; })));
  }

  [[noreturn]] void refuse() const {
    if (switch_ && level_ && fabric_.switches()[*switch_].level != *level_) {
      throw UsageError(fmt::format("impair: no link is selected: switch {} is at level {}, not {}",
                                   fabric_.switches()[*switch_].name,
                                   fabric_.switches()[*switch_].level, *level_));
    }
    if (port_ && level_ && fabric_.space().level_of_port(*port_) != *level_) {
      throw UsageError(fmt::format("impair: no link is selected: port {} is at level {}, not {}",
                                   *port_, fabric_.space().level_of_port(*port_), *level_));
    }
    const std::vector<bcube::ServerId>& servers = fabric_.servers();
    if (!server_) {
      throw UsageError(fmt::format("impair: no link is selected: no port {} leads to {}", *port_,
                                   fabric_.switches()[*switch_].name));
    }
    if (!std::binary_search(servers.begin(), servers.end(), *server_)) {
      throw UsageError(
          fmt::format("impair: no link is selected: server {} has no links in this daemon; "
                      "expected a server that it runs, for example {}",
                      fabric_.space().text(*server_), fabric_.space().text(servers.front())));
    }
    const auto has_server = [this](std::size_t i) {
      return std::any_of(fabric_.links().begin(), fabric_.links().end(), [&](const LinkAt& link) {
        return link.switch_index == i && link.server == *server_ &&
               link.server_port == port_.value_or(link.server_port);
      });
    };
    throw UsageError(
        fmt::format("impair: no link is selected: server {} has links to the switches "
                    "{}, not to {}",
                    fabric_.space().text(*server_), switch_list(fabric_, has_server),
                    fabric_.switches()[*switch_].name));
  }

  const EmbeddedFabric& fabric_;
  std::optional<bcube::ServerId> server_;
  std::optional<unsigned> level_;
  std::optional<unsigned> port_;  // of the server
  std::optional<std::size_t> switch_;
};

// Which impairments become what.
class Change {
 public:
  explicit Change(const nlohmann::json& request)
      : clear_(flag_of(request, "clear").value_or(false)), up_(flag_of(request, "up")) {
    for (std::size_t i = 0; i < std::size(kProbabilities); ++i) {
      const char* name = kProbabilities[i].name;
      if (!request.contains(name)) continue;
      const nlohmann::json& value = request[name];
      if (!value.is_number() || !(value.get<double>() >= 0 && value.get<double>() <= 1)) {
        throw UsageError(fmt::format("impair: \"{}\" is {}; expected a probability in 0..1", name,
                                     control::printable(value.dump())));
      }
      values_[i] = value.get<double>();
    }
  }

  Impairments applied_to(Impairments impairments) const {
    if (clear_) impairments = {};
    for (std::size_t i = 0; i < std::size(kProbabilities); ++i) {
      double& probability = impairments.*kProbabilities[i].member;
      probability = values_[i].value_or(probability);
    }
    impairments.up = up_.value_or(impairments.up);
    return impairments;
  }

 private:
  bool clear_;
  std::optional<bool> up_;
  std::optional<double> values_[std::size(kProbabilities)];
};

void add_impairments(const Impairments& impairments, Json& json) {
  for (const Probability& one : kProbabilities) json[one.name] = impairments.*one.member;
  json["up"] = impairments.up;
}

}  // namespace

nlohmann::ordered_json impair(EmbeddedFabric& fabric, const control::Topology& topology,
                              const nlohmann::json& request, std::uint64_t seed) {
  check_keys(request);
  const std::vector<LinkAt> links = Selection(fabric, topology, request).links();
  const Change change(request);
  const std::size_t changed = fabric.change_impairments(
      links, [&](const Impairments& impairments) { return change.applied_to(impairments); });
  Json answer = {{"changed", changed}};
  answer.update(impairments_report(fabric, seed));
  return answer;
}

nlohmann::ordered_json impairments_report(const EmbeddedFabric& fabric, std::uint64_t seed) {
  Json common;
  add_impairments(fabric.impairments(), common);
  common["seed"] = seed;
  Json links = Json::array();
  for (const LinkAt& link : fabric.links()) {
    const Impairments impairments = fabric.impairments(link);
    if (impairments == fabric.impairments()) continue;
    Json one = {{"server", control::address_json(fabric.space(), link.server)},
                {"level", link.level},
                {"port", link.server_port},
                {"switch", fabric.switches()[link.switch_index].name}};
    add_impairments(impairments, one);
    links.push_back(std::move(one));
  }
  return {{"impairments", std::move(common)}, {"impaired_links", std::move(links)}};
}

}  // namespace gradcube::dataplane
