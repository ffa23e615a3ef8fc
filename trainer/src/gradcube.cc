// The C ABI: checks handles and the calling process, turns exceptions into codes, and keeps the
// message of a thread's failed gradcube_open.

#include "gradcube/gradcube.h"

#include <memory>
#include <new>
#include <string>

#include "trainer/src/failure.h"
#include "trainer/src/session.h"
#include "trainer/src/settings.h"

using gradcube::trainer::Connection;
using gradcube::trainer::Failure;
using gradcube::trainer::Session;

static_assert(GRADCUBE_VERSION_CODE == GRADCUBE_PROJECT_VERSION_CODE,
              "gradcube.h and the project in meson.build have different versions");

struct gradcube_session {
  Session session;
};

namespace {

// The last failure of a call that has no session to keep it in; one per thread, as the ABI says.
struct ThreadFailure {
  int code = GRADCUBE_OK;
  std::string message;
};

ThreadFailure& thread_failure() {
  thread_local ThreadFailure failure;
  return failure;
}

int fail_on_thread(int code, const char* message) noexcept {
  ThreadFailure& failure = thread_failure();
  failure.code = code;
  try {
    failure.message = message;
  } catch (const std::bad_alloc&) {
    failure.message.clear();
  }
  return code;
}

int no_session() noexcept { return fail_on_thread(GRADCUBE_EINVAL, "the session is NULL"); }

// Runs `call` on the session; no exception leaves it.
template <typename Call>
int guarded(gradcube_session* session, const Call& call) noexcept {
  if (session == nullptr) return no_session();
  try {
    if (session->session.is_forked_copy()) return session->session.refuse_forked_copy();
    return call(session->session);
  } catch (const std::bad_alloc&) {
    return session->session.fail(GRADCUBE_ENOMEM);
  } catch (const std::exception&) {
    return session->session.fail(GRADCUBE_ESYSTEM);
  }
}

int null_result(Session& session, const char* name) {
  return session.fail(GRADCUBE_EINVAL, std::string("the pointer '") + name + "' is NULL");
}

}  // namespace

extern "C" {

int gradcube_version(void) { return GRADCUBE_VERSION_CODE; }

int gradcube_open(const char* socket_path, const char* job, gradcube_session** session) {
  if (session == nullptr) return fail_on_thread(GRADCUBE_EINVAL, "the pointer 'session' is NULL");
  *session = nullptr;
  if (job == nullptr) return fail_on_thread(GRADCUBE_EINVAL, "the job's name is NULL");
  try {
    const std::string path =
        gradcube::trainer::find_socket(socket_path == nullptr ? "" : socket_path);
    const std::uint64_t heap_bytes = gradcube::trainer::wanted_heap_bytes();
    *session = new gradcube_session{Session(Connection(path), job, heap_bytes)};
    return GRADCUBE_OK;
  } catch (const Failure& failure) {
    return fail_on_thread(failure.code(), failure.what());
  } catch (const std::bad_alloc&) {
    return fail_on_thread(GRADCUBE_ENOMEM, "no memory for a session");
  } catch (const std::exception& error) {
    return fail_on_thread(GRADCUBE_ESYSTEM, error.what());
  }
}

void gradcube_close(gradcube_session* session) { delete session; }

void gradcube_leave(gradcube_session* session) {
  guarded(session, [](Session& s) {
    s.leave();
    return GRADCUBE_OK;
  });
}

int gradcube_rank(const gradcube_session* session) {
  return session == nullptr ? no_session() : session->session.rank();
}

int gradcube_size(const gradcube_session* session) {
  return session == nullptr ? no_session() : session->session.size();
}

void* gradcube_alloc(gradcube_session* session, std::size_t bytes) {
  void* block = nullptr;
  guarded(session, [&](Session& s) {
    block = s.allocate(bytes);
    return GRADCUBE_OK;
  });
  return block;
}

void gradcube_free(gradcube_session* session, void* buffer) {
  guarded(session, [&](Session& s) { return s.free(buffer); });
}

int gradcube_allreduce(gradcube_session* session, void* buffer, std::size_t count, int dtype,
                       int op, std::uint64_t* request) {
  return guarded(session, [&](Session& s) {
    if (request == nullptr) return null_result(s, "request");
    return s.allreduce(buffer, count, dtype, op, *request);
  });
}

int gradcube_test(gradcube_session* session, std::uint64_t request, int* done) {
  return gradcube_poll(session, request, 0, done);
}

int gradcube_poll(gradcube_session* session, std::uint64_t request, int timeout_ms, int* done) {
  return guarded(session, [&](Session& s) {
    if (done == nullptr) return null_result(s, "done");
    bool ended = false;
    const int code = s.poll(request, timeout_ms, ended);
    *done = ended ? 1 : 0;
    return code;
  });
}

int gradcube_wait(gradcube_session* session, std::uint64_t request, int timeout_ms) {
  return guarded(session, [&](Session& s) { return s.wait(request, timeout_ms); });
}

const char* gradcube_strerror(int code) {
  switch (code) {
    case GRADCUBE_OK:
      return "success";
    case GRADCUBE_EINVAL:
      return "invalid argument";
    case GRADCUBE_ENOMEM:
      return "the session's shared heap is full";
    case GRADCUBE_ENODAEMON:
      return "no daemon at this socket, or the daemon went away";
    case GRADCUBE_EJOB:
      return "the job cannot be joined";
    case GRADCUBE_EMISMATCH:
      return "the trainers of the job disagree on a collective";
    case GRADCUBE_EPEER:
      return "another trainer of the job died or left";
    case GRADCUBE_ETIMEDOUT:
      return "not done within the timeout";
    case GRADCUBE_EPROTOCOL:
      return "protocol error between trainer and daemon";
    case GRADCUBE_EAGAIN:
      return "too many collectives in flight";
    case GRADCUBE_ESYSTEM:
      return "system call failed";
    case GRADCUBE_EOVERFLOW:
      return "a partial sum of an integer average does not fit in the type";
    default:
      return "unknown code";
  }
}

const char* gradcube_last_error(const gradcube_session* session) {
  const std::string& message =
      session == nullptr ? thread_failure().message : session->session.last_error();
  const int code = gradcube_last_code(session);
  return message.empty() && code != GRADCUBE_OK ? gradcube_strerror(code) : message.c_str();
}

int gradcube_last_code(const gradcube_session* session) {
  return session == nullptr ? thread_failure().code : session->session.last_code();
}

}  // extern "C"
