/* gradcube.h: what a trainer links. A stable C ABI; needs no DPDK.
 *
 * A trainer is one process (or one thread) on a server whose gradients are to be combined with those of the trainers on
 * all other servers. It opens a session at its server's daemon, submits collectives, and waits for them:
 *
 *     gradcube *session;
 *     if (gradcube_open(NULL, "mnist", &session) != 0) { fputs(gradcube_last_error(NULL), stderr); exit(1); }
 *     float *gradients = gradcube_alloc(session, count * sizeof(float));
 *     ...
 *     uint64_t request;
 *     gradcube_allreduce(session, gradients, count, GRADCUBE_FLOAT32, GRADCUBE_AVERAGE, &request);
 *     if (gradcube_wait(session, request, 60000) != 0) fputs(gradcube_last_error(session), stderr);
 *     gradcube_close(session);
 *
 * Results. Functions return 0 or a negative GRADCUBE_E... code. gradcube_strerror() names the code;
 * gradcube_last_error() is the sentence about this failure: what failed, where, and what to do.
 *
 * Order. All trainers of a job submit the same collectives in the same order: the same count, type and operation.
 * A disagreement is an error on every trainer of the job, never a hang, and the next collective starts clean.
 *
 * Buffers. A collective works in place. Memory from gradcube_alloc() is shared with the daemon and never copied; any
 * other memory is staged through it. From submission until gradcube_test() or gradcube_wait() reports the end, the
 * buffer belongs to the daemon: the trainer neither reads nor writes it. After an error its content is undefined.
 *
 * Threads. A session is used by one thread at a time. Different sessions are independent.
 *
 * Reproducibility. The result is the same bits on every server and in every run: contributions are added in the plan's
 * order. GRADCUBE_AVERAGE is the sum, rounded to the type, then divided by the number of trainers (integers truncate
 * toward zero).
 */
#ifndef GRADCUBE_H_
#define GRADCUBE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gradcube gradcube;

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
  GRADCUBE_EJOB = -4,      /* the job cannot be joined: the name is bad, or this server's place is taken */
  GRADCUBE_EMISMATCH = -5, /* the trainers of the job disagree on a collective */
  GRADCUBE_EPEER = -6,     /* another trainer of the job died or left */
  GRADCUBE_ETIMEDOUT = -7, /* not done within the time given; the collective goes on */
  GRADCUBE_EPROTOCOL = -8, /* the daemon closed this session: its shared rings held nonsense */
  GRADCUBE_EAGAIN = -9,    /* too many collectives in flight: wait for one first */
  GRADCUBE_ESYSTEM = -10   /* the operating system refused something */
};

/* Joins `job` at the daemon that listens on `socket_path`. NULL or "": $GRADCUBE_SOCKET, else the only server-*.sock in
 * the run directory ($GRADCUBE_RUN, else $XDG_RUNTIME_DIR/gradcube, else /tmp/gradcube-$UID). Does not wait for the job's
 * other trainers. On failure *session is NULL and gradcube_last_error(NULL) tells why (per thread). */
int gradcube_open(const char *socket_path, const char *job, gradcube **session);

/* Leaves the job and frees everything. Collectives still in flight are abandoned: the job's other trainers get
 * GRADCUBE_EPEER. NULL is allowed. */
void gradcube_close(gradcube *session);

int gradcube_rank(const gradcube *session); /* 0-based: the server's address read as a number, then the local index */
int gradcube_size(const gradcube *session); /* trainers in the job when it is complete */

/* 64-byte aligned memory shared with the daemon; NULL when the heap is full. The heap's size is $GRADCUBE_HEAP
 * (bytes, or with K, M, G), by default 16G of address space, of which only what is touched takes memory. */
void *gradcube_alloc(gradcube *session, size_t bytes);
void gradcube_free(gradcube *session, void *buffer);

/* Starts an all-reduce of count elements in place; returns at once. *request names it for test and wait.
 * A count of 0 is a barrier. At most 64 may be in flight: then GRADCUBE_EAGAIN. */
int gradcube_allreduce(gradcube *session, void *buffer, size_t count, gradcube_dtype dtype, gradcube_op op,
                       uint64_t *request);

/* *done becomes 1 when the request has ended, else 0. Returns the request's own result once it has ended. A request is
 * forgotten once its end was reported; asking again is GRADCUBE_EINVAL. */
int gradcube_test(gradcube *session, uint64_t request, int *done);

/* Waits until the request has ended, at most timeout_ms milliseconds (-1: no limit). On GRADCUBE_ETIMEDOUT
 * gradcube_last_error() says who is missing, and the request goes on. */
int gradcube_wait(gradcube *session, uint64_t request, int timeout_ms);

const char *gradcube_strerror(int code);

/* The sentence about the last failure on this session (NULL: of gradcube_open on this thread). Never NULL; valid until
 * the next call on the session. */
const char *gradcube_last_error(const gradcube *session);

#ifdef __cplusplus
}
#endif

#endif
