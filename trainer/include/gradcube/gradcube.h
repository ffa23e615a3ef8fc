/* gradcube.h: the library that a trainer links. A stable C ABI; needs no DPDK.
 *
 * A trainer is one process (or one thread) on a server. Its gradients are combined with those of
 * the trainers on all other servers. It opens a session at its server's daemon, submits
 * collectives, and waits for them:
 *
 *     gradcube_session *session;
 *     if (gradcube_open(NULL, "mnist", NULL, &session) != 0) fail(gradcube_last_error(NULL));
 *     float *gradients = gradcube_alloc(session, count * sizeof(float));
 *     ...
 *     uint64_t request;
 *     gradcube_allreduce(session, gradients, count, GRADCUBE_FLOAT32, GRADCUBE_AVERAGE, &request);
 *     if (gradcube_wait(session, request, 60000) != 0) fail(gradcube_last_error(session));
 *     gradcube_close(session);
 *
 * Compile with `cc trainer.c $(pkg-config --cflags --libs gradcube)`.
 *
 * Collectives, each in place on one buffer (N: gradcube_size()):
 *
 *     all_reduce      every trainer ends with the sum (average, minimum, maximum) of all buffers
 *     reduce_scatter  the buffer has N chunks of `count` elements; chunk r of the result ends in
 *                     its place at rank r, the rest of the buffer is undefined
 *     all_gather      the buffer has N chunks of `count` elements; rank r gives chunk r, and every
 *                     trainer ends with all of them
 *     broadcast       every trainer ends with the root's buffer
 *     reduce          the root ends with the result; elsewhere the buffer is undefined
 *     barrier         ends when every trainer has called it
 *     compare         ends well if all buffers have the same bytes, else on every trainer with
 *                     GRADCUBE_ECORRUPT and the ranks that differ; nothing is written
 *
 * An all-reduce is BML's aggregation stage (a reduce-scatter) followed by its broadcast stage (an
 * all-gather).
 *
 * Messages go from one trainer of the job to another, or to itself: gradcube_send() and
 * gradcube_recv(). The k-th receive from a rank with a tag gets the k-th send of that rank to this
 * one with this tag; sends and receives with other tags or other ranks do not wait for each other.
 * A send ends when the receiver has the whole message, so one without a receive does not end: of
 * two trainers that send to each other, each submits its receive before it waits. Messages belong
 * to no lane, need no order among trainers, and go on while the job is reset after an error of its
 * collectives. Large ones take all parallel paths between the servers. docs/messages.md has the
 * details.
 *
 * Types. Each collective names the type of its elements, and where trainers name different ones all
 * get GRADCUBE_EMISMATCH and what each has named; in collectives GRADCUBE_BYTES is a type like
 * others. Messages may name a type, too: gradcube_message.
 *
 * Results. Functions return 0 or a negative GRADCUBE_E... code. gradcube_strerror() describes the
 * code; gradcube_last_error() describes this failure: what failed, where, and what to do.
 *
 * Lanes. A job has one lane or several, each with an algorithm and a priority. The collectives of a
 * lane run and end in the order of their submission; different lanes do not wait for each other, so
 * requests of different lanes end in any order.
 *
 * Order. All trainers of a job submit the same collectives in the same order within each lane, each
 * with the same kind, count, type, operation and root. If they disagree, every trainer of the job
 * gets GRADCUBE_EMISMATCH; none waits for ever. Each collective ends alike on all trainers: those
 * before the one they disagree on succeed, if every trainer submits them within 2 s; in other
 * lanes, what all have submitted by then succeeds; in every lane, all that any trainer has
 * submitted beyond that fails, also on trainers that submit theirs later; the collectives after
 * them start clean. The same holds after GRADCUBE_EOVERFLOW, but for one exception: a
 * reduce_scatter or reduce whose average overflows, and collectives behind it in its lane, may have
 * succeeded on trainers that need nothing of what overflowed. Messages number the collectives of
 * each lane from 1, in the order of their submission; a call that fails takes no number.
 *
 * Buffers. A collective works in place. Memory from gradcube_alloc() is shared with the daemon. A
 * buffer in it is never copied if it begins at a multiple of 64 bytes; any other buffer is copied
 * to shared memory and back, as far as its content is the collective's input or output. From
 * submission until gradcube_test(), gradcube_poll() or gradcube_wait() reports the end, or
 * gradcube_forget() succeeds, the buffer belongs to the daemon: the trainer must not read or write
 * it. After an error its content is undefined. Two collectives in flight must not share a byte; the
 * same holds for messages, but sends may share theirs.
 *
 * Timeouts are in milliseconds. 0 looks once and does not wait; a negative one means no limit.
 *
 * Threads. Any function may be called from any thread, except that gradcube_close() must be the
 * last call on its session. Where several threads submit to one lane, the order of their
 * submissions is theirs to agree on, on all trainers alike. Several threads may wait at once, for
 * different requests: an end is reported to one caller. gradcube_last_error() and _last_code() are
 * kept per thread. No call may be made in a signal handler. None is a cancellation point.
 *
 * Fork. A session belongs to the process that opened it. In a forked child every call on it
 * returns GRADCUBE_EINVAL (gradcube_alloc: NULL) and changes nothing, neither at the daemon nor in
 * the parent; but gradcube_rank(), _size() and _last_error() work, and gradcube_close() frees the
 * child's copies. It may open a session of its own. Memory of gradcube_alloc() is private in the
 * child, as it was at the fork: fork() copies it, 0.6 ms for each MB, and vfork() and posix_spawn()
 * do not. Without room for that the child gets SIGSEGV there; one of clone() or _Fork(), which run
 * no pthread_atfork() handlers, must not touch it. A child's descriptors of the session are closed.
 *
 * Trust. The daemon can read and write a session's shared memory. gradcube_open() therefore
 * accepts only a daemon of the caller's effective user or of root, as the kernel reports it, for
 * every socket path. A run directory must belong to one of the two, must not be a symbolic link,
 * and must not be writable by others. A daemon of another user is accepted only if
 * $GRADCUBE_DAEMON_UID holds that user's id. Trainers of different users join the same job only if
 * all of them give the same $GRADCUBE_JOB_SECRET, of 16 to 255 bytes.
 *
 * Reproducibility. The result is the same bits on every server and in every run: contributions are
 * added in the plan's order. A compare shows it of memory that this has been said of, such as the
 * weights after a step: where a memory, a CPU or a program is faulty, and on which rank. It reads
 * the buffer before it returns, and brings 16 bytes from each trainer to all: a digest of 64 bits,
 * and the length. It is no shield against lies.
 *
 * Averages. GRADCUBE_AVERAGE of float16 and bfloat16 never overflows where the mean is
 * representable. Of float32 and float64 it is the sum, then one division. Of int32 and int64 it is
 * the exact sum, divided and truncated toward zero; if a partial sum does not fit in the type, the
 * collective fails on every trainer with GRADCUBE_EOVERFLOW. GRADCUBE_SUM of integers wraps in
 * two's complement. docs/arithmetic.md has the rules.
 */
