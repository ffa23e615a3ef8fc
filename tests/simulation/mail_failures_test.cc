// Messages between trainers while links fail, jobs are reset and end, and collectives run.

#include <algorithm>
#include <string>

#include "tests/simulation/mail_fixture.h"

#include "gradcube/gradcube.h"

namespace gradcube::simulation {
namespace {

using Message = MailJob::Message;

void set_link(SimulatedCluster& cluster, bcube::ServerId server, unsigned level, bool up) {
  dataplane::EmbeddedFabric& fabric = cluster.cluster().emulated();
  for (const auto& link : fabric.links()) {
    if (link.server != server || link.level != level) continue;
    fabric.change_impairments({link}, [up](dataplane::Impairments impairments) {
      impairments.up = up;
      return impairments;
    });
  }
}

// Both ends' links of one path fail in turn; each time what was on its way takes the other path.
TEST(MailOverFailingLinks, ArrivesOnceOverThePathThatIsLeft) {
  for (const unsigned level : {0u, 1u}) {
    SimulationSettings settings =
        settings_of({{"topology", "bcube:3,2"}, {"rate", "1gbit"}, {"greeting", "10ms"}});
    settings.links_are_watched = true;
    SimulatedCluster cluster(settings);
    MailJob job(cluster, 32 << 20);
    const Message large{0, 8, 1, 8'000'000};
    const Message small{0, 8, 2, 1000};
    const auto first = job.receive(large);
    const auto second = job.receive(small);
    job.send(large, 1);
    cluster.run_for(5 * kMillisecond);
    set_link(cluster, level == 0 ? 0 : 8, level, false);
    cluster.run_for(kMillisecond);
    job.send(small, 2);
    job.finish_well();
    job.expect_here(large, first, 1);
    job.expect_here(small, second, 2);
    EXPECT_GT(cluster.counters().reroutes, 0u);
    set_link(cluster, level == 0 ? 0 : 8, level, true);
    cluster.run_for(200 * kMillisecond);
    const auto third = job.receive(large);
    job.send(large, 3);
    job.finish_well();
    job.expect_here(large, third, 3);
    leave_all(cluster, job.trainers());
  }
}

// A disagreement over a collective resets the job in the middle of a message.
TEST(Mail, GoesOnOverAReset) {
  SimulatedCluster cluster(
      settings_of({{"topology", "bcube:2,2"}, {"rate", "200mbit"}, {"loss", "0.01"}}));
  MailJob job(cluster, 32 << 20);
  const Message message{0, 3, 1, 4'000'000};
  const auto receipt = job.receive(message);
  job.send(message, 1);
  cluster.run_for(5 * kMillisecond);
  Collective collective;
  collective.count = 100;
  collective.offset += 16 << 20;
  for (const auto& trainer : job.trainers()) {
    Collective its = collective;
    its.count += trainer->rank() == 1 ? 1 : 0;
    fill_and_submit(*trainer, its);
  }
  job.finish();
  unsigned failed = 0;
  unsigned ended = 0;
  for (const auto& trainer : job.trainers()) {
    for (const shared::Completion& completion : trainer->take_completions()) {
      ++(completion.code == 0 ? ended : failed);
    }
  }
  EXPECT_EQ(failed, 4u);
  EXPECT_EQ(ended, 2u);
  job.expect_here(message, receipt, 1);
  allreduce(cluster, job.trainers(), collective);
  leave_all(cluster, job.trainers());
}

TEST(Mail, FailsWithItsJob) {
  SimulatedCluster cluster(settings_of({{"topology", "bcube:2,2"}, {"rate", "200mbit"}}));
  MailJob job(cluster, 32 << 20);
  const Message under_way{0, 3, 1, 4'000'000};
  job.receive(under_way);
  job.send(under_way, 1);
  job.send({1, 2, 5, 100}, 2);      // which nobody receives
  job.receive({3, 0, 6, 100'000});  // which nobody sends
  job.send({3, 3, 7, 100}, 3);      // to itself
  cluster.run_for(5 * kMillisecond);
  const auto gone = std::move(job.trainers()[2]);
  job.trainers().erase(job.trainers().begin() + 2);
  cluster.leave(*gone, dataplane::Departure::death);
  job.finish(20 * kSecond);
  for (const auto& trainer : job.trainers()) {
    for (const shared::Completion& completion : trainer->take_completions()) {
      EXPECT_EQ(completion.code, GRADCUBE_EPEER) << "at server " << trainer->server();
      EXPECT_NE(completion.notice, 0u);
    }
  }
  // So does what comes later.
  shared::Submission late{};
  late.type = static_cast<std::uint8_t>(shared::SubmissionType::message);
  late.offset = shared::kHeapOffset;
  job.trainers()[0]->submit(late);
  job.finish();
  EXPECT_EQ(job.trainers()[0]->take_completions().at(0).code, GRADCUBE_EPEER);
  leave_all(cluster, job.trainers());
}

// The receiver leaves as soon as it has the message, while its sender's server may still wait for
// the acknowledgement, which may be lost.
TEST(Mail, EndsWellForASenderWhoseReceiverLeavesAtOnce) {
  for (unsigned round = 0; round < 40; ++round) {
    SimulatedCluster cluster(settings_of({{"topology", "star:3"},
                                          {"rate", "1gbit"},
                                          {"loss", "0.2"},
                                          {"seed", std::to_string(round)}}));
    MailJob job(cluster, 1 << 20);
    const Message message{1, 2, 1, round % 2 == 0 ? 100u : 40'000u};
    const auto receipt = job.receive(message);
    const std::uint64_t sent = job.send(message, round);
    const std::uint64_t unmatched = job.send({1, 2, 9, 100}, 1);  // which nobody receives
    ASSERT_TRUE(cluster.run_until(
        [&] { return job.trainers()[2]->header().completion_tail.load() == 1; }, 10 * kSecond));
    job.expect_here(message, receipt, round);
    const auto gone = std::move(job.trainers()[2]);
    job.trainers().pop_back();
    cluster.leave(*gone,
                  round % 4 < 2 ? dataplane::Departure::orderly : dataplane::Departure::death);
    job.finish(20 * kSecond);
    for (const shared::Completion& completion : job.trainers()[1]->take_completions()) {
      EXPECT_EQ(completion.code, completion.request == sent ? 0 : GRADCUBE_EPEER)
          << "in round " << round << (completion.request == unmatched ? ", of no receive" : "");
    }
    leave_all(cluster, job.trainers());
  }
}

// What a trainer has sent before it left in order arrives, however late it is asked for. What it
// has not, and what is sent to it, fails with its name; all others go on. So between servers as
// between the trainers of one.
TEST(Mail, OutlivesATrainerThatLeavesInOrder) {
  for (const char* loss : {"0", "0.2"}) {
    SimulatedCluster cluster(
        settings_of({{"topology", "bcube:2,2"}, {"rate", "1gbit"}, {"loss", loss}}));
    MailJob job(cluster, 1 << 20, 2);
    const Message far{1, 6, 1, 40'000};
    const Message near{1, 0, 1, 100};
    job.send(far, 1);
    job.send(near, 2);
    const std::uint64_t waits = job.receive({1, 6, 2, 100}).name;  // of what it has not sent
    const std::uint64_t lost = job.send({0, 1, 3, 100}, 3);        // what it does not receive
    cluster.run_for(kMillisecond);
    const auto gone = std::move(job.trainers()[1]);
    cluster.leave(*gone, dataplane::Departure::orderly);
    const auto await_end = [&](unsigned rank) {
      const auto& header = job.trainers()[rank]->header();
      const auto ended = [&] { return header.submission_tail == header.completion_tail; };
      EXPECT_TRUE(cluster.run_until(ended, 10 * kSecond)) << "at rank " << rank;
    };
    const auto failed = [&](unsigned rank, std::uint64_t name) {
      await_end(rank);
      for (const shared::Completion& completion : job.trainers()[rank]->take_completions()) {
        EXPECT_EQ(completion.request, name);
        EXPECT_EQ(completion.code, GRADCUBE_EPEER);
        EXPECT_NE(completion.notice, 0u);
      }
      const std::string text = cluster.told(*job.trainers()[rank]).back().notice.text;
      EXPECT_NE(text.find("rank 1 exchanges no more messages in job \"mail\""), std::string::npos)
          << text;
    };
    failed(6, waits);
    failed(0, lost);
    cluster.run_for(10 * kSecond);
    const auto from_far = job.receive(far);
    const auto from_near = job.receive(near);
    const Message other{6, 0, 5, 1000};
    const auto between = job.receive(other);
    job.send(other, 4);
    for (const unsigned rank : {0u, 6u}) {
      await_end(rank);
      for (const shared::Completion& completion : job.trainers()[rank]->take_completions()) {
        EXPECT_EQ(completion.code, 0) << "at rank " << rank;
      }
    }
    job.expect_here(far, from_far, 1);
    job.expect_here(near, from_near, 2);
    job.expect_here(other, between, 4);
    // What comes later fails as well.
    const std::uint64_t later = job.send({0, 1, 3, 100}, 3);
    await_end(0);
    EXPECT_EQ(job.trainers()[0]->take_completions().at(0).request, later);
    job.trainers().erase(job.trainers().begin() + 1);
    leave_all(cluster, job.trainers());
  }
}

TEST(Mail, AndCollectivesShareTheLinks) {
  SimulatedCluster cluster(settings_of({{"topology", "star:3"}, {"rate", "200mbit"}}));
  MailJob job(cluster, 64 << 20);
  // As much through the port of server 0 as the all-reduce sends there: 4/3 of its bytes.
  Collective collective;
  collective.count = 750'000;
  collective.offset += 32 << 20;
  const auto sent = static_cast<std::uint64_t>(collective.bytes() * 4 / 3);
  const Message message{0, 1, 1, sent};
  const auto receipt = job.receive(message);
  job.send(message, 1);
  for (const auto& trainer : job.trainers()) fill_and_submit(*trainer, collective);
  const std::int64_t begin = cluster.now();
  std::int64_t message_took = 0;
  std::int64_t collective_took = 0;
  const auto all_ended = [&] {
    for (const shared::Completion& completion : job.trainers()[1]->take_completions()) {
      EXPECT_EQ(completion.code, 0);
      (completion.request == receipt.name ? message_took : collective_took) = cluster.now() - begin;
    }
    return message_took != 0 && collective_took != 0 && all_idle(job.trainers());
  };
  ASSERT_TRUE(cluster.run_until(all_ended, 20 * kSecond));
  // Either alone takes half of the time; of one behind the other the first would end then.
  const auto all = static_cast<double>(std::max(message_took, collective_took));
  EXPECT_GT(static_cast<double>(std::min(message_took, collective_took)), 0.7 * all);
  job.expect_here(message, receipt, 1);
  leave_all(cluster, job.trainers());
}

// The contributions of all others wait at a trainer that is late, with all the packets that they
// may have. A message that it waits for comes all the same.
TEST(Mail, PassesCollectivesThatHoldTheirPackets) {
  SimulatedCluster cluster(
      settings_of({{"topology", "bcube:2,2"}, {"mtu", "1500"}, {"packet-memory", "1.1M"}}));
  MailJob job(cluster, 8 << 20);
  Collective collective;
  collective.count = 400'000;
  collective.offset += 4 << 20;
  for (const auto& trainer : job.trainers()) {
    if (trainer->rank() != 3) fill_and_submit(*trainer, collective);
  }
  cluster.run_for(100 * kMillisecond);
  const Message message{0, 3, 1, 300'000};
  const auto receipt = job.receive(message);
  job.send(message, 1);
  EXPECT_TRUE(cluster.run_until(
      [&] { return job.trainers()[3]->header().completion_tail.load() == 1; }, kSecond));
  job.expect_here(message, receipt, 1);
  fill_and_submit(*job.trainers()[3], collective);
  job.finish();
  expect_right(cluster, job.trainers(), collective);
  leave_all(cluster, job.trainers());
}

// All to all at once, several of each, with sends before and behind their receives.
TEST(Mail, OfAllToAllArrives) {
  SimulatedCluster cluster(settings_of({{"topology", "bcube:4,2"}, {"rate", "1gbit"}}));
  MailJob job(cluster, 32 << 20);
  std::vector<std::pair<Message, MailJob::Receipt>> all;
  for (std::uint64_t round = 0; round < 3; ++round) {
    for (unsigned from = 0; from < 16; ++from) {
      for (unsigned to = 0; to < 16; ++to) {
        const Message message{from, to, round % 2, 20'000 + 60'000 * round};
        job.send(message, all.size());
        all.emplace_back(message, job.receive(message));
      }
    }
  }
  const auto took = static_cast<double>(job.finish_well());
  for (std::uint64_t i = 0; i < all.size(); ++i) job.expect_here(all[i].first, all[i].second, i);
  // 15 x 240 kB leave each server over two links, mostly over two hops.
  EXPECT_LT(took, 2.5 * 15 * 240'000 * 8);
  leave_all(cluster, job.trainers());
}

}  // namespace
}  // namespace gradcube::simulation
