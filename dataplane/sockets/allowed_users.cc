#include "dataplane/sockets/allowed_users.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <fmt/format.h>
#include <grp.h>
#include <optional>
#include <pwd.h>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

#include "control/base/errors.h"
#include "control/base/printable.h"

namespace gradcube::dataplane {

namespace {

constexpr std::size_t kLongestEntry = 1 << 20;  // a group may have very many members

std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && rest == text.data() + text.size();
  // The greatest is nobody: to the kernel it means "as it is".
  if (!whole || number == UINT32_MAX) return std::nullopt;
  return number;
}

// The entry of this name, by one of the getXXnam_r() functions.
template <typename Entry, typename LookUp, typename Number>
std::uint32_t look_up(const std::string& name, std::string_view what, std::string_view setting,
                      LookUp function, Number Entry::*number) {
  if (const auto given = number_in(name)) return *given;
  Entry entry{};
  Entry* found = nullptr;
  std::vector<char> room(4096);
  int error = 0;
  while ((error = function(name.c_str(), &entry, room.data(), room.size(), &found)) == ERANGE &&
         room.size() < kLongestEntry) {
    room.resize(2 * room.size());
  }
  if (found != nullptr) return found->*number;
  throw control::UsageError(
      fmt::format("{}: this host has no {} {}; expected names that `getent {}` knows, or numbers",
                  setting, what, control::quoted(name), what == "user" ? "passwd" : "group"));
}

// Of the process at the other end; empty where the kernel does not tell.
std::vector<gid_t> groups_of(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  std::vector<gid_t> groups;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0) {
    groups.push_back(credentials.gid);
  }
  std::vector<gid_t> more(64);
  for (;;) {
    length = static_cast<socklen_t>(more.size() * sizeof(gid_t));
    if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, more.data(), &length) == 0) break;
    const std::size_t wanted = length / sizeof(gid_t);
    if (errno != ERANGE || wanted <= more.size()) return groups;
    more.resize(wanted);
  }
  groups.insert(groups.end(), more.begin(),
                more.begin() + static_cast<std::ptrdiff_t>(length / sizeof(gid_t)));
  return groups;
}

}  // namespace

AllowedUsers::AllowedUsers(const std::vector<std::string>& users,
                           const std::vector<std::string>& groups) {
  for (const std::string& name : users) {
    users_.insert(look_up(name, "user", "allow-users", getpwnam_r, &passwd::pw_uid));
  }
  for (const std::string& name : groups) {
    groups_.insert(look_up(name, "group", "allow-groups", getgrnam_r, &group::gr_gid));
  }
}

bool AllowedUsers::is_owner(uid_t user) { return user == geteuid() || user == 0; }

Standing AllowedUsers::standing(int socket, uid_t user) const {
  if (is_owner(user)) return Standing::owner;
  if (users_.contains(user)) return Standing::tenant;
  if (groups_.empty()) return Standing::stranger;
  const std::vector<gid_t> groups = groups_of(socket);
  const bool any =
      std::ranges::any_of(groups, [this](gid_t group) { return groups_.contains(group); });
  return any ? Standing::tenant : Standing::stranger;
}

std::string AllowedUsers::refusal(uid_t user) {
  return fmt::format(
      "this daemon belongs to user {}, and user {} is none of those whom it serves (settings "
      "allow-users and allow-groups)",
      geteuid(), user);
}

}  // namespace gradcube::dataplane
