// The key of a cluster, and the keys that are made of it.
//
// Who has the key is of the cluster: its daemons take his frames for those of any server. It is 32
// random bytes, in a file of 64 hexadecimal digits that only its owner can read and write. The same
// file has to be on every host.
//
// Every other key is derived (control/base/hkdf.h), for one purpose each, so that a frame is never
// right for another one:
//
//   of servers     messages, greetings, path probes and path failures
//   of a job       the segments of one job in one epoch. Its name is a hash over the job's members,
//                  each with the random number of its daemon and the count of that daemon's joins:
//                  no two jobs have the same, not even after restarts.
//
// Any thread.
#ifndef GRADCUBE_CONTROL_SETTINGS_CLUSTER_KEY_H_
#define GRADCUBE_CONTROL_SETTINGS_CLUSTER_KEY_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "control/base/hkdf.h"

namespace gradcube::control {

// Throws a SetupError where the system has no random numbers.
Secret draw_secret();

// As a key file has it.
std::string key_text(const Secret& key);
// Makes the file. Throws a SetupError, also if it is there already.
void write_key_file(const std::filesystem::path& path, std::string_view text);
// Throws a SetupError if it cannot be read, is of another user than this process's or root, can be
// read or written by others, or is no key.
Secret read_key_file(const std::filesystem::path& path);

// The key file of a cluster that names none, for as long as it runs: it is gone with this object.
class OwnKeyFile {
 public:
  OwnKeyFile() = default;  // none
  // In place of one that a cluster has left which did not end in good order. Throws a SetupError.
  OwnKeyFile(std::filesystem::path path, std::string_view text);
  ~OwnKeyFile();
  OwnKeyFile(OwnKeyFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  OwnKeyFile& operator=(OwnKeyFile&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Whoever ends the cluster removes it.
  void keep() { path_.clear(); }

 private:
  std::filesystem::path path_;  // empty: none
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_SETTINGS_CLUSTER_KEY_H_
