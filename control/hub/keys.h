// What a trainer hands to the hub: keys. They are declared beside the files that hold them, in
// control/checkpoint/hub_key.h, which is the manual; these are their names here.
#ifndef GRADCUBE_CONTROL_HUB_KEYS_H_
#define GRADCUBE_CONTROL_HUB_KEYS_H_

#include "control/checkpoint/hub_key.h"

namespace gradcube::control::hub {

using control::HubKey;
using control::kLongestKeyName;
using control::kMostHubBytes;
using control::kMostKeys;
using control::ordered_keys;

}  // namespace gradcube::control::hub

#endif  // GRADCUBE_CONTROL_HUB_KEYS_H_
