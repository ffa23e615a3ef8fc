// session/session.h, for the folders above this one.
#ifndef GRADCUBE_DATAPLANE_ENGINE_SESSION_H_
#define GRADCUBE_DATAPLANE_ENGINE_SESSION_H_

#include "dataplane/engine/session/session.h"

#endif  // GRADCUBE_DATAPLANE_ENGINE_SESSION_H_
