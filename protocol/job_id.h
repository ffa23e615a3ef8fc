// A job's identity on the wire: 32 bits that mean nothing else. The process that begins a job
// chooses an id that no job of the cluster has, and that a job of a former daemon is unlikely to
// have had: a frame of a job that has ended then matches no later job.
#ifndef GRADCUBE_PROTOCOL_JOB_ID_H_
#define GRADCUBE_PROTOCOL_JOB_ID_H_

#include <cstdint>

namespace gradcube::protocol {

using JobId = std::uint32_t;

inline constexpr JobId kNoJob = 0;

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_JOB_ID_H_
