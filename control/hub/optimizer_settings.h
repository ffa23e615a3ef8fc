// What a hub's optimizer is set to. It stands in the hub's files and is declared beside them, in
// control/checkpoint/optimizer_settings.h, which is the manual; these are its names here.
#ifndef GRADCUBE_CONTROL_HUB_OPTIMIZER_SETTINGS_H_
#define GRADCUBE_CONTROL_HUB_OPTIMIZER_SETTINGS_H_

#include "control/checkpoint/optimizer_settings.h"

namespace gradcube::control::hub {

using control::check_settings;
using control::default_settings;
using control::optimizer_text;
using control::parse_optimizer;

}  // namespace gradcube::control::hub

#endif  // GRADCUBE_CONTROL_HUB_OPTIMIZER_SETTINGS_H_
