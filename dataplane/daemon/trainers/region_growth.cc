#include "dataplane/daemon/trainers/region_growth.h"

#include <algorithm>
#include <fmt/format.h>
#include <unistd.h>
#include <utility>

#include "control/base/units.h"
#include "dataplane/daemon/trainers/session_messages.h"
#include "dataplane/host/event_descriptor.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

namespace {

bool is_end_of_page(std::uint64_t end, const SessionRegion& region) {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return end % page == 0 && end >= shared::kHeapOffset && end <= region.bytes();
}

std::string quota_text(const MemoryQuota::Charge& charge, std::uint64_t wanted) {
  return fmt::format(
      "the trainers of user {} may use {} of shared memory on this host and use {}; this trainer "
      "asked for {} more: end other trainers or sessions, or start the cluster with a larger "
      "--trainer-memory",
      charge.user(), control::format_size(charge.limit()), control::format_size(charge.used()),
      control::format_size(wanted - charge.bytes()));
}

}  // namespace

RegionGrowth::RegionGrowth(ControlLoop& loop, Answer answer)
    : loop_(loop), answer_(std::move(answer)), more_(event_descriptor()) {
  loop_.add(more_.get(), [this] { look(); });
}

bool RegionGrowth::report(int socket, std::shared_ptr<SessionRegion> region,
                          const shared::Grow& grow) {
  const bool waits =
      std::ranges::any_of(reports_, [&](const Report& each) { return each.socket == socket; });
  if (waits || !is_end_of_page(grow.end, *region) || !is_end_of_page(grow.wanted, *region)) {
    return false;
  }
  const std::uint64_t wanted = std::max(grow.end, grow.wanted) - shared::kHeapOffset;
  if (!region->charge().may_hold(wanted)) {
    answer(socket, *region, GRADCUBE_ENOMEM, quota_text(region->charge(), wanted));
    return true;
  }
  const std::uint64_t confirmed = region->confirmed();
  if (grow.end <= confirmed) {
    answer(socket, *region, GRADCUBE_OK, "");
    return true;
  }
  region->charge().set(grow.end - shared::kHeapOffset);
  reports_.push_back({socket, std::move(region), grow.end, confirmed});
  eventfd_write(more_.get(), 1);
  return true;
}

void RegionGrowth::forget(int socket) {
  std::erase_if(reports_, [&](const Report& each) { return each.socket == socket; });
}

void RegionGrowth::answer(int socket, const SessionRegion& region, std::int32_t code,
                          const std::string& text) {
  shared::Notice notice = make_notice(shared::MessageType::grown, code, text);
  notice.request = region.confirmed();
  answer_(socket, notice);
}

void RegionGrowth::look() {
  if (reports_.empty()) {
    eventfd_t count = 0;
    eventfd_read(more_.get(), &count);
    return;
  }
  // It stays until it is answered: where there is no memory for that, the next look tries again.
  Report& report = reports_.front();
  SessionRegion& region = *report.region;
  const std::uint64_t next = std::min(report.looked_at + kSlice, report.end);
  if (!region.has_pages(report.looked_at, next)) {
    region.charge().set(region.confirmed() - shared::kHeapOffset);
    answer(report.socket, region, GRADCUBE_EAGAIN,
           fmt::format("the trainer has not touched all of its memory between byte {} and byte {}",
                       report.looked_at, next));
  } else if (next < report.end) {
    Report rest = report;
    rest.looked_at = next;
    reports_.push_back(std::move(rest));
  } else {
    region.confirm(report.end);
    answer(report.socket, region, GRADCUBE_OK, "");
  }
  reports_.pop_front();
}

}  // namespace gradcube::dataplane
