// Runs a collective symbolically, segment by segment, as the layout's streams say: what the tests
// hold the kinds of collectives against.
//
// The buffer of each rank is a list of segments, as they are cut in the last step: in earlier steps
// one segment may hold several of them. Instead of bytes a segment has a count for each rank: how
// often that rank's input is in it. What a rank has at the beginning but is no input counts
// kGarbage times, so that it shows wherever it goes.
#ifndef GRADCUBE_TESTS_UNIT_CONTROL_COLLECTIVE_RUN_H_
#define GRADCUBE_TESTS_UNIT_CONTROL_COLLECTIVE_RUN_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "control/plan/base/plan.h"
#include "control/plan/collective_layout.h"

namespace gradcube::control {

class CollectiveRun {
 public:
  static constexpr std::uint8_t kGarbage = 100;

  // Runs all of it. Throws std::logic_error when the streams of two peers do not fit each other, or
  // the segments are not a division of the buffer.
  CollectiveRun(const Plan& plan, const CollectiveShape& shape, std::uint32_t segment_bytes);

  // The rank whose chunk the segment is in; for kinds that are rank-ordered.
  Rank chunk(const SegmentRange& segment) const {
    return static_cast<Rank>(segment.begin / (shape_.bytes / plan_.ranks()));
  }

  // What the rank has of a segment: a count for each rank.
  const std::uint8_t* counts(Rank rank, std::size_t segment) const {
    return &counts_[place_of(rank, segment)];
  }

  const std::vector<SegmentRange>& segments() const { return segments_; }  // not the empty ones
  std::uint64_t bytes_sent(Stage stage) const { return bytes_sent_[static_cast<unsigned>(stage)]; }

 private:
  struct Member {
    ThreadSchedule schedule;
    CollectiveLayout layout;
  };

  void find_segments();
  void add_segments(SegmentRange all);
  void begin();
  void run_step(unsigned thread, Stage stage, unsigned w);
  void exchange(const Member& from, const Member& to, Stage stage, unsigned w, unsigned round);
  void pass(const Member& from, const Member& to, Stage stage, unsigned w,
            const SegmentRange& sent);
  void pass(const Member& from, const Member& to, Stage stage, std::size_t segment);
  bool is_kept(const Member& to, Stage stage, unsigned w, std::size_t segment,
               const Member& from) const;
  const Member& member(Rank rank, unsigned thread) const {
    return members_[std::size_t{thread} * plan_.ranks() + rank];
  }
  std::size_t place_of(Rank rank, std::size_t segment) const {
    return (rank * segments_.size() + segment) * plan_.ranks();
  }
  std::uint8_t* counts_of(Rank rank, std::size_t segment) {
    return &counts_[place_of(rank, segment)];
  }

  const Plan& plan_;
  CollectiveShape shape_;
  std::vector<Member> members_;  // [thread][rank]
  std::vector<SegmentRange> segments_;
  std::map<std::uint64_t, std::size_t> segment_at_;  // by its begin
  std::vector<std::uint8_t> counts_;                 // [rank][segment][rank]
  std::vector<std::uint8_t> before_;                 // the same when the round began
  std::array<std::uint64_t, kStages> bytes_sent_{};
};

}  // namespace gradcube::control

#endif  // GRADCUBE_TESTS_UNIT_CONTROL_COLLECTIVE_RUN_H_
