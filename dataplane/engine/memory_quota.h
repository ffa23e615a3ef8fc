// How much shared memory the trainers of each user may use together.
//
// Counts what the daemon has confirmed of each session's region (session_region.h), by the user
// that the kernel names (SO_PEERCRED). A Charge belongs to one region and gives back what it holds
// when the region ends; so a region that packets still point into after its trainer has gone still
// counts.
//
// Threads: the control thread. The quota outlives its charges.
#ifndef GRADCUBE_DATAPLANE_ENGINE_MEMORY_QUOTA_H_
#define GRADCUBE_DATAPLANE_ENGINE_MEMORY_QUOTA_H_

#include <cstdint>
#include <map>
#include <sys/types.h>

namespace gradcube::dataplane {

class MemoryQuota {
 public:
  class Charge {
   public:
    Charge() = default;  // of a region that no quota limits
    Charge(MemoryQuota& quota, uid_t user) : quota_(&quota), user_(user) {}
    ~Charge() { set(0); }
    Charge(Charge&& other) noexcept;
    Charge& operator=(Charge&&) = delete;

    // Of the same user; holds nothing yet.
    Charge another() const { return quota_ == nullptr ? Charge() : Charge(*quota_, user_); }

    // Whether it may hold so much: as much as now, or what the user's quota suffices for.
    bool may_hold(std::uint64_t bytes) const;
    // Changes what it holds. False, and nothing changes, unless it may hold that.
    bool set(std::uint64_t bytes);
    std::uint64_t bytes() const { return bytes_; }

    // Of its user; without a quota there is no limit and nothing is used.
    std::uint64_t limit() const { return quota_ == nullptr ? UINT64_MAX : quota_->limit(); }
    std::uint64_t used() const { return quota_ == nullptr ? 0 : quota_->used(user_); }
    uid_t user() const { return user_; }

   private:
    MemoryQuota* quota_ = nullptr;
    uid_t user_ = 0;
    std::uint64_t bytes_ = 0;
  };

  explicit MemoryQuota(std::uint64_t bytes_per_user) : limit_(bytes_per_user) {}
  MemoryQuota(const MemoryQuota&) = delete;
  MemoryQuota& operator=(const MemoryQuota&) = delete;

  std::uint64_t limit() const { return limit_; }
  std::uint64_t used(uid_t user) const;
  // Of those who use any.
  const std::map<uid_t, std::uint64_t>& users() const { return used_; }

 private:
  std::uint64_t limit_;
  std::map<uid_t, std::uint64_t> used_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_MEMORY_QUOTA_H_
