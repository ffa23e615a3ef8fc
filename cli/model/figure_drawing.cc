#include "cli/model/figure_drawing.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fmt/format.h>
#include <optional>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "cli/model/draw_figure_text.h"
#include "cli/text/text_table.h"
#include "control/base/descriptor.h"
#include "control/base/errors.h"
#include "control/base/printable.h"

namespace gradcube::cli {
namespace {

using control::Descriptor;
using control::SetupError;
using control::model::Figure;
using control::model::Panel;
using control::model::Series;
using nlohmann::ordered_json;

// The distribution's, as matplotlib is the distribution's package.
constexpr const char* kPython = "/usr/bin/python3";
constexpr int kNoMatplotlib = 3;  // of draw_figure.py
constexpr int kNoPython = 127;
constexpr std::chrono::milliseconds kKillPause{10};

// A file without a name, with this text, to be read from its begin.
Descriptor memory_file(const std::string& text) {
  Descriptor file(memfd_create("gradcube-figure", MFD_CLOEXEC));
  if (file.get() < 0) throw SetupError(fmt::format("no memory file: {}", std::strerror(errno)));
  for (std::size_t written = 0; written < text.size();) {
    const ssize_t count = write(file.get(), text.data() + written, text.size() - written);
    if (count < 0) {
      throw SetupError(fmt::format("cannot write a memory file: {}", std::strerror(errno)));
    }
    written += static_cast<std::size_t>(count);
  }
  lseek(file.get(), 0, SEEK_SET);
  return file;
}

// The last line: of a Python error, what it is.
std::string last_line(const Descriptor& file) {
  std::array<char, 4096> end{};
  const off_t size = lseek(file.get(), 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - static_cast<off_t>(end.size()));
  const ssize_t count = pread(file.get(), end.data(), end.size(), from);
  std::string text(end.data(), static_cast<std::size_t>(std::max<ssize_t>(0, count)));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return control::printable(text.substr(text.rfind('\n') + 1));
}

// How python3 ended; nothing if it did not in time, and was killed.
std::optional<int> status_within(pid_t pid, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  int status = 0;
  bool killed = false;
  while (true) {
    const pid_t ended = waitpid(pid, &status, killed ? 0 : WNOHANG);
    if (ended == pid) return killed ? std::nullopt : std::optional(status);
    if (ended < 0 && errno != EINTR) {
      throw SetupError(fmt::format("lost python3: {}", std::strerror(errno)));
    }
    if (!killed && std::chrono::steady_clock::now() >= deadline) {
      kill(pid, SIGKILL);
      killed = true;
    }
    if (!killed) std::this_thread::sleep_for(kKillPause);
  }
}

// The exit code of python3.
int run_python(const std::string& path, const Descriptor& input, const Descriptor& errors,
               std::chrono::milliseconds patience) {
  const std::array<const char*, 6> arguments = {kPython,         "-I",         "-c",
                                                kDrawFigureText, path.c_str(), nullptr};
  const pid_t pid = fork();
  if (pid < 0) throw SetupError(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (pid == 0) {
    dup2(input.get(), STDIN_FILENO);
    dup2(errors.get(), STDOUT_FILENO);
    dup2(errors.get(), STDERR_FILENO);
    execv(kPython, const_cast<char* const*>(arguments.data()));
    _exit(kNoPython);
  }
  const std::optional<int> status = status_within(pid, patience);
  if (!status) {
    throw SetupError(fmt::format("the figure was not drawn: python3 had not written {} after {}",
                                 control::quoted(path),
                                 human_seconds(std::chrono::duration<double>(patience).count())));
  }
  return WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status);
}

ordered_json series_json(const Series& series) {
  ordered_json result = {{"name", series.name},
                         {"origin", control::model::origin_name(series.origin)},
                         {"x", series.x},
                         {"y", series.y}};
  if (series.beside) result["beside"] = *series.beside;
  return result;
}

}  // namespace

ordered_json figure_json(const Figure& figure) {
  ordered_json panels = ordered_json::array();
  for (const Panel& panel : figure.panels) {
    ordered_json all = ordered_json::array();
    for (const Series& series : panel.series) all.push_back(series_json(series));
    panels.push_back({{"title", panel.title},
                      {"x_label", panel.x_label},
                      {"y_label", panel.y_label},
                      {"categories", panel.categories},
                      {"logarithmic", panel.logarithmic},
                      {"series", std::move(all)}});
  }
  return {{"name", figure.name}, {"title", figure.title}, {"panels", std::move(panels)}};
}

void check_figure_path(const std::string& path) {
  if (path.ends_with(".svg") || path.ends_with(".png")) return;
  throw control::UsageError(
      fmt::format("--out {}: expected a file that ends in .svg or .png", control::quoted(path)));
}

void draw_figure(const Figure& figure, const std::string& path,
                 std::chrono::milliseconds patience) {
  const Descriptor input = memory_file(figure_json(figure).dump());
  const Descriptor errors = memory_file("");
  const int code = run_python(path, input, errors, patience);
  if (code == 0) return;
  if (code == kNoMatplotlib || code == kNoPython) {
    throw SetupError(fmt::format(
        "figures are drawn by {} with matplotlib, and {} is missing; install python3-matplotlib, "
        "or see the figure's numbers without --out",
        kPython, code == kNoPython ? "python3" : "matplotlib"));
  }
  throw SetupError(fmt::format("the figure was not drawn: {}", last_line(errors)));
}

}  // namespace gradcube::cli
