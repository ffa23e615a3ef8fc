#include "dataplane/fabric/memif/memif_socket.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>

#include "control/base/errors.h"

namespace gradcube::dataplane {

MemifSocket::MemifSocket(const std::filesystem::path& socket)
    : folder_(open(socket.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)),
      path_(fmt::format("/proc/self/fd/{}/{}", folder_.get(), socket.filename().string())) {
  if (folder_.get() >= 0) return;
  throw control::SetupError(
      fmt::format("cannot open the folder of the memif socket {}: {}; a "
                  "daemon of the switches has to listen there",
                  socket.string(), std::strerror(errno)));
}

}  // namespace gradcube::dataplane
