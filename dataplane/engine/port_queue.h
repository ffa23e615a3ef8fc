// flows/port_queue.h, for the folders above this one.
#ifndef GRADCUBE_DATAPLANE_ENGINE_PORT_QUEUE_H_
#define GRADCUBE_DATAPLANE_ENGINE_PORT_QUEUE_H_

#include "dataplane/engine/flows/port_queue.h"

#endif  // GRADCUBE_DATAPLANE_ENGINE_PORT_QUEUE_H_
