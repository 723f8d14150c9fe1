/* Telling the host that an event has completed (rill_event_notify_fd, rill_event_then).
 *
 * A watch is for one point: the record that its event had at the call.  It counts as a wait for the event's fence
 * (core/held/held.h), so a later record of the event goes to another mark, and the event may be released.  An event
 * that others may record has no fence: its watch keeps the event, and is for whatever the native event marks.
 *
 * One thread, the watcher, takes watches from the call to their end.  Points of one stream complete in order, so it
 * keeps a line of watches for each stream.  A backend that can (the `notify` slot of events) wakes the first of each
 * line; of other backends the watcher asks for the first of each line, again and again.  Another thread calls the
 * functions of rill_event_then, so that they may block.
 *
 * Invariants
 * - A watch is in one place: at a fence that is QUEUED, under the lock of held work; among those that have arrived or
 *   are due, under the lock of watches; or in a line, which is the watcher's own.  Whoever takes a watch out of its
 *   place puts it into the next one or ends it.
 * - The first watch of a line may be with the backend as well: it stays in its line until it has been woken.
 * - The lock of watches comes after that of held work and is taken for the lists alone: nothing is called under it, and
 *   a backend takes it to wake a watch.
 * - While the watcher calls a backend it has `asking`, which the end of the process takes for good: no driver is asked
 *   after its library has been unloaded.
 * - The child of a fork has no watches: what its parent's watches keep stays kept, and nothing of them is notified. */
#ifndef RILL_CORE_HELD_WATCH_H
#define RILL_CORE_HELD_WATCH_H

#include "core/held/queue.h"

/* Who is notified. */
struct rill__listener {
  int fd;          /* an eventfd, if `fn` is NULL */
  rill_host_fn fn; /* or NULL */
  void *user;
};

struct rill__watch {
  struct rill__waker waker; /* what a backend wakes */
  struct rill__watch *next;
  struct rill__device *device;
  struct rill__fence *fence; /* counts the watch as a wait; NULL: nothing to wait for, or an event of others */
  struct rill__event *point; /* to ask for; the fence's mark, or kept; NULL: there is nothing to wait for */
  struct rill__listener listener;
  rill_status status; /* what the listener is notified, once that is known */
  bool over;          /* complete or failed: it is known */
  bool answers;       /* the backend is to wake it, or has: then it is among those that have arrived */
  struct {
    uint64_t stream, sequence; /* stream 0: its place is not known, and no other watch is in its line */
    struct rill__watch *previous, *next;
    /* Of the first one of its line; link NULL: the backend is to wake it, so it is not asked for. */
    struct rill__watch *last, *next_hashed, *next_line, **link;
  } line;
};

/* Watches the point that the event marks now; inside the epoch of the call. */
rill_status rill__event_watch(struct rill__event *event, const struct rill__listener *listener);

/* A fence that was QUEUED is not any more: its watches arrive.  Under the lock of held work. */
void rill__watches_arrive(struct rill__watch *list);

/* ---- core/held/watch_lines.c: the watcher's own, without a lock ---- */

/* Each appends the watches that it finds over to the list whose end is given, and returns the new end. */

/* Takes a watch whose record the driver has. */
struct rill__watch **rill__lines_add(struct rill__watch *watch, struct rill__watch **end);

/* The backend has woken the watch. */
struct rill__watch **rill__lines_woken(struct rill__watch *watch, struct rill__watch **end);

/* Asks for the first watch of each line that no backend is to wake, and for those after it while they are over. */
struct rill__watch **rill__lines_ask(struct rill__watch **end);

/* Whether there are any to ask for. */
bool rill__lines_wait(void);

/* How long to wait before asking again, in ns.  Called by the watcher alone, once after each time of asking. */
uint64_t rill__lines_pause(void);

/* In the child of a fork. */
void rill__lines_forget(void);

/* ---- for fork and the one place that resolves fences ---- */

void rill__watches_lock(void);
void rill__watches_unlock(void);
void rill__watches_after_fork(void);

#endif
