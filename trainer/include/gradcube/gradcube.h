/* gradcube.h: what a trainer links. A stable C ABI; needs no DPDK.
 *
 * A trainer is one process (or one thread) on a server whose gradients are to be combined with
 * those of the trainers on all other servers. It opens a session at its server's daemon, submits
 * collectives, and waits for them:
 *
 *     gradcube_session *session;
 *     if (gradcube_open(NULL, "mnist", &session) != 0) fail(gradcube_last_error(NULL));
 *     float *gradients = gradcube_alloc(session, count * sizeof(float));
 *     ...
 *     uint64_t request;
 *     gradcube_allreduce(session, gradients, count, GRADCUBE_FLOAT32, GRADCUBE_AVERAGE, &request);
 *     if (gradcube_wait(session, request, 60000) != 0) fail(gradcube_last_error(session));
 *     gradcube_close(session);
 *
 * Results. Functions return 0 or a negative GRADCUBE_E... code. gradcube_strerror() names the code;
 * gradcube_last_error() is the message about this failure: what failed, where, and what to do.
 *
 * Order. All trainers of a job submit the same collectives in the same order: the same count, type
 * and operation. A disagreement is an error on every trainer of the job, never a hang, and the next
 * collective starts clean.
 *
 * Buffers. A collective works in place. Memory from gradcube_alloc() is shared with the daemon and
 * never copied when it begins at a multiple of 64 bytes; any other memory is staged through it.
 * From submission until gradcube_test() or gradcube_wait() reports the end, the buffer belongs to
 * the daemon: the trainer neither reads nor writes it. After an error its content is undefined.
 *
 * Threads. A session is used by one thread at a time. Different sessions are independent.
 *
 * Reproducibility. The result is the same bits on every server and in every run: contributions are
 * added in the plan's order.
 *
 * Averages. GRADCUBE_AVERAGE of float16 and bfloat16 never overflows where the mean is
 * representable. Of float32 and float64 it is the sum, then one division. Of int32 and int64 it is
 * the exact sum, divided and truncated toward zero; if a partial sum does not fit in the type, the
 * collective fails on every trainer with GRADCUBE_EOVERFLOW. GRADCUBE_SUM of integers wraps in two's
 * complement. docs/arithmetic.md has the rules.
 */
#ifndef GRADCUBE_H_
#define GRADCUBE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks what the shared library exports; everything else in it is hidden. */
#ifndef GRADCUBE_API
#define GRADCUBE_API __attribute__((visibility("default")))
#endif

typedef struct gradcube_session gradcube_session;
#ifndef __cplusplus
typedef gradcube_session
    gradcube; /* the short name; in C++ `gradcube` is the namespace of gradcube.hpp */
#endif

typedef enum {
  GRADCUBE_FLOAT32 = 0,
  GRADCUBE_FLOAT64 = 1,
  GRADCUBE_FLOAT16 = 2,
  GRADCUBE_BFLOAT16 = 3,
  GRADCUBE_INT32 = 4,
  GRADCUBE_INT64 = 5
} gradcube_dtype;

typedef enum {
  GRADCUBE_SUM = 0,
  GRADCUBE_AVERAGE = 1,
  GRADCUBE_MIN = 2,
  GRADCUBE_MAX = 3
} gradcube_op;

enum {
  GRADCUBE_OK = 0,
  GRADCUBE_EINVAL = -1,    /* an argument is out of its range */
  GRADCUBE_ENOMEM = -2,    /* the session's shared heap is full */
  GRADCUBE_ENODAEMON = -3, /* no daemon at this socket, or it went away */
  GRADCUBE_EJOB = -4, /* the job cannot be joined: a bad name, or this server's place is taken */
  GRADCUBE_EMISMATCH = -5, /* the trainers of the job disagree on a collective */
  GRADCUBE_EPEER = -6,     /* another trainer of the job died or left */
  GRADCUBE_ETIMEDOUT = -7, /* not done within the time given; the collective goes on */
  GRADCUBE_EPROTOCOL = -8, /* the daemon closed this session: its shared rings held nonsense */
  GRADCUBE_EAGAIN = -9,    /* too many collectives in flight: wait for one first */
  GRADCUBE_ESYSTEM = -10,  /* the operating system refused something */
  GRADCUBE_EOVERFLOW = -11 /* an average of integers: a partial sum does not fit in the type */
};

