// Hubs at a fake daemon, through the C ABI.
#ifndef GRADCUBE_TESTS_UNIT_TRAINER_HUB_FIXTURE_H_
#define GRADCUBE_TESTS_UNIT_TRAINER_HUB_FIXTURE_H_

#include <array>
#include <cstdint>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "tests/unit/trainer/session_fixture.h"
#include "trainer/src/base/descriptor.h"

#include "gradcube/gradcube_hub.h"

namespace gradcube::trainer {

class HubTest : public SessionTest {
 protected:
  HubTest() {
    settings_.keys = keys_.data();
    settings_.key_count = keys_.size();
  }
  ~HubTest() override {
    daemon_.release();
    for (gradcube_hub* hub : hubs_) gradcube_hub_free(hub, kLong);
  }

  gradcube_hub* create(gradcube_session* session) {
    gradcube_hub* hub = nullptr;
    EXPECT_EQ(gradcube_hub_create(session, &settings_, kLong, &hub), GRADCUBE_OK)
        << gradcube_last_error(session);
    if (hub != nullptr) hubs_.push_back(hub);
    return hub;
  }
  // The message with which no hub is made.
  std::string refusal(gradcube_session* session, int code) {
    auto* hub = reinterpret_cast<gradcube_hub*>(this);
    EXPECT_EQ(gradcube_hub_create(session, &settings_, kLong, &hub), code);
    EXPECT_EQ(hub, nullptr);
    return gradcube_last_error(session);
  }
  int free(gradcube_hub* hub) {
    const int code = gradcube_hub_free(hub, kLong);
    if (code != GRADCUBE_EAGAIN) std::erase(hubs_, hub);
    return code;
  }
  // Starts the first push of a key: of its weights, each of whose bytes is that of 1.5 in float32.
  static std::uint64_t push_first(gradcube_session* session, gradcube_hub* hub, std::size_t key) {
    static const std::vector<float> weights(100, 1.5F);
    std::uint64_t request = 0;
    EXPECT_EQ(gradcube_hub_init(hub, key, weights.data(), &request), GRADCUBE_OK)
        << gradcube_last_error(session);
    return request;
  }
  static void init(gradcube_session* session, gradcube_hub* hub, std::size_t key) {
    wait(session, push_first(session, hub, key));
  }
  // Starts a push of gradients.
  static std::uint64_t push(gradcube_session* session, gradcube_hub* hub, std::size_t key,
                            const void* gradients, double rate = GRADCUBE_HUB_RATE) {
    std::uint64_t request = 0;
    EXPECT_EQ(gradcube_hub_push(hub, key, gradients, rate, &request), GRADCUBE_OK)
        << gradcube_last_error(session);
    return request;
  }
  static void wait(gradcube_session* session, std::uint64_t request) {
    EXPECT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_OK) << gradcube_last_error(session);
  }
  // In this process: a forked child, as of a death test, has copies of its own.
  static bool can_be_read(const void* memory) {
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    const Descriptor from(pipe[0]);
    const Descriptor to(pipe[1]);
    return ::write(to.get(), memory, 1) == 1;
  }

  // In an order that is not that of their names.
  std::vector<gradcube_hub_key> keys_ = {{"weight", 100, GRADCUBE_FLOAT32},
                                         {"bias", 10, GRADCUBE_BFLOAT16},
                                         {"norm", 7, GRADCUBE_FLOAT16}};
  gradcube_hub_settings settings_ = GRADCUBE_HUB_SETTINGS_INIT;
  std::vector<gradcube_hub*> hubs_;
  std::uint64_t request_ = 0;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TESTS_UNIT_TRAINER_HUB_FIXTURE_H_
