// Why a collective is not done, as far as one server can tell: plain data in, a sentence out. Tells
// causes apart: a daemon that is silent, a trainer that has not submitted it, a server to which no
// way leads, a link that loses what is sent, and none of them.
#ifndef GRADCUBE_CONTROL_JOBS_WAIT_CAUSE_H_
#define GRADCUBE_CONTROL_JOBS_WAIT_CAUSE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bcube_forwarding/address.h"
#include "control/jobs/job_actions.h"

namespace gradcube::control {

// What a server knows of a member of the job while it waits for a collective. Of itself: the
// standing, `cut_off` and zeros.
struct PeerFacts {
  MemberStanding standing;
  Instant since_heard{};           // since anything came from it
  std::uint64_t resent = 0;        // segments to it, since the wait began
  std::uint64_t acknowledged = 0;  // segments to it, since the wait began
  bool no_way = false;             // every path to it begins with a link that is down
  bool cut_off = false;            // all of its own links are known to be down
};

// What the ports of a server that cannot be reached, or those at which it is missed, hear and
// should not: a whole sentence, or nothing.
using PortsSay = std::function<std::string(bcube::ServerId)>;

// The daemon on the server is silent. `no_way`: as in PeerFacts. Links to a daemon that has ended
// are down, too: the sentence is true of it as well, and says what else to look at.
std::string silent_daemon(bcube::ServerId server, const std::string& for_how_long, bool no_way,
                          const bcube::AddressSpace& space);

// `peers`: all members of the job, by server; `lanes`: how many the job has. Of several trainers on
// a server it has the pid of the one that has come least far. `silent`: as long as a
// healthy daemon never says nothing. The first cause of these that applies: a daemon that is silent
// or has not answered, trainers that have not submitted the collective, servers to which no way
// leads, a link that loses. Servers that are cut off are named for those to which no way leads: a
// server that is cut off itself finds no way to any. Not where all are, as the two ends of one link
// that is down: then each names the others. `ports_say` is asked about the first that is named.
std::string explain_wait(const std::string& job, std::size_t lanes,
                         const std::vector<PeerFacts>& peers, CollectiveName collective,
                         Instant silent, const bcube::AddressSpace& space,
                         std::size_t trainers_per_server = 1, const PortsSay& ports_say = {});

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_WAIT_CAUSE_H_
