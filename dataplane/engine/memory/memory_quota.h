// How much shared memory the trainers of each user may use together.
//
// Counts what the daemon has confirmed of each session's region (session_region.h), by the user
// that the kernel names (SO_PEERCRED). A Charge belongs to one region and gives back what it holds
// when the region's pages have gone; so a region that packets still point into after its trainer
// has gone still counts.
//
// Threads: the control thread; but what is large is given back, with its charge, by a thread of its
// own (shared_pages.h), which may outlive the quota.
#ifndef GRADCUBE_DATAPLANE_ENGINE_MEMORY_MEMORY_QUOTA_H_
#define GRADCUBE_DATAPLANE_ENGINE_MEMORY_MEMORY_QUOTA_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <sys/types.h>
#include <utility>

namespace gradcube::dataplane {

class MemoryQuota {
  struct Users {
    std::uint64_t limit = 0;
    std::mutex mutex;
    std::map<uid_t, std::uint64_t> used;   // guarded by the mutex
    std::map<uid_t, std::uint64_t> going;  // of that: what will soon be used no more

    std::uint64_t of(uid_t user);
  };

 public:
  class Charge {
   public:
    Charge() = default;  // of a region that no quota limits
    Charge(MemoryQuota& quota, uid_t user) : Charge(quota.users_, user) {}
    ~Charge() { set(0); }
    Charge(Charge&& other) noexcept
        : users_(std::move(other.users_)),
          user_(other.user_),
          bytes_(std::exchange(other.bytes_, 0)),
          goes_(std::exchange(other.goes_, false)) {}
    Charge& operator=(Charge&&) = delete;

    // Of the same user; holds nothing yet.
    Charge another() const { return {users_, user_}; }

    // Whether it may hold so much: as much as now, or what the user's quota suffices for.
    bool may_hold(std::uint64_t bytes) const;
    // Changes what it holds. False, and nothing changes, unless it may hold that.
    bool set(std::uint64_t bytes);
    std::uint64_t bytes() const { return bytes_; }

    // What it holds goes back to the system as soon as it can: it holds nothing else any more.
    void go();
    // Whether it may hold so much when all that goes has gone.
    bool may_hold_soon(std::uint64_t bytes) const;

    // Of its user; without a quota there is no limit and nothing is used.
    std::uint64_t limit() const { return users_ == nullptr ? UINT64_MAX : users_->limit; }
    std::uint64_t used() const { return users_ == nullptr ? 0 : users_->of(user_); }
    uid_t user() const { return user_; }

   private:
    Charge(std::shared_ptr<Users> users, uid_t user) : users_(std::move(users)), user_(user) {}

    std::shared_ptr<Users> users_;
    uid_t user_ = 0;
    std::uint64_t bytes_ = 0;
    bool goes_ = false;
  };

  explicit MemoryQuota(std::uint64_t bytes_per_user) : users_(std::make_shared<Users>()) {
    users_->limit = bytes_per_user;
  }
  MemoryQuota(const MemoryQuota&) = delete;
  MemoryQuota& operator=(const MemoryQuota&) = delete;

  std::uint64_t limit() const { return users_->limit; }
  std::uint64_t used(uid_t user) const { return users_->of(user); }
  // Of the users who use any.
  std::map<uid_t, std::uint64_t> users() const;

 private:
  std::shared_ptr<Users> users_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_MEMORY_MEMORY_QUOTA_H_
