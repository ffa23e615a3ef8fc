// Messages that their trainers withdraw: decided once, for both sides, whatever is lost on the way.

#include "tests/simulation/mail_fixture.h"
#include "tests/simulation/mail_streams.h"
#include "tests/unit/protocol/seed.h"

#include "gradcube/gradcube.h"

namespace gradcube::simulation {
namespace {

using Message = MailJob::Message;

// By name.
std::map<std::uint64_t, std::int32_t> codes_of(SimulatedTrainer& trainer) {
  std::map<std::uint64_t, std::int32_t> codes;
  for (const shared::Completion& completion : trainer.take_completions()) {
    codes[completion.request] = completion.code;
  }
  return codes;
}

// Of other servers, of the same server, and of the trainer itself.
TEST(Mail, ThatIsWithdrawnLeavesItsMessageToTheNextReceive) {
  for (const unsigned to : {0u, 1u, 5u}) {
    SimulatedCluster cluster(settings_of({{"topology", "bcube:2,2"}, {"loss", "0.1"}}));
    MailJob job(cluster, 1 << 20, 2);
    SimulatedTrainer& receiver = *job.trainers()[to];
    SimulatedTrainer& sender = *job.trainers()[0];
    const Message first{0, to, 3, 1000}, second{0, to, 3, 2000, 0};
    const auto late = job.receive(second);
    cluster.run_for(20 * kMillisecond);
    receiver.withdraw(late.name);
    job.finish();
    EXPECT_EQ(codes_of(receiver),
              (std::map<std::uint64_t, std::int32_t>{{late.name, GRADCUBE_ECANCELED}}));
    EXPECT_EQ(*receiver.at(late.offset), 0);
    job.send(first, 1);
    const std::uint64_t never = job.send(second, 9);
    cluster.run_for(20 * kMillisecond);
    sender.withdraw(never);
    cluster.run_for(20 * kMillisecond);
    EXPECT_EQ(codes_of(sender)[never], GRADCUBE_ECANCELED);
    const auto one = job.receive(first);
    job.send(second, 2);
    const auto two = job.receive(second);
    job.finish_well();
    job.expect_here(first, one, 1);
    job.expect_here(second, two, 2);
    leave_all(cluster, job.trainers());
  }
}

// In the midst of a message that has begun to land; and a second word changes nothing.
TEST(Mail, ThatHasMetItsReceiveArrivesThoughItIsWithdrawn) {
  SimulatedCluster cluster(settings_of({{"topology", "bcube:2,2"}, {"rate", "1gbit"}}));
  MailJob job(cluster, 8 << 20);
  const Message message{0, 3, 3, 3'000'000};
  const auto receipt = job.receive(message);
  const std::uint64_t sent = job.send(message, 1);
  cluster.run_for(5 * kMillisecond);
  for (unsigned i = 0; i < 2; ++i) {
    job.trainers()[3]->withdraw(receipt.name);
    job.trainers()[0]->withdraw(sent);
  }
  job.finish_well();
  job.expect_here(message, receipt, 1);
  leave_all(cluster, job.trainers());
}

// No way leads to the sender's server, and then one does.
TEST(Mail, ThatIsWithdrawnWhileNoWayLeadsToItsSenderEndsWhenOneDoes) {
  SimulationSettings settings = settings_of({{"topology", "star:3"}, {"greeting", "10ms"}});
  SimulatedCluster cluster(settings);
  MailJob job(cluster, 1 << 20);
  const Message message{0, 2, 3, 1000};
  const auto receipt = job.receive(message);
  cluster.run_for(5 * kMillisecond);
  cluster.cut_off(0, true);
  job.trainers()[2]->withdraw(receipt.name);
  cluster.run_for(100 * kMillisecond);
  EXPECT_TRUE(job.trainers()[2]->take_completions().empty());
  cluster.mend();
  job.finish();
  EXPECT_EQ(job.trainers()[2]->take_completions().at(0).code, GRADCUBE_ECANCELED);
  leave_all(cluster, job.trainers());
}

TEST(Mail, IsReceivedOnceAndInItsOrderWhateverIsWithdrawnAndLost) {
  for (std::uint64_t seed = protocol::test_seed(1), end = seed + 40; seed < end; ++seed) {
    SCOPED_TRACE(protocol::seed_trace(seed));
    SimulationSettings settings = settings_of({{"topology", seed % 2 == 0 ? "bcube:2,2" : "star:3"},
                                               {"loss", "0.05"},
                                               {"duplicate", "0.02"},
                                               {"reorder", "0.1"}});
    settings.seed = seed;
    SimulatedCluster cluster(settings);
    MailJob job(cluster, MailStreams::kRoom, 1 + seed % 3 / 2);
    MailStreams streams(seed, shared::kHeapOffset);
    for (const auto& trainer : job.trainers()) streams.add(trainer->rank(), *trainer);
    const auto step = [&](bool acts) {
      bool over = true;
      for (const auto& trainer : job.trainers()) {
        for (const auto& completion : trainer->take_completions()) {
          streams.take(trainer->rank(), completion);
        }
        if (!acts) continue;
        const std::int64_t next = streams.act(trainer->rank(), cluster.now());
        cluster.look_at(next);
        over = over && next == dataplane::kNever;
      }
      return over;
    };
    ASSERT_TRUE(cluster.run_until([&] { return step(true); }, 10 * kSecond));
    for (const auto& trainer : job.trainers()) streams.finish(trainer->rank());
    EXPECT_TRUE(
        cluster.run_until([&] { return step(false) && streams.has_ended(); }, 10 * kSecond));
    for (const std::string& what : streams.judge(false)) ADD_FAILURE() << what;
    leave_all(cluster, job.trainers());
  }
}

}  // namespace
}  // namespace gradcube::simulation
