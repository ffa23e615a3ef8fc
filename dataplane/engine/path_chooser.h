// Which of an engine's flows take another path because it has more left (BCube source routing:
// BCube, section 4.1).
//
// Which flows may choose. A plan that exchanges with neighbours has put each exchange on a level,
// so that all links carry the same; these flows stay where they are as long as their link works.
// Those to servers further away, which relays pass on, may choose, and so may those that go around
// a link that is down, and mail, which no plan has put anywhere. Where links have no rate nothing
// says what they have left, and nobody chooses.
//
// It sends and moves nothing itself: the engine asks which probes are due and which flow moves, and
// tells it the answers. Owned and used by one engine; allocates some times in a second.
#ifndef GRADCUBE_DATAPLANE_ENGINE_PATH_CHOOSER_H_
#define GRADCUBE_DATAPLANE_ENGINE_PATH_CHOOSER_H_

#include <cstdint>
#include <vector>

#include "bcube_forwarding/path_prober.h"
#include "dataplane/engine/flows/flow.h"
#include "dataplane/engine/job_watch.h"
#include "dataplane/links/port_loads.h"
#include "dataplane/links/working_paths.h"
#include "protocol/wire.h"

namespace gradcube::dataplane {

class PathChooser {
 public:
  // Leaves over the first hop of its route.
  struct Probe {
    bcube::Route route;
    std::uint32_t number = 0;
  };

  // prober: when it probes. The references must outlive it.
  PathChooser(const bcube::PathProber& prober, const bcube::NeighbourTable& neighbours,
              const WorkingPaths& paths, const PortLoads& loads, const JobWatch& jobs)
      : prober_(prober), neighbours_(neighbours), paths_(paths), loads_(loads), jobs_(jobs) {}

  // The flow that is to take the path use.chosen now; null if there is none. on_move(): it did.
  Flow* mover(protocol::Nanoseconds now);
  void on_move(protocol::Nanoseconds now) { prober_.on_move(now); }
  // Those that are due now, all to `server`.
  std::vector<Probe> due(bcube::ServerId& server, protocol::Nanoseconds now);
  // False: it answers nothing that was asked.
  bool on_answer(bcube::ServerId from, const protocol::PathProbeHeader& answer,
                 protocol::Nanoseconds now) {
    return prober_.on_answer(from, answer.number, answer.bits_per_second_left, now);
  }

  // Probes all paths to another server soon.
  void ask(bcube::ServerId server) { prober_.ask(server); }
  // What came of it, without paths if there are none; null while their answers are awaited.
  const bcube::PathProber::News* asked(bcube::ServerId server) const {
    return prober_.asked(server);
  }
  // When it has something to do again; of an engine without work, for what was asked alone.
  protocol::Nanoseconds next_event(bool busy) const { return prober_.next_event(busy); }

  bool may_choose(const Flow& flow) const;

 private:
  bool sends_much(const Flow& flow) const;
  template <typename Function>
  void for_each_choosing(const Function& function) const;
  Flow* choose(const bcube::PathProber::News& news);
  std::vector<bcube::ServerId> measure_flows(protocol::Nanoseconds now);
  std::vector<bcube::Route> routes_to(bcube::ServerId server) const;

  bcube::PathProber prober_;
  const bcube::NeighbourTable& neighbours_;
  const WorkingPaths& paths_;
  const PortLoads& loads_;
  const JobWatch& jobs_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_PATH_CHOOSER_H_
