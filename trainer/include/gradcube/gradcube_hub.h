/* gradcube_hub.h: the parameter hub, in a session of gradcube.h.
 *
 * A hub has the weights of a model, cut into keys, and an optimizer. Trainers push gradients and
 * find new weights: what adds the last gradient of a piece also takes the optimizer's step with it,
 * where the piece is owned. With most algorithms every server owns 1/N of each key, of its weights
 * and of the optimizer's state; with "ps" the root owns all. The update costs no byte on the links
 * beyond those of an all-reduce.
 *
 *     gradcube_hub_key keys[] = {{"fc.weight", 7840, GRADCUBE_FLOAT32}, {"fc.bias", 10,
 *                                                                       GRADCUBE_FLOAT32}};
 *     gradcube_hub_settings settings = GRADCUBE_HUB_SETTINGS_INIT;
 *     settings.keys = keys;
 *     settings.key_count = 2;
 *     settings.optimizer = "momentum:lr=0.1,momentum=0.9";
 *     gradcube_hub *hub;
 *     if (gradcube_hub_create(session, &settings, 60000, &hub) != 0) fail(...);
 *     for (k = 0; k < 2; ++k) gradcube_hub_init(hub, k, weights[k], &requests[k]);
 *     ... wait for the requests, and in each iteration, as soon as a key's gradients are there:
 *     gradcube_hub_push_pull(hub, k, gradients[k], weights[k], GRADCUBE_HUB_RATE, &requests[k]);
 *     ... wait for the requests: the new weights are in weights[k]
 *     gradcube_hub_free(hub, 60000);
 *
 * Rounds. A push of a key ends when all trainers of the job have pushed it and this server has the
 * new weights: those after one step of the optimizer with the mean of all gradients. Trainers push
 * their keys in any order, each in another one, and no key waits for another. A trainer pushes a
 * key again when its last push of it has ended.
 *
 * The first push of each key gives its weights: gradcube_hub_init(). All trainers give the same
 * ones. A later one sets them anew; the optimizer's state begins from zero. Before the first push,
 * and after a push that has failed, a key has no weights: gradients, pulls and checkpoints of it
 * are refused with its name (GRADCUBE_EINVAL, or the code of the push).
 *
 * Requests are those of gradcube_test(), gradcube_poll() and gradcube_wait(), and count among the
 * session's. Buffers follow the rules of collectives; after a push the content of a buffer in
 * memory from gradcube_alloc() is undefined, and that of any other buffer is unchanged.
 *
 * Failures. A push fails as a collective does: when a trainer dies, every trainer's pushes end with
 * GRADCUBE_EPEER, and the hub has ended. It has ended, too, when the job is reset because trainers
 * disagree on a collective: free the hub and create another one. What a hub that has ended can do:
 *
 *                            the hub      it has ended (job    no such key, or   freed
 *                            is there     ended or reset)      its push failed
 *   init, push, push_pull    a round      the reason           push: refused     -
 *   accumulate, apply        a round      the reason           refused           -
 *   norm                     of what was accumulated           refused           -
 *   pull, weights            the weights of the last step      refused           -
 *   begin_checkpoint         begins       the reason           refused           -
 *   end_checkpoint           counts       as a collective      -                 -
 *   restore                  the weights  the reason           the weights       -
 *   hub_free                 as a barrier, and all is freed    -                 -
 *
 * "The last step" of a key is that of its last push that has ended with GRADCUBE_OK: what is read
 * is never of a step that has not ended. The weights stay, for this trainer, until it frees the
 * hub, leaves or aborts the job, or is evicted, also when its daemon has gone.
 *
 * A job has one hub at a time. docs/hub.md has the optimizers, their settings, and what happens
 * inside.
 */
#ifndef GRADCUBE_HUB_H_
#define GRADCUBE_HUB_H_

#include <gradcube/gradcube.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gradcube_hub gradcube_hub;