#ifndef GRADCUBE_H_
#define GRADCUBE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. gradcube_version() is that of the library that runs. */
#define GRADCUBE_VERSION_MAJOR 0
#define GRADCUBE_VERSION_MINOR 1
#define GRADCUBE_VERSION_PATCH 0
#define GRADCUBE_VERSION_CODE \
  (GRADCUBE_VERSION_MAJOR * 10000 + GRADCUBE_VERSION_MINOR * 100 + GRADCUBE_VERSION_PATCH)

/* Marks the functions that the shared library exports; everything else in it is hidden. */
#ifndef GRADCUBE_API
#define GRADCUBE_API __attribute__((visibility("default")))
#endif

typedef struct gradcube_session gradcube_session;

typedef enum {
  GRADCUBE_FLOAT32 = 0,
  GRADCUBE_FLOAT64 = 1,
  GRADCUBE_FLOAT16 = 2,
  GRADCUBE_BFLOAT16 = 3,
  GRADCUBE_INT32 = 4,
  GRADCUBE_INT64 = 5,
  GRADCUBE_INT8 = 6,  /* sum, minimum and maximum: no average */
  GRADCUBE_UINT8 = 7, /* the same */
  GRADCUBE_BYTES = 8, /* of any type. From here on: messages, all_gather and broadcast alone, unless
                         said otherwise. All trainers name the same; if they do not, it is an error
                         that says what each has named */
  GRADCUBE_BOOL = 16, /* bytes of 0 or 1: sum, which is "or", minimum and maximum */
  GRADCUBE_INT16 = 17,
  GRADCUBE_UINT16 = 18,
  GRADCUBE_UINT32 = 19,
  GRADCUBE_UINT64 = 20,
  GRADCUBE_COMPLEX32 = 21,
  GRADCUBE_COMPLEX64 = 22,  /* sum and average */
  GRADCUBE_COMPLEX128 = 23, /* the same */
  GRADCUBE_FLOAT8_E4M3FN = 24,
  GRADCUBE_FLOAT8_E4M3FNUZ = 25,
  GRADCUBE_FLOAT8_E5M2 = 26,
  GRADCUBE_FLOAT8_E5M2FNUZ = 27
} gradcube_dtype;

