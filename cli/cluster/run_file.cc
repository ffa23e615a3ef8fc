#include "cli/cluster/run_file.h"

#include <cstdlib>
#include <fstream>
#include <string>
#include <system_error>
#include <unistd.h>

#include "cli/text/json_fields.h"
#include "control/base/system_error.h"

namespace gradcube::cli {
namespace {

constexpr std::size_t kMostFileBytes = 4 << 20;

}  // namespace

nlohmann::json read_run_file(const control::RunDirectory& directory, std::string_view name) {
  const std::filesystem::path path = directory.path() / name;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return nullptr;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMostFileBytes) return nullptr;
  const auto content = nlohmann::json::parse(text, nullptr, false);
  return content.is_discarded() ? nlohmann::json(nullptr) : content;
}

void write_run_file(const control::RunDirectory& directory, std::string_view name,
                    const nlohmann::json& content) {
  const std::filesystem::path path = directory.path() / name;
  std::string temporary = path.string() + ".XXXXXX";
  const int descriptor = mkstemp(temporary.data());
  if (descriptor < 0) throw control::system_error("cannot write {}", path.string());
  const std::string text = json_text(content) + "\n";
  const bool written =
      write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if ((close(descriptor) != 0) || !written || rename(temporary.c_str(), path.c_str()) != 0) {
    const auto refusal = control::system_error("cannot write {}", path.string());
    unlink(temporary.c_str());
    throw refusal;
  }
}

}  // namespace gradcube::cli
