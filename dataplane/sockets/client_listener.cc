#include "dataplane/sockets/client_listener.h"

#include <optional>
#include <utility>

#include "control/base/errors.h"

namespace gradcube::dataplane {

ClientListener::ClientListener(ControlLoop& loop, std::filesystem::path path, int type,
                               std::function<void(const UnixListener::Accepted& client)> on_client,
                               AllowedUsers users, ControlLoop::Clock::duration pause)
    : loop_(loop),
      listener_(std::move(path), type, std::move(users)),
      on_client_(std::move(on_client)),
      pause_(pause) {
  loop_.add(listener_.descriptor(), [this] { take(); });
}

ClientListener::~ClientListener() { loop_.remove(listener_.descriptor()); }

void ClientListener::take() {
  for (unsigned i = 0; i < kMostAccepted; ++i) {
    std::optional<UnixListener::Accepted> client;
    try {
      client = listener_.accept();
    } catch (const control::SetupError&) {
      loop_.pause_for(listener_.descriptor(), pause_);
      if (std::exchange(told_, true)) return;
      throw;  // the loop logs it
    }
    if (!client.has_value()) return;
    told_ = false;
    on_client_(*client);
  }
}

}  // namespace gradcube::dataplane
