// The right to use a network interface as a port: one daemon of a network namespace has it, as long
// as this object exists. The kernel takes it back when its process ends.
//
// It is a name among the namespace's abstract Unix sockets, which any user may take. What another
// user than root and this process's own has is heeded only if this user has a packet socket
// on the interface, for which CAP_NET_RAW is needed: else anybody could keep a daemon from its
// start. Open the interface's sockets before the claim is made: another daemon looks for them. It
// keeps daemons from a mistake, and nobody who has that right from malice. Threads: one at a time.
#ifndef GRADCUBE_DATAPLANE_FABRIC_KERNEL_INTERFACE_CLAIM_H_
#define GRADCUBE_DATAPLANE_FABRIC_KERNEL_INTERFACE_CLAIM_H_

#include <string>

#include "control/base/descriptor.h"

namespace gradcube::dataplane {

class InterfaceClaim {
 public:
  // Throws control::SetupError, which names the process that has it.
  explicit InterfaceClaim(const std::string& interface);

  // Ends the connections of daemons that have asked who has it: to be called now and then, because
  // a daemon that finds no room in the queue does not learn it.
  void hang_up();

 private:
  control::Descriptor socket_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_KERNEL_INTERFACE_CLAIM_H_
