/* Notifying the host that an event has completed (rill_event_notify_fd, rill_event_then).
 *
 * A watch is for one point: the record that its event had at the call.  It counts as a wait for the event's fence
 * (core/held/held.h), so a later record of the event uses another mark, and the event may be released.  An event that
 * other code may record has no fence: its watch keeps a reference to the event, and watches whatever the native event
 * marks.
 *
 * One thread, the watcher, handles every watch from the call to its end.  Points of one stream complete in order, so
 * the watcher keeps a line (an ordered list) of watches for each stream.  If a backend can wake a watch (the `notify`
 * slot of events), it wakes the first watch of each line; the watcher polls the first watches of all other lines.  A
 * second thread calls the functions of rill_event_then, so these functions may block.  A watch has arrived when its
 * record is no longer queued: the driver has the record, or the record has failed.
 *
 * Invariants
 * - A watch is in exactly one place: at a fence that is QUEUED, under the lock of held work; in the list of watches
 *   that have arrived or are due, under the lock of watches; or in a line, which only the watcher uses.  The thread
 *   that removes a watch from its place moves it to the next place or ends it.
 * - The backend may also have the first watch of a line.  The watch stays in its line until the backend has woken it.
 * - The lock of watches is taken after the lock of held work, and only to change the lists: nothing is called under it.
 *   A backend takes it to wake a watch.
 * - The watcher holds `querying` while it calls a backend.  At process exit `querying` is taken and never released, so
 *   no driver is called after its library has been unloaded.
 * - The child of a fork has no watches: references that the parent's watches hold are never dropped, and nothing is
 *   notified.
 */
#ifndef RILL_CORE_HELD_WATCH_H
#define RILL_CORE_HELD_WATCH_H

#include "core/held/queue.h"

/* The receiver of a notification. */
struct rill__listener {
  int fd;          /* an eventfd; used if `fn` is NULL */
  rill_host_fn fn; /* may be NULL */
  void *user;
};

struct rill__watch {
  struct rill__waker waker; /* passed to the backend, which wakes it */
  struct rill__watch *next;
  struct rill__device *device;
  /* counts the watch as a wait; NULL if there is nothing to wait for, or if other code may record the event */
  struct rill__fence *fence;
  /* event to query: the fence's mark, or referenced by the watch; NULL if there is nothing to wait for */
  struct rill__event *point;
  struct rill__listener listener;
  rill_status status; /* passed to the listener; valid when `over` */
  bool over;          /* complete or failed */
  bool backend_wakes; /* the backend is going to wake the watch, or has done so: then the watch is among the arrived
                         ones */
  struct {
    uint64_t stream, sequence; /* stream 0: the place of the point is not known, and the watch is alone in its line */
    struct rill__watch *previous, *next;
    uint64_t since, due; /* first watch of a line: when it became the first, and when it is polled next, in ns */
    /* Valid in the first watch of a line. link is NULL if the backend is going to wake the watch, so it is not
     * polled. */
    struct rill__watch *last, *next_hashed, *next_line, **link;
  } line;
};

/* Watches the point that the event marks now.  Call it inside the epoch of the public call. */
rill_status rill__event_watch(struct rill__event *event, const struct rill__listener *listener);

/* Moves the watches of a fence that is no longer QUEUED to the arrived ones.  Call it under the lock of held work. */
void rill__watches_arrive(struct rill__watch *list);

/* ---- core/held/watch_lines.c: called by the watcher only, without a lock ---- */

/* Each function appends the watches that are over to the list whose end is passed, and returns the new end. */

/* Adds a watch whose record the driver has. */
struct rill__watch **rill__lines_add(struct rill__watch *watch, struct rill__watch **end);

/* Handles a watch that the backend has woken. */
struct rill__watch **rill__lines_woken(struct rill__watch *watch, struct rill__watch **end);

/* Polls the first watch of each line that is due and that no backend wakes, and the watches after it as long as they
 * are over. */
struct rill__watch **rill__lines_poll(struct rill__watch **end);

/* Returns true if there are lines to poll. */
bool rill__lines_wait(void);

/* Returns how long to wait before the next poll, in ns.  Call it exactly once after each poll. */
uint64_t rill__lines_pause(void);

/* Drops all lines in the child of a fork. */
void rill__lines_forget(void);

/* ---- for fork, and for the one function that resolves fences ---- */

void rill__watches_lock(void);
void rill__watches_unlock(void);
void rill__watches_after_fork(void);

#endif
