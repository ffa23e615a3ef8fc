// Messages between trainers on packets: each arrives once, whole and at its receive, over any
// topology, with loss, and while links fail.

#include "tests/simulation/mail_fixture.h"
#include "tests/unit/protocol/seed.h"

#include "gradcube/gradcube.h"

namespace gradcube::simulation {
namespace {

using Message = MailJob::Message;

TEST(Mail, ArrivesBetweenAnyTwoTrainers) {
  for (const char* topology : {"bcube:2,2", "bcube:3,1", "star:3", "torus:3,2", "bcube:3x2"}) {
    SCOPED_TRACE(topology);
    SimulatedCluster cluster(settings_of({{"topology", topology}, {"mtu", "1500"}}));
    MailJob job(cluster, 4 << 20);
    const auto ranks = static_cast<unsigned>(job.trainers().size());
    std::vector<std::tuple<Message, MailJob::Receipt, std::uint64_t>> all;
    std::uint64_t salt = 0;
    for (unsigned from = 0; from < ranks; ++from) {
      for (unsigned to = 0; to < ranks; ++to) {
        for (const std::uint64_t bytes : {0, 1, 1409, 70'000}) {
          const Message message{from, to, bytes, bytes};
          if (salt % 2 == 0) job.send(message, salt);
          all.emplace_back(message, job.receive(message), salt);
          if (salt % 2 != 0) job.send(message, salt);
          ++salt;
        }
      }
    }
    job.finish_well();
    for (const auto& [message, receipt, its] : all) job.expect_here(message, receipt, its);
    leave_all(cluster, job.trainers());
  }
}

TEST(Mail, FailsAtBothEndsWhereNoFrameGoesThatFar) {
  SimulatedCluster cluster(settings_of({{"topology", "torus:20,1"}, {"mtu", "1500"}}));
  MailJob job(cluster, 4 << 20);
  const Message too_far{0, 10, 1, 100'000}, near{0, 8, 1, 100'000}, own{0, 0, 1, 100};
  for (const Message& message : {too_far, near, own}) {
    job.receive(message);
    job.send(message, message.to);
  }
  job.finish();
  for (const auto& trainer : job.trainers()) {
    unsigned failed = 0;
    for (const shared::Completion& completion : trainer->take_completions()) {
      if (completion.code == 0) continue;
      EXPECT_EQ(completion.code, GRADCUBE_EINVAL);
      ++failed;
    }
    const bool concerned = trainer->rank() == too_far.from || trainer->rank() == too_far.to;
    EXPECT_EQ(failed, concerned ? 1u : 0u) << "at rank " << trainer->rank();
  }
  leave_all(cluster, job.trainers());
}

TEST(Mail, OfOneTagArrivesInTheOrderOfTheSends) {
  SimulatedCluster cluster(settings_of(
      {{"topology", "bcube:2,2"}, {"rate", "1gbit"}, {"loss", "0.05"}, {"reorder", "0.2"}}));
  MailJob job(cluster, 8 << 20);
  std::vector<std::pair<Message, MailJob::Receipt>> receipts;
  const auto message_of = [](std::uint64_t i) {
    return Message{0, 3, i % 3, 1000 + 997 * (i % 20)};
  };
  for (std::uint64_t i = 0; i < 200; ++i) job.send(message_of(i), i);
  cluster.run_for(5 * kMillisecond);
  for (std::uint64_t i = 0; i < 200; ++i)
    receipts.emplace_back(message_of(i), job.receive(message_of(i)));
  job.finish_well();
  for (std::uint64_t i = 0; i < 200; ++i) job.expect_here(receipts[i].first, receipts[i].second, i);
  leave_all(cluster, job.trainers());
}

TEST(Mail, WaitsForItsReceiveWhateverElseIsReceived) {
  SimulatedCluster cluster(settings_of({{"topology", "bcube:2,2"}}));
  MailJob job(cluster, 1 << 20);
  const Message late{0, 3, 1, 100'000};
  const Message other{0, 3, 2, 5000};
  job.send(late, 1);
  job.send(other, 2);
  const auto receipt = job.receive(other);
  cluster.run_for(50 * kMillisecond);
  EXPECT_EQ(job.trainers()[3]->take_completions().size(), 1u);
  EXPECT_EQ(job.trainers()[0]->take_completions().size(), 1u);
  job.expect_here(other, receipt, 2);
  const auto last = job.receive(late);
  job.finish_well();
  job.expect_here(late, last, 1);
  leave_all(cluster, job.trainers());
}

TEST(Mail, CrossesBetweenTrainersThatSendToEachOtherFirst) {
  SimulatedCluster cluster(settings_of({{"topology", "bcube:3,2"}, {"rate", "1gbit"}}));
  MailJob job(cluster, 1 << 20);
  const Message there{1, 8, 5, 200'000};
  const Message back{8, 1, 5, 150'000};
  job.send(there, 1);
  job.send(back, 2);
  cluster.run_for(20 * kMillisecond);
  const auto first = job.receive(there);
  const auto second = job.receive(back);
  job.finish_well();
  job.expect_here(there, first, 1);
  job.expect_here(back, second, 2);
  leave_all(cluster, job.trainers());
}

TEST(Mail, ThatIsTooLongFailsAtBothEnds) {
  for (const unsigned to : {0u, 1u, 3u}) {
    SimulatedCluster cluster(settings_of({{"topology", "bcube:2,2"}}));
    MailJob job(cluster, 1 << 20);
    const Message message{0, to, 9, 70'000, 0, 69'999};
    const Message shorter{0, to, 9, 500, 0, 1000};
    job.send(message, 1);
    job.send(shorter, 2);
    const auto failing = job.receive(message);
    const auto fitting = job.receive(shorter);
    job.finish();
    unsigned failed = 0;
    for (const auto& trainer : job.trainers()) {
      for (const shared::Completion& completion : trainer->take_completions()) {
        EXPECT_EQ(completion.code, completion.bytes == 70'000 ? GRADCUBE_EMISMATCH : 0);
        if (completion.code == 0) {
          EXPECT_EQ(completion.bytes, 500u);
        }
        failed += completion.code == 0 ? 0 : 1;
      }
    }
    EXPECT_EQ(failed, 2u);
    EXPECT_EQ(*job.trainers()[to]->at(failing.offset), 0);
    job.expect_here(shorter, fitting, 2);
    leave_all(cluster, job.trainers());
  }
}

TEST(Mail, ReachesTrainersOfTheSameServer) {
  SimulatedCluster cluster(settings_of({{"topology", "star:2"}}));
  MailJob job(cluster, 8 << 20, 3);
  std::vector<std::pair<Message, MailJob::Receipt>> all;
  std::uint64_t salt = 0;
  for (unsigned from = 0; from < 6; ++from) {
    for (unsigned to = 0; to < 6; ++to) {
      const Message message{from, to, 7, 400'000 + salt};
      job.send(message, salt++);
      all.emplace_back(message, job.receive(message));
    }
  }
  job.finish_well();
  for (std::uint64_t i = 0; i < salt; ++i) job.expect_here(all[i].first, all[i].second, i);
  leave_all(cluster, job.trainers());
}

// At distance 2, two paths against one.
TEST(Mail, OfManyBytesTakesAllPaths) {
  for (const char* topology : {"bcube:2,2", "bcube:4,2"}) {
    SimulatedCluster cluster(settings_of({{"topology", topology}, {"rate", "1gbit"}}));
    MailJob job(cluster, 32 << 20);
    const auto last = static_cast<unsigned>(job.trainers().size()) - 1;
    std::vector<std::int64_t> took;
    for (const std::uint32_t paths : {1, 0}) {
      const Message message{0, last, 1, 8'000'000, paths};
      const auto receipt = job.receive(message);
      job.send(message, paths);
      took.push_back(job.finish_well());
      job.expect_here(message, receipt, paths);
    }
    EXPECT_GT(static_cast<double>(took[0]) / static_cast<double>(took[1]), 1.8)
        << took[0] << " ns over one path, " << took[1] << " over two";
    leave_all(cluster, job.trainers());
  }
}

TEST(Mail, ArrivesOnceWhateverIsLost) {
  const std::uint64_t seed = protocol::test_seed(7);
  SCOPED_TRACE(protocol::seed_trace(seed));
  SimulationSettings settings = settings_of({{"topology", "bcube:3,2"},
                                             {"rate", "1gbit"},
                                             {"loss", "0.02"},
                                             {"duplicate", "0.02"},
                                             {"reorder", "0.05"},
                                             {"corrupt", "0.01"}});
  settings.seed = seed;
  settings.lcores = 2;
  SimulatedCluster cluster(settings);
  MailJob job(cluster, 32 << 20);
  dataplane::SeededRandom random(seed);
  std::vector<std::pair<Message, MailJob::Receipt>> all;
  for (std::uint64_t i = 0; i < 150; ++i) {
    const Message message{static_cast<unsigned>(random.below(9)),
                          static_cast<unsigned>(random.below(9)), random.below(3),
                          random.below(4) == 0 ? random.below(500'000) : random.below(5000)};
    Message roomy = message;
    roomy.room = 500'000;
    job.send(message, i);
    all.emplace_back(message, job.receive(roomy));
    if (random.below(4) == 0) cluster.run_for(static_cast<std::int64_t>(random.below(2'000'000)));
  }
  job.finish_well();
  for (std::uint64_t i = 0; i < all.size(); ++i) job.expect_here(all[i].first, all[i].second, i);
  leave_all(cluster, job.trainers());
}

}  // namespace
}  // namespace gradcube::simulation
