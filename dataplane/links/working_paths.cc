#include "dataplane/links/working_paths.h"

#include <algorithm>

#include "bcube_forwarding/path_set.h"

namespace gradcube::dataplane {

bool WorkingPaths::take_failure(const protocol::ParsedFrame& notice, protocol::Nanoseconds now) {
  const protocol::LinkHeader& link = notice.link;
  const bcube::AddressSpace& space = neighbours_.space();
  if (!space.contains(link.server) || link.server != notice.routing.source ||
      link.level >= space.levels() || link.digit >= space.hop_digits(link.level) ||
      !space.joins(link.level, space.digit(link.server, link.level), link.digit)) {
    return false;
  }
  if (failed_hops_.add(link.server, space.with_digit(link.server, link.level, link.digit), now)) {
    next_change_ = std::min(next_change_, changed_at_ + kBetweenChanges);
  }
  return true;
}

bool WorkingPaths::have_changed(protocol::Nanoseconds now) {
  if (failed_hops_.forget(now)) next_change_ = std::min(next_change_, now);
  const std::uint32_t version = links_.version();
  if (version == links_seen_ && now < next_change_) return false;
  links_seen_ = version;
  changed_at_ = now;
  next_change_ = protocol::kNever;
  return true;
}

protocol::Nanoseconds WorkingPaths::next_change() const {
  return std::min(failed_hops_.next_over(), next_change_);
}

bool WorkingPaths::works(bcube::ServerId from, bcube::Hop hop) const {
  if (from == neighbours_.self()) return links_.up(hop);
  return !failed_hops_.has(from, neighbours_.space().with_digit(from, hop.level, hop.digit));
}

bool WorkingPaths::works(const bcube::Route& route) const {
  bcube::ServerId at = neighbours_.self();
  for (const bcube::Hop& hop : route) {
    if (!works(at, hop)) return false;
    at = neighbours_.space().with_digit(at, hop.level, hop.digit);
  }
  return true;
}

std::vector<bcube::Route> WorkingPaths::to(bcube::ServerId server) const {
  return paths(server, [this](bcube::ServerId from, bcube::Hop hop) { return works(from, hop); });
}

bcube::Route WorkingPaths::best(const bcube::Route& planned, bcube::ServerId server) const {
  if (works(planned)) return planned;
  std::vector<bcube::Route> others = to(server);
  if (others.empty()) {
    if (links_.heard(planned[0])) return planned;
    others = paths(server, [this](bcube::ServerId from, bcube::Hop hop) {
      return from != neighbours_.self() || links_.heard(hop);
    });
  }
  if (others.empty()) return planned;
  const auto elsewhere = std::find_if(others.begin(), others.end(), [&](const bcube::Route& path) {
    return port_of(path) != port_of(planned);
  });
  return elsewhere == others.end() ? others.front() : *elsewhere;
}

std::vector<bcube::Route> WorkingPaths::paths(bcube::ServerId server,
                                              const bcube::HopFilter& usable) const {
  const bcube::AddressSpace& space = neighbours_.space();
  std::vector<bcube::Route> found =
      bcube::parallel_paths(space, neighbours_.self(), server, usable);
  std::erase_if(found,
                [&](const bcube::Route& path) { return path.size() > bcube::most_hops(space); });
  return found;
}

}  // namespace gradcube::dataplane