/* A tensor of weights. */
typedef struct {
  const char* name; /* 1 to 255 bytes; those of a hub differ */
  size_t elements;
  int dtype; /* of its gradients: GRADCUBE_FLOAT32, _FLOAT16 or _BFLOAT16. Weights have it, too; the
                owners keep 16-bit weights in float32 beside it */
} gradcube_hub_key;

/* The trainers' own servers make the sums. */
#define GRADCUBE_HUB_NO_AGGREGATOR UINT64_MAX

/* Rounds are of all trainers together. */
#define GRADCUBE_HUB_SYNCHRONOUS UINT64_MAX

/* What a hub is made of. All trainers of the job ask for the same: of the keys in any order. Begin
 * with GRADCUBE_HUB_SETTINGS_INIT. */
typedef struct {
  size_t size; /* sizeof(gradcube_hub_settings) */
  const gradcube_hub_key* keys;
  size_t key_count; /* 1 to 65536 */
  /* With its settings, "sgd:lr=0.1", and those of keys that have some of their own:
   * "adamw:lr=1e-3,weight-decay=0.1;*bias:weight-decay=0". At most 1 MiB. docs/hub.md has both. */
  const char* optimizer;
  /* What is sent, added and stepped as one: a multiple of 64 from 256 to 4 MiB; 0: by the length of
   * the model. */
  size_t chunk_bytes;
  unsigned lane;     /* the hub takes the algorithm of this lane of the job */
  uint64_t reserved; /* 0 */
  /* The number of a server that has none of the job's trainers: all keys, weights and states are
   * its, and learning rates are rounded to float. Or GRADCUBE_HUB_NO_AGGREGATOR. */
  uint64_t aggregator;
  /* Of an asynchronous hub, which has an aggregator: each server's gradients are stepped with by
   * themselves, as they come, and the push ends with the weights after that step. It waits for
   * others only where their pushes of the key are more than `staleness` behind those before this
   * one. Trainers have different weights, and no two runs the same ones. Weights come first, and
   * before new ones all trainers wait for their pushes and meet in a gradcube_barrier(). 0 to
   * 2^32 - 2, or GRADCUBE_HUB_SYNCHRONOUS. */
  uint64_t staleness;
  /* In the place of `aggregator`: the numbers of several, 1 to 20 in any order, or NULL. On a star
   * their ports are at most 20 together. Each has whole chunks of keys, about as many bytes as the
   * others; whoever has them, the weights after a step are the same. A hub of which one is lost has
   * ended. */
  const uint64_t* aggregators;
  size_t aggregator_count;
  /* 1: gradcube_hub_accumulate() and what follows it can be called; each owner then has one more
   * float32 array. Not of an asynchronous hub. Or 0. */
  uint64_t accumulate;
} gradcube_hub_settings;

#define GRADCUBE_HUB_SETTINGS_INIT                                                      \
  {                                                                                     \
    sizeof(gradcube_hub_settings), NULL, 0, "sgd", 0, 0, 0, GRADCUBE_HUB_NO_AGGREGATOR, \
        GRADCUBE_HUB_SYNCHRONOUS, NULL, 0, 0                                            \
  }

/* Of a push: the optimizer's own learning rate. */
#define GRADCUBE_HUB_RATE (-1.0)

/* Makes the hub of the session's job. All trainers of the job call it: it ends when the daemons of
 * all servers have the memory, or with the reason why one has not, on all trainers alike;
 * GRADCUBE_EMISMATCH where the job was reset after one has had it and before another. A
 * collective on lane 0, twice: nothing else may be submitted there meanwhile, on no trainer. After
 * GRADCUBE_ETIMEDOUT the trainers no longer agree on what was submitted: leave the job. */
GRADCUBE_API int gradcube_hub_create(gradcube_session* session,
                                     const gradcube_hub_settings* settings, int timeout_ms,
                                     gradcube_hub** hub);

