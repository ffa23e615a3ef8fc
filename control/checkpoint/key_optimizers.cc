#include "control/checkpoint/key_optimizers.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/checkpoint/optimizer_settings.h"

namespace gradcube::control {
namespace {

constexpr char kAny = '*';

[[noreturn]] void refuse_names(std::string_view where, std::string_view names,
                               std::string_view what) {
  throw UsageError(std::string(where) + ": of the keys " + quoted(names) + ": " +
                   std::string(what));
}

// Which keys are meant: "name", "begins*", "*ends" or "*has*".
class KeyNames {
 public:
  KeyNames(std::string_view text, std::string_view where)
      : any_before_(text.starts_with(kAny)),
        any_behind_(text.size() > 1 && text.ends_with(kAny)),
        name_(text.substr(any_before_ ? 1 : 0)) {
    if (any_behind_) name_.remove_suffix(1);
    if (text.empty()) refuse_names(where, text, "expected a key's name, or a part of it and *");
    if (name_.find(kAny) != std::string_view::npos) {
      refuse_names(where, text, "expected a * only at the beginning and at the end");
    }
  }

  bool is_whole_name() const { return !any_before_ && !any_behind_; }
  std::string_view name() const { return name_; }
  bool mean(std::string_view key) const {
    if (any_before_ && any_behind_) return key.find(name_) != std::string_view::npos;
    if (any_before_) return key.ends_with(name_);
    return any_behind_ ? key.starts_with(name_) : key == name_;
  }

 private:
  bool any_before_;
  bool any_behind_;
  std::string_view name_;
};

// Takes what stands before the next semicolon.
std::string_view take_part(std::string_view& text) {
  const std::string_view part = text.substr(0, text.find(';'));
  text.remove_prefix(std::min(text.size(), part.size() + 1));
  return part;
}

// Keys by their names, and the settings that they get one part after the other.
class Assignment {
 public:
  Assignment(std::span<const HubKey> keys, KeyOptimizers& optimizers, std::string_view where)
      : keys_(keys), optimizers_(optimizers), where_(where) {
    for (std::size_t i = 0; i < keys.size(); ++i) places_.emplace(keys[i].name, i);
  }

  // A name may have colons, settings have none.
  void take(std::string_view part) {
    const std::size_t colon = part.rfind(':');
    if (colon == std::string_view::npos) {
      refuse_names(where_, part, "expected a colon and their settings: *bias:weight-decay=0");
    }
    const KeyNames names(part.substr(0, colon), where_);
    const std::string_view settings = part.substr(colon + 1);
    const bool some =
        names.is_whole_name() ? take_one(names.name(), settings) : take_all_of(names, settings);
    if (!some) refuse_names(where_, part.substr(0, colon), "the hub has none of this name");
  }

 private:
  bool take_one(std::string_view name, std::string_view settings) {
    const auto found = places_.find(name);
    if (found == places_.end()) return false;
    change_settings(optimizers_.of_keys[found->second], settings, where_);
    return true;
  }

  bool take_all_of(const KeyNames& names, std::string_view settings) {
    if (++patterns_ > kMostKeyPatterns) {
      refuse_names(where_, names.name(),
                   "expected at most " + std::to_string(kMostKeyPatterns) + " names with a *");
    }
    bool some = false;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (!names.mean(keys_[i].name)) continue;
      change_settings(optimizers_.of_keys[i], settings, where_);
      some = true;
    }
    return some;
  }

  std::span<const HubKey> keys_;
  KeyOptimizers& optimizers_;
  std::string_view where_;
  std::unordered_map<std::string_view, std::size_t> places_;
  std::size_t patterns_ = 0;
};

}  // namespace

KeyOptimizers parse_key_optimizers(std::string_view text, std::span<const HubKey> keys,
                                   std::string_view where) {
  KeyOptimizers optimizers{parse_optimizer(take_part(text), where), {}};
  optimizers.of_keys.assign(keys.size(), optimizers.of_hub);
  Assignment assignment(keys, optimizers, where);
  while (!text.empty()) assignment.take(take_part(text));
  return optimizers;
}

}  // namespace gradcube::control
