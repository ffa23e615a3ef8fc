// Who may use a daemon's sockets: its own user and root, who own it, and those whom its settings
// name, its tenants. A tenant's trainers are served; of the daemon it may ask for its own status.
//
// Users and groups are looked up once, at start: a name that is changed later counts for the next
// start. A process is a member of the groups that it had when it connected (SO_PEERGROUPS).
//
// Threads: any; nothing changes after the constructor.
#ifndef GRADCUBE_DATAPLANE_SOCKETS_ALLOWED_USERS_H_
#define GRADCUBE_DATAPLANE_SOCKETS_ALLOWED_USERS_H_

#include <set>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gradcube::dataplane {

// What somebody at the other end of a connection is to the daemon.
enum class Standing { stranger, tenant, owner };

class AllowedUsers {
 public:
  // Its own user and root alone.
  AllowedUsers() = default;
  // And these: names, or numbers, which need not stand for anybody on this host. Throws a
  // control::UsageError about a name that nobody has.
  AllowedUsers(const std::vector<std::string>& users, const std::vector<std::string>& groups);

  bool any_tenants() const { return !users_.empty() || !groups_.empty(); }
  // Of a user of this process's own daemon.
  static bool is_owner(uid_t user);
  // socket: connected to the process of this user.
  Standing standing(int socket, uid_t user) const;
  // For strangers.
  static std::string refusal(uid_t user);

 private:
  std::set<uid_t> users_;
  std::set<gid_t> groups_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_SOCKETS_ALLOWED_USERS_H_
