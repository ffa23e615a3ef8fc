#include "control/settings/cluster_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <sys/stat.h>
#include <toml++/toml.h>
#include <vector>

#include "control/base/descriptor.h"
#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/base/read_text.h"
#include "control/base/units.h"

namespace gradcube::control {
namespace {

constexpr std::size_t kMaxFileBytes = 1 << 20;
constexpr std::size_t kLongestLine = 4096;
constexpr std::size_t kLongestShownPath = 200;  // in messages
constexpr std::size_t kLongestDescription = 200;

constexpr std::string_view kTopologySection = "topology";
// Of servers with ports of their own: [servers."8"].
constexpr std::string_view kServersSection = "servers";
// Whose items may be lists.
constexpr std::string_view kRowsKeys[] = {"hosts", "interfaces"};
// The setting `topology` in [topology].
constexpr std::string_view kSpecKey = "spec";

using Keys = std::vector<std::string_view>;

template <typename List>
bool is_in(const List& list, std::string_view key) {
  return std::find(std::begin(list), std::end(list), key) != std::end(list);
}

Keys section_names() {
  Keys names;
  for (const Setting& setting : kSettings) {
    if (!is_in(names, setting.section)) names.push_back(setting.section);
  }
  names.push_back(kServersSection);
  return names;
}

Keys keys_of(std::string_view section) {
  Keys keys;
  for (const Setting& setting : kSettings) {
    if (setting.section != section) continue;
    keys.push_back(setting.name == kTopologySection ? kSpecKey : setting.name);
  }
  return keys;
}

class Reader {
 public:
  explicit Reader(std::string_view name) : name_(name) {}

  ClusterSettings read(const toml::table& root) {
    const Keys names = section_names();
    for (const auto& [key, node] : root) {
      const std::string_view section = key.str();
      if (!is_in(names, section)) {
        refuse(key.source(), fmt::format("unknown section {}; accepted sections are {}",
                                         quoted(section), fmt::join(names, ", ")));
      }
      if (!node.is_table()) {
        refuse(key.source(),
               fmt::format("\"{}\" is a section: write [{}] and its keys below", section, section));
      }
      const toml::table& table = *node.as_table();
      if (section == kServersSection) {
        read_servers(table);
        continue;
      }
      check_keys(section, keys_of(section), table);
      if (section == kTopologySection && !table.empty() && !table.contains(kSpecKey)) {
        refuse(key.source(), "[topology] needs spec, for example spec = \"bcube:3,2\"");
      }
      for (const std::string_view name : keys_of(section)) {
        const auto found = table.find(name);
        if (found != table.end()) apply(section, found->first, found->second);
      }
    }
    // Behind the rate of all links.
    if (!own_ports_.empty()) {
      const std::string of_links = rates_text(settings_.rates);
      apply_setting(settings_, "rate", of_links + own_ports_.substr(of_links.empty() ? 1 : 0),
                    fmt::format("{}: [servers]", name_));
    }
    return settings_;
  }

 private:
  std::string at(const toml::source_region& source) const {
    return fmt::format("{}, line {}", name_, source.begin.line);
  }

  [[noreturn]] void refuse(const toml::source_region& source, const std::string& what) const {
    throw UsageError(fmt::format("{}: {}", at(source), what));
  }

  void check_keys(std::string_view section, const Keys& keys, const toml::table& table) const {
    for (const auto& [key, node] : table) {
      if (is_in(keys, key.str())) continue;
      refuse(key.source(), fmt::format("unknown key {} in [{}]; accepted keys are {}",
                                       quoted(key.str()), section, fmt::join(keys, ", ")));
    }
  }

