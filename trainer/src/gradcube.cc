// The C ABI: checks handles, turns exceptions into codes, and holds what a thread's failed
// gradcube_open said.

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

struct gradcube_session {
  Session session;
};

namespace {

// The ABI promises the message per thread, to calls that have no session to keep it in.
std::string& thread_error() {
  thread_local std::string message;
  return message;
}

int fail_on_thread(int code, const char* message) noexcept {
  try {
    thread_error() = message;
  } catch (const std::bad_alloc&) {
    thread_error().clear();
  }
  return code;
}

int no_session() noexcept { return fail_on_thread(GRADCUBE_EINVAL, "the session is NULL"); }

// Runs `call` on the session; no exception leaves it.
template <typename Call>
int guarded(gradcube_session* session, const Call& call) noexcept {
  if (session == nullptr) return no_session();
  try {
    return call(session->session);
  } catch (const std::bad_alloc&) {
    return GRADCUBE_ENOMEM;
  } catch (const std::exception&) {
    return GRADCUBE_ESYSTEM;
  }
}

int null_result(Session& session, const char* name) {
  return session.fail(GRADCUBE_EINVAL, std::string("the pointer '") + name + "' is NULL");
}

}  // namespace

extern "C" {

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

void* gradcube_alloc(gradcube_session* session, size_t bytes) {
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

int gradcube_allreduce(gradcube_session* session, void* buffer, size_t count, int dtype, int op,
                       uint64_t* request) {
  return guarded(session, [&](Session& s) {
    if (request == nullptr) return null_result(s, "request");
    return s.allreduce(buffer, count, dtype, op, *request);
  });
}

int gradcube_test(gradcube_session* session, uint64_t request, int* done) {
  return gradcube_poll(session, request, 0, done);
}

int gradcube_poll(gradcube_session* session, uint64_t request, int timeout_ms, int* done) {
  return guarded(session, [&](Session& s) {
    if (done == nullptr) return null_result(s, "done");
    bool ended = false;
    const int code = s.poll(request, timeout_ms, ended);
    *done = ended ? 1 : 0;
    return code;
  });
}

int gradcube_wait(gradcube_session* session, uint64_t request, int timeout_ms) {
  return guarded(session, [&](Session& s) { return s.wait(request, timeout_ms); });
}

const char* gradcube_strerror(int code) {
  switch (code) {
    case GRADCUBE_OK:
      return "success";
    case GRADCUBE_EINVAL:
      return "an argument is out of its range";
    case GRADCUBE_ENOMEM:
      return "the session's shared heap is full";
    case GRADCUBE_ENODAEMON:
      return "no daemon at this socket, or it went away";
    case GRADCUBE_EJOB:
      return "the job cannot be joined";
    case GRADCUBE_EMISMATCH:
      return "the trainers of the job disagree on a collective";
    case GRADCUBE_EPEER:
      return "another trainer of the job died or left";
    case GRADCUBE_ETIMEDOUT:
      return "not done within the time given";
    case GRADCUBE_EPROTOCOL:
      return "trainer and daemon do not understand each other";
    case GRADCUBE_EAGAIN:
      return "too many collectives in flight";
    case GRADCUBE_ESYSTEM:
      return "the operating system refused something";
    case GRADCUBE_EOVERFLOW:
      return "a partial sum of an integer average does not fit in the type";
    default:
      return "an unknown code";
  }
}

const char* gradcube_last_error(const gradcube_session* session) {
  return session == nullptr ? thread_error().c_str() : session->session.last_error().c_str();
}

}  // extern "C"
