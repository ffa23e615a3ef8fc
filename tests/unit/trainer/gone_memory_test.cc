// A session that ends with something in flight, where the system has no room to keep its memory.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <thread>
#include <vector>

#include "tests/support/held_memory.h"
#include "tests/unit/trainer/hub_fixture.h"

namespace gradcube::trainer {
namespace {

class GoneMemory : public HubTest {
 protected:
  // Pushes wait, and nothing else.
  gradcube_session* session_ = open("unpushed");
  gradcube_hub* hub_ = create(session_);
  static constexpr std::size_t kBytes = std::size_t{16} << 20;

  void lose_with_a_push_in_flight() {
    push_first(session_, hub_, 0);
    rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_AS, &limit), 0);
    const rlimit lower{1, limit.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_AS, &lower), 0);
    gradcube_leave(session_);
    ASSERT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
  }

  // Loses it while another thread is in this call, which touches `held`.
  template <typename Call>
  void lose_during(HeldMemory& held, const Call& call) {
    const std::jthread caller(call);
    EXPECT_TRUE(eventually([&] { return held.holds_a_thread(); }));
    const std::jthread leaver([this] { lose_with_a_push_in_flight(); });
    // From then on it waits for nothing but the caller.
    EXPECT_TRUE(eventually([this] { return daemon_.orderly_leaves() == 1; }));
    held.release();
  }

  void expect_gone() {
    EXPECT_EQ(gradcube_last_code(session_), GRADCUBE_ENOMEM);
    EXPECT_TRUE(says(session_, "not there any more"));
  }
};

TEST_F(GoneMemory, IsNotGivenToWhoAllocatesMore) {
  lose_with_a_push_in_flight();
  EXPECT_EQ(gradcube_alloc(session_, 40), nullptr);
  expect_gone();
}

TEST_F(GoneMemory, HasNoResultThatWasThereAndNotReported) {
  std::vector<float> own(10, 1);
  const std::uint64_t staged = start(session_, own.data(), own.size());
  const std::uint64_t in_place = start(session_, floats(session_, 10), 10);
  wait(session_, start(session_, floats(session_, 10), 10));
  lose_with_a_push_in_flight();
  for (const std::uint64_t request : {staged, in_place}) {
    EXPECT_EQ(gradcube_wait(session_, request, kLong), GRADCUBE_ENOMEM);
    expect_gone();
  }
  EXPECT_EQ(own[0], 1) << "nothing was copied";
}

TEST_F(GoneMemory, IsThereForAResultThatAnotherThreadIsBeingGiven) {
  HeldMemory held(kBytes);
  std::uint64_t request = 0;
  ASSERT_EQ(gradcube_recv(session_, held.as<void>(), kBytes, 1, kBytes, nullptr, &request),
            GRADCUBE_OK)
      << gradcube_last_error(session_);
  lose_during(held, [&] { wait(session_, request); });
  EXPECT_EQ(held.as<unsigned char>()[kBytes - 1], kReceived);
  EXPECT_EQ(gradcube_alloc(session_, 40), nullptr);
}

TEST_F(GoneMemory, IsThereForWhatAnotherThreadIsSubmitting) {
  HeldMemory held(kBytes);
  lose_during(held, [&] {
    std::uint64_t request = 0;
    EXPECT_EQ(gradcube_allreduce(session_, held.as<float>(), kBytes / sizeof(float),
                                 GRADCUBE_FLOAT32, GRADCUBE_SUM, &request),
              GRADCUBE_EINVAL);
  });
  EXPECT_EQ(gradcube_alloc(session_, 40), nullptr);
}

}  // namespace
}  // namespace gradcube::trainer
