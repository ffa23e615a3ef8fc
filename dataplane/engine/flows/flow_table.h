// Finds a flow by what a frame says of itself: its job, lane, thread, stage, step and the server
// that sent it. It does not matter through which port the frame came.
//
// Every key is hostile: job ids are not guessed. Owned and used by one engine.
#ifndef GRADCUBE_DATAPLANE_ENGINE_FLOWS_FLOW_TABLE_H_
#define GRADCUBE_DATAPLANE_ENGINE_FLOWS_FLOW_TABLE_H_

#include <cstdint>

#include "bcube_forwarding/address.h"
#include "dataplane/host/key_table.h"
#include "protocol/job_id.h"
#include "protocol/wire.h"

namespace gradcube::dataplane {

struct Flow;

using FlowTable = KeyTable<Flow*, nullptr>;

// All of a frame's fields that name its flow, in 64 bits; never 0, as no job's id is 0.
inline std::uint64_t flow_key(const protocol::TransportHeader& transport, bcube::ServerId source) {
  return std::uint64_t{transport.job} << 32 | std::uint64_t{source & 0xffffU} << 16 |
         std::uint64_t{transport.lane} << 13 | std::uint64_t{transport.step} << 8 |
         std::uint64_t{transport.stage == protocol::Stage::broadcast} << 7 | transport.thread;
}
static_assert(protocol::kMaxLanes <= 8 && protocol::kMaxFlowSteps <= 32);
static_assert(protocol::kMaxThreads <= 128 && bcube::kMaxServers <= 1 << 16);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_FLOWS_FLOW_TABLE_H_
