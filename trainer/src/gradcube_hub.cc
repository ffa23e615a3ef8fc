// The C ABI of the hub: as gradcube.cc.

#include "gradcube/gradcube_hub.h"

#include <memory>
#include <new>

#include "trainer/src/abi.h"
#include "trainer/src/hub/hub.h"
#include "trainer/src/hub/hub_checkpoints.h"
#include "trainer/src/hub/hub_client.h"

using gradcube::shared::PushKind;
using gradcube::trainer::Hub;
using gradcube::trainer::HubCheckpoints;
using gradcube::trainer::HubClient;
using gradcube::trainer::PushWish;
using gradcube::trainer::Session;
using gradcube::trainer::abi::fail_on_thread;
using gradcube::trainer::abi::guarded;
using gradcube::trainer::abi::NoCancellation;
using gradcube::trainer::abi::null_result;

struct gradcube_hub {
  gradcube_session* session;
  std::unique_ptr<Hub> hub;
};

namespace {

template <typename Call>
int guarded_hub(gradcube_hub* hub, const Call& call) noexcept {
  if (hub == nullptr) return fail_on_thread(GRADCUBE_EINVAL, "the hub is NULL");
  return guarded(hub->session, [&](Session&) { return call(hub->session->hubs, *hub->hub); });
}

int push(gradcube_hub* hub, const PushWish& wish, uint64_t* request) {
  return guarded_hub(hub, [&](HubClient& client, Hub& its) {
    if (request == nullptr) return null_result(client.session(), "request");
    return client.push(its, wish, *request);
  });
}

}  // namespace

extern "C" {

int gradcube_hub_create(gradcube_session* session, const gradcube_hub_settings* settings,
                        int timeout_ms, gradcube_hub** hub) {
  if (hub != nullptr) *hub = nullptr;
  return guarded(session, [&](Session& s) -> int {
    if (hub == nullptr) return null_result(s, "hub");
    if (settings == nullptr) return null_result(s, "settings");
    *hub = new gradcube_hub{session, session->hubs.make(*settings, timeout_ms)};
    return GRADCUBE_OK;
  });
}

int gradcube_hub_free(gradcube_hub* hub, int timeout_ms) {
  if (hub == nullptr) return GRADCUBE_OK;
  const NoCancellation whole_call;
  bool stays = !hub->session->session.is_forked_copy();
  if (!stays) hub->hub->disown();
  const int code = guarded_hub(hub, [&](HubClient& client, Hub& its) {
    try {
      const int result = client.free(its, timeout_ms);
      stays = result == GRADCUBE_EAGAIN;
      return result;
    } catch (const std::bad_alloc&) {
      return client.session().fail(GRADCUBE_EAGAIN, "");
    }
  });
  if (!stays) delete hub;
  return code;
}

int gradcube_hub_init(gradcube_hub* hub, size_t key, const void* weights, uint64_t* request) {
  return push(hub, {.kind = PushKind::weights, .key = key, .buffer = weights}, request);
}

int gradcube_hub_push(gradcube_hub* hub, size_t key, const void* gradients, double rate,
                      uint64_t* request) {
  return push(hub, {.kind = PushKind::gradients, .key = key, .buffer = gradients, .rate = rate},
              request);
}

int gradcube_hub_push_pull(gradcube_hub* hub, size_t key, const void* gradients, void* weights,
                           double rate, uint64_t* request) {
  return guarded_hub(hub, [&](HubClient& client, Hub& its) {
    if (request == nullptr) return null_result(client.session(), "request");
    if (weights == nullptr) return null_result(client.session(), "weights");
    return client.push(its,
                       {.kind = PushKind::gradients,
                        .key = key,
                        .buffer = gradients,
                        .weights = weights,
                        .rate = rate},
                       *request);
  });
}

int gradcube_hub_accumulate(gradcube_hub* hub, size_t key, const void* gradients,
                            uint64_t* request) {
  return push(hub, {.kind = PushKind::accumulated, .key = key, .buffer = gradients}, request);
}

int gradcube_hub_norm(gradcube_hub* hub, double* norm) {
  return guarded_hub(hub, [&](HubClient& client, Hub& its) {
    if (norm == nullptr) return null_result(client.session(), "norm");
    return client.norm(its, *norm);
  });
}

int gradcube_hub_apply(gradcube_hub* hub, size_t key, void* weights, double scale, double rate,
                       uint64_t* request) {
  return push(
      hub,
      {.kind = PushKind::applied, .key = key, .weights = weights, .rate = rate, .scale = scale},
      request);
}

int gradcube_hub_pull(gradcube_hub* hub, size_t key, void* weights) {
  return guarded_hub(hub,
                     [&](HubClient& client, Hub& its) { return client.pull(its, key, weights); });
}

const void* gradcube_hub_weights(gradcube_hub* hub, size_t key) {
  const void* weights = nullptr;
  guarded_hub(hub, [&](HubClient& client, Hub& its) -> int {
    weights = client.weights(its, key);
    return GRADCUBE_OK;
  });
  return weights;
}

int gradcube_hub_begin_checkpoint(gradcube_hub* hub, const char* path, uint64_t step) {
  return guarded_hub(hub, [&](HubClient& client, Hub& its) -> int {
    HubCheckpoints(client).begin(its, path, step);
    return GRADCUBE_OK;
  });
}

int gradcube_hub_end_checkpoint(gradcube_hub* hub, int timeout_ms) {
  return guarded_hub(hub, [&](HubClient& client, Hub& its) -> int {
    HubCheckpoints(client).end(its, timeout_ms);
    return GRADCUBE_OK;
  });
}

int gradcube_hub_restore(gradcube_hub* hub, const char* path, int timeout_ms, uint64_t* step) {
  return guarded_hub(hub, [&](HubClient& client, Hub& its) -> int {
    if (step == nullptr) return null_result(client.session(), "step");
    *step = HubCheckpoints(client).restore(its, path, timeout_ms);
    return GRADCUBE_OK;
  });
}

}  // extern "C"
