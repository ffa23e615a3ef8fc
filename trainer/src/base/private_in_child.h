// Memory that a daemon shares with this process, as forked children have it: a private copy of what
// was in use at the fork, and zeros elsewhere. A child that writes to a tensor changes its own, and
// what parent and daemon write later does not show in the child.
//
// The thread that forks makes the copy before (pthread_atfork), and the child puts it in the place
// of the shared memory before any other code of it runs. So the child sees what that thread saw.
// It costs a copy of the memory in use for each fork(), and memory that an ordinary copy on write
// would take, too, as soon as the parent has written to all of it. Where the system has none, the
// child has nothing there: it gets SIGSEGV where it looks. The kernel alone would do no better: its
// copy on write is for private memory, MADV_WIPEONFORK too, and a private mapping of the same file
// goes on to show what others write.
//
// vfork(), posix_spawn() and what runs a program by them copy nothing, and need nothing: their
// child has no memory of its own. A child of clone() or _Fork() runs no handlers: it shares the
// memory.
//
// What a child must not hold on to, such as the descriptors of a connection, it gives up in the
// same moment: its parent's end would not show as long as the child lives.
//
// Any thread. end() and the destructor wait while another thread forks.
#ifndef GRADCUBE_TRAINER_SRC_BASE_PRIVATE_IN_CHILD_H_
#define GRADCUBE_TRAINER_SRC_BASE_PRIVATE_IN_CHILD_H_

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace gradcube::trainer {

class PrivateInChild {
 public:
  // What of the memory is in use. The thread that forks asks; it may throw.
  using Used = std::function<std::vector<std::span<const std::byte>>()>;

  // What a child gives up. It allocates nothing, and takes no lock.
  using GiveUp = std::function<void()>;

  // `memory` begins at a page, and stays mapped until end() or the destructor has run.
  // Throws Failure with GRADCUBE_ESYSTEM where the system takes no handlers.
  PrivateInChild(std::span<std::byte> memory, Used used, GiveUp give_up = {});
  ~PrivateInChild();
  PrivateInChild(const PrivateInChild&) = delete;
  PrivateInChild& operator=(const PrivateInChild&) = delete;

  // The memory is not shared any more once replace() has put something else in its place; no thread
  // forks meanwhile. What is there then a child has as any memory. It allocates nothing, so that
  // it also ends where there is no memory left.
  template <typename Replace>  // replace()
  void end(const Replace& replace) {
    end_with(std::cref(replace));  // a function has room for a reference, but not for any lambda
  }

  // No thread forks, and none reads such memory for a child, while it runs.
  static void between_forks(const std::function<void()>& call);

 private:
  void end_with(const std::function<void()>& replace);
  static void before_fork() noexcept;
  static void in_parent() noexcept;
  static void in_child() noexcept;

  void copy() noexcept;

  const std::span<std::byte> memory_;
  const Used used_;
  const GiveUp give_up_;
  std::byte* copy_ = nullptr;  // while a thread forks
  bool is_private_ = false;    // in a child: a fork copies it on write
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_BASE_PRIVATE_IN_CHILD_H_
