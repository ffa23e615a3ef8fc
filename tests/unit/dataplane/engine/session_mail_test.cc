// A session against trainers that submit messages: good ones, and every wrong field.

#include <gtest/gtest.h>
#include <string>

#include "tests/unit/dataplane/engine/engine_fixture.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {
namespace {

constexpr std::uint64_t kMailHeap = 1 << 16;

shared::Submission mail_entry(shared::Direction direction, std::uint64_t request) {
  shared::Submission entry{};
  entry.request = request;
  entry.message.place = static_cast<std::uint32_t>(request);
  entry.dtype = static_cast<std::uint8_t>(aggregation::DataType::bytes);
  entry.type = static_cast<std::uint8_t>(shared::SubmissionType::message);
  entry.message.direction = static_cast<std::uint8_t>(direction);
  entry.offset = shared::kHeapOffset + 64;
  entry.count = 100;
  entry.message.peer = 1;
  entry.message.tag = 5;
  entry.message.paths = 2;
  return entry;
}

class SessionMail : public testing::Test {
 protected:
  void submit(const shared::Submission& entry) {
    submission_entry(session_->region(), submitted_++) = entry;
    session_->region().header().submission_tail.store(submitted_);
  }
  TestSession session_{1, kMailHeap, 1, 2};
  std::uint64_t submitted_ = 0;
};

TEST_F(SessionMail, IsTakenBesideCollectivesAndEndsInAnyOrder) {
  submit(mail_entry(shared::Direction::send, 1));
  submit(mail_entry(shared::Direction::receive, 2));
  shared::Submission collective{};
  collective.request = 3;
  collective.offset = shared::kHeapOffset;
  submit(collective);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(session_->take(), Session::Take::taken);
  EXPECT_EQ(session_->published(0), 1u);
  EXPECT_TRUE(session_->anything_in_flight());
  const auto first = session_->mail().next_fresh();
  const auto second = session_->mail().next_fresh();
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_FALSE(session_->mail().next_fresh().has_value());
  const MailRequest& send = session_->mail().at(*first);
  EXPECT_TRUE(send.sends);
  EXPECT_EQ(send.peer, 1u);
  EXPECT_EQ(send.tag, 5u);
  EXPECT_EQ(send.bytes, 100u);
  EXPECT_EQ(send.paths, 2u);
  EXPECT_EQ(send.buffer, session_.base() + shared::kHeapOffset + 64);
  session_->end_mail(*second, 0, 70);
  session_->end_mail(*first, GRADCUBE_EMISMATCH, 100);
  EXPECT_EQ(session_->region().completion(0).request, 2u);
  EXPECT_EQ(session_->region().completion(0).bytes, 70u);
  EXPECT_EQ(session_->region().completion(1).request, 1u);
  EXPECT_EQ(session_->region().completion(1).code, GRADCUBE_EMISMATCH);
  EXPECT_TRUE(session_->anything_in_flight());
  session_->complete_through(0, 1, 0);
  EXPECT_FALSE(session_->anything_in_flight());
}

TEST_F(SessionMail, FailsAllThatHasNotEnded) {
  for (std::uint64_t request = 1; request <= 5; ++request) {
    submit(mail_entry(request % 2 == 0 ? shared::Direction::send : shared::Direction::receive,
                      request));
    ASSERT_EQ(session_->take(), Session::Take::taken);
  }
  session_->end_mail(*session_->mail().next_fresh(), 0, 0);
  session_->fail_mail(GRADCUBE_EPEER, 9);
  EXPECT_FALSE(session_->mail().next_fresh().has_value());
  EXPECT_FALSE(session_->anything_in_flight());
  ASSERT_EQ(session_->region().header().completion_tail.load(), 5u);
  for (std::uint64_t i = 1; i < 5; ++i) {
    EXPECT_EQ(session_->region().completion(i).code, GRADCUBE_EPEER);
    EXPECT_EQ(session_->region().completion(i).notice, 9u);
  }
}

// Before an engine has begun it, as while the job gathers.
TEST_F(SessionMail, IsWithdrawnAtOnceWhereNothingHasBegunIt) {
  for (std::uint64_t request = 1; request <= 3; ++request) {
    submit(mail_entry(shared::Direction::receive, request));
  }
  shared::Submission withdrawal{};
  withdrawal.type = static_cast<std::uint8_t>(shared::SubmissionType::withdrawal);
  withdrawal.request = 2;
  withdrawal.message.place = 2;
  submit(withdrawal);
  submit(withdrawal);  // which means nothing
  withdrawal.message.place = 3;
  submit(withdrawal);  // nor does this, whose message is another one
  for (int i = 0; i < 6; ++i) ASSERT_EQ(session_->take(), Session::Take::taken);
  ASSERT_EQ(session_->region().header().completion_tail.load(), 1u);
  EXPECT_EQ(session_->region().completion(0).request, 2u);
  EXPECT_EQ(session_->region().completion(0).code, GRADCUBE_ECANCELED);
  EXPECT_EQ(session_->mail().at(*session_->mail().next_fresh()).request, 1u);
  const auto last = session_->mail().next_fresh();
  EXPECT_EQ(session_->mail().at(*last).request, 3u);
  EXPECT_FALSE(session_->mail().next_fresh().has_value());
  withdrawal.request = 3;
  submit(withdrawal);
  ASSERT_EQ(session_->take(), Session::Take::taken);
  EXPECT_EQ(session_->mail().next_withdrawn(), last);
  EXPECT_FALSE(session_->mail().next_withdrawn().has_value());
}

// A withdrawal is taken however much is in flight.
TEST_F(SessionMail, IsWithdrawnWhereNothingMoreFits) {
  TestSession session(1, kMailHeap, 1, 2);
  const auto put = [&](std::uint64_t index, const shared::Submission& entry) {
    submission_entry(session->region(), index) = entry;
    session->region().header().submission_tail.store(index + 1);
  };
  for (std::uint64_t i = 0; i < Session::kMaxInFlight; ++i) {
    shared::Submission entry = mail_entry(shared::Direction::receive, i + 1);
    entry.message.place = static_cast<std::uint32_t>(i);
    put(i, entry);
    ASSERT_EQ(session->take(), Session::Take::taken);
  }
  put(Session::kMaxInFlight, mail_entry(shared::Direction::receive, 5000));
  EXPECT_EQ(session->take(), Session::Take::none);
  shared::Submission withdrawal{};
  withdrawal.type = static_cast<std::uint8_t>(shared::SubmissionType::withdrawal);
  withdrawal.request = 8;
  withdrawal.message.place = 7;
  put(Session::kMaxInFlight, withdrawal);
  EXPECT_EQ(session->take(), Session::Take::taken);
  EXPECT_EQ(session->region().completion(0).request, 8u);
}

TEST_F(SessionMail, RefusesWhatNoLibraryWrites) {
  const std::uint64_t end = shared::kHeapOffset + kMailHeap;
  for (const std::uint64_t bytes : {kMailHeap, kMailHeap + 1, UINT64_MAX, UINT64_MAX - 63}) {
    TestSession session(1, kMailHeap, 1, 2);
    shared::Submission entry = mail_entry(shared::Direction::receive, 1);
    entry.count = bytes;
    submission_entry(session->region(), 0) = entry;
    session->region().header().submission_tail.store(1);
    EXPECT_EQ(session->take(), Session::Take::violation) << bytes;
  }
  for (const std::uint64_t offset : {std::uint64_t{0}, shared::kHeapOffset + 1, end, UINT64_MAX}) {
    TestSession session(1, kMailHeap, 1, 2);
    shared::Submission entry = mail_entry(shared::Direction::send, 1);
    entry.offset = offset;
    submission_entry(session->region(), 0) = entry;
    session->region().header().submission_tail.store(1);
    EXPECT_EQ(session->take(), Session::Take::violation) << offset;
  }
  shared::Submission entry = mail_entry(shared::Direction::send, 1);
  entry.message.peer = 2;
  submit(entry);
  ASSERT_EQ(session_->take(), Session::Take::violation);
  EXPECT_STREQ(session_->violation(), "a message's other rank is none of its job");
  const auto violation_of = [](const auto& change) {
    TestSession session(1, kMailHeap, 1, 2);
    for (std::uint64_t i = 0; i < 2; ++i) {
      shared::Submission entry = mail_entry(shared::Direction::send, i + 1);
      if (i == 1) change(entry);
      submission_entry(session->region(), i) = entry;
      session->region().header().submission_tail.store(i + 1);
      if (i == 0) {
        EXPECT_EQ(session->take(), Session::Take::taken);
      }
    }
    EXPECT_EQ(session->take(), Session::Take::violation);
    return std::string(session->violation());
  };
  EXPECT_EQ(violation_of([](auto& entry) { entry.dtype = 9; }),
            "a message's element type is unknown");
  EXPECT_EQ(violation_of([](auto& entry) { entry.message.direction = 2; }),
            "a message is neither sent nor received");
  const std::string place = "a message's place is another one's, or there is none";
  EXPECT_EQ(violation_of([](auto& entry) { entry.message.place = 1; }), place);
  EXPECT_EQ(violation_of([](auto& entry) { entry.message.place = shared::kRingEntries; }), place);
  EXPECT_EQ(violation_of([](auto& entry) {
              entry.type = static_cast<std::uint8_t>(shared::SubmissionType::withdrawal);
              entry.message.place = UINT32_MAX;
            }),
            "a withdrawal's place is out of range");
}

// What no kernel knows by its own name.
TEST(SessionTypes, AreAddedAsTheirPartsOrMovedAsTheyAre) {
  struct Case {
    shared::CollectiveKind kind;
    int dtype;
    int op;
    std::uint64_t element_bytes;  // 0: refused
    aggregation::Carrier carrier;
  };
  using aggregation::DataType;
  using aggregation::Operation;
  for (const Case& each :
       {Case{shared::CollectiveKind::all_reduce,
             GRADCUBE_COMPLEX64,
             GRADCUBE_AVERAGE,
             8,
             {DataType::float32, Operation::average}},
        Case{shared::CollectiveKind::reduce,
             GRADCUBE_COMPLEX128,
             GRADCUBE_SUM,
             16,
             {DataType::float64, Operation::sum}},
        Case{shared::CollectiveKind::all_reduce,
             GRADCUBE_BOOL,
             GRADCUBE_SUM,
             1,
             {DataType::uint8, Operation::max}},
        Case{shared::CollectiveKind::broadcast,
             GRADCUBE_COMPLEX64,
             0,
             8,
             {aggregation::kComplex64, Operation::sum}},
        Case{shared::CollectiveKind::broadcast, GRADCUBE_COMPLEX64, 1, 0, {}},
        Case{shared::CollectiveKind::all_reduce, GRADCUBE_COMPLEX64, GRADCUBE_MAX, 0, {}},
        Case{shared::CollectiveKind::all_reduce,
             GRADCUBE_INT16,
             GRADCUBE_SUM,
             2,
             {DataType::int16, Operation::sum}},
        Case{shared::CollectiveKind::all_reduce, GRADCUBE_UINT16, GRADCUBE_SUM, 0, {}},
        Case{shared::CollectiveKind::all_reduce, 9, GRADCUBE_SUM, 0, {}}}) {
    for (const std::uint64_t more : {0, 1}) {
      TestSession session(1, kMailHeap, 1, 2);
      shared::Submission entry{};
      entry.collective.kind = static_cast<std::uint8_t>(each.kind);
      entry.dtype = static_cast<std::uint8_t>(each.dtype);
      entry.collective.op = static_cast<std::uint8_t>(each.op);
      entry.offset = shared::kHeapOffset;
      entry.count = each.element_bytes == 0 ? 1 : kMailHeap / each.element_bytes + more;
      submission_entry(session->region(), 0) = entry;
      session->region().header().submission_tail.store(1);
      const bool fits = each.element_bytes != 0 && more == 0;
      ASSERT_EQ(session->take(), fits ? Session::Take::taken : Session::Take::violation)
          << each.dtype << " " << each.op;
      if (!fits) continue;
      const CollectiveRequest& request = session->request(0, 1);
      EXPECT_EQ(request.bytes, kMailHeap);
      EXPECT_EQ(request.carrier.type, each.carrier.type);
      EXPECT_EQ(request.carrier.operation, each.carrier.operation);
    }
  }
}

}  // namespace
}  // namespace gradcube::dataplane