/* Waits until all trainers of the job have called it, so that none still needs anything, and frees
 * everything. A collective on lane 0. Fails with GRADCUBE_EAGAIN, and frees nothing, while pushes
 * of this trainer are in flight, or as many requests as there can be, unless its session has
 * ended; and while another thread is in a call that pushes to it, copies weights of it, saves,
 * restores or frees it, or where this process has no memory for the call. In all other cases the
 * hub is freed, also where the result is an error: another trainer has gone, or did not come in
 * time. If that one goes on to push, its pushes wait for as long as it lets them. A trainer that
 * just leaves may keep others from the last weights. Free hubs before gradcube_close(), which does
 * not free them; after gradcube_leave() nothing is waited for, and a push_pull that has ended well
 * and whose end is reported later fails with the session's failure: its weights were not copied.
 * NULL is allowed. */
GRADCUBE_API int gradcube_hub_free(gradcube_hub* hub, int timeout_ms);

/* Each starts a round of the key and returns at once. `key` is the place in settings.keys. `rate`
 * is the learning rate of this step, the same on all trainers. push_pull copies the new weights to
 * `weights` when the end of the request is reported; it must be valid until then. */
GRADCUBE_API int gradcube_hub_init(gradcube_hub* hub, size_t key, const void* weights,
                                   uint64_t* request);
GRADCUBE_API int gradcube_hub_push(gradcube_hub* hub, size_t key, const void* gradients,
                                   double rate, uint64_t* request);
GRADCUBE_API int gradcube_hub_push_pull(gradcube_hub* hub, size_t key, const void* gradients,
                                        void* weights, double rate, uint64_t* request);

/* Steps of two kinds of rounds: to clip by the norm of all gradients, and to make a step of the
 * gradients of several passes. Of a hub that was made with `accumulate`.
 *
 *     gradcube_hub_accumulate(hub, k, gradients[k], &requests[k]);        each key; wait for all
 *     gradcube_hub_norm(hub, &norm);
 *     double scale = isfinite(norm) ? fmin(1, max_norm / norm) : 0;
 *     gradcube_hub_apply(hub, k, weights[k], scale, GRADCUBE_HUB_RATE, &requests[k]);   each key
 *
 * accumulate: a round that adds the mean of all trainers' gradients to what the key's owners have,
 * and takes no step.
 *
 * norm: of all that is accumulated, of all keys together. It is here already, and all trainers have
 * the same bits. It is no finite number where the gradients are not. GRADCUBE_EAGAIN while a key is
 * being pushed, and GRADCUBE_EINVAL where one has accumulated nothing.
 *
 * apply: a round without gradients. The optimizer takes a step with what is accumulated times
 * `scale`, a finite number of 0 or more that is rounded to float32 and the same on all trainers;
 * then nothing is accumulated. The scale 0 drops it and takes no step, so that numbers that are not
 * finite come into no weight. The new weights are copied to `weights` unless it is NULL, as by
 * gradcube_hub_push_pull().
 *
 * A plain push takes its step with its own gradients and leaves what is accumulated as it is.
 * gradcube_hub_init() and gradcube_hub_restore() drop it. With something accumulated checkpoints
 * are refused. */
GRADCUBE_API int gradcube_hub_accumulate(gradcube_hub* hub, size_t key, const void* gradients,
                                         uint64_t* request);
GRADCUBE_API int gradcube_hub_norm(gradcube_hub* hub, double* norm);
GRADCUBE_API int gradcube_hub_apply(gradcube_hub* hub, size_t key, void* weights, double scale,
                                    double rate, uint64_t* request);

/* Copies the key's weights. They are here already: nothing is sent. GRADCUBE_EAGAIN while a push of
 * the key is in flight, or waits in another thread for pulls that have begun. */
GRADCUBE_API int gradcube_hub_pull(gradcube_hub* hub, size_t key, void* weights);

