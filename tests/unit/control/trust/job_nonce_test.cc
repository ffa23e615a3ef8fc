#include "control/jobs/job_nonce.h"

#include <functional>
#include <gtest/gtest.h>
#include <vector>

#include "control/jobs/job_messages.h"

namespace gradcube::control {
namespace {

JobDescriptor job() {
  JobDescriptor job;
  job.id = 7;
  job.name = "job";
  job.members = {{1, 0, 10, 1}, {2, 1, 20, 4}};
  return job;
}

TEST(JobNonce, IsAnotherWithAnyMembersDaemonOrJoin) {
  const std::vector<std::function<void(JobDescriptor&)>> changes = {
      [](JobDescriptor& d) { d.id = 8; },
      [](JobDescriptor& d) { d.members[0].incarnation = 11; },
      [](JobDescriptor& d) { d.members[1].incarnation = 21; },
      [](JobDescriptor& d) { d.members[1].attempt = 5; },
      [](JobDescriptor& d) { d.members[1].server = 3; },
      [](JobDescriptor& d) { d.members.pop_back(); },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    JobDescriptor other = job();
    changes[i](other);
    EXPECT_NE(job_nonce(other), job_nonce(job())) << i;
  }
}

TEST(JobNonce, IsTheSameOnAllMembersAndInAllEpochs) {
  JobDescriptor later = job();
  later.epoch = 5;
  EXPECT_EQ(job_nonce(later), job_nonce(job()));
}

}  // namespace
}  // namespace gradcube::control
