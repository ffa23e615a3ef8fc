// The word that a mistyped one was most likely meant to be.
#ifndef GRADCUBE_CLI_TEXT_CLOSEST_H_
#define GRADCUBE_CLI_TEXT_CLOSEST_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gradcube::cli {

// The candidate with the fewest letters to insert, remove or replace (Levenshtein's distance);
// empty when even that one has more than a third of the word's letters wrong.
std::optional<std::string> closest(std::string_view word,
                                   const std::vector<std::string>& candidates);

// " (did you mean bcube?)"; empty where no candidate is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

// Throws a UsageError unless the name is one of them: `--network "alexnt": there is no such network
// (did you mean alexnet?); expected alexnet, vgg11`, with `or_else` behind it.
void require_known(std::string_view where, std::string_view what, std::string_view name,
                   const std::vector<std::string>& known, std::string_view or_else = "");

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_TEXT_CLOSEST_H_
