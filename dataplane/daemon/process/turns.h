// Whose turn it is: things that wait, of several users. Each user has a turn in turn, however many
// of his things wait; of one user they come in their order.
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_PROCESS_TURNS_H_
#define GRADCUBE_DATAPLANE_DAEMON_PROCESS_TURNS_H_

#include <deque>
#include <map>
#include <sys/types.h>

namespace gradcube::dataplane {

class Turns {
 public:
  void add(uid_t user, int what) { waiting_[user].push_back(what); }
  // Where it waits no more, nothing happens.
  void remove(uid_t user, int what) {
    const auto of_user = waiting_.find(user);
    if (of_user == waiting_.end()) return;
    std::erase(of_user->second, what);
    if (of_user->second.empty()) waiting_.erase(of_user);
  }
  bool empty() const { return waiting_.empty(); }
  // The next one, which waits no more. Not if it is empty.
  int take() {
    auto next = waiting_.upper_bound(last_);
    if (next == waiting_.end()) next = waiting_.begin();
    last_ = next->first;
    const int what = next->second.front();
    remove(last_, what);
    return what;
  }

 private:
  std::map<uid_t, std::deque<int>> waiting_;  // none is empty
  uid_t last_ = 0;                            // who had the last turn
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_PROCESS_TURNS_H_
