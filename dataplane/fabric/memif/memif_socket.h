// The path of a socket at which memif devices meet, in a form that the driver takes: any folder may
// be meant, however long its path is and whatever characters are in it. (A driver's options are
// separated by commas, and the path of a Unix socket has 107 characters at most.)
//
// Owns a descriptor of the folder, which the path leads through: it outlives the devices. Errors
// are control::SetupError.
#ifndef GRADCUBE_DATAPLANE_FABRIC_MEMIF_MEMIF_SOCKET_H_
#define GRADCUBE_DATAPLANE_FABRIC_MEMIF_MEMIF_SOCKET_H_

#include <filesystem>
#include <string>

#include "control/base/descriptor.h"

namespace gradcube::dataplane {

class MemifSocket {
 public:
  // socket: where it is, or is to be.
  explicit MemifSocket(const std::filesystem::path& socket);

  const std::string& path() const { return path_; }

 private:
  control::Descriptor folder_;
  std::string path_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_MEMIF_MEMIF_SOCKET_H_