  // A setting has one textual form (setting.h): numbers and lists are brought to it. The lists of
  // [topology] are addresses, which have commas of their own, or lists of them.
  std::string text_of(std::string_view section, const toml::key& key, const toml::node& node,
                      bool is_item = false) const {
    if (const auto* value = node.as_string()) return value->get();
    if (const auto* value = node.as_integer()) return fmt::format("{}", value->get());
    if (const auto* value = node.as_floating_point()) return fmt::format("{}", value->get());
    if (const auto* values = node.as_array()) {
      std::vector<std::string> items;
      for (const toml::node& item : *values) {
        if (item.is_array() && (is_item || !is_in(kRowsKeys, key.str()))) {
          refuse(item.source(), "a list in a list is not accepted");
        }
        items.push_back(text_of(section, key, item, true));
      }
      return fmt::format("{}",
                         fmt::join(items, is_item || section != kTopologySection ? "," : " "));
    }
    refuse(key.source(),
           fmt::format("\"{}\" must be a number, a text in quotes or a list of these", key.str()));
  }

  void apply(std::string_view section, const toml::key& key, const toml::node& node) {
    const std::string where = fmt::format("{}: {}.{}", at(key.source()), section, key.str());
    const std::string_view name = key.str() == kSpecKey ? kTopologySection : key.str();
    apply_setting(settings_, name, text_of(section, key, node), where);
  }

  void read_servers(const toml::table& servers) {
    for (const auto& [server, node] : servers) {
      const std::string section = fmt::format("{}.{}", kServersSection, quoted(server.str()));
      if (!node.is_table()) {
        refuse(server.source(), fmt::format("expected [{}], and its keys below", section));
      }
      const toml::table& table = *node.as_table();
      check_keys(section, {"rate", "ports"}, table);
      const auto rate = table.find("rate");
      if (rate == table.end()) refuse(server.source(), fmt::format("[{}] needs a rate", section));
      const auto ports = table.find("ports");
      const auto number =
          parse_integer(server.str(), fmt::format("{}: [servers]", at(server.source())), 0,
                        bcube::kMaxServers - 1);
      own_ports_ += fmt::format(
          ",server{}={}{}", number,
          ports == table.end() ? "" : text_of(section, ports->first, ports->second) + "x",
          text_of(section, rate->first, rate->second));
    }
  }

  std::string_view name_;
  ClusterSettings settings_;
  std::string own_ports_;  // as the setting rate has them
};

// A dotted key makes a table in a table for each of its parts, and the TOML library is recursive:
// it would overflow the stack.
void check_line_lengths(std::string_view text, std::string_view name) {
  std::size_t number = 1;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    if (length > kLongestLine) {
      throw UsageError(fmt::format("{}, line {}: the line has {} bytes; expected at most {}", name,
                                   number, length, kLongestLine));
    }
    text.remove_prefix(std::min(length + 1, text.size()));
    ++number;
  }
}

[[noreturn]] void refuse_file(const std::string& path, const std::string& reason) {
  throw UsageError(
      fmt::format("the cluster file {} cannot be read: {}; expected the path of a TOML file",
                  quoted(path, kLongestShownPath), reason));
}

// The text of a file; a longer one than is allowed comes back longer than is allowed.
std::string text_of_file(const std::string& path) {
  // Without O_NONBLOCK opening a FIFO would wait for a writer.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts {};
  if (file.get() < 0 || fstat(file.get(), &facts) != 0) refuse_file(path, std::strerror(errno));
  if (!S_ISREG(facts.st_mode)) refuse_file(path, "it is not a regular file");
  const auto text = read_text(file, kMaxFileBytes);
  if (!text) refuse_file(path, std::strerror(errno));
  return *text;
}

}  // namespace

ClusterSettings parse_cluster_file(std::string_view text, std::string_view name) {
  check_line_lengths(text, name);
  toml::table root;
  try {
    root = toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    throw UsageError(fmt::format("{}, line {}: this is not TOML: {}", name,
                                 error.source().begin.line,
                                 printable(error.description(), kLongestDescription)));
  }
  const ClusterSettings settings = Reader(name).read(root);
  try {
    validate(settings);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", name, error.what()));
  }
  return settings;
}

ClusterSettings read_cluster_file(const std::string& path) {
  const std::string text = text_of_file(path);
  if (text.size() > kMaxFileBytes) {
    throw UsageError(
        fmt::format("the cluster file {} has more than {} bytes, the most that is read",
                    quoted(path, kLongestShownPath), kMaxFileBytes));
  }
  return parse_cluster_file(text, printable(path, kLongestShownPath));
}

}  // namespace gradcube::control
