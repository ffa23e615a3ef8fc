// flows/flow.h, for the folders above this one.
#ifndef GRADCUBE_DATAPLANE_ENGINE_FLOW_H_
#define GRADCUBE_DATAPLANE_ENGINE_FLOW_H_

#include "dataplane/engine/flows/flow.h"

#endif  // GRADCUBE_DATAPLANE_ENGINE_FLOW_H_
