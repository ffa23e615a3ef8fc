// What a trainer pushes of the planes of a hub's keys (control/checkpoint/hub_planes.h) when what
// their aggregator has is saved or loaded: Session::push_planes() goes through the keys by name, a
// few at a time, and through the planes of these, the last one first.
//
// One thread.
#ifndef GRADCUBE_TRAINER_SRC_HUB_PLANE_PUSHES_H_
#define GRADCUBE_TRAINER_SRC_HUB_PLANE_PUSHES_H_

#include <cstddef>
#include <cstdint>

#include "trainer/push_kind.h"

namespace gradcube::trainer {

class PlanePushes {
 public:
  virtual ~PlanePushes() = default;
  PlanePushes(const PlanePushes&) = delete;
  PlanePushes& operator=(const PlanePushes&) = delete;

  shared::PushKind kind() const { return kind_; }
  // Of what is loaded: whether this trainer has it, and how many steps the key had taken.
  virtual bool has_plane() const { return false; }
  virtual std::uint64_t steps(std::size_t) const { return 0; }

  // Each key has a block of shared memory: how long, what is first put into it, and what is pushed
  // of a plane. The default pushes what happens to be in it. They may throw Failure.
  virtual std::size_t block_bytes(std::size_t number) const = 0;
  virtual void begin(std::size_t, std::byte*) const {}
  virtual const void* buffer(std::size_t, unsigned, std::byte* block) const { return block; }
  // The round of a plane has ended.
  virtual void take_end(std::size_t, unsigned) const {}

 protected:
  explicit PlanePushes(shared::PushKind kind) : kind_(kind) {}

 private:
  shared::PushKind kind_;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_HUB_PLANE_PUSHES_H_
