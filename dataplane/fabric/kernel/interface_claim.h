// The right to use a network interface as a port: one daemon of a network namespace has it, as long
// as this object exists. The kernel takes it back when its process ends.
//
// It is a name among the namespace's abstract Unix sockets, which any user may take: so it keeps
// daemons of one user and root from a mistake, and nobody from malice. What other users have taken
// is not heeded, else they could keep a daemon from its start. Threads: any.
#ifndef GRADCUBE_DATAPLANE_FABRIC_KERNEL_INTERFACE_CLAIM_H_
#define GRADCUBE_DATAPLANE_FABRIC_KERNEL_INTERFACE_CLAIM_H_

#include <string>

#include "control/base/descriptor.h"

namespace gradcube::dataplane {

class InterfaceClaim {
 public:
  // Throws control::SetupError, which names the process that has it.
  explicit InterfaceClaim(const std::string& interface);

 private:
  control::Descriptor socket_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_KERNEL_INTERFACE_CLAIM_H_