typedef enum {
  GRADCUBE_SUM = 0,
  GRADCUBE_AVERAGE = 1,
  GRADCUBE_MIN = 2,
  GRADCUBE_MAX = 3
} gradcube_op;

typedef enum {
  GRADCUBE_ALL_REDUCE = 0,
  GRADCUBE_REDUCE_SCATTER = 1,
  GRADCUBE_ALL_GATHER = 2,
  GRADCUBE_BROADCAST = 3,
  GRADCUBE_REDUCE = 4,
  GRADCUBE_BARRIER = 5,
  GRADCUBE_COMPARE = 6
} gradcube_kind;

enum {
  GRADCUBE_OK = 0,
  GRADCUBE_EINVAL = -1,    /* invalid argument */
  GRADCUBE_ENOMEM = -2,    /* the session's shared heap is full */
  GRADCUBE_ENODAEMON = -3, /* no daemon at this socket, or the daemon went away */
  /* The job cannot be joined: its name is invalid, this server's place or the rank is taken, the
   * job's trainers ask for different options, or the daemon or its run directory belongs to another
   * user. */
  GRADCUBE_EJOB = -4,
  /* The trainers of the job disagree on a collective, or a message is longer than the buffer of its
   * receive, or of another type. */
  GRADCUBE_EMISMATCH = -5,
  /* Another trainer of the job died or aborted the job, or the daemon of its server is silent or
   * was restarted: the message says who, and which collective was the last that ended alike on all
   * of the others: well, or with GRADCUBE_EMISMATCH. Or this needs a trainer that has left. */
  GRADCUBE_EPEER = -6,
  /* Not done within the timeout. What was waited for goes on, and its buffer stays the daemon's; a
   * message can be withdrawn: gradcube_cancel(). */
  GRADCUBE_ETIMEDOUT = -7,
  /* Protocol error between trainer and daemon: their versions differ, or the shared rings are
   * corrupt. */
  GRADCUBE_EPROTOCOL = -8,
  GRADCUBE_EAGAIN = -9,     /* too many collectives and messages in flight: wait for one first */
  GRADCUBE_ESYSTEM = -10,   /* a system call failed */
  GRADCUBE_EOVERFLOW = -11, /* a partial sum of an integer average does not fit in the type */
  GRADCUBE_EABORTED = -12,  /* gradcube_abort() was called on this session */
  GRADCUBE_ECANCELED = -13, /* by gradcube_cancel() or gradcube_forget() */
  GRADCUBE_ECORRUPT = -14   /* a compare: memory that should be the same on all trainers is not */
};

/* GRADCUBE_VERSION_CODE of the library: MAJOR * 10000 + MINOR * 100 + PATCH; 0.1.0 is 100. */
GRADCUBE_API int gradcube_version(void);

