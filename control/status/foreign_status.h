// What another daemon says of itself: JSON that is hostile until it is checked here.
//
// Of a status only what its form has is taken (form.h), each value of its type: numbers that count,
// texts of at most 4 KiB without control characters, addresses of the cluster's servers. One field
// that is missing or of another type makes the whole status bad, as do more than 128 keys in one
// object: so a check takes time in the length of the text. Of fields that the form does not name
// plain values are taken alone. What puts statuses together (merged_status.h) need not look again.
//
// Pure functions.
#ifndef GRADCUBE_CONTROL_STATUS_FOREIGN_STATUS_H_
#define GRADCUBE_CONTROL_STATUS_FOREIGN_STATUS_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "bcube_forwarding/address.h"

namespace gradcube::control::status {

// The status of the one server `server`; nothing if the text is none.
std::optional<nlohmann::ordered_json> checked_status(std::string_view text,
                                                     const bcube::AddressSpace& space,
                                                     bcube::ServerId server);

}  // namespace gradcube::control::status

#endif  // GRADCUBE_CONTROL_STATUS_FOREIGN_STATUS_H_
