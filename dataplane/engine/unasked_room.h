// flows/unasked_room.h, for the folders above this one.
#ifndef GRADCUBE_DATAPLANE_ENGINE_UNASKED_ROOM_H_
#define GRADCUBE_DATAPLANE_ENGINE_UNASKED_ROOM_H_

#include "dataplane/engine/flows/unasked_room.h"

#endif  // GRADCUBE_DATAPLANE_ENGINE_UNASKED_ROOM_H_
