// A fake daemon, and sessions at it through the C ABI.
#ifndef GRADCUBE_TESTS_UNIT_TRAINER_SESSION_FIXTURE_H_
#define GRADCUBE_TESTS_UNIT_TRAINER_SESSION_FIXTURE_H_

#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "tests/unit/trainer/fake_daemon.h"
#include "tests/unit/trainer/temporary_directory.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

class SessionTest : public ::testing::Test {
 protected:
  ~SessionTest() override {
    for (gradcube_session* session : sessions_) gradcube_close(session);
  }

  gradcube_session* open(const char* job, const gradcube_options* options = nullptr) {
    gradcube_session* session = nullptr;
    EXPECT_EQ(gradcube_open(socket_.c_str(), job, options, &session), GRADCUBE_OK)
        << gradcube_last_error(nullptr);
    if (session != nullptr) sessions_.push_back(session);
    return session;
  }

  void close(gradcube_session* session) {
    std::erase(sessions_, session);
    gradcube_close(session);
  }

  // Starts a sum of floats.
  static std::uint64_t start(gradcube_session* session, float* buffer, std::size_t count) {
    std::uint64_t request = 0;
    EXPECT_EQ(gradcube_allreduce(session, buffer, count, GRADCUBE_FLOAT32, GRADCUBE_SUM, &request),
              GRADCUBE_OK)
        << gradcube_last_error(session);
    return request;
  }

  // Memory of `count` elements, each `value`.
  template <typename T>
  static T* elements(gradcube_session* session, std::size_t count, T value) {
    auto* buffer = static_cast<T*>(gradcube_alloc(session, count * sizeof(T)));
    for (std::size_t i = 0; buffer != nullptr && i < count; ++i) buffer[i] = value;
    return buffer;
  }

  static float* floats(gradcube_session* session, std::size_t count, float value = 1) {
    return elements<float>(session, count, value);
  }

  // Whether the session's last error has these words.
  static bool says(gradcube_session* session, const char* words) {
    const char* message = gradcube_last_error(session);
    EXPECT_NE(std::strstr(message, words), nullptr) << message;
    return std::strstr(message, words) != nullptr;
  }

  // Until the daemon's thread has come as far as the test wants to see it; gives up after many
  // seconds.
  template <typename Condition>
  static bool eventually(const Condition& condition) {
    for (int turn = 0; turn < 10000; ++turn) {
      if (condition()) return true;
      ::usleep(1000);
    }
    return false;
  }

  static constexpr int kLong = 60000;  // ms; no test waits that long unless something hangs

  TemporaryDirectory directory_;
  Environment heap_{"GRADCUBE_HEAP", "64Mi"};
  std::string socket_ = directory_ / "server-2-1.sock";
  FakeDaemon daemon_{socket_};
  std::vector<gradcube_session*> sessions_;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TESTS_UNIT_TRAINER_SESSION_FIXTURE_H_
