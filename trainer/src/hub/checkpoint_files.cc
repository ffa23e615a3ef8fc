#include "trainer/src/hub/checkpoint_files.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <dirent.h>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "control/checkpoint/checkpoint_reader.h"
#include "control/checkpoint/checkpoint_writer.h"
#include "trainer/src/base/failure.h"
#include "trainer/src/base/quoted.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {
namespace {

constexpr std::string_view kPrepared = ".prepared";

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
  if (!take_text(name, base) || !take_text(name, ".") || !take_number(name, file.version.step) ||
      !take_text(name, ".")) {
    return std::nullopt;
  }
  if (take_text(name, "g") && (!take_number(name, file.version.generation) ||
                               file.version.generation == 0 || !take_text(name, "."))) {
    return std::nullopt;
  }
  std::uint32_t part = 0;
  if (!take_number(name, part) || !take_text(name, "-of-") || !take_number(name, file.parts) ||
      part < 1 || part > file.parts) {
    return std::nullopt;
  }
  file.part = part - 1;
  file.prepared = take_text(name, kPrepared);
  return name.empty() ? std::optional(file) : std::nullopt;
}

// The folder, with a slash behind it, and the name in it.
std::pair<std::string, std::string> split(const std::string& base) {
  const std::size_t slash = base.rfind('/');
  if (slash == std::string::npos) return {"./", base};
  return {base.substr(0, slash + 1), base.substr(slash + 1)};
}

// Throws Failure when the folder cannot be read.
std::vector<std::string> names_in(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
  std::vector<std::string> names;
  while (entries != nullptr) {
    errno = 0;
    const dirent* entry = ::readdir(entries.get());  // of a stream that no other thread has
    if (entry == nullptr && errno == 0) return names;
    if (entry == nullptr) break;
    names.emplace_back(entry->d_name);
  }
  throw Failure(
      GRADCUBE_ESYSTEM,
      with_system_error("checkpoints cannot be looked for in " + in_quotes(folder), errno));
}

}  // namespace

std::string checkpoint_base(const char* path) {
  if (path == nullptr) throw Failure(GRADCUBE_EINVAL, "the path of the checkpoint is NULL");
  const std::string base = path;
  if (base.empty() || base.back() == '/') {
    throw Failure(GRADCUBE_EINVAL, "invalid path of a checkpoint " + in_quotes(base) +
                                       ": expected that of a file, such as \"model.hub\"");
  }
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(base, error);
  if (error) {
    throw Failure(GRADCUBE_ESYSTEM,
                  with_system_error("no working folder for " + in_quotes(base), error.value()));
  }
  return whole.string();
}

std::string path_of(const std::string& base, const CheckpointFile& file) {
  std::string path = base + "." + std::to_string(file.version.step) + ".";
  if (file.version.generation != 0) path += "g" + std::to_string(file.version.generation) + ".";
  path += std::to_string(file.part + 1) + "-of-" + std::to_string(file.parts);
  if (file.prepared) path += kPrepared;
  return path;
}

std::vector<CheckpointFile> checkpoint_files(const std::string& base) {
  const auto [folder, name] = split(base);
  std::vector<CheckpointFile> files;
  for (const std::string& entry : names_in(folder)) {
    const auto file = read_name(entry, name);
    if (file.has_value()) files.push_back(*file);
  }
  return files;
}

void remove_orphans(const std::string& base) {
  const auto [folder, name] = split(base);
  std::vector<std::string> entries;
  try {
    entries = names_in(folder);
  } catch (const Failure&) {
    return;
  }
  for (const std::string& entry : entries) {
    if (entry.size() <= control::kTemporarySuffixBytes) continue;
    const auto file = read_name(
        std::string_view(entry).substr(0, entry.size() - control::kTemporarySuffixBytes), name);
    if (file.has_value() && !file->prepared) control::remove_orphan(folder + entry);
  }
}

std::vector<CheckpointFile> without_doubles(std::vector<CheckpointFile> files) {
  const auto part = [](const CheckpointFile& file) {
    return std::tie(file.version, file.parts, file.part);
  };
  std::sort(files.begin(), files.end(), [&](const CheckpointFile& a, const CheckpointFile& b) {
    return part(a) != part(b) ? part(a) < part(b) : a.prepared < b.prepared;
  });
  const auto is_same = [&](const CheckpointFile& a, const CheckpointFile& b) {
    return part(a) == part(b);
  };
  files.erase(std::unique(files.begin(), files.end(), is_same), files.end());
  return files;
}

std::optional<CheckpointVersion> newest_version(const std::vector<CheckpointFile>& files,
                                                const CheckpointFile& own,
                                                const std::optional<CheckpointVersion>& before) {
  std::map<std::pair<CheckpointVersion, std::uint32_t>, std::uint32_t> counts;  // of some parts
  std::optional<CheckpointVersion> newest;
  for (const CheckpointFile& file : without_doubles(files)) {
    if (before.has_value() && !(file.version < *before)) continue;
    const std::uint32_t count = ++counts[{file.version, file.parts}];
    if (count == file.parts || file.is_part(own)) newest = std::max(newest, {file.version});
  }
  return newest;
}

std::uint64_t next_generation(const std::string& base, std::uint64_t step) {
  std::uint64_t next = 0;
  for (const CheckpointFile& file : checkpoint_files(base)) {
    if (file.version.step == step) next = std::max(next, file.version.generation + 1);
  }
  return next;
}

void remove_of_run(const std::string& base, const CheckpointFile& file, std::uint64_t run) {
  const std::string path = path_of(base, file);
  try {
    const control::CheckpointReader reader(control::open_checkpoint(path), path);
    if (reader.header().run == run) ::unlink(path.c_str());
  } catch (const std::runtime_error&) {  // it has gone, or is no checkpoint
  }
}

void remove_unfinished(const std::string& base, const CheckpointFile& kept,
                       const std::set<std::uint64_t>& runs) {
  std::vector<CheckpointFile> files;
  try {
    files = checkpoint_files(base);
  } catch (const Failure&) {
    return;
  }
  for (const CheckpointFile& file : files) {
    if (!file.prepared || !file.is_part(kept) || file.version.step != kept.version.step ||
        file.version.generation >= kept.version.generation) {
      continue;
    }
    for (const std::uint64_t run : runs) remove_of_run(base, file, run);
  }
}

}  // namespace gradcube::trainer
