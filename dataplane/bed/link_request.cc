#include "dataplane/bed/link_request.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <string_view>
#include <vector>

#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/settings/cluster_settings.h"

namespace gradcube::dataplane {

namespace {

using control::kProbabilities;
using control::UsageError;
using Json = nlohmann::ordered_json;

constexpr std::string_view kKeys[] = {"up", "clear", "server", "level", "port", "switch"};
constexpr std::size_t kNamedLinks = 6;
constexpr const char* kMtu = "mtu";  // a key for emulated switches alone, as the probabilities are

void check_key(std::string_view key, LinkKind kind) {
  if (key == "command" || std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys)) {
    return;
  }
  std::vector<std::string_view> emulated;
  for (const control::Probability& one : kProbabilities) emulated.push_back(one.name);
  emulated.push_back(kMtu);
  std::string accepted;
  for (const std::string_view name : emulated) {
    if (kind == LinkKind::emulated) accepted += fmt::format("{}, ", name);
    if (key != name) continue;
    if (kind == LinkKind::emulated) return;
    throw UsageError(
        fmt::format("impair: {} is for emulated switches, those of the embedded and the memif "
                    "fabric; links of the veth fabric can be taken down and up",
                    key));
  }
  throw UsageError(fmt::format("impair: unknown key {}; expected {}{}", control::quoted(key),
                               accepted, fmt::join(kKeys, ", ")));
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

std::optional<unsigned> number_of(const nlohmann::json& request, const char* key, unsigned count) {
  if (!request.contains(key)) return std::nullopt;
  const nlohmann::json& value = request[key];
  // A negative number becomes one that is too large.
  if (!value.is_number_integer() || value.get<std::uint64_t>() >= count) {
    throw UsageError(fmt::format("impair: {} {}: this cluster has the {}s 0 to {}", key,
                                 control::printable(value.dump()), key, count - 1));
  }
  return value.get<unsigned>();
}

// Which links a request is about.
class Selection {
 public:
  Selection(const control::Topology& topology, const std::vector<NamedLink>& links,
            const nlohmann::json& request)
      : space_(topology.space()), links_(links) {
    if (request.contains("server")) {
      server_ = control::parse_server(topology, text_of(request, "server"), "impair:");
    }
    level_ = number_of(request, "level", topology.levels());
    port_ = number_of(request, "port", topology.space().most_ports());
    if (request.contains("switch")) switch_ = text_of(request, "switch");
  }

  std::vector<std::size_t> indices() const {
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const NamedLink& link = links_[i];
      if (link.server == server_.value_or(link.server) &&
          link.level == level_.value_or(link.level) &&
          link.server_port == port_.value_or(link.server_port) &&
          link.switch_name == switch_.value_or(link.switch_name)) {
        chosen.push_back(i);
      }
    }
    if (chosen.empty()) {
      throw UsageError(fmt::format("impair: no link is selected: {}", what_there_is()));
    }
    return chosen;
  }

 private:
  // Of the server that is asked for, if it has links here.
  std::string what_there_is() const {
    if (links_.empty()) return "this daemon has no links";
    const auto is_close = [this](const NamedLink& link) { return link.server == server_; };
    const bool any = std::any_of(links_.begin(), links_.end(), is_close);
    std::vector<std::string> there;
    for (const NamedLink& link : links_) {
      if (any && !is_close(link)) continue;
      there.push_back(fmt::format("server {} level {} port {} switch {}", space_.text(link.server),
                                  link.level, link.server_port, link.switch_name));
    }
    const std::size_t shown = std::min(there.size(), kNamedLinks);
    return fmt::format(
        "there {} {}{}", there.size() == 1 ? "is" : "are",
        fmt::join(there.begin(), there.begin() + static_cast<std::ptrdiff_t>(shown), "; "),
        shown == there.size() ? ""
                              : fmt::format(" and {} more: `gradcube status` lists the switches",
                                            there.size() - shown));
  }

  const bcube::AddressSpace& space_;
  const std::vector<NamedLink>& links_;
  std::optional<bcube::ServerId> server_;
  std::optional<unsigned> level_;
  std::optional<unsigned> port_;  // of the server
  std::optional<std::string> switch_;
};

LinkChange change_of(const nlohmann::json& request) {
  LinkChange change;
  change.clear = flag_of(request, "clear").value_or(false);
  change.up = flag_of(request, "up");
  for (std::size_t i = 0; i < std::size(kProbabilities); ++i) {
    const char* name = kProbabilities[i].name;
    if (!request.contains(name)) continue;
    const nlohmann::json& value = request[name];
    if (!value.is_number() || !(value.get<double>() >= 0 && value.get<double>() <= 1)) {
      throw UsageError(fmt::format("impair: \"{}\" is {}; expected a probability in 0..1", name,
                                   control::printable(value.dump())));
    }
    change.probabilities[i] = value.get<double>();
  }
  if (request.contains(kMtu)) {
    const nlohmann::json& value = request[kMtu];
    // A negative number becomes one that is too large.
    if (!value.is_number_integer() || value.get<std::uint64_t>() > control::kMaxMtu) {
      throw UsageError(
          fmt::format("impair: \"mtu\" is {}; expected a number of bytes, 1 to {}, or 0",
                      control::printable(value.dump()), control::kMaxMtu));
    }
    change.mtu = value.get<std::uint32_t>();
  }
  return change;
}

void add_impairments(const control::Impairments& impairments, Json& json) {
  for (const control::Probability& one : kProbabilities) json[one.name] = impairments.*one.member;
  if (impairments.mtu != 0) json[kMtu] = impairments.mtu;
  json["up"] = impairments.up;
}

}  // namespace

control::Impairments LinkChange::applied_to(control::Impairments impairments) const {
  if (clear) impairments = {};
  for (std::size_t i = 0; i < std::size(kProbabilities); ++i) {
    double& probability = impairments.*kProbabilities[i].member;
    probability = probabilities[i].value_or(probability);
  }
  impairments.mtu = mtu.value_or(impairments.mtu);
  impairments.up = up.value_or(impairments.up);
  return impairments;
}

LinkRequest read_link_request(const control::Topology& topology,
                              const std::vector<NamedLink>& links, LinkKind kind,
                              const nlohmann::json& request) {
  for (const auto& [key, value] : request.items()) check_key(key, kind);
  return {Selection(topology, links, request).indices(), change_of(request)};
}

nlohmann::ordered_json link_report(const bcube::AddressSpace& space,
                                   const std::vector<NamedLink>& links,
                                   const std::vector<control::Impairments>& own,
                                   const control::Impairments& common, std::uint64_t seed) {
  Json impairments;
  add_impairments(common, impairments);
  impairments["seed"] = seed;
  Json differing = Json::array();
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (own[i] == common) continue;
    Json one = {{"server", control::address_json(space, links[i].server)},
                {"level", links[i].level},
                {"port", links[i].server_port},
                {"switch", links[i].switch_name}};
    add_impairments(own[i], one);
    differing.push_back(std::move(one));
  }
  return {{"impairments", std::move(impairments)}, {"impaired_links", std::move(differing)}};
}

}  // namespace gradcube::dataplane
