#include "trainer/src/checkpoint_files.h"

#include <cerrno>
#include <charconv>
#include <dirent.h>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <unistd.h>

#include "trainer/src/failure.h"
#include "trainer/src/quoted.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {
namespace {

// Takes a number without a sign and leading zeros off the front.
template <typename Number>
bool take_number(std::string_view& text, Number& number) {
  const bool has_more = text.size() > 1 && text[1] >= '0' && text[1] <= '9';
  if (text.empty() || (text.front() == '0' && has_more)) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || text.front() == '-') return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take_text(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

std::optional<CheckpointFile> read_name(std::string_view name, std::string_view base) {
  CheckpointFile file;
  std::uint32_t part = 0;
  if (!take_text(name, base) || !take_text(name, ".") || !take_number(name, file.step) ||
      !take_text(name, ".") || !take_number(name, part) || !take_text(name, "-of-") ||
      !take_number(name, file.parts) || !name.empty() || part < 1 || part > file.parts) {
    return std::nullopt;
  }
  file.part = part - 1;
  return file;
}

}  // namespace

std::string path_of(const std::string& base, const CheckpointFile& file) {
  return base + "." + std::to_string(file.step) + "." + std::to_string(file.part + 1) + "-of-" +
         std::to_string(file.parts);
}

std::vector<CheckpointFile> checkpoint_files(const std::string& base) {
  const std::size_t slash = base.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : base.substr(0, slash + 1);
  const std::string name = slash == std::string::npos ? base : base.substr(slash + 1);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
  std::vector<CheckpointFile> files;
  while (entries != nullptr) {
    errno = 0;
    const dirent* entry = ::readdir(entries.get());  // of a stream that no other thread has
    if (entry == nullptr && errno == 0) return files;
    if (entry == nullptr) break;
    const auto file = read_name(entry->d_name, name);
    if (file.has_value()) files.push_back(*file);
  }
  throw Failure(GRADCUBE_ESYSTEM,
                with_system_error("checkpoints cannot be looked for in " + quoted(folder), errno));
}

void remove_older_files(const std::string& base, const CheckpointFile& kept) {
  std::vector<CheckpointFile> files;
  try {
    files = checkpoint_files(base);
  } catch (const Failure&) {
    return;
  }
  for (const CheckpointFile& file : files) {
    const bool mine = file.part == kept.part && file.parts == kept.parts && file.step != kept.step;
    const bool of_others = file.parts != kept.parts && file.step < kept.step;
    if (mine || of_others) ::unlink(path_of(base, file).c_str());
  }
}

}  // namespace gradcube::trainer