/* A lane of a job. Its algorithm is one that `gradcube plan --help` lists; "auto", which takes for
 * each collective the one with the least modelled time (docs/algorithms.md); or NULL or "": the
 * cluster's default. */
typedef struct {
  const char* algorithm;
  int priority; /* a lane of higher priority is served first, within the job */
} gradcube_lane;

/* What a trainer may ask for. All trainers of a job must ask for the same algorithm, lanes, weight,
 * members, trainers per server and `reproducible`. One that does not is refused with GRADCUBE_EJOB;
 * or, where its lowest member is another, it begins a job of its own, and a job that waits for one
 * of that job's trainers ends after 2 s, with GRADCUBE_EPEER and a message that names it. Begin
 * with GRADCUBE_OPTIONS_INIT, so that a field that a later version adds has its default. */
typedef struct {
  size_t size;           /* sizeof(gradcube_options) */
  const char* algorithm; /* of the only lane where `lanes` is NULL; NULL: the cluster's default */
  const gradcube_lane* lanes; /* NULL: one lane. Else `algorithm` is NULL */
  size_t lane_count;          /* 1 to 8 where `lanes` is given */
  unsigned weight;            /* the job's share of a link that jobs compete for, 1 to 1000 */
  /* The rank wanted, or -1. Either all trainers of a job ask for one or none does. */
  int rank;
  /* The servers of the job, as numbers, in any order, each once; NULL: all servers of the cluster.
   * An address is a number written in base n: [a,b] of a BCube(n,2) is server a * n + b. Most
   * algorithms need a grid of servers. */
  const uint32_t* members;
  size_t member_count; /* at most 4096 where `members` is given, else 0 */
  /* 1: what is added has the same bits whatever the algorithm, the topology, the threads and the
   * length of the buffer; docs/arithmetic.md has the price and the error. Floats are copied and
   * take two to eight times their bytes in the heap and on the links. A sum or an average of
   * float64 then takes at most 256 trainers. 0: in the order of the plan. */
  int reproducible;
  /* The job's trainers on each of its servers, 1 to 16: processes or threads, each with a session
   * of its own. Their ranks are side by side: server's place * trainers_per_server + local. */
  unsigned trainers_per_server;
  int local; /* this trainer's number among its server's, from 0; -1: the lowest that is free */
} gradcube_options;

#define GRADCUBE_OPTIONS_INIT \
  { sizeof(gradcube_options), NULL, NULL, 0, 1, -1, NULL, 0, 0, 1, -1 }

/* Joins `job` at the daemon that listens on `socket_path`. NULL or "": $GRADCUBE_SOCKET, else the
 * only server-*.sock in the run directory ($GRADCUBE_RUN, else $XDG_RUNTIME_DIR/gradcube, else
 * /tmp/gradcube-UID of the effective user). A job name has 1 to 63 of the characters A-Z, a-z, 0-9,
 * '.', '_' and '-'. `options` may be NULL: all defaults. Does not wait for the job's other
 * trainers. On failure *session is NULL, and gradcube_last_error(NULL) says why (per thread). */
GRADCUBE_API int gradcube_open(const char* socket_path, const char* job,
                               const gradcube_options* options, gradcube_session** session);

/* Ends the job at once, from any thread, also while other threads wait, within 10 ms; it copies
 * weights that gradcube_hub_weights() has shown. Every collective of this session that has not
 * ended, and every later one, ends with GRADCUBE_EABORTED; the job's other trainers get
 * GRADCUBE_EPEER. Memory stays as it is. gradcube_close() is still due. Again: changes nothing. */
GRADCUBE_API int gradcube_abort(gradcube_session* session);

/* Leaves the job, in order, and frees everything. What was submitted before still completes at the
 * others; what needs more of this trainer ends there with GRADCUBE_EPEER: while the job has a hub
 * (gradcube_hub.h), whose rounds need all trainers, that is the whole job. NULL is allowed. */
GRADCUBE_API void gradcube_close(gradcube_session* session);

