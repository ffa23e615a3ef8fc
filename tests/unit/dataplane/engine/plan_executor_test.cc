// Single functions of the executor, with contributions made by hand.

#include "dataplane/engine/plan_executor.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <set>

#include "tests/unit/dataplane/engine/lone_executor.h"
#include "tests/unit/protocol/arrive.h"

namespace gradcube::dataplane {
namespace {

using protocol::Stage;

TEST(CollectiveSignature, TellsCountsApartThatAreEqualInTheirLow32Bits) {
  CollectiveRequest request;
  request.count = 7;
  EXPECT_EQ(signature(request).count, 7u);
  std::set<std::uint32_t> folded;
  for (std::uint64_t high = 0; high < 1000; ++high) {
    request.count = high << 32 | 7;
    folded.insert(signature(request).count);
  }
  EXPECT_EQ(folded.size(), 1000u);
}

TEST(PlanExecutor, AddsASegmentOnceAllNeighboursHaveSentItInTheOrderOfTheDigits) {
  LoneExecutor server("star:3", 1);
  server.submit(1.0F);
  server.contribute(server.flow(Stage::aggregation, 0, 2), 0, server.from_neighbour(-1e8F));
  EXPECT_EQ(server.unit(1), 1.0F) << "one contribution is missing";
  EXPECT_EQ(packets_in_use(server.packets()), 1u) << "it waits";
  server.contribute(server.flow(Stage::aggregation, 0, 0), 0, server.from_neighbour(1e8F));
  EXPECT_EQ(server.unit(1), 0.0F) << "(1e8 + 1) - 1e8 in float32: any other order makes it 1";
  EXPECT_EQ(server.unit(0), 1.0F);
  EXPECT_EQ(server.unit(2), 1.0F);
  EXPECT_EQ(packets_in_use(server.packets()), 0u) << "what has been added is freed";
  EXPECT_EQ(server->consumed(server.flow(Stage::aggregation, 0, 0)), 1u);
}

TEST(PlanExecutor, HoldsContributionsToWhatTheTrainerHasNotSubmittedYet) {
  LoneExecutor server("star:2", 0);
  server.contribute(server.flow(Stage::aggregation, 0, 1), 0, server.from_neighbour(2.0F));
  EXPECT_FALSE(server->active());
  server.submit(1.0F);
  EXPECT_TRUE(server->active());
  EXPECT_EQ(server.unit(0), 3.0F);
}

TEST(PlanExecutor, TakesASumOnToTheNextStep) {
  LoneExecutor server("bcube:2,2", 0);
  server.submit(1.0F);
  // Step 1 first: its contribution waits for this server's own partial sum of step 0.
  server.contribute(server.flow(Stage::aggregation, 1, 1), 0, server.from_neighbour(10.0F));
  EXPECT_EQ(server.unit(0), 1.0F);
  server.contribute(server.flow(Stage::aggregation, 0, 1), 0, server.from_neighbour(2.0F));
  EXPECT_EQ(server.unit(0), 13.0F);
}

TEST(PlanExecutor, TellsWhoseContributionDisagreesAndAddsNothing) {
  LoneExecutor server("star:3", 0);
  server.submit(1.0F);
  Contribution other = server.from_neighbour(2.0F);
  other.signature.type_and_operation = 1;
  server.contribute(server.flow(Stage::aggregation, 0, 2), 0, other);
  ASSERT_TRUE(server->disagreement().has_value()) << "one contribution is enough to know";
  EXPECT_EQ(server->disagreement()->collective, 1u);
  EXPECT_EQ(server->disagreement()->peer, 2u);
  server.contribute(server.flow(Stage::aggregation, 0, 1), 0, server.from_neighbour(2.0F));
  EXPECT_EQ(server.unit(0), 1.0F);
}

TEST(PlanExecutor, TellsOfAContributionOfTheWrongLength) {
  LoneExecutor server("star:2", 0);
  server.submit(1.0F);
  server.contribute(server.flow(Stage::aggregation, 0, 1), 0, server.from_neighbour(2.0F, 60));
  ASSERT_TRUE(server->disagreement().has_value());
  EXPECT_EQ(server.unit(0), 1.0F);
}

TEST(PlanExecutor, TellsOfADisagreementThatCameBeforeTheTrainersOwnRequest) {
  LoneExecutor server("star:3", 0);
  Contribution other = server.from_neighbour(2.0F);
  ++other.signature.count;
  server.contribute(server.flow(Stage::aggregation, 0, 1), 0, other);
  EXPECT_FALSE(server->disagreement().has_value()) << "there is nothing to compare with";
  server.submit(1.0F);
  ASSERT_TRUE(server->disagreement().has_value());
  EXPECT_EQ(server->disagreement()->peer, 1u);
}

TEST(PlanExecutor, WritesAResultWhereItBelongs) {
  LoneExecutor server("star:3", 0);
  server.submit(1.0F);
  const Contribution result = server.from_neighbour(7.0F);
  Flow& flow = server.flow(Stage::broadcast, 0, 2);
  const PlanExecutor::Acceptance accepted = server->accept(flow, 0, result);
  ASSERT_FALSE(accepted.refused.has_value());
  EXPECT_FALSE(server->take(flow, 0, result, accepted)) << "it is not held";
  EXPECT_EQ(server.unit(2), 7.0F);
  EXPECT_EQ(server.unit(0), 1.0F);
  EXPECT_EQ(server.unit(1), 1.0F);
  rte_pktmbuf_free(result.packet);
}

TEST(PlanExecutor, RefusesAResultThatDoesNotFit) {
  LoneExecutor server("star:3", 0);
  server.submit(1.0F);
  const Contribution result = server.from_neighbour(7.0F, 32);
  EXPECT_EQ(server->accept(server.flow(Stage::broadcast, 0, 1), 0, result).refused,
            DropReason::disagreement);
  ASSERT_TRUE(server->disagreement().has_value());
  EXPECT_EQ(server->disagreement()->peer, 1u);
  rte_pktmbuf_free(result.packet);
}

TEST(PlanExecutor, HoldsAResultOfWhatTheTrainerHasNotSubmittedYet) {
  LoneExecutor server("star:3", 0);
  Flow& flow = server.flow(Stage::broadcast, 0, 1);
  server.contribute(flow, 0, server.from_neighbour(7.0F));
  ASSERT_EQ(protocol::arrive(flow.receive, 0), protocol::Arrival::fresh);
  EXPECT_EQ(server->consumed(flow), 0u) << "it still takes a packet";
  EXPECT_EQ(packets_in_use(server.packets()), 1u);
  server.submit(1.0F);
  EXPECT_EQ(server.unit(1), 7.0F);
  EXPECT_EQ(server->consumed(flow), 1u);
  EXPECT_EQ(packets_in_use(server.packets()), 0u);
}

TEST(PlanExecutor, TellsOfAResultThatCameEarlyAndDoesNotFit) {
  LoneExecutor server("star:3", 0);
  Contribution result = server.from_neighbour(7.0F);
  ++result.signature.count;
  server.contribute(server.flow(Stage::broadcast, 0, 2), 0, result);
  EXPECT_FALSE(server->disagreement().has_value()) << "there is nothing to compare with";
  server.submit(1.0F);
  ASSERT_TRUE(server->disagreement().has_value());
  EXPECT_EQ(server->disagreement()->peer, 2u);
  EXPECT_EQ(server.unit(2), 1.0F);
}

TEST(PlanExecutor, PassesNothingOnAfterADisagreement) {
  LoneExecutor server("bcube:2,2", 0);
  // From the neighbour at level 1, step 1: what this server would pass on over level 0.
  Flow& from = server.flow(Stage::broadcast, 1, 1);
  Contribution early = server.from_neighbour(7.0F);
  ++early.signature.count;
  early.signature.kind = static_cast<std::uint8_t>(control::CollectiveKind::all_gather);
  server.contribute(from, 0, early);
  ASSERT_EQ(protocol::arrive(from.receive, 0), protocol::Arrival::fresh);
  server.submit(1.0F, control::CollectiveKind::all_gather);
  ASSERT_TRUE(server->disagreement().has_value());
  for (Flow& flow : server->flows()) {
    EXPECT_FALSE(server->next_segment(flow).has_value()) << "what it has not written is not sent";
  }
  EXPECT_FALSE(server->finish_completed(0));
}

TEST(PlanExecutor, FreesAResultThatCameEarlyAndDoesNotFit) {
  LoneExecutor server("star:3", 0);
  Flow& flow = server.flow(Stage::broadcast, 0, 1);
  Contribution early = server.from_neighbour(7.0F);
  ++early.signature.count;
  server.contribute(flow, 0, early);
  ASSERT_EQ(protocol::arrive(flow.receive, 0), protocol::Arrival::fresh);
  server.submit(1.0F);
  EXPECT_EQ(server->consumed(flow), 1u) << "the neighbour may send one more";
  EXPECT_EQ(packets_in_use(server.packets()), 0u) << "which takes its place";
}

TEST(PlanExecutor, GoesOnWithWhatLiesBeforeADisagreement) {
  LoneExecutor server("star:2", 0);
  server.submit(1.0F);
  server.submit(1.0F);
  Flow& contributions = server.flow(Stage::aggregation, 0, 1);
  Flow& results = server.flow(Stage::broadcast, 0, 1);
  Contribution other = server.from_neighbour(2.0F);
  ++other.signature.count;
  server.contribute(contributions, 1, other);
  ASSERT_TRUE(server->disagreement().has_value());
  EXPECT_EQ(server->disagreement()->collective, 2u);

  EXPECT_EQ(server->next_segment(contributions)->signature.collective, 1u);
  contributions.send.record_send(0);
  EXPECT_FALSE(server->next_is_ready(contributions)) << "this is of the second one";
  Contribution first = server.from_neighbour(2.0F);
  first.signature.collective = 1;
  server.contribute(contributions, 0, first);
  EXPECT_EQ(server.unit(0), 3.0F);
  EXPECT_EQ(server->next_segment(results)->signature.collective, 1u);
  results.send.record_send(0);
  for (Flow* flow : {&contributions, &results}) {
    ASSERT_EQ(protocol::arrive(flow->receive, 0), protocol::Arrival::fresh);
    flow->send.on_acknowledgement(1, 0, 16, 0, 0);
  }
  EXPECT_TRUE(server->finish_completed(0));
  EXPECT_EQ(server.session()->finished_by_all(0), 1u);
}

TEST(PlanExecutor, NamesTheFirstCollectiveOfTwoDisagreements) {
  LoneExecutor server("star:2", 0);
  for (unsigned i = 0; i < 3; ++i) server.submit(1.0F);
  Flow& flow = server.flow(Stage::aggregation, 0, 1);
  const auto named_after = [&](unsigned number) {
    Contribution other = server.from_neighbour(2.0F);
    other.signature.collective = number;
    ++other.signature.count;
    server.contribute(flow, number - 1, other);
    return server->disagreement()->collective;
  };
  EXPECT_EQ(named_after(2), 2u);
  EXPECT_EQ(named_after(3), 2u);
  EXPECT_EQ(named_after(1), 1u);
}

TEST(PlanExecutor, BlamesTheEarlierCollectiveThatANeighbourIsStillIn) {
  LoneExecutor server("star:2", 0);
  server.submit(1.0F, control::CollectiveKind::all_gather);
  server.submit(1.0F);
  // Here no contribution belongs to the first one: this is the place of the second one's.
  Contribution theirs = server.from_neighbour(2.0F);
  theirs.signature.collective = 1;
  server.contribute(server.flow(Stage::aggregation, 0, 1), 0, theirs);
  ASSERT_TRUE(server->disagreement().has_value());
  EXPECT_EQ(server->disagreement()->collective, 1u);
}

TEST(PlanExecutor, TellsOfAStreamThatItsOwnKindOfCollectiveHasNot) {
  LoneExecutor server("star:2", 0);
  server.submit(1.0F, control::CollectiveKind::all_gather);
  server.contribute(server.flow(Stage::aggregation, 0, 1), 0,
                    server.from_neighbour(2.0F));  // of an all_reduce, as number 1 too
  ASSERT_TRUE(server->disagreement().has_value());
  EXPECT_EQ(server->disagreement()->collective, 1u);
}

TEST(PlanExecutor, SendsTheSegmentsOfAllCollectivesInFlight) {
  LoneExecutor server("star:2", 0);
  server.submit(1.0F);
  server.submit(1.0F);
  Flow& flow = server.flow(Stage::aggregation, 0, 1);
  EXPECT_EQ(server->next_segment(flow)->signature.collective, 1u);
  flow.send.record_send(0);
  EXPECT_EQ(server->next_segment(flow)->signature.collective, 2u);
  EXPECT_EQ(server->sent_segment(flow, 0).signature.collective, 1u);
}

TEST(PlanExecutor, SendsALaterStepOnlyWhatTheStepBeforeHasReduced) {
  LoneExecutor server("bcube:2,2", 0);
  Flow& first = server.flow(Stage::aggregation, 0, 1);
  Flow& later = server.flow(Stage::aggregation, 1, 1);
  EXPECT_FALSE(server->next_is_ready(first)) << "nothing has been submitted";
  server.submit(1.0F);
  EXPECT_TRUE(server->next_is_ready(first));
  EXPECT_EQ(server->backlog(first), 2u);
  EXPECT_FALSE(server->next_is_ready(later));
  EXPECT_EQ(server->backlog(later), 0u);
  // Position 0 stays here; position 1 is what the neighbour at level 1 goes on with.
  server.contribute(server.flow(Stage::aggregation, 0, 1), 0, server.from_neighbour(2.0F));
  EXPECT_FALSE(server->next_is_ready(later));
  server.contribute(server.flow(Stage::aggregation, 0, 1), 1, server.from_neighbour(4.0F));
  EXPECT_TRUE(server->next_is_ready(later));
  const auto segment = server->next_segment(later);
  ASSERT_TRUE(segment.has_value());
  EXPECT_EQ(segment->signature.collective, 1u);
  EXPECT_EQ(segment->bytes, control::kUnitBytes);
  EXPECT_EQ(*reinterpret_cast<const float*>(segment->payload), 5.0F) << "the partial sum";
}

TEST(PlanExecutor, BroadcastsOnlyResultsThatAreHere) {
  LoneExecutor server("bcube:2,2", 0);
  server.submit(1.0F);
  Flow& over_level_1 = server.flow(Stage::broadcast, 1, 1);
  Flow& over_level_0 = server.flow(Stage::broadcast, 0, 1);
  EXPECT_FALSE(server->next_is_ready(over_level_1));
  server.contribute(server.flow(Stage::aggregation, 0, 1), 0, server.from_neighbour(2.0F));
  EXPECT_FALSE(server->next_is_ready(over_level_1)) << "a partial sum is not a result";
  server.contribute(server.flow(Stage::aggregation, 1, 1), 0, server.from_neighbour(10.0F));
  EXPECT_TRUE(server->next_is_ready(over_level_1));
  EXPECT_TRUE(server->next_is_ready(over_level_0));
  for (Flow* flow : {&over_level_1, &over_level_0}) {
    const auto result = server->next_segment(*flow);
    ASSERT_TRUE(result.has_value());
    EXPECT_EQ(result->payload, reinterpret_cast<std::uint8_t*>(server.session().buffer()));
  }
  // The next piece over level 0 is owned by the neighbour at level 1: its result has to come first.
  over_level_0.send.record_send(0);
  EXPECT_FALSE(server->next_is_ready(over_level_0));
  ASSERT_EQ(protocol::arrive(over_level_1.receive, 0), protocol::Arrival::fresh);
  EXPECT_TRUE(server->next_is_ready(over_level_0));
}

TEST(PlanExecutor, EndsACollectiveWhenAllIsHereAndAllIsAcknowledged) {
  LoneExecutor server("star:2", 0);
  server.submit(1.0F);
  Flow& contributions = server.flow(Stage::aggregation, 0, 1);
  Flow& results = server.flow(Stage::broadcast, 0, 1);
  for (Flow* flow : {&contributions, &results}) {
    flow->send.record_send(0);
    ASSERT_EQ(protocol::arrive(flow->receive, 0), protocol::Arrival::fresh);
  }
  server.contribute(contributions, 0, server.from_neighbour(2.0F));
  EXPECT_FALSE(server->finish_completed(0)) << "nothing is acknowledged";
  contributions.send.on_acknowledgement(1, 0, 16, 0, 0);
  EXPECT_FALSE(server->finish_completed(0)) << "the result that was sent is not acknowledged";
  results.send.on_acknowledgement(1, 0, 16, 0, 0);
  EXPECT_TRUE(server->finish_completed(0));
  EXPECT_FALSE(server->active());
  EXPECT_EQ(server.session()->finished_by_all(0), 1u) << "the session has been told";
}

TEST(PlanExecutor, StartsFreshAfterAReset) {
  LoneExecutor server("star:3", 0);
  server.submit(1.0F);
  Contribution other = server.from_neighbour(2.0F);
  ++other.signature.count;
  server.contribute(server.flow(Stage::aggregation, 0, 1), 0, other);
  server->reset(1);
  EXPECT_FALSE(server->active());
  EXPECT_FALSE(server->disagreement().has_value());
  EXPECT_EQ(packets_in_use(server.packets()), 0u) << "what waited is freed";
  server.submit(1.0F);
  const auto segment = server->next_segment(server.flow(Stage::aggregation, 0, 1));
  ASSERT_TRUE(segment.has_value());
  EXPECT_EQ(segment->signature.collective, 2u);
}

}  // namespace
}  // namespace gradcube::dataplane
