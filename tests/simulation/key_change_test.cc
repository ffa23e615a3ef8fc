// A cluster whose key is changed while jobs run, begin and wait.

#include "dataplane/daemon/process/key_change.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>

#include "control/settings/cluster_key.h"
#include "tests/simulation/work.h"
#include "tests/unit/trainer/temporary_directory.h"

namespace gradcube::simulation {
namespace {

using std::chrono::seconds;

class KeyChanges : public testing::Test {
 protected:
  explicit KeyChanges(bool authenticated = true) {
    SimulationSettings settings = settings_of({{"topology", "bcube:2,2"}, {"mtu", "1500"}});
    settings.frames_are_authenticated = authenticated;
    settings.messages_pass_the_fabric = true;
    settings.links_are_watched = true;
    cluster_ = std::make_unique<SimulatedCluster>(settings);
    change_ = std::make_unique<dataplane::KeyChange>(cluster_->cluster(), file_);
    collective_.count = 5'003;
  }

  // As a user does who puts a new one in the former's place.
  void put_new_key() {
    std::filesystem::remove(file_);
    control::write_key_file(file_, control::key_text(control::draw_secret()));
  }
  nlohmann::ordered_json rekey(seconds window) {
    return change_->begin({{"command", "rekey"}, {"window_ms", window.count() * 1000}}, now_);
  }
  void pass(seconds time) {
    now_ += time;
    change_->tick(now_);
    cluster_->run_for(kSecond);
  }
  void expect_refused(seconds window, const std::string& with) {
    try {
      rekey(window);
      ADD_FAILURE() << "not refused: " << with;
    } catch (const std::exception& error) {
      EXPECT_NE(std::string(error.what()).find(with), std::string::npos) << error.what();
    }
  }
  Trainers join(const std::string& job) { return cluster_->join_all(job, heap_for(collective_)); }
  std::string key_of(const std::string& name) {
    for (const dataplane::JobFacts& job : cluster_->jobs()) {
      if (job.name == name) return control::key_id_text(job.key);
    }
    return "";
  }
  void expect_all_works(const Trainers& trainers) {
    const auto admitted = [](const auto& trainer) { return trainer->admitted(); };
    const auto begun = [&] { return std::all_of(trainers.begin(), trainers.end(), admitted); };
    ASSERT_TRUE(cluster_->run_until(begun, 10 * kSecond));
    allreduce(*cluster_, trainers, collective_);
    const auto& malformed = cluster_->counters().malformed;
    EXPECT_EQ(malformed[static_cast<std::size_t>(protocol::FrameError::bad_mac)], 0u);
  }
  std::string report(const char* field) {
    const nlohmann::ordered_json report = change_->report(now_);
    return report.contains(field) ? report[field].dump() : "";
  }

  const control::Secret former_{1};  // a simulated cluster's
  trainer::TemporaryDirectory directory_;
  std::filesystem::path file_ = directory_ / "cube.key";
  std::unique_ptr<SimulatedCluster> cluster_;
  std::unique_ptr<dataplane::KeyChange> change_;
  dataplane::KeyChange::SteadyClock::time_point now_{};
  Collective collective_;
};

TEST_F(KeyChanges, LeaveJobsAloneThatRunAndBeginThoseThatWaitByTheNewKey) {
  const Trainers before = join("before");
  expect_all_works(before);
  const std::string former = key_of("before");
  Trainers waits;
  waits.push_back(cluster_->join("waits", 0, heap_for(collective_)));
  cluster_->run_for(kSecond);

  put_new_key();
  const std::string next = rekey(seconds(10))["other_key"];
  EXPECT_NE(next, former);
  expect_all_works(before);
  pass(seconds(10));
  EXPECT_EQ(report("key"), '"' + next + '"');
  expect_all_works(before);
  pass(seconds(15));
  EXPECT_EQ(report("other_key"), "");
  EXPECT_EQ(cluster_->cluster().keys()->of_jobs(0), nullptr);

  for (bcube::ServerId server = 1; server < cluster_->servers(); ++server) {
    waits.push_back(cluster_->join("waits", server, heap_for(collective_)));
  }
  expect_all_works(waits);
  expect_all_works(before);
  EXPECT_EQ(key_of("waits"), next);
  EXPECT_EQ(key_of("before"), former);
  leave_all(*cluster_, before);
  leave_all(*cluster_, waits);
}

TEST_F(KeyChanges, TakeOneWindowUntilMacsAreMadeByTheNewKeyAndAnotherUntilTheFormerIsRefused) {
  put_new_key();
  EXPECT_EQ(rekey(seconds(10))["makes_in_ms"], 10'000);
  pass(seconds(9));
  EXPECT_EQ(rekey(seconds(10))["makes_in_ms"], 1'000) << "said twice, it goes on";
  pass(seconds(1));
  EXPECT_EQ(report("makes_in_ms"), "");
  EXPECT_EQ(report("ends_in_ms"), "15000") << "with time for what is on its way";
  pass(seconds(15));
  EXPECT_EQ(report("ends_in_ms"), "");
}

TEST_F(KeyChanges, AreDoneAtOnceWithoutAWindow) {
  put_new_key();
  EXPECT_EQ(rekey(seconds(0)).size(), 1U);
  put_new_key();
  rekey(seconds(10));
  EXPECT_EQ(rekey(seconds(0)).size(), 1U) << "one that is under way, too";
  const Trainers trainers = join("job");
  expect_all_works(trainers);
  leave_all(*cluster_, trainers);
}

TEST_F(KeyChanges, AreTakenBackWithTheFormerKeyInTheFile) {
  const std::string former = report("key");
  put_new_key();
  rekey(seconds(10));
  std::filesystem::remove(file_);
  control::write_key_file(file_, control::key_text(former_));
  rekey(seconds(10));
  pass(seconds(25));
  EXPECT_EQ(report("key"), former);
  EXPECT_EQ(report("other_key"), "");
}

TEST_F(KeyChanges, AreRefusedWithWhatToDo) {
  expect_refused(seconds(10), "cube.key");
  put_new_key();
  expect_refused(seconds(-1), "expected 0 to");
  rekey(seconds(0));
  EXPECT_EQ(rekey(seconds(10)).size(), 1U) << "it is done";
  put_new_key();
  rekey(seconds(10));
  put_new_key();
  expect_refused(seconds(10), "ends in 25000 ms");
  pass(seconds(10));
  std::filesystem::remove(file_);
  control::write_key_file(file_, control::key_text(former_));
  expect_refused(seconds(10), "ends in 15000 ms");
  std::filesystem::permissions(file_, std::filesystem::perms::all);
  expect_refused(seconds(10), "can be");
}

class KeyChangesWithoutAKey : public KeyChanges {
 protected:
  KeyChangesWithoutAKey() : KeyChanges(false) {}
};

TEST_F(KeyChangesWithoutAKey, AreRefused) {
  put_new_key();
  expect_refused(seconds(10), "no key to change");
  EXPECT_TRUE(change_->report(now_).empty());
}

}  // namespace
}  // namespace gradcube::simulation
