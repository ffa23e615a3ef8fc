// A network namespace without a name: it exists as long as a thread is in it or a descriptor of it
// is open.
#ifndef GRADCUBE_DATAPLANE_BED_NETWORK_NAMESPACE_H_
#define GRADCUBE_DATAPLANE_BED_NETWORK_NAMESPACE_H_

#include <string>

namespace gradcube::dataplane {

// Why there is no namespace; `error` is an errno, and 0 if there is one.
struct NamespaceFailure {
  bool in_ipv6;
  int error;
};

// Puts the calling thread into a new namespace, whose interfaces will never speak IPv6. May be
// called in a child of a process with threads, before it executes a program.
NamespaceFailure enter_new_network_namespace() noexcept;

// What went wrong, and what to do.
std::string failure_text(const NamespaceFailure& failure);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_BED_NETWORK_NAMESPACE_H_
