// A session against trainers that submit messages: good ones, and every wrong field.

#include <gtest/gtest.h>
#include <string>

#include "tests/unit/dataplane/engine/engine_fixture.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {
namespace {

constexpr std::uint64_t kMailHeap = 1 << 16;

shared::Submission mail_entry(shared::Kind kind, std::uint64_t request) {
  shared::Submission entry{};
  entry.request = request;
  entry.kind = static_cast<std::uint8_t>(kind);
  entry.offset = shared::kHeapOffset + 64;
  entry.count = 100;
  entry.root = 1;
  entry.tag = 5;
  entry.paths = 2;
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
  submit(mail_entry(shared::Kind::send, 1));
  submit(mail_entry(shared::Kind::receive, 2));
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
    submit(mail_entry(request % 2 == 0 ? shared::Kind::send : shared::Kind::receive, request));
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

TEST_F(SessionMail, RefusesWhatNoLibraryWrites) {
  const std::uint64_t end = shared::kHeapOffset + kMailHeap;
  for (const std::uint64_t bytes : {kMailHeap, kMailHeap + 1, UINT64_MAX, UINT64_MAX - 63}) {
    TestSession session(1, kMailHeap, 1, 2);
    shared::Submission entry = mail_entry(shared::Kind::receive, 1);
    entry.count = bytes;
    submission_entry(session->region(), 0) = entry;
    session->region().header().submission_tail.store(1);
    EXPECT_EQ(session->take(), Session::Take::violation) << bytes;
  }
  for (const std::uint64_t offset : {std::uint64_t{0}, shared::kHeapOffset + 1, end, UINT64_MAX}) {
    TestSession session(1, kMailHeap, 1, 2);
    shared::Submission entry = mail_entry(shared::Kind::send, 1);
    entry.offset = offset;
    submission_entry(session->region(), 0) = entry;
    session->region().header().submission_tail.store(1);
    EXPECT_EQ(session->take(), Session::Take::violation) << offset;
  }
  shared::Submission entry = mail_entry(shared::Kind::send, 1);
  entry.root = 2;
  submit(entry);
  ASSERT_EQ(session_->take(), Session::Take::violation);
  EXPECT_STREQ(session_->violation(), "a message's other rank is none of its job");
}

}  // namespace
}  // namespace gradcube::dataplane
