// A job's identity on the wire: an index (low 8 bits, below kMaxJobs) by which a receiver finds the
// job, and a nonce (high 24 bits) that is new for each job. So a frame of a job that has ended does
// not match the next job with the same index.
#ifndef GRADCUBE_PROTOCOL_JOB_ID_H_
#define GRADCUBE_PROTOCOL_JOB_ID_H_

#include <cstdint>

namespace gradcube::protocol {

using JobId = std::uint32_t;

inline constexpr unsigned kMaxJobs = 64;

// The index of a job id from a frame may be any byte: check it against kMaxJobs.
constexpr unsigned job_index(JobId job) { return job & 0xff; }
constexpr std::uint32_t job_nonce(JobId job) { return job >> 8; }
constexpr JobId make_job_id(unsigned index, std::uint32_t nonce) { return nonce << 8 | index; }

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_JOB_ID_H_
