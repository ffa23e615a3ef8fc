#include "cli/text/parse_error.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>

#include "control/base/printable.h"

namespace gradcube::cli {
namespace {

// Longer ones are no typing mistakes; and the time grows with the square of the length.
constexpr std::size_t kLongestWord = 64;
constexpr std::size_t kLongestParseError = 300;

std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);  // distances of a prefix of `from` to those of `to`
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i] != to[j] ? 1 : 0);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

// " (did you mean bcube?)"; empty where no candidate is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const auto meant = closest(word, candidates);
  return meant ? fmt::format(" (did you mean {}?)", *meant) : "";
}

// The command that was being parsed; the tool itself before there is one.
const CLI::App& command_of(const CLI::App& tool) {
  const CLI::App* command = &tool;
  for (auto inner = command->get_subcommands(); !inner.empty();
       inner = command->get_subcommands()) {
    command = inner.front();
  }
  return *command;
}

// Its name as it is typed behind the tool's: "up", "model gst"; empty for the tool itself.
std::string name_of(const CLI::App& tool, const CLI::App& command) {
  std::string name;
  for (const CLI::App* app = &command; app != &tool; app = app->get_parent()) {
    name = name.empty() ? app->get_name() : app->get_name() + " " + name;
  }
  return name;
}

std::string help_of(const CLI::App& tool) {
  const std::string name = name_of(tool, command_of(tool));
  return fmt::format("`{}{} --help`", tool.get_name(), name.empty() ? "" : " " + name);
}

std::vector<std::string> command_names(const CLI::App& tool) {
  std::vector<std::string> names;
  const auto is_shown = [](const CLI::App* command) { return !command->get_group().empty(); };
  for (const CLI::App* command : tool.get_subcommands(is_shown)) {
    names.push_back(command->get_name());
  }
  return names;
}

// Whether words that name no command of its own may be values.
bool takes_words(const CLI::App& command) {
  const auto options = command.get_options();
  return std::any_of(options.begin(), options.end(),
                     [](const CLI::Option* option) { return option->get_positional(); });
}

std::vector<std::string> flag_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// "--rate" of "--rate=1gbit", "-b" of "-b1K".
std::string name_of_flag(const std::string& word) {
  return word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
}

// The command, or one of its own, that has this flag; null if none has it.
const CLI::App* command_with(const CLI::App& command, const std::string& flag) {
  if (command.get_option_no_throw(flag) != nullptr) return &command;
  for (const CLI::App* inner : command.get_subcommands([](const CLI::App*) { return true; })) {
    if (const CLI::App* found = command_with(*inner, flag); found != nullptr) return found;
  }
  return nullptr;
}

bool takes_a_value(const CLI::App& command, const std::string& word) {
  const std::string flag = name_of_flag(word);
  const CLI::App* its = word.starts_with('-') ? command_with(command, flag) : nullptr;
  return its != nullptr && flag == word &&
         its->get_option_no_throw(flag)->get_items_expected_max() != 0;
}

// CLI11 writes some of its messages over several lines.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  text.erase(text.find_last_not_of(" .") + 1);
  return text;
}

// A word too many may be the value of a flag that is not known: the flag is to be named.
std::string unexpected_word(const CLI::App& tool, std::vector<std::string> words) {
  const auto flag = std::find_if(words.begin(), words.end(),
                                 [](const std::string& word) { return word.starts_with('-'); });
  // Flags behind the command that is to run are that one's.
  if (flag != words.begin() && name_of(tool, command_of(tool)) == "run") {
    return fmt::format(
        "{} is not expected: the command stands behind \"--\", as in `gradcube run -- {} ...`",
        control::quoted(words.front()), control::printable(words.front()));
  }
  if (flag == words.end()) {
    return fmt::format("{} is not expected; {} tells what is accepted",
                       control::quoted(words.front()), help_of(tool));
  }
  const CLI::App& command = command_of(tool);
  const std::string name = name_of_flag(*flag);
  if (const CLI::App* its = command_with(command, name); its != nullptr) {
    return fmt::format("{} stands before its command: expected it behind, as in `{} {} {}`",
                       control::quoted(name), tool.get_name(), name_of(tool, *its), name);
  }
  return fmt::format("there is no flag {}{}; {} tells what is accepted", control::quoted(name),
                     did_you_mean(name, flag_names(command)), help_of(tool));
}

// "--rate: 1 required TEXT missing", "--mtu: At Most 1 required but received 2".
std::string wrong_number_of_values(const std::string& text) {
  constexpr std::string_view kOfFlag = " was given a disallowed flag override";
  if (text.ends_with(kOfFlag)) {
    const std::string name = text.substr(0, text.size() - kOfFlag.size());
    return (name.size() == 1 ? "-" : "--") + name + " takes no value";
  }
  const std::string flag = text.substr(0, text.find(':'));
  return text.ends_with("missing") ? flag + ": a value is missing"
                                   : flag + " is given more than once";
}

// "Could not convert: --json = maybe"
std::string not_its_value(const std::string& text) {
  constexpr std::string_view kBefore = ": ";
  constexpr std::string_view kBetween = " = ";
  const std::size_t flag = text.find(kBefore);
  const std::size_t value = text.find(kBetween, flag);
  if (flag == std::string::npos || value == std::string::npos) return text;
  const std::size_t begin = flag + kBefore.size();
  return fmt::format("{}: it does not take the value {}", text.substr(begin, value - begin),
                     control::quoted(text.substr(value + kBetween.size())));
}

}  // namespace

std::optional<std::string> closest(std::string_view word,
                                   const std::vector<std::string>& candidates) {
  if (word.size() > kLongestWord) return std::nullopt;
  std::optional<std::string> best;
  std::size_t least = word.size();
  for (const std::string& candidate : candidates) {
    const std::size_t wrong = distance(word, candidate);
    if (wrong >= least) continue;
    least = wrong;
    best = candidate;
  }
  return 3 * least <= word.size() ? best : std::nullopt;
}

std::string command_list(const CLI::App& tool) {
  return fmt::format("{}", fmt::join(command_names(tool), ", "));
}

std::string unknown_command(const CLI::App& tool) {
  const std::vector<std::string> words = tool.remaining(/*recurse=*/true);
  const CLI::App& command = command_of(tool);
  const std::vector<std::string> known = command_names(command);
  const auto names_a_command = [&](const std::string& one) {
    const bool is_a_value = &one != &words.front() && takes_a_value(command, *(&one - 1));
    return !one.starts_with('-') && !is_a_value;
  };
  const auto word = std::find_if(words.begin(), words.end(), names_a_command);
  if (word == words.end() || known.empty() || takes_words(command)) return "";
  const std::string name = name_of(tool, command);
  return fmt::format("there is no command {}{}; the commands are {}: {} tells more",
                     control::quoted(name.empty() ? *word : name + " " + *word),
                     did_you_mean(*word, known), command_list(command), help_of(tool));
}

std::string parse_message(const CLI::App& tool, const CLI::ParseError& error) {
  const std::vector<std::string> words = tool.remaining(/*recurse=*/true);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !words.empty()) {
    const std::string unknown = unknown_command(tool);
    return unknown.empty() ? unexpected_word(tool, words) : unknown;
  }
  std::string text = one_line(error.what());
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) text = not_its_value(text);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    text = wrong_number_of_values(text);
  }
  return fmt::format("{}; {} tells what is accepted", control::printable(text, kLongestParseError),
                     help_of(tool));
}

}  // namespace gradcube::cli