/* Leaves the job as gradcube_close() does, but keeps the memory from gradcube_alloc() mapped until
 * gradcube_close(), which is still to be called. Collectives then return GRADCUBE_EINVAL. Where a
 * session ends in any way with some in flight, the memory is this process's own from then on: the
 * others get what was submitted, and a page that is written to takes memory twice. Without room for
 * that who touches it gets SIGSEGV, unreported results and gradcube_alloc() GRADCUBE_ENOMEM. */
GRADCUBE_API void gradcube_leave(gradcube_session* session);

/* 0-based. The place of the trainer's server among the job's members, by server number, times the
 * trainers per server, plus the trainer's number there; unless ranks were asked for. */
GRADCUBE_API int gradcube_rank(const gradcube_session* session);

/* The number of trainers in the job when it is complete. */
GRADCUBE_API int gradcube_size(const gradcube_session* session);

/* The number of the trainer's server, as gradcube_options has them in `members`. */
GRADCUBE_API int gradcube_server(const gradcube_session* session);

/* 64-byte aligned memory shared with the daemon. NULL when it cannot be had: gradcube_last_code()
 * is then GRADCUBE_ENOMEM for a full heap, and when the system has no memory or the user's quota
 * (`gradcube up --trainer-memory`) does not suffice. The heap's size is $GRADCUBE_HEAP, by default
 * 16Gi: bytes, or a number and K, M, G (powers of 1000) or Ki, Mi, Gi (powers of 1024), rounded up
 * to whole pages. It is address space; only what has been allocated once takes memory, until the
 * session is closed. */
GRADCUBE_API void* gradcube_alloc(gradcube_session* session, size_t bytes);

/* NULL is allowed. What a collective in flight uses is freed when the collective has ended. */
GRADCUBE_API void gradcube_free(gradcube_session* session, void* buffer);

/* A collective to submit. Begin with GRADCUBE_COLLECTIVE_INIT. */
typedef struct {
  size_t size;   /* sizeof(gradcube_collective) */
  int kind;      /* a gradcube_kind */
  void* buffer;  /* not read for a barrier */
  size_t count;  /* elements; of one chunk for reduce_scatter and all_gather; 0 for a barrier; of a
                    compare it may differ */
  int dtype;     /* a gradcube_dtype; not read for a barrier */
  int op;        /* a gradcube_op; read for all_reduce, reduce_scatter and reduce */
  unsigned root; /* a rank; read for broadcast and reduce */
  unsigned lane; /* 0-based */
} gradcube_collective;

#define GRADCUBE_COLLECTIVE_INIT \
  { sizeof(gradcube_collective), 0, NULL, 0, 0, 0, 0, 0 }

/* Starts a collective; returns at once. *request identifies it for test, poll and wait. At most
 * 1024 collectives and messages may be in flight, including those whose end was not reported yet:
 * the next one returns GRADCUBE_EAGAIN. */
GRADCUBE_API int gradcube_submit(gradcube_session* session, const gradcube_collective* collective,
                                 uint64_t* request);

/* The same, on lane 0, for one kind each. */
GRADCUBE_API int gradcube_allreduce(gradcube_session* session, void* buffer, size_t count,
                                    int dtype, int op, uint64_t* request);
GRADCUBE_API int gradcube_reduce_scatter(gradcube_session* session, void* buffer, size_t count,
                                         int dtype, int op, uint64_t* request);
GRADCUBE_API int gradcube_allgather(gradcube_session* session, void* buffer, size_t count,
                                    int dtype, uint64_t* request);
GRADCUBE_API int gradcube_broadcast(gradcube_session* session, void* buffer, size_t count,
                                    int dtype, unsigned root, uint64_t* request);
GRADCUBE_API int gradcube_reduce(gradcube_session* session, void* buffer, size_t count, int dtype,
                                 int op, unsigned root, uint64_t* request);
GRADCUBE_API int gradcube_barrier(gradcube_session* session, uint64_t* request);
GRADCUBE_API int gradcube_compare(gradcube_session* session, const void* buffer, size_t bytes,
                                  uint64_t* request);

