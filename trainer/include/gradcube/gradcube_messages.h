/* gradcube_messages.h: messages from one trainer to another, and their withdrawal. A part of
 * gradcube.h, which includes it: include that one. */
#ifndef GRADCUBE_MESSAGES_H_
#define GRADCUBE_MESSAGES_H_

#include <gradcube/gradcube.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Starts a send or a receive; returns at once. test, poll and wait serve its request as those of
 * collectives. `tag` is any number.
 *
 * A receive takes messages of up to `bytes`; the length of the one that came is written to
 * *received when the end is reported, unless that is NULL: it must be valid until then. After an
 * error it is 0. A longer message fails with GRADCUBE_EMISMATCH at both trainers, and nothing of it
 * is transferred. Between servers that are more than 8 hops apart a message fails with
 * GRADCUBE_EINVAL.
 *
 * A receive names its sender and its tag: there is none from any rank, and no probe. After a wait
 * that timed out it still gets its message: wait for the request again, or withdraw it by
 * gradcube_cancel(). These two move GRADCUBE_BYTES, which fit a message of any type. */
GRADCUBE_API int gradcube_send(gradcube_session* session, const void* buffer, size_t bytes,
                               unsigned to, uint64_t tag, uint64_t* request);
GRADCUBE_API int gradcube_recv(gradcube_session* session, void* buffer, size_t bytes, unsigned from,
                               uint64_t tag, size_t* received, uint64_t* request);

typedef enum { GRADCUBE_SEND = 0, GRADCUBE_RECEIVE = 1 } gradcube_direction;

/* A message to submit. Begin with GRADCUBE_MESSAGE_INIT. */
typedef struct {
  size_t size;   /* sizeof(gradcube_message) */
  int direction; /* a gradcube_direction */
  unsigned peer; /* the other trainer's rank */
  void* buffer;  /* a send only reads it */
  size_t bytes;  /* of the message; of a receive the most that it takes */
  uint64_t tag;
  unsigned paths;   /* the most paths that a send may take, of 8 at most; more than there are: all;
                       0: one, or all where it is large */
  size_t* received; /* of a receive: gets the message's length when the end is reported; or NULL */
  /* A gradcube_dtype: what is in the buffer. Where both trainers name one and not the same, both
   * fail with GRADCUBE_EMISMATCH and a message that names both, and nothing is transferred.
   * GRADCUBE_BYTES fits all. */
  int dtype;
} gradcube_message;

#define GRADCUBE_MESSAGE_INIT \
  { sizeof(gradcube_message), GRADCUBE_SEND, 0, NULL, 0, 0, 0, NULL, GRADCUBE_BYTES }

/* What gradcube_send() and gradcube_recv() do, with all choices. */
GRADCUBE_API int gradcube_submit_message(gradcube_session* session, const gradcube_message* message,
                                         uint64_t* request);

/* Withdraws a message: the sender's server decides, at one moment for both sides, whether the
 * message has met its receive. If not, the request ends with GRADCUBE_ECANCELED: a receive has
 * taken nothing, its buffer is as it was, and the message goes to the next receive; a send has
 * given nothing, and the next send goes to the receive. Where the other trainer has left without
 * its part, it may end with GRADCUBE_EPEER instead, which says the same. If the two have met, it is
 * too late, also if nothing has landed yet: the request ends as if this function had not been
 * called, as soon as the message is there. So no message is lost, split or taken twice.
 *
 * Returns at once; the end comes by test, poll and wait, like every end, and the buffer stays the
 * daemon's until then. For a send it is decided here and for a receive within a round trip between
 * the servers; where no way leads to the sender's server it waits for one, or for the job's end. An
 * end that has come already stays as it is. Other requests than messages cannot be withdrawn, since
 * the other trainers count on them: GRADCUBE_EINVAL. GRADCUBE_EAGAIN: the daemon has much to read;
 * call again. */
GRADCUBE_API int gradcube_cancel(gradcube_session* session, uint64_t request);

/* For a trainer that gives up a message or a collective, but not its job: from now on the buffer is
 * the trainer's own, to be written, submitted or freed. The request goes on, as the other trainers
 * count on it. They get what was submitted, and what it brings here is written nowhere: where it
 * would have brought anything it ends with GRADCUBE_ECANCELED. Its end comes by test, poll and
 * wait, like every end. Of a push to a hub it is the weights that are written nowhere.
 *
 * GRADCUBE_EINVAL: the daemon works on the buffer itself (see `Buffers` in gradcube.h), which stays
 * its own until the end has come (the weights of a push are forgotten all the same); or there is no
 * such request, or another thread is being told its end. */
GRADCUBE_API int gradcube_forget(gradcube_session* session, uint64_t request);

#ifdef __cplusplus
}
#endif

#endif /* GRADCUBE_MESSAGES_H_ */
