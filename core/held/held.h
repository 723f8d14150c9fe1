/* Held streams.
 *
 * A stream that waits for an event which has never been recorded is held: what is submitted to it is checked and copied
 * as ever, but queued on the host.  Whoever records the event hands the queue to the driver.
 *
 * A wait in such a queue is for a fence: one record of one event, made or still to come.
 *
 *   AWAITED   the event has never been recorded; streams are held for it
 *   QUEUED    the record is in the queue of a held stream
 *   ISSUED    the driver has it
 *   FAILED    it failed, as the work before it did
 *
 * The driver waits for the fence's mark, an event.  A queued record goes to a mark of its own, never to the event's own
 * native event, so nothing has to be ordered with other records of the event.  A record that streams were held for, or
 * that the driver had before the wait, has the event itself as its mark; while waits for it are queued, the next record
 * goes to another mark.  So an event stands for its native event (RECORDED) or for the mark of its fence (FENCED).
 *
 * Invariants
 * - Work that the driver has never depends on work that is held.  So the driver always finishes what it has, and a
 *   wait for an issued fence may be handed to it at any time.
 * - One lock guards queues, fences and what a FENCED event stands for.  It is never held across a driver call.
 * - Records by the driver of a FENCED event exclude each other: one claims the fence, under the lock and of a stream
 *   that is not held, and then calls the driver without the lock.  It changes what the event stands for if that is
 * still what it was; if not, a later record has been queued.  A claimed fence stays the event's when its last wait
 * goes.
 * - The first record of an event without a fence takes no lock: the wait that gives it a fence does so by a
 *   compare-and-swap, and the record, when it is made, by another.
 * - A queue that is held is blocked, in the list of one fence, or ready, in the list of those that can go on, or run by
 *   one thread, which takes one operation out under the lock and hands it over without it.
 * - Launches of an execution object are held in one queue.  They are counted under the lock while they are in it or
 *   being handed over, so as long as there are any, nothing but a look is done under a claim of the object.
 * - While a stream is held, all submissions to it go through its queue; `held` becomes false under the lock when the
 *   queue is empty and its last operation has reached the driver.
 */
#ifndef RILL_CORE_HELD_HELD_H
#define RILL_CORE_HELD_HELD_H

#include "core/diagnose/text.h"
#include "core/graph/capture.h"
#include "core/sync/submit.h"

#define RILL_ASSERT_HELD_LOCKED() \
  RILL_ASSERT(rill__has_lock(RILL__LOCK_HELD), "one lock guards queues, fences and what a FENCED event stands for")

/* While this is set, the nodes of a graph are submitted one after another, so that each can be observed. */
extern _Atomic bool rill__graphs_in_steps;

/* Gives work as data to the driver: a launch, copy, fill, prefetch or host call. */
rill_status rill__submit_operation(struct rill__stream *stream, const struct rill__operation *operation);

/* ---- streams ---- */

/* Each takes the operation if the stream is held or captured, and says so in `taken`; if it is held no more, the caller
 * goes on to the driver.  On failure nothing was taken. */
rill_status rill__held_record(struct rill__stream *stream, struct rill__event *event, uint32_t flags, bool *taken);
rill_status rill__held_host_call(struct rill__stream *stream, rill_host_fn fn, void *user, bool *taken);
rill_status rill__held_fill(struct rill__stream *stream, const struct rill__fill_2d *fill, bool *taken);
rill_status rill__held_prefetch(struct rill__stream *stream, const void *p, size_t size, bool *taken);
/* `payload`: what the launch owns, NULL if there is nothing; taken over, and set to NULL, with the launch. */
rill_status rill__held_launch(struct rill__stream *stream, const struct rill__launch *launch,
                              struct rill__payload **payload, bool *taken);

/* Passes work on to the queue of a held stream, or the graph of a captured one, by one of these; goes on if the stream
 * is neither. */
#define RILL_DIVERT(stream, function, ...)                \
  do {                                                    \
    if (rill__is_diverted(stream)) {                      \
      bool taken_ = false;                                \
      RILL_TRY(function((stream), __VA_ARGS__, &taken_)); \
      if (taken_) return RILL_OK;                         \
    }                                                     \
  } while (0)

/* A wait of a held stream, or one for an event that is not RECORDED.  `taken` false: the driver can be given a wait for
 * `*point`, which is valid inside the epoch. */
rill_status rill__held_wait(struct rill__stream *stream, struct rill__event *event, struct rill__event **point,
                            bool *taken);

/* ---- core/held/graph.c: launches of graphs; outside epochs ---- */

rill_status rill__graph_launch(struct rill__graph_exec *exec, struct rill__stream *stream);

/* Refused on a stream that is held or captured. */
rill_status rill__graph_upload(struct rill__graph_exec *exec, struct rill__stream *stream);

/* Claims the object for a change of what later launches do; refused while a launch is held. */
rill_status rill__exec_claim_to_change(struct rill__graph_exec *exec);

