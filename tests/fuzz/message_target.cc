// decode_message(): whatever another daemon sends is refused, or is a message with these very bytes
// whose servers and lanes exist.

#include <algorithm>
#include <array>

#include "control/jobs/message_codec.h"
#include "protocol/wire.h"
#include "tests/fuzz/fuzz_target.h"

namespace gradcube::fuzz {

const unsigned kMutations = 1'500'000;

namespace {

using namespace control;

bcube::AddressSpace space() {
  constexpr std::array<unsigned, 2> kRadices = {3, 3};
  return bcube::AddressSpace(kRadices);
}

void require_members(const std::vector<bcube::ServerId>& members) {
  for (const bcube::ServerId server : members) {
    require(space().contains(server), "a member is one of the cluster's servers");
  }
}

}  // namespace

void read_hostile(std::span<const std::uint8_t> input) {
  const auto message = decode_message(input, space());
  if (!message.has_value()) return;
  const Bytes again = encode_message(*message, space());
  require(std::equal(again.begin(), again.end(), input.begin(), input.end()),
          "a message has one byte form");
  require_members({message->from, message->to});
  if (const auto* part = std::get_if<StatusPart>(&message->body)) {
    require(part->part < part->parts && part->parts <= kMostStatusParts &&
                part->text.size() <= kStatusPartBytes,
            "a status has few parts");
  }
  if (const auto* call = std::get_if<HubCall>(&message->body)) require_members(call->members);
  const auto* job_message = std::get_if<JobMessage>(&message->body);
  if (job_message == nullptr) return;
  if (const auto* join = std::get_if<Join>(&job_message->body)) {
    require(join->options.lanes.size() <= protocol::kMaxLanes, "a job has few lanes");
    require_members(join->options.members);
  }
  if (const auto* abort = std::get_if<Abort>(&job_message->body)) require_members(abort->gone);
}

std::vector<Bytes> seeds() {
  const JobOptions options{{{"bml", 0}, {"halving", 1}}, 2, {1, 2, 5}};
  const TransportFacts transport{1408, 8, true};
  const LaneNumbers numbers{5, 7};
  const Disagreement what{1, 7, -4, "server [1,0]", Disagreement::Cause::overflow};
  const std::vector<JobBody> bodies = {
      Join{{100, 1000}, options, 2, transport},
      Pending{"the trainer on server [0,1]"},
      Refused{"job \"a\" has other members"},
      Seek{},
      Elsewhere{{100, 1000}, options},
      Prepare{{7, "job", options, true, {{1, 0, 10, 1}, {2, 1, 20, 4}}, transport, 0}},
      Armed{1},
      Start{1},
      Started{1},
      Disagree{1, what},
      Hold{1, "the trainers disagree", CollectiveName{1, 7}},
      Held{1, numbers, numbers, {what}, CollectiveName{1, 7}, "all_reduce"},
      Reset{2, {numbers, numbers, -4, "the trainers disagree"}},
      Leave{"the trainer left", false, 1, numbers},
      Abort{"the trainer died", {1, 5}, numbers, numbers, false},
      Unknown{},
      Ask{3},
      Counts{3, 100, numbers, numbers},
      Left{1, {{2, 1, "the trainer left", numbers}}},
      Noted{2},
  };
  std::vector<Bytes> inputs = {encode_message({1, 2, Greeting{10, true}}, space()),
                               encode_message({1, 2, StatusAsk{10, 3}}, space()),
                               encode_message({1, 2, StatusPart{10, 3, 4, "{}"}}, space())};
  const HubName hub{7, 1};
  const HubCall call{hub, {3, 4}, 0, 0, "job", {1, 2}, 1, 1, 8, 1000, 100, false};
  const HubState state{hub, HubState::Progress::failed, -5, "no memory"};
  inputs.push_back(encode_message({1, 2, call}, space()));
  inputs.push_back(encode_message({1, 2, HubAsk{hub, 1}}, space()));
  inputs.push_back(encode_message({1, 2, HubPart{hub, 1, "table"}}, space()));
  inputs.push_back(encode_message({1, 2, state}, space()));
  inputs.push_back(encode_message({1, 2, HubEnd{hub}}, space()));
  for (const JobBody& body : bodies) {
    const NodeMessage message{1, 2, JobMessage{{1, 10, 1}, {2, 20, 0}, 7, "job", body}};
    inputs.push_back(encode_message(message, space()));
    require(!inputs.back().empty(), "a seed has a byte form");
  }
  return inputs;
}

}  // namespace gradcube::fuzz