/* A descriptor for poll(), epoll and asyncio that becomes readable when a request may have ended.
 * Then call gradcube_test() on the requests: once the end of each that has ended was reported, it
 * is unreadable again. It also wakes when the daemon has sent a message, such as that another
 * trainer has left: a call of gradcube_test() that reports no end takes the message, also of a
 * request that there is not. Once this session's job was aborted here or the daemon has gone it
 * stays readable: take it out of the loop. It belongs to the session: do not read or close it. A
 * negative GRADCUBE_E... code when it cannot be had. */
GRADCUBE_API int gradcube_event_fd(gradcube_session* session);

/* *done becomes 1 when the request has ended, else 0. Returns the request's own result once it has
 * ended. A request is forgotten once its end was reported; asking again is GRADCUBE_EINVAL. */
GRADCUBE_API int gradcube_test(gradcube_session* session, uint64_t request, int* done);

/* gradcube_test() that sleeps up to timeout_ms for the end. Unlike in gradcube_wait(), an end that
 * does not come in time is no failure: the result is 0, *done is 0, and the daemon is asked
 * nothing. Also returns this, early, when a signal was caught: for programs that must stay
 * interruptible while they wait. Where several threads wait in one session, only one of them sleeps
 * in the kernel's poll(), and only a signal that this thread catches has that effect: the others
 * stay interruptible by short timeouts. */
GRADCUBE_API int gradcube_poll(gradcube_session* session, uint64_t request, int timeout_ms,
                               int* done);

/* Waits until the request has ended, at most timeout_ms. On GRADCUBE_ETIMEDOUT the request goes on
 * and its buffer stays the daemon's: until the end is reported another request with it is refused.
 * gradcube_last_error() says which trainers are missing, and how long was waited, also by
 * gradcube_poll() (with an event descriptor: since the submission). To find that out may take 200
 * ms more: to look whether something has ended, use gradcube_test(). */
GRADCUBE_API int gradcube_wait(gradcube_session* session, uint64_t request, int timeout_ms);

/* How to choose the layers of a network whose gradients share an all-reduce (docs/mg-wfbp.md). */
typedef enum {
  GRADCUBE_WFBP = 0,      /* each layer's alone */
  GRADCUBE_SYNCEASGD = 1, /* all layers' in one */
  GRADCUBE_MGWFBP = 2,    /* MG-WFBP's Algorithm 1 */
  GRADCUBE_OPTIMAL = 3    /* so that the last all-reduce ends as early as possible */
} gradcube_merge_policy;

typedef struct {
  uint64_t bytes;          /* of its gradients */
  double backward_seconds; /* its part of the backward pass */
} gradcube_layer;

/* Numbers the all-reduces of an iteration, if one of M bytes takes alpha + beta * M seconds.
 * Times are 0 to 10^9 s, and beta is 0 to 1. `layers` has `count`, 1 to 10,000, from the network's
 * first layer to its last. message_of[l] becomes the number of the all-reduce with the gradients of
 * layer l, from 0 in the order of sending: that of the last layer is 0, and adjacent layers have
 * the same number or adjacent ones. Equal arguments give equal numbers on all trainers. Needs no
 * session. After GRADCUBE_EINVAL gradcube_last_error(NULL) says why. */
GRADCUBE_API int gradcube_merge_layers(int policy, double alpha, double beta,
                                       const gradcube_layer* layers, size_t count,
                                       size_t* message_of);

/* What a code means. Never NULL. */
GRADCUBE_API const char* gradcube_strerror(int code);

/* The message about this thread's last failure on this session (NULL: of a function without one,
 * such as gradcube_open). Never NULL; valid until this thread's next call on the session. */
GRADCUBE_API const char* gradcube_last_error(const gradcube_session* session);

/* The code of that failure; 0 when nothing has failed yet. */
GRADCUBE_API int gradcube_last_code(const gradcube_session* session);

#ifdef __cplusplus
}
#endif

#include <gradcube/gradcube_messages.h>

#endif /* GRADCUBE_H_ */