/* The key's weights where they lie: read only, and only while no push of the key is in flight and
 * after one that has ended well. Reading them when the hub was freed is an access to memory that is
 * not there (SIGSEGV); when the session has ended in another way, they are a copy, if there is
 * memory for one, until gradcube_hub_free(). A forked child has those of the moment of the fork.
 * NULL for a key that there is not, or that has no weights. */
GRADCUBE_API const void* gradcube_hub_weights(gradcube_hub* hub, size_t key);

/* Checkpoints. A checkpoint is what the hub has at one step of the training: weights, the
 * optimizer's state, and how many steps each key has taken. Each server's first trainer writes what
 * its server owns to a file of its own, PATH.STEP.PART-of-PARTS (of a step that is saved once more,
 * PATH.STEP.gGENERATION.PART-of-PARTS): all in one folder, or each on a disk of its own.
 * docs/hub.md has the format, and `gradcube checkpoint FILE` checks and shows one.
 *
 *     gradcube_hub_begin_checkpoint(hub, "model.hub", step);      all trainers, between two steps
 *     ... train on: the files are being written ...
 *     gradcube_hub_end_checkpoint(hub, 60000);                    now it counts
 *
 * begin: copies what the server owns, starts to write it, and returns. All trainers begin it after
 * the same pushes. GRADCUBE_EAGAIN while pushes of this trainer are in flight, or before the end of
 * the checkpoint before.
 *
 * With aggregators there is one file, of all, which rank 0 writes: what each aggregator has comes
 * to the trainers first. Begin waits for that as long as gradcube_hub_create() could wait. It takes
 * as long as a push of all keys for the weights and for each array of state, of 16-bit keys twice
 * as many and one more; meanwhile the keys count as being pushed. Of an asynchronous hub begin is
 * also a collective on lane 0. Where that fails in its midst, the hub is of no more use, and all
 * its calls but gradcube_hub_free() are refused: leave the job. The same is so of
 * gradcube_hub_restore().
 *
 * end: waits until the files of all servers are on their disks and have their names, and removes
 * those that it replaces: which this trainer has saved or restored at the path before; no other
 * run's. After GRADCUBE_OK no crash loses it. Where a trainer's file could not be written, all
 * learn it, and the checkpoint before is the one that counts, whatever its step; where one could
 * only not get its last name, the message says that the new one is whole, and it counts. After any
 * other failure, such as GRADCUBE_ETIMEDOUT, this trainer does not know what the others have heard:
 * the files of both stay, and gradcube_hub_restore() finds the newest one that all have. A
 * collective on lane 0, three times; after GRADCUBE_ETIMEDOUT leave the job. */
GRADCUBE_API int gradcube_hub_begin_checkpoint(gradcube_hub* hub, const char* path, uint64_t step);
GRADCUBE_API int gradcube_hub_end_checkpoint(gradcube_hub* hub, int timeout_ms);

/* What gradcube_hub_restore() says when no server has a checkpoint, or what is there was never told
 * to anybody: a job has died while it wrote its first one. */
#define GRADCUBE_HUB_NO_STEP UINT64_MAX

/* Takes back the newest checkpoint that all servers have, in place of gradcube_hub_init(). All
 * trainers of the job call it, and it is done when all have the weights; *step is the checkpoint's.
 * The keys and the kind of optimizer are those of the checkpoint; its settings may be others. A job
 * of other servers, or with another algorithm or another aggregator than none, needs the files of
 * all parts in one folder. With an aggregator rank 0 alone looks for files.
 *
 * A file that is damaged, of another model, or missing fails on all trainers, and nothing has
 * changed. A collective on lane 0, several times; after GRADCUBE_ETIMEDOUT leave the job. */
GRADCUBE_API int gradcube_hub_restore(gradcube_hub* hub, const char* path, int timeout_ms,
                                      uint64_t* step);

#ifdef __cplusplus
}
#endif

#endif /* GRADCUBE_HUB_H_ */
