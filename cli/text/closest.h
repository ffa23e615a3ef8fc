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

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_TEXT_CLOSEST_H_
