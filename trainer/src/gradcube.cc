// The C ABI: what abi.h has in common, and for each function the call of the session that does it.

#include "gradcube/gradcube.h"

#include <new>
#include <string>

#include "trainer/src/abi.h"
#include "trainer/src/connection/options.h"
#include "trainer/src/connection/settings.h"

using gradcube::trainer::Connection;
using gradcube::trainer::Failure;
using gradcube::trainer::LastFailure;
using gradcube::trainer::Session;
using gradcube::trainer::abi::fail_on_thread;
using gradcube::trainer::abi::guarded;
using gradcube::trainer::abi::no_session;
using gradcube::trainer::abi::NoCancellation;
using gradcube::trainer::abi::null_result;
using gradcube::trainer::abi::thread_failure;

static_assert(GRADCUBE_VERSION_CODE == GRADCUBE_PROJECT_VERSION_CODE,
              "gradcube.h and the project in meson.build have different versions");

namespace {

struct FailureSaid {
  int code;
  const char* message;
};

constexpr FailureSaid kCodes[] = {
    {GRADCUBE_OK, "success"},
    {GRADCUBE_EINVAL, "invalid argument"},
    {GRADCUBE_ENOMEM, "the session's shared heap is full"},
    {GRADCUBE_ENODAEMON, "no daemon at this socket, or the daemon went away"},
    {GRADCUBE_EJOB, "the job cannot be joined"},
    {GRADCUBE_EMISMATCH, "the trainers of the job disagree on a collective or a message"},
    {GRADCUBE_EPEER, "another trainer of the job died, left or aborted the job"},
    {GRADCUBE_ETIMEDOUT, "not done within the timeout"},
    {GRADCUBE_EPROTOCOL, "protocol error between trainer and daemon"},
    {GRADCUBE_EAGAIN, "too many collectives and messages in flight"},
    {GRADCUBE_ESYSTEM, "system call failed"},
    {GRADCUBE_EOVERFLOW, "a partial sum of an integer average does not fit in the type"},
    {GRADCUBE_EABORTED, "gradcube_abort() was called on this session"},
    {GRADCUBE_ECANCELED,
     "gradcube_cancel() has withdrawn the message, or gradcube_forget() its buffer"},
    {GRADCUBE_ECORRUPT, "memory that should be the same on all trainers is not"},
};

FailureSaid last_failure(const gradcube_session* session) {
  if (session == nullptr || session->session.is_forked_copy()) {
    return {thread_failure().code, thread_failure().message};
  }
  const LastFailure& failure = session->session.last_failure();
  return {failure.code, failure.message.c_str()};
}

// On lane 0.
int submit(gradcube_session* session, gradcube_kind kind, void* buffer, std::size_t count,
           int dtype, int op, unsigned root, std::uint64_t* request) {
  const gradcube_collective collective{sizeof collective, kind, buffer, count, dtype, op, root, 0};
  return gradcube_submit(session, &collective, request);
}

}  // namespace

