// A list of users or of groups, as settings name them: names, or their numbers.
//
// Pure functions; any thread. Errors are UsageErrors. Nothing here asks the system whether there is
// such a user: the daemon's host alone knows its users (dataplane/sockets/allowed_users.h).
#ifndef GRADCUBE_CONTROL_SETTINGS_NAME_LIST_H_
#define GRADCUBE_CONTROL_SETTINGS_NAME_LIST_H_

#include <string>
#include <string_view>
#include <vector>

namespace gradcube::control {

using NameList = std::vector<std::string>;

// "alice,1001": each once, of printable characters without blanks. `where` begins the message.
NameList parse_names(std::string_view text, std::string_view where);
std::string names_text(const NameList& names);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_SETTINGS_NAME_LIST_H_
