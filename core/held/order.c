/* The order of held work: the events that a queue waits for, and the check that no record is queued after a wait for
 * itself. */
#include "core/held/queue.h"

#include <stdio.h>
#include <string.h>

/* A wait depends on everything before it in its queue, and on everything before the record of its fence.  Only the
 * record of an event for which streams already wait can close a cycle, so the search runs for such records alone.
 *
 * Usually a record is queued before the wait for it, and has the smaller serial number.  The exceptions are the records
 * that this file checks.  If the last exception precedes the creation of the fence that is the goal, every entry
 * younger than the fence depends only on older entries.  Waits for the fence are younger than the fence, so no path to
 * such a wait then leads through a wait that is older than the fence.  The search therefore skips these older waits.
 */
static uint64_t last_exception; /* serial number of the last record that was queued after a wait for it */
static uint64_t searches;

/* Pushes a wait onto the stack, unless the search has visited it. */
static void visit(struct held_op *op, struct held_op *from, uint64_t oldest, struct held_op **stack) {
  if (op == NULL || op->serial < oldest || op->wait.search == searches) return;
  op->wait.search = searches;
  op->wait.from = from;
  op->wait.pending = *stack;
  *stack = op;
}

/* Returns a wait for `goal` that has to end before the end of the queue is reached, or NULL.  Visits each wait once. */
static struct held_op *find_wait(const struct rill__queue *queue, const struct rill__fence *goal) {
  const uint64_t oldest = goal->created >= last_exception ? goal->created : 0;
  struct held_op *stack = NULL;
  searches++;
  visit(queue->last_wait, NULL, oldest, &stack);
  while (stack != NULL) {
    struct held_op *op = stack;
    const struct rill__fence *fence = op->fence;
    stack = op->wait.pending;
    if (fence == goal) return op;
    visit(op->wait.older, op->wait.from, oldest, &stack);
    /* A wait up to `removed` has ended, and wait_before may point to freed memory then. */
    if (rill__fence_state(fence) == FENCE_QUEUED && fence->wait_position > fence->queue->removed) {
      visit(fence->wait_before, op, oldest, &stack);
    }
  }
  return NULL;
}

/* ---- texts ---- */

static void add_link(struct held_chain *chain, const struct rill__stream *stream, const struct rill__fence *fence) {
  const size_t used = strlen(chain->text);
  (void)snprintf(chain->text + used, sizeof chain->text - used, "%s%s waits for %s",
                 used > 0 ? ", recorded where " : ": ", rill__name_of(&stream->base).text, fence->event.text);
}

static bool has_room(const struct held_chain *chain) { return strlen(chain->text) < sizeof chain->text - 1; }

/* Describes the path from `queue` to the wait that was found.  The search has stored the path in reverse order. */
static void describe_way(const struct rill__queue *queue, struct held_op *found, struct held_chain *chain) {
  struct held_op *way = NULL;
  for (struct held_op *op = found; op != NULL;) { /* reverses the path, with `pending` as the link */
    struct held_op *from = op->wait.from;
    op->wait.pending = way;
    way = op;
    op = from;
  }
  const struct rill__stream *stream = queue->stream;
  for (; way != NULL && has_room(chain); way = way->wait.pending) {
    add_link(chain, stream, way->fence);
    if (way->wait.pending != NULL) stream = way->fence->queue->stream;
  }
}

void rill__held_describe(const struct rill__queue *queue, struct held_chain *chain) {
  chain->text[0] = '\0';
  while (has_room(chain)) {
    const struct held_op *op = queue->first;
    if (op == NULL || !rill__held_is_wait(op) || !rill__fence_is_pending(op->fence)) return;
    add_link(chain, queue->stream, op->fence);
    if (rill__fence_state(op->fence) == FENCE_AWAITED) break;
    queue = op->fence->queue;
  }
  const size_t used = strlen(chain->text);
  (void)snprintf(chain->text + used, sizeof chain->text - used, ", which has never been recorded");
}

rill_status rill__held_check_order(struct rill__queue *queue, const struct rill__fence *fence,
                                   const struct rill__event *event) {
  struct held_op *found = find_wait(queue, fence);
  if (RILL__LIKELY(found == NULL)) {
    last_exception = rill__held_serial + 1; /* the serial number that this record will get */
    return RILL_OK;
  }
  struct held_chain chain = { "" };
  describe_way(queue, found, &chain);
  return rill__fail(RILL_ERROR_INVALID_ARGUMENT, "a record of %s on %s would wait for itself (cycle)%s",
                    rill__name_of(&event->base).text, rill__name_of(&queue->stream->base).text, chain.text);
}
