/* Held streams.
 *
 * A stream that waits for an event that has never been recorded is held: everything submitted to it is checked and
 * copied as usual, but queued on the host.  The thread that records the event submits the queue to the driver.
 *
 * A wait in such a queue waits for a fence.  A fence is one record of one event, already made or still to come:
 *
 *   AWAITED   the event has never been recorded, and streams are held for it
 *   QUEUED    the record is in the queue of a held stream
 *   ISSUED    the driver has the record
 *   FAILED    the record failed because the work before it failed
 *
 * The driver waits for the fence's mark, which is an event.  A queued record is made on a mark of its own, never on the
 * event's native event, so it needs no ordering with other records of the event.  If streams were held for the record,
 * or if the driver had it before the wait, the event itself is the mark; while waits for that mark are queued, the next
 * record of the event uses another mark.  An event therefore stands either for its native event (RECORDED) or for the
 * mark of its fence (FENCED).
 *
 * Invariants
 * - Work that the driver has received does not depend on held work.  So the driver always finishes what it has, and a
 *   wait for an issued fence can be submitted at any time.
 * - One lock guards queues, fences and what a FENCED event stands for.  It is never held across a driver call.
 * - Records of a FENCED event that go straight to the driver exclude each other: the recording thread claims the fence
 *   under the lock, checks that its stream is not held, and calls the driver without the lock.  Afterwards it changes
 *   what the event stands for only if that has not changed meanwhile; a change means that a later record has been
 *   queued.  A claimed fence stays attached to the event even when its last wait is removed.
 * - The first record of an event without a fence takes no lock: a wait adds a fence by compare-and-swap, and the record
 *   changes the state in the same way once the driver has it.
 * - A held queue is blocked (in the list of one fence), ready (in the list of queues that can continue), or run by one
 *   thread, which removes an operation under the lock and submits it without the lock.
 * - All held launches of one execution object are in one queue.  They are counted under the lock until the driver has
 *   them; while the count is not zero, a claim of the object allows only reading it.
 * - While a stream is held, all submissions to it go through its queue.  `held` becomes false under the lock, when the
 *   queue is empty and its last operation has reached the driver.
 */
#ifndef RILL_CORE_HELD_HELD_H
#define RILL_CORE_HELD_HELD_H

#include "core/diagnose/text.h"
#include "core/graph/capture.h"
#include "core/sync/submit.h"

#define RILL_ASSERT_HELD_LOCKED() \
  RILL_ASSERT(rill__has_lock(RILL__LOCK_HELD), "one lock guards queues, fences and what a FENCED event stands for")

/* If set, the nodes of a graph are submitted one after another, so that each can be observed. */
extern _Atomic bool rill__graphs_in_steps;

/* Submits a stored operation to the driver: a launch, copy, fill, prefetch or host call. */
rill_status rill__submit_operation(struct rill__stream *stream, const struct rill__operation *operation);

/* ---- streams ---- */

/* Take an operation if the stream is held or captured, and set `taken`.  If the stream is no longer held, `taken` is
 * false and the caller submits to the driver.  On failure nothing was taken. */
rill_status rill__held_record(struct rill__stream *stream, struct rill__event *event, uint32_t flags, bool *taken);
rill_status rill__held_host_call(struct rill__stream *stream, rill_host_fn fn, void *user, bool *taken);
rill_status rill__held_fill(struct rill__stream *stream, const struct rill__fill_2d *fill, bool *taken);
rill_status rill__held_prefetch(struct rill__stream *stream, const void *p, size_t size, bool *taken);
/* Takes a launch.  `payload`: what the launch owns, or NULL; it is taken over together with the launch, and then set to
 * NULL. */
rill_status rill__held_launch(struct rill__stream *stream, const struct rill__launch *launch,
                              struct rill__payload **payload, bool *taken);

/* Passes work to the queue of a held stream or to the graph of a captured stream through `function`, and returns from
 * the calling function if the work was taken.  Continues after the macro otherwise. */
#define RILL_DIVERT(stream, function, ...)                \
  do {                                                    \
    if (rill__is_diverted(stream)) {                      \
      bool taken_ = false;                                \
      RILL_TRY(function((stream), __VA_ARGS__, &taken_)); \
      if (taken_) return RILL_OK;                         \
    }                                                     \
  } while (0)

/* Submits a wait of a held stream, or a wait for an event that is not RECORDED.  If `taken` is false, the caller has to
 * make the driver wait for `*point`, which is valid inside the epoch. */
rill_status rill__held_wait(struct rill__stream *stream, struct rill__event *event, struct rill__event **point,
                            bool *taken);

/* ---- core/held/graph.c: launches of graphs; call outside epochs ---- */

rill_status rill__graph_launch(struct rill__graph_exec *exec, struct rill__stream *stream);

/* Fails if the stream is held or captured. */
rill_status rill__graph_upload(struct rill__graph_exec *exec, struct rill__stream *stream);

/* Claims the object in order to change what later launches do.  Fails while a launch is held. */
rill_status rill__exec_claim_to_change(struct rill__graph_exec *exec);

/* Submits a held launch to the backend. */
rill_status rill__graph_launch_held(struct rill__graph_exec *exec, struct rill__stream *stream);

