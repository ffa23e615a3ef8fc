// Draws a figure into a file: with matplotlib, in a process of Debian's python3. The program that
// it runs, draw_figure.py, is a text in this executable, so nothing has to be found when it is
// installed. Without matplotlib all else of the tool works.
#ifndef GRADCUBE_CLI_MODEL_FIGURE_DRAWING_H_
#define GRADCUBE_CLI_MODEL_FIGURE_DRAWING_H_

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "control/model/figure.h"

namespace gradcube::cli {

// {"name":..,"title":..,"panels":[..]}: docs/figures.md has the fields.
nlohmann::ordered_json figure_json(const control::model::Figure& figure);

// Throws a UsageError unless the path ends in .svg or .png.
void check_figure_path(const std::string& path);

// Throws SetupError when python3 or matplotlib is missing, the file cannot be written, or that
// takes longer than `patience`: python3 is killed then.
void draw_figure(const control::model::Figure& figure, const std::string& path,
                 std::chrono::milliseconds patience = std::chrono::minutes(2));

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MODEL_FIGURE_DRAWING_H_