/* Hands a held launch to the backend. */
rill_status rill__graph_launch_held(struct rill__graph_exec *exec, struct rill__stream *stream);

/* Blocks while the stream's work is being handed over, so that a call which a held stream refuses is not refused for
 * that alone.  The caller keeps the stream and what else it uses afterwards: its epoch is left meanwhile, and another
 * one entered. */
void rill__held_settle(struct rill__stream *stream);

/* The same for the launches of an execution object that are held; outside epochs.  False if there are any left, which
 * wait for an event. */
bool rill__held_settle_launches(struct rill__graph_exec *exec);

/* Others can submit to the stream from here on, so it cannot be held; false if it is held now. */
bool rill__stream_share(struct rill__stream *stream);

/* Keeps a failure for the stream's next synchronize, unless one is kept already. */
rill_status rill__stream_note_failure(struct rill__stream *stream, rill_status status, const char *text);

/* Fails, once, if one is kept, of held work or of another library's. */
rill_status rill__held_failure(struct rill__stream *stream);

/* The stream is destroyed. */
void rill__held_forget(struct rill__stream *stream);

/* ---- recording an event that is not RECORDED, on a stream that is not held ---- */

struct rill__recording {
  struct rill__event *event, *target; /* target: what the driver has to record for it */
  struct rill__fence *fence, *next;   /* what the event stands for, and will, if that is not itself; or NULL */
  bool replaces_queued;               /* the fence was QUEUED when the record started */
  bool held;                          /* the stream is: nothing has started, and the record has to be queued */
};

rill_status rill__recording_begin(struct rill__recording *recording, struct rill__stream *stream,
                                  struct rill__event *event);

/* `status`: of the record of the target. */
void rill__recording_end(struct rill__recording *recording, rill_status status);

/* ---- what an event stands for ---- */

enum rill__meaning {
  RILL__NO_RECORD,
  RILL__RECORD_ISSUED,
  RILL__RECORD_HELD,
  RILL__RECORD_FAILED,
  RILL__RECORD_CAPTURED
};

/* Of an event that is not RECORDED. */
enum rill__meaning rill__fence_meaning(struct rill__event *event, struct rill__event **point);

/* `point`: the event to ask the driver about if it has the record; valid inside the epoch. */
static inline enum rill__meaning rill__event_meaning(struct rill__event *event, struct rill__event **point) {
  *point = event;
  if (RILL__LIKELY(atomic_load_explicit(&rill__core(event)->state, memory_order_acquire) == RILL__EVENT_RECORDED)) {
    return RILL__RECORD_ISSUED;
  }
  return rill__fence_meaning(event, point);
}

/* Fails with the reason why the event's last record failed; or because it was in a capture. */
rill_status rill__fail_failed_record(struct rill__event *event);
rill_status rill__fail_captured_record(struct rill__event *event);

/* Others may use and record the native event from here on.  False if it does not have the event's last record. */
bool rill__event_share(struct rill__event *event);

/* The same for other processes; the event counts as recorded. */
void rill__event_export(struct rill__event *event);

/* The driver has a later record of the native event, which this layer did not make.  The caller then hands over what is
 * ready (rill__held_run). */
void rill__event_recorded_natively(struct rill__event *event);

/* The last reference to the event has gone: what waits for a first record of it fails. */
void rill__event_abandon(struct rill__event *event);

/* ---- devices and the host ---- */

/* Block, outside epochs, until the driver has what was submitted before the call; `ns` is reduced by the time that
 * took.  `point`: what to ask the driver about, kept; NULL if the event was never recorded. */
rill_status rill__held_wait_for_stream(struct rill__stream *stream, uint64_t *ns);
rill_status rill__held_wait_for_event(struct rill__event *event, uint64_t *ns, struct rill__event **point);
void rill__held_wait_for_device(struct rill__device *device);

/* What a held stream waits for: ", held: stream "a" waits for event "x", ..." and what the user can do; nothing of one
 * that is not held. */
void rill__held_explain(struct rill__stream *stream, struct rill__text *text);

/* How many streams are held. */
extern _Atomic uint32_t rill__held_count;

/* Registered memory that a held operation names: `uses` counts those, under the lock. */
struct rill__held_range {
  struct rill__object *object; /* kept by the operation; NULL: none */
  uint32_t *uses;
};

/* Set when memory is first registered: the range that an address lies in, kept; inside the epoch of the call that was
 * given the address. */
extern struct rill__held_range (*_Atomic rill__held_find_range)(const void *p);

/* Blocks, outside epochs, until no held work may be going to use registered memory that no call finds any more.
 * `is_used`, under the lock: whether the record of one of its last uses is held. */
void rill__held_wait_for_range(const uint32_t *uses, bool (*is_used)(const void *range), const void *range);
bool rill__record_is_held(struct rill__event *event); /* queued or being handed over; under the lock */

/* For fork. */
void rill__held_lock(void);
void rill__held_unlock(void);
void rill__held_after_fork(void);

#endif