extern "C" {

int gradcube_version(void) { return GRADCUBE_VERSION_CODE; }

int gradcube_open(const char* socket_path, const char* job, const gradcube_options* options,
                  gradcube_session** session) {
  if (session == nullptr) return fail_on_thread(GRADCUBE_EINVAL, "the pointer 'session' is NULL");
  *session = nullptr;
  if (job == nullptr) return fail_on_thread(GRADCUBE_EINVAL, "the job's name is NULL");
  const NoCancellation whole_call;
  try {
    const gradcube::trainer::Wish wish = gradcube::trainer::read_options(options);
    const std::string path =
        gradcube::trainer::find_socket(socket_path == nullptr ? "" : socket_path);
    const std::uint64_t heap_bytes = gradcube::trainer::wanted_heap_bytes();
    *session = new gradcube_session{Session(Connection(path), job, heap_bytes, wish)};
    return GRADCUBE_OK;
  } catch (const Failure& failure) {
    return fail_on_thread(failure.code(), failure.what());
  } catch (const std::bad_alloc&) {
    return fail_on_thread(GRADCUBE_ENOMEM, "no memory for a session");
  } catch (const std::exception& error) {
    return fail_on_thread(GRADCUBE_ESYSTEM, error.what());
  }
}

int gradcube_abort(gradcube_session* session) {
  return guarded(session, [](Session& s) {
    s.abort();
    return GRADCUBE_OK;
  });
}

void gradcube_close(gradcube_session* session) {
  if (session == nullptr) return;
  const NoCancellation whole_call;
  if (session->session.is_forked_copy() && !session->session.close_forked_copy()) return;
  delete session;
}

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

int gradcube_server(const gradcube_session* session) {
  return session == nullptr ? no_session() : session->session.server();
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

int gradcube_submit(gradcube_session* session, const gradcube_collective* collective,
                    std::uint64_t* request) {
  return guarded(session, [&](Session& s) {
    if (collective == nullptr) return null_result(s, "collective");
    if (request == nullptr) return null_result(s, "request");
    return s.submit(*collective, *request);
  });
}

int gradcube_allreduce(gradcube_session* session, void* buffer, std::size_t count, int dtype,
                       int op, std::uint64_t* request) {
  return submit(session, GRADCUBE_ALL_REDUCE, buffer, count, dtype, op, 0, request);
}

int gradcube_reduce_scatter(gradcube_session* session, void* buffer, std::size_t count, int dtype,
                            int op, std::uint64_t* request) {
  return submit(session, GRADCUBE_REDUCE_SCATTER, buffer, count, dtype, op, 0, request);
}

int gradcube_allgather(gradcube_session* session, void* buffer, std::size_t count, int dtype,
                       std::uint64_t* request) {
  return submit(session, GRADCUBE_ALL_GATHER, buffer, count, dtype, 0, 0, request);
}

int gradcube_broadcast(gradcube_session* session, void* buffer, std::size_t count, int dtype,
                       unsigned root, std::uint64_t* request) {
  return submit(session, GRADCUBE_BROADCAST, buffer, count, dtype, 0, root, request);
}

int gradcube_reduce(gradcube_session* session, void* buffer, std::size_t count, int dtype, int op,
                    unsigned root, std::uint64_t* request) {
  return submit(session, GRADCUBE_REDUCE, buffer, count, dtype, op, root, request);
}

int gradcube_barrier(gradcube_session* session, std::uint64_t* request) {
  return submit(session, GRADCUBE_BARRIER, nullptr, 0, 0, 0, 0, request);
}

int gradcube_compare(gradcube_session* session, const void* buffer, std::size_t bytes,
                     std::uint64_t* request) {
  void* read = const_cast<void*>(buffer);  // a comparison writes nothing there
  return submit(session, GRADCUBE_COMPARE, read, bytes, GRADCUBE_BYTES, 0, 0, request);
}

int gradcube_submit_message(gradcube_session* session, const gradcube_message* message,
                            std::uint64_t* request) {
  return guarded(session, [&](Session& s) {
    if (message == nullptr) return null_result(s, "message");
    if (request == nullptr) return null_result(s, "request");
    return s.submit(*message, *request);
  });
}

int gradcube_send(gradcube_session* session, const void* buffer, std::size_t bytes, unsigned to,
                  std::uint64_t tag, std::uint64_t* request) {
  gradcube_message message = GRADCUBE_MESSAGE_INIT;
  message.buffer = const_cast<void*>(buffer);  // which a send only reads
  message.bytes = bytes;
  message.peer = to;
  message.tag = tag;
  return gradcube_submit_message(session, &message, request);
}

int gradcube_recv(gradcube_session* session, void* buffer, std::size_t bytes, unsigned from,
                  std::uint64_t tag, std::size_t* received, std::uint64_t* request) {
  gradcube_message message = GRADCUBE_MESSAGE_INIT;
  message.direction = GRADCUBE_RECEIVE;
  message.buffer = buffer;
  message.bytes = bytes;
  message.peer = from;
  message.tag = tag;
  message.received = received;
  return gradcube_submit_message(session, &message, request);
}

int gradcube_cancel(gradcube_session* session, std::uint64_t request) {
  return guarded(session, [&](Session& s) { return s.cancel(request); });
}

int gradcube_forget(gradcube_session* session, std::uint64_t request) {
  return guarded(session, [&](Session& s) { return s.forget(request); });
}

int gradcube_event_fd(gradcube_session* session) {
  return guarded(session, [](Session& s) { return s.event_fd(); });
}

int gradcube_test(gradcube_session* session, std::uint64_t request, int* done) {
  return gradcube_poll(session, request, 0, done);
}

int gradcube_poll(gradcube_session* session, std::uint64_t request, int timeout_ms, int* done) {
  if (done != nullptr) *done = 0;  // however the call fails
  return guarded(session, [&](Session& s) {
    return done == nullptr ? null_result(s, "done") : s.poll(request, timeout_ms, *done);
  });
}

int gradcube_wait(gradcube_session* session, std::uint64_t request, int timeout_ms) {
  return guarded(session, [&](Session& s) { return s.wait(request, timeout_ms); });
}

const char* gradcube_strerror(int code) {
  for (const auto& [known, meaning] : kCodes) {
    if (known == code) return meaning;
  }
  return "unknown code";
}

const char* gradcube_last_error(const gradcube_session* session) {
  const FailureSaid failure = last_failure(session);
  const bool unsaid = *failure.message == '\0' && failure.code != GRADCUBE_OK;
  return unsaid ? gradcube_strerror(failure.code) : failure.message;
}

int gradcube_last_code(const gradcube_session* session) { return last_failure(session).code; }

}  // extern "C"