/* Blocks while the queue of the stream is being submitted, so that a call that is not possible on held streams does not
 * fail only because the submission has not ended yet.  The caller keeps references to the stream and to everything else
 * that it uses afterwards, because its epoch is left during the wait and another one is entered. */
void rill__held_wait_submitted(struct rill__stream *stream);

/* Does the same for the held launches of an execution object.  Call it outside epochs.  Returns false if launches
 * remain that wait for an event. */
bool rill__held_wait_launches(struct rill__graph_exec *exec);

/* Marks the stream as one that other code may submit to, which means that it can no longer be held.  Returns false if
 * it is held now. */
bool rill__stream_share(struct rill__stream *stream);

/* Stores a failure for the stream's next synchronize, unless one is stored already. */
rill_status rill__stream_note_failure(struct rill__stream *stream, rill_status status, const char *text);

/* Returns and clears the stored failure, of held work or of another library's work; RILL_OK if there is none. */
rill_status rill__held_failure(struct rill__stream *stream);

/* Frees the queue of a stream that is being destroyed. */
void rill__held_forget(struct rill__stream *stream);

/* ---- recording an event that is not RECORDED, on a stream that is not held ---- */

struct rill__recording {
  struct rill__event *event, *target; /* target: the event that the driver has to record */
  /* fence: what the event stands for; next: what it will stand for; NULL if that is the event itself */
  struct rill__fence *fence, *next;
  bool replaces_queued; /* the fence was QUEUED when the record started */
  bool held;            /* the stream is held: nothing has started, and the record has to be queued */
};

rill_status rill__recording_begin(struct rill__recording *recording, struct rill__stream *stream,
                                  struct rill__event *event);

/* Ends the record.  `status`: the result of recording the target. */
void rill__recording_end(struct rill__recording *recording, rill_status status);

/* ---- what an event stands for ---- */

enum rill__meaning {
  RILL__NO_RECORD,
  RILL__RECORD_ISSUED,
  RILL__RECORD_HELD,
  RILL__RECORD_FAILED,
  RILL__RECORD_CAPTURED
};

/* Call it for an event that is not RECORDED. */
enum rill__meaning rill__fence_meaning(struct rill__event *event, struct rill__event **point);

/* Returns the meaning of the event.  `point`: the event to query the driver about, if the driver has the record; valid
 * inside the epoch. */
static inline enum rill__meaning rill__event_meaning(struct rill__event *event, struct rill__event **point) {
  *point = event;
  if (RILL__LIKELY(atomic_load_explicit(&rill__core(event)->state, memory_order_acquire) == RILL__EVENT_RECORDED)) {
    return RILL__RECORD_ISSUED;
  }
  return rill__fence_meaning(event, point);
}

/* Fail because the event's last record failed, with the reason, or because the last record was made in a capture. */
rill_status rill__fail_failed_record(struct rill__event *event);
rill_status rill__fail_captured_record(struct rill__event *event);

/* Marks the native event as one that other code may use and record.  Returns false if the native event does not have
 * the event's last record. */
bool rill__event_share(struct rill__event *event);

/* Does the same as rill__event_share for other processes.  The event is treated as recorded from here on. */
void rill__event_export(struct rill__event *event);

/* Notes that the driver has a later record of the native event, made outside this layer.  The caller then submits the
 * work that has become ready (rill__held_run). */
void rill__event_recorded_natively(struct rill__event *event);

/* Fails everything that waits for a first record of the event.  Called when the last reference to the event is
 * released. */
void rill__event_abandon(struct rill__event *event);

/* ---- devices and the host ---- */

/* Block, outside epochs, until the driver has everything that was submitted before the call.  `ns` is reduced by the
 * time that this took.  `point`: the event to query the driver about, with a reference; NULL if the event was never
 * recorded. */
rill_status rill__held_wait_for_stream(struct rill__stream *stream, uint64_t *ns);
rill_status rill__held_wait_for_event(struct rill__event *event, uint64_t *ns, struct rill__event **point);
void rill__held_wait_for_device(struct rill__device *device);

/* Appends what a held stream waits for (", held: stream "a" waits for event "x", ...") and what the user can do.
 * Appends nothing if the stream is not held. */
void rill__held_explain(struct rill__stream *stream, struct rill__text *text);

/* number of held streams */
extern _Atomic uint32_t rill__held_count;

/* Registered memory that a held operation names. */
struct rill__held_range {
  struct rill__object *object; /* referenced by the operation; NULL if there is no such memory */
  /* number of held operations that name the memory; changed under the lock */
  uint32_t *uses;
};

/* Set when memory is first registered.  Returns the range that contains an address, with a reference.  Call it inside
 * the epoch of the call that received the address. */
extern struct rill__held_range (*_Atomic rill__held_find_range)(const void *p);

/* Blocks, outside epochs, until no held work can use a registered range that was removed from the map.  `uses` is the
 * number of held operations that name it; `is_used` is called under the lock, and returns true if the record of one of
 * its last uses is held. */
void rill__held_wait_for_range(const uint32_t *uses, bool (*is_used)(const void *range), const void *range);
bool rill__record_is_held(struct rill__event *event); /* true if queued or being submitted; call under the lock */

/* Lock and unlock the state of held work, also around a fork; in the child, rill__held_after_fork drops all held work.
 */
void rill__held_lock(void);
void rill__held_unlock(void);
void rill__held_after_fork(void);

#endif
