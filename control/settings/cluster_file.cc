#include "control/settings/cluster_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <toml++/toml.h>
#include <unistd.h>
#include <vector>

#include "control/base/descriptor.h"
#include "control/base/errors.h"
#include "control/base/printable.h"

namespace gradcube::control {
namespace {

constexpr std::size_t kMaxFileBytes = 1 << 20;
constexpr std::size_t kLongestLine = 4096;
constexpr std::size_t kLongestShownPath = 200;  // in messages
constexpr std::size_t kLongestDescription = 200;

// Of [topology]: lists of addresses, which have commas of their own.
constexpr std::string_view kAddresses[] = {"absent", "aggregators"};

bool lists_addresses(std::string_view key) {
  return std::find(std::begin(kAddresses), std::end(kAddresses), key) != std::end(kAddresses);
}

using Keys = std::vector<std::string_view>;
struct Section {
  std::string_view name;
  Keys keys;
};

const std::vector<Section>& sections() {
  static const std::vector<Section> all = {
      {"topology", {"spec", "kind", "n", "k", "h", "absent", "aggregators"}},
      {"link", {"fabric", "rate", "mtu", "delay", "queue", "ecn-threshold", "greeting", "probing"}},
      {"impair", {"loss", "duplicate", "reorder", "corrupt", "seed"}},
      {"engine", {"packet-memory", "lcores", "server-lcores", "idle", "trainer-memory"}},
  };
  return all;
}

class Reader {
 public:
  explicit Reader(std::string_view name) : name_(name) {}

  ClusterSettings read(const toml::table& root) {
    for (const auto& [key, node] : root) {
      const std::string_view wanted = key.str();
      const auto section = std::find_if(sections().begin(), sections().end(),
                                        [&](const Section& s) { return s.name == wanted; });
      if (section == sections().end()) {
        Keys names;
        for (const Section& s : sections()) names.push_back(s.name);
        refuse(key.source(), fmt::format("unknown section {}; accepted sections are {}",
                                         quoted(key.str()), fmt::join(names, ", ")));
      }
      if (!node.is_table()) {
        refuse(key.source(), fmt::format("\"{}\" is a section: write [{}] and its keys below",
                                         key.str(), key.str()));
      }
      check_keys(*section, *node.as_table());
      if (section->name == "topology") {
        read_topology(*node.as_table(), key.source());
      } else {
        for (const auto& [name, value] : *node.as_table()) apply(*section, name, value);
      }
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

  void check_keys(const Section& section, const toml::table& table) const {
    for (const auto& [key, node] : table) {
      if (std::find(section.keys.begin(), section.keys.end(), key.str()) == section.keys.end()) {
        refuse(key.source(),
               fmt::format("unknown key {} in [{}]; accepted keys are {}", quoted(key.str()),
                           section.name, fmt::join(section.keys, ", ")));
      }
    }
  }

  // A setting has one textual form (cluster_settings.h): numbers and lists are brought to it.
  std::string text_of(const toml::key& key, const toml::node& node) const {
    if (const auto* value = node.as_string()) return value->get();
    if (const auto* value = node.as_integer()) return fmt::format("{}", value->get());
    if (const auto* value = node.as_floating_point()) return fmt::format("{}", value->get());
    if (const auto* values = node.as_array()) {
      std::vector<std::string> items;
      for (const toml::node& item : *values) {
        if (item.is_array()) refuse(item.source(), "a list in a list is not accepted");
        items.push_back(text_of(key, item));
      }
      return fmt::format("{}", fmt::join(items, lists_addresses(key.str()) ? " " : ","));
    }
    refuse(key.source(),
           fmt::format("\"{}\" must be a number, a text in quotes or a list of these", key.str()));
  }

  void apply(const Section& section, const toml::key& key, const toml::node& node) {
    const std::string where = fmt::format("{}: {}.{}", at(key.source()), section.name, key.str());
    apply_setting(settings_, key.str(), text_of(key, node), where);
  }

  void read_topology(const toml::table& table, const toml::source_region& source) {
    std::string spec;
    if (!table.empty() && !table.contains("spec") && !table.contains("kind")) {
      refuse(source, "[topology] needs spec or kind: \"bcube\", \"star\" or \"torus\"");
    }
    for (const char* name : {"spec", "kind", "n", "k", "h"}) {
      const auto found = table.find(name);
      if (found == table.end()) continue;
      const std::string text = text_of(found->first, found->second);
      const std::string_view key = name;
      if (key == "spec") {
        if (std::any_of(table.begin(), table.end(), [](const auto& entry) {
              return entry.first.str() != "spec" && !lists_addresses(entry.first.str());
            }))
          refuse(source, "give the topology as spec, or as kind and its numbers, not both");
        spec = text;
      } else if (key == "kind") {
        spec = text;
      } else if ((key == "h") != (spec == "torus" || spec.starts_with("torus:")) && key != "n") {
        refuse(found->first.source(), fmt::format("{} does not belong to the topology {}: "
                                                  "a bcube has n and k, a star has n, a torus n "
                                                  "and h",
                                                  quoted(key), quoted(spec)));
      } else {
        spec += (key == "n" ? ":" : ",") + text;
      }
    }
    if (!table.empty()) apply_setting(settings_, "topology", spec, at(source) + ": topology");
    for (const std::string_view name : kAddresses) {
      const auto list = table.find(name);
      if (list == table.end()) continue;
      const std::string where = fmt::format("{}: topology.{}", at(list->first.source()), name);
      apply_setting(settings_, name, text_of(list->first, list->second), where);
    }
  }

  std::string_view name_;
  ClusterSettings settings_;
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
  std::string text(kMaxFileBytes + 1, '\0');
  std::size_t size = 0;
  for (;;) {
    const ssize_t more = read(file.get(), text.data() + size, text.size() - size);
    if (more == 0) break;
    if (more > 0) size += static_cast<std::size_t>(more);
    if (more < 0 && errno != EINTR) refuse_file(path, std::strerror(errno));
  }
  text.resize(size);
  return text;
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
