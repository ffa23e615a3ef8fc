#include "dataplane/engine/path_chooser.h"

#include <algorithm>

#include "bcube_forwarding/path_choice.h"
#include "bcube_forwarding/path_set.h"
#include "dataplane/engine/flows/port_queue.h"

namespace gradcube::dataplane {

namespace {

// A flow that sends less than this part of its port's rate is left alone.
constexpr std::uint64_t kLeastPart = 32;

void measure(PathUse& use, protocol::Nanoseconds now) {
  const auto passed =
      static_cast<double>(std::max<protocol::Nanoseconds>(now - use.measured_at, 1));
  use.bits_per_second =
      static_cast<std::uint64_t>(8.0 * static_cast<double>(use.bytes - use.bytes_then) *
                                 protocol::kNanosecondsPerSecond / passed);
  use.bytes_then = use.bytes;
  use.measured_at = now;
}

}  // namespace

bool PathChooser::may_choose(const Flow& flow) const {
  return flow.mail != nullptr || !flow.is_neighbours() || !paths_.works(flow.planned);
}

bool PathChooser::sends_much(const Flow& flow) const {
  const std::uint64_t rate = loads_.rate(flow.out->number);
  return rate != 0 && flow.use.bits_per_second >= rate / kLeastPart;
}

template <typename Function>
void PathChooser::for_each_choosing(const Function& function) const {
  for (EngineJob* job : jobs_.watched()) {
    if (!job->moves()) continue;
    job->for_each_flow([&](Flow& flow) {
      if (may_choose(flow)) function(flow);
    });
  }
}

Flow* PathChooser::mover(protocol::Nanoseconds now) {
  const bcube::PathProber::News* news = prober_.take_result(now);
  return news == nullptr ? nullptr : choose(*news);
}

// One flow moves at a time, the one that sends most: what the others have left changes with it.
Flow* PathChooser::choose(const bcube::PathProber::News& news) {
  Flow* mover = nullptr;
  for_each_choosing([&](Flow& flow) {
    if (flow.peer != news.server || !sends_much(flow)) return;
    const auto better = bcube::better_path(news.paths, flow.route, flow.use.bits_per_second,
                                           loads_.rate(flow.out->number));
    const bcube::Route route = better ? news.paths[*better].route : bcube::Route();
    const bool again = better.has_value() && route == flow.use.favoured && paths_.works(route);
    flow.use.favoured = route;
    if (!again) return;
    if (mover == nullptr || flow.use.bits_per_second > mover->use.bits_per_second) mover = &flow;
  });
  if (mover == nullptr || !prober_.coin()) return nullptr;
  mover->use.chosen = mover->use.favoured;
  mover->use.favoured = {};
  return mover;
}

std::vector<PathChooser::Probe> PathChooser::due(bcube::ServerId& server,
                                                 protocol::Nanoseconds now) {
  if (prober_.round_due(now)) prober_.begin_round(measure_flows(now), now);
  const auto next = prober_.next(now);
  if (!next.has_value()) return {};
  server = *next;
  const std::vector<bcube::Route> routes = routes_to(server);
  std::vector<Probe> probes;
  probes.reserve(routes.size());
  const auto numbers = prober_.begin(server, routes, now);
  for (std::size_t i = 0; i < numbers.size(); ++i) probes.push_back({routes[i], numbers[i]});
  return probes;
}

// Returns to which servers much is sent.
std::vector<bcube::ServerId> PathChooser::measure_flows(protocol::Nanoseconds now) {
  std::vector<bcube::ServerId> servers;
  for_each_choosing([&](Flow& flow) {
    measure(flow.use, now);
    if (sends_much(flow)) servers.push_back(flow.peer);
  });
  std::sort(servers.begin(), servers.end());
  servers.erase(std::unique(servers.begin(), servers.end()), servers.end());
  return servers;
}

// First those that flows take: without news of its own path none can compare.
std::vector<bcube::Route> PathChooser::routes_to(bcube::ServerId server) const {
  const bcube::AddressSpace& space = neighbours_.space();
  std::vector<bcube::Route> routes;
  const auto add = [&](const bcube::Route& route) {
    const bool known = std::find(routes.begin(), routes.end(), route) != routes.end();
    if (!known && route.size() <= bcube::most_hops(space)) routes.push_back(route);
  };
  for_each_choosing([&](const Flow& flow) {
    if (flow.peer == server && sends_much(flow)) add(flow.route);
  });
  const auto works = [this](bcube::ServerId from, bcube::Hop hop) {
    return paths_.works(from, hop);
  };
  for (const bcube::Route& route : bcube::candidate_paths(space, neighbours_.self(), server,
                                                          bcube::PathProber::kMostPaths, works)) {
    add(route);
  }
  return routes;
}

}  // namespace gradcube::dataplane
