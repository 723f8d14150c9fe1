/* Streams of engines that move data on the host.
 *
 * A part is all operations of one submission to one stream.  The stream gets a host call, which reports that the stream
 * has reached the part, and then a wait for the part's gate, an event that has not been recorded.  The stream is
 * therefore held, and no worker of the device blocks.  The engine's thread records the gate when the part's last
 * operation has ended.  If an operation was dropped, it fails the stream and releases the gate without recording it,
 * which fails the held work after the gate. */
#include "backends/comm/engine.h"

#include <stdlib.h>

/* Drops a reference; returns whether it was the last.  Call under the lock. */
static bool unref(struct comm_part *part) {
  COMM_ASSERT(part->references > 0);
  return --part->references == 0;
}

/* Drops the engine's references to a part and to its gate and stream. */
static void leave(struct comm_part *part) {
  (void)rill_event_release(part->gate);
  (void)rill_stream_release(part->stream);
  pthread_mutex_lock(&part->of->lock);
  const bool last = unref(part);
  pthread_mutex_unlock(&part->of->lock);
  if (last) free(part);
}

/* Notes that the stream has reached the part.  Runs as a host call of the stream. */
static void reach(void *user, rill_status stream_status) {
  struct comm_part *part = user;
  struct comm_parts *of = part->of;
  pthread_mutex_lock(&of->lock);
  part->reached = true;
  if (part->reported == RILL_OK) part->reported = stream_status;
  const bool wake = of->changed_part != NULL ? of->changed_part(part) : part->armed;
  const bool last = unref(part);
  if (wake) pthread_cond_broadcast(&of->changed);
  pthread_mutex_unlock(&of->lock);
  if (last) free(part);
}

static rill_status new_part(struct comm_parts *of, const struct comm_op *op, struct comm_part **list) {
  bool capturing = false;
  COMM_TRY_RILL(rill_stream_is_capturing(op->stream, &capturing), "stream");
  COMM_REQUIRE(!capturing, RILL_ERROR_UNSUPPORTED,
               "%s, %zu bytes: its stream is capturing, and a graph of the CPU cannot contain communication" COMM_HINT
               "end the capture first, and launch the graph before or after the operation",
               comm_describe(op).text, comm_bytes(op));
  struct comm_part *part = calloc(1, sizeof *part);
  COMM_REQUIRE(part != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for an operation");
  part->of = of;
  part->references = 2;
  part->next = *list;
  *list = part;
  char label[160];
  const bool named = op->comm->label[0] != '\0';
  (void)snprintf(label, sizeof label, "%s %llu%s%s, rank %u of %u, %zu bytes", comm_kind_name(op->kind),
                 (unsigned long long)op->number, named ? " of " : "", op->comm->label, op->comm->rank, op->comm->ranks,
                 comm_bytes(op));
  COMM_TRY_RILL(rill_stream_retain(op->stream), "stream");
  part->stream = op->stream;
  COMM_TRY_RILL(rill_event_create(op->comm->device, RILL_EVENT_OPTIONS(.label = label), &part->gate), "an event");
  return RILL_OK;
}

rill_status rill__comm_part_of(struct comm_parts *of, const struct comm_op *op, struct comm_part **list,
                               struct comm_part **out) {
  struct comm_part *part = *list;
  while (part != NULL && !rill_stream_equal(part->stream, op->stream)) part = part->next;
  if (part == NULL) {
    COMM_TRY(new_part(of, op, list));
    part = *list;
  }
  part->left++;
  *out = part;
  return RILL_OK;
}

void rill__comm_parts_free(struct comm_part *parts) {
  while (parts != NULL) {
    struct comm_part *part = parts;
    parts = part->next;
    part->references = 1;
    leave(part);
  }
}

/* Hands a part to the engine's thread.  If `failure` is an error, the part's wait was not submitted to its stream; the
 * host call was submitted only if `called` is true. */
static void arm(struct comm_part *part, rill_status failure, bool called) {
  struct comm_parts *of = part->of;
  pthread_mutex_lock(&of->lock);
  if (failure != RILL_OK) part->reported = failure;
  if (!called) (void)unref(part);
  part->armed = true;
  const bool wake = of->changed_part == NULL || of->changed_part(part);
  if (wake) pthread_cond_broadcast(&of->changed);
  pthread_mutex_unlock(&of->lock);
}

static rill_status submit_part(struct comm_part *part) {
  rill_status status = rill_stream_host_call(part->stream, reach, part);
  const bool called = status == RILL_OK;
  if (called) status = rill_stream_wait_event(part->stream, part->gate, 0);
  if (status != RILL_OK) (void)rill__comm_fail_rill(status, "stream");
  arm(part, status, called);
  return status;
}

rill_status rill__comm_parts_submit(struct comm_part *parts, rill_status refused) {
  rill_status status = refused;
  for (struct comm_part *part = parts, *next; part != NULL; part = next) {
    next = part->next; /* once armed, the part may be freed at any time */
    if (status == RILL_OK) {
      status = submit_part(part);
    } else {
      arm(part, status, false);
    }
  }
  return status;
}

void rill__comm_part_fail(struct comm_part *part, const struct comm_error *why) {
  if (!part->failed) (void)!rill_stream_fail(part->stream, why->status, why->message);
  part->failed = true;
}

bool rill__comm_part_end_one(struct comm_part *part) {
  COMM_ASSERT(part->left > 0);
  if (--part->left > 0) return false;
  /* A failed stream gets no record: releasing the gate below fails the work that it holds. */
  if (!part->failed) (void)!rill_stream_record_event(part->of->stream, part->gate, 0);
  leave(part);
  return true;
}
