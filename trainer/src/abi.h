// What the functions of the C ABI have in common: they check handles and the calling process, turn
// exceptions into codes, are no cancellation points, and keep the message of a call that failed
// without a session.
#ifndef GRADCUBE_TRAINER_SRC_ABI_H_
#define GRADCUBE_TRAINER_SRC_ABI_H_

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <pthread.h>
#include <string>

#include "trainer/src/base/failure.h"
#include "trainer/src/hub/hub_client.h"
#include "trainer/src/session/failures.h"
#include "trainer/src/session/session.h"

#include "gradcube/gradcube.h"

struct gradcube_session {
  gradcube::trainer::Session session;
  gradcube::trainer::HubClient hubs{session};
};

namespace gradcube::trainer::abi {

// The last failure of a call that has no session to keep it in; one per thread, as the ABI says. It
// has no destructor: handlers of exit() make calls, too, and run later. A text that is too long is
// cut.
struct ThreadFailure {
  int code;
  char message[2048];
};

inline ThreadFailure& thread_failure() {
  thread_local ThreadFailure failure;
  return failure;
}

inline int fail_on_thread(int code, const char* message) noexcept {
  ThreadFailure& failure = thread_failure();
  failure.code = code;
  *std::copy_n(message, ::strnlen(message, sizeof failure.message - 1), failure.message) = '\0';
  return code;
}

inline int no_session() noexcept { return fail_on_thread(GRADCUBE_EINVAL, "the session is NULL"); }

// Not in the session: another thread may have held its locks at the fork.
inline int forked_copy(const Session& session) {
  const std::string message = "this session belongs to process " + std::to_string(session.owner()) +
                              "; open one in the child";
  return fail_on_thread(GRADCUBE_EINVAL, message.c_str());
}

// A thread that is cancelled in a call is so after it: the cancellation would unwind what lets
// nothing pass, which ends the process, and what others of the session wait for.
class NoCancellation {
 public:
  NoCancellation() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancellation() { ::pthread_setcancelstate(before_, nullptr); }
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

// Runs `call` on the session; no exception leaves it.
template <typename Call>
int guarded(gradcube_session* session, const Call& call) noexcept {
  if (session == nullptr) return no_session();
  const NoCancellation whole_call;
  try {
    if (session->session.is_forked_copy()) return forked_copy(session->session);
    return call(session->session);
  } catch (const Failure& failure) {
    return session->session.fail(failure.code(), failure.what());
  } catch (const std::bad_alloc&) {
    return session->session.fail(GRADCUBE_ENOMEM, "");
  } catch (const std::exception&) {
    return session->session.fail(GRADCUBE_ESYSTEM, "");
  }
}

inline int null_result(Session& session, const char* name) {
  return session.fail(GRADCUBE_EINVAL, std::string("the pointer '") + name + "' is NULL");
}

}  // namespace gradcube::trainer::abi

#endif  // GRADCUBE_TRAINER_SRC_ABI_H_