/* Joins `job` at the daemon that listens on `socket_path`. NULL or "": $GRADCUBE_SOCKET, else the
 * only server-*.sock in the run directory ($GRADCUBE_RUN, else $XDG_RUNTIME_DIR/gradcube, else
 * /tmp/gradcube-$UID). Does not wait for the job's other trainers. On failure *session is NULL and
 * gradcube_last_error(NULL) tells why (per thread). */
GRADCUBE_API int gradcube_open(const char* socket_path, const char* job,
                               gradcube_session** session);

/* Leaves the job and frees everything. Collectives still in flight are abandoned: the job's other
 * trainers get GRADCUBE_EPEER. NULL is allowed. */
GRADCUBE_API void gradcube_close(gradcube_session* session);

/* Leaves the job as gradcube_close() does, but keeps the memory from gradcube_alloc() mapped until
 * gradcube_close(), which must still be called: for owners whose buffers outlive the session.
 * Collectives then return GRADCUBE_EINVAL. */
GRADCUBE_API void gradcube_leave(gradcube_session* session);

/* 0-based: the server's address read as a number, then the local index. */
GRADCUBE_API int gradcube_rank(const gradcube_session* session);

/* The trainers in the job when it is complete. */
GRADCUBE_API int gradcube_size(const gradcube_session* session);

/* 64-byte aligned memory shared with the daemon; NULL when the heap is full. The heap's size is
 * $GRADCUBE_HEAP (bytes, or with K, M, G), by default 16G of address space, of which only what is
 * touched takes memory. */
GRADCUBE_API void* gradcube_alloc(gradcube_session* session, size_t bytes);

/* NULL is allowed. Memory that a collective in flight uses is freed when that collective has ended.
 */
GRADCUBE_API void gradcube_free(gradcube_session* session, void* buffer);

/* Starts an all-reduce of count elements (dtype: a gradcube_dtype, op: a gradcube_op) in place;
 * returns at once. *request names it for test and wait. A count of 0 is a barrier. At most 64 may
 * be in flight, those counted whose end was not reported yet: then GRADCUBE_EAGAIN. */
GRADCUBE_API int gradcube_allreduce(gradcube_session* session, void* buffer, size_t count,
                                    int dtype, int op, uint64_t* request);

/* *done becomes 1 when the request has ended, else 0. Returns the request's own result once it has
 * ended. A request is forgotten once its end was reported; asking again is GRADCUBE_EINVAL. */
GRADCUBE_API int gradcube_test(gradcube_session* session, uint64_t request, int* done);

/* gradcube_test() that sleeps up to timeout_ms milliseconds (-1: no limit) for the end. Unlike for
 * gradcube_wait(), an end that does not come in time is no failure: the result is 0, *done is 0,
 * and the daemon is asked nothing. Also returns so, early, when a signal was caught: for programs
 * that must stay interruptible while they wait. */
GRADCUBE_API int gradcube_poll(gradcube_session* session, uint64_t request, int timeout_ms,
                               int* done);

/* Waits until the request has ended, at most timeout_ms milliseconds (-1: no limit). On
 * GRADCUBE_ETIMEDOUT gradcube_last_error() says who is missing, and the request goes on. */
GRADCUBE_API int gradcube_wait(gradcube_session* session, uint64_t request, int timeout_ms);

GRADCUBE_API const char* gradcube_strerror(int code);

/* The message about the last failure on this session (NULL: of gradcube_open on this thread).
 * Never NULL; valid until the next call on the session. */
GRADCUBE_API const char* gradcube_last_error(const gradcube_session* session);

#ifdef __cplusplus
}
#endif

#endif
