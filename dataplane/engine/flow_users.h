// Asks the user of a flow, whichever of the two kinds it is (flow_user.h): no virtual call.
#ifndef GRADCUBE_DATAPLANE_ENGINE_FLOW_USERS_H_
#define GRADCUBE_DATAPLANE_ENGINE_FLOW_USERS_H_

#include "dataplane/engine/flow.h"
#include "dataplane/engine/mail_channel.h"
#include "dataplane/engine/plan_executor.h"

namespace gradcube::dataplane {

template <typename Call>
decltype(auto) ask_user(const Flow& flow, Call&& call) {
  return flow.mail == nullptr ? call(*flow.user) : call(*flow.mail);
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_FLOW_USERS_H_
