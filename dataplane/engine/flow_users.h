// Asks the user of a flow, whichever of the three kinds it is (flow_user.h), and how frames name
// it.
#ifndef GRADCUBE_DATAPLANE_ENGINE_FLOW_USERS_H_
#define GRADCUBE_DATAPLANE_ENGINE_FLOW_USERS_H_

#include "dataplane/engine/flows/flow.h"
#include "dataplane/engine/hub/hub_executor.h"
#include "dataplane/engine/messages/mail_channel.h"
#include "dataplane/engine/plan_executor.h"

namespace gradcube::dataplane {

// No virtual call.
template <typename Call>
decltype(auto) ask_user(const Flow& flow, Call&& call) {
  if (flow.user != nullptr) return call(*flow.user);
  return flow.mail != nullptr ? call(*flow.mail) : call(*flow.hub);
}

// By which frames name a flow, beside its step and its peer. The lane of a hub's flows tells the
// hub from those that the job had before.
struct FlowName {
  std::uint8_t lane = 0;
  std::uint8_t thread = 0;
};

inline FlowName name_of(const Flow& flow) {
  if (flow.mail != nullptr) return {0, protocol::kMailThread};
  if (flow.hub != nullptr) {
    return {static_cast<std::uint8_t>(flow.hub->hub_number() % protocol::kMaxLanes),
            static_cast<std::uint8_t>(protocol::kFirstHubThread + flow.hub->number())};
  }
  return {static_cast<std::uint8_t>(flow.user->lane()),
          static_cast<std::uint8_t>(flow.user->thread())};
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_FLOW_USERS_H_
