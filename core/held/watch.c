/* The watcher, and the thread that calls functions (core/held/watch.h). */
#include "core/held/watch.h"

#include "core/device/life.h"
#include "core/diagnose/order_notes.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

struct watch_list {
  struct rill__watch *first, **last;
};

/* Guards the variables below. */
static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t watch_arrived, watch_due = PTHREAD_COND_INITIALIZER;
static struct watch_list arrived = { NULL, &arrived.first }, due = { NULL, &due.first };
static bool watcher_runs, caller_runs;

static pthread_mutex_t querying = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t watch_once = PTHREAD_ONCE_INIT;

void rill__watches_lock(void) { pthread_mutex_lock(&watch_lock); }
void rill__watches_unlock(void) { pthread_mutex_unlock(&watch_lock); }

static void append_watch(struct watch_list *list, struct rill__watch *watch) {
  watch->next = NULL;
  *list->last = watch;
  list->last = &watch->next;
}

static struct rill__watch *take_all(struct watch_list *list) {
  struct rill__watch *const first = list->first;
  list->first = NULL;
  list->last = &list->first;
  return first;
}

static void arrive(struct rill__watch *watch) {
  rill__watches_lock();
  append_watch(&arrived, watch);
  pthread_cond_signal(&watch_arrived);
  rill__watches_unlock();
}

void rill__watches_arrive(struct rill__watch *list) {
  RILL_ASSERT_HELD_LOCKED();
  while (list != NULL) {
    struct rill__watch *const watch = list;
    list = watch->next;
    arrive(watch);
  }
}

/* ---- the end of a watch ---- */

/* Writes to the eventfd unless its counter is at its maximum: such a counter has already woken its reader, and a write
 * would block. */
static void notify_fd(int fd) {
  const uint64_t one = 1;
  struct pollfd ready = { .fd = fd, .events = POLLOUT };
  if (poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT) != 0 && write(fd, &one, sizeof one) < 0) return;
}

/* Drops the references that the watch holds.  Call it outside epochs. */
static void drop_references(struct rill__watch *watch) {
  if (watch->fence != NULL) {
    rill__held_lock();
    rill__fence_remove_wait(watch->fence);
    rill__held_unlock();
  } else if (watch->point != NULL) {
    rill__unref(&watch->point->base);
  }
  watch->fence = NULL;
  watch->point = NULL;
}

static void tell(struct rill__watch *watch) {
  RILL_ASSERT(watch->over && watch->fence == NULL && watch->point == NULL,
              "a watch has no references when it is notified");
  if (watch->listener.fn == NULL) {
    notify_fd(watch->listener.fd);
    free(watch);
    return;
  }
  rill__watches_lock();
  append_watch(&due, watch);
  pthread_cond_signal(&watch_due);
  rill__watches_unlock();
}

/* References are dropped before the listener is notified: a function of rill_event_then may be called late, and must
 * not keep the event alive until then. */
static void finish_watch(struct rill__watch *watch) {
  if (watch->status == RILL_OK && watch->point != NULL) RILL__NOTE_ORDER(seen_event, watch->point);
  drop_references(watch);
  tell(watch);
}

/* ---- the watcher ---- */

static void wake(struct rill__waker *waker) { arrive((struct rill__watch *)(void *)waker); }

/* Finds what the watch waits for, now that its fence is no longer QUEUED.  Sets `over` if the result is already
 * known. */
static void find_point(struct rill__watch *watch) {
  if (watch->point != NULL || watch->fence == NULL) return;
  rill__held_lock();
  RILL_ASSERT(!rill__fence_is_pending(watch->fence),
              "a watch arrives when its record has reached the driver or failed");
  const struct rill__failure *const failure = watch->fence->failure;
  watch->over = rill__fence_state(watch->fence) == FENCE_FAILED;
  if (watch->over) watch->status = failure != NULL ? failure->status : RILL_ERROR_NOT_RECORDED;
  watch->point = watch->over ? NULL : watch->fence->mark;
  watch->over |= watch->point == NULL; /* other code may have made the record: there is nothing to query */
  rill__held_unlock();
}

static struct rill__watch **receive(struct rill__watch *watch, struct rill__watch **end) {
  if (watch->backend_wakes) return rill__lines_woken(watch, end);
  find_point(watch);
  if (!watch->over) return rill__lines_add(watch, end);
  watch->next = NULL;
  *end = watch;
  return &watch->next;
}

/* Returns the watches that are over. */
static struct rill__watch *query_arrived(struct rill__watch *list) {
  struct rill__watch *over = NULL, **end = &over;
  struct rill__thread *const self = rill__self;
  pthread_mutex_lock(&querying);
  rill__enter_epoch(self);
  while (list != NULL) {
    struct rill__watch *const watch = list;
    list = watch->next;
    end = receive(watch, end);
  }
  (void)rill__lines_poll(end);
  rill__leave(&self);
  pthread_mutex_unlock(&querying);
  return over;
}

/* Waits until a watch has arrived, or until the pause before the next poll has elapsed. */
static struct rill__watch *await_arrival(uint64_t pause) {
  struct timespec until;
  (void)clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += (long)pause;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  rill__watches_lock();
  int code = 0;
  while (arrived.first == NULL && code != ETIMEDOUT) {
    code = pause == UINT64_MAX ? pthread_cond_wait(&watch_arrived, &watch_lock)
                               : pthread_cond_timedwait(&watch_arrived, &watch_lock, &until);
  }
  struct rill__watch *const list = take_all(&arrived);
  rill__watches_unlock();
  return list;
}

static void attach_thread(const char *name) {
  (void)prctl(PR_SET_NAME, name);
  while (rill__self == NULL &&
         rill__thread_attach() == NULL) { /* memory ran out: watches are kept until memory is available */
    (void)nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
  }
  rill__self->api = "rill_event_then";
}

static void *run_watcher(void *unused) {
  (void)prctl(PR_SET_TIMERSLACK, 1);
  attach_thread("rill-watch");
  for (;;) {
    struct rill__watch *list = await_arrival(rill__lines_wait() ? rill__lines_pause() : UINT64_MAX);
    for (list = query_arrived(list); list != NULL;) {
      struct rill__watch *const watch = list;
      list = watch->next;
      finish_watch(watch);
    }
  }
  return unused;
}

static void *run_caller(void *unused) {
  attach_thread("rill-then");
  for (;;) {
    rill__watches_lock();
    while (due.first == NULL) pthread_cond_wait(&watch_due, &watch_lock);
    struct rill__watch *const watch = due.first;
    due.first = watch->next;
    if (due.first == NULL) due.last = &due.first;
    rill__watches_unlock();
    watch->listener.fn(watch->listener.user, watch->status);
    free(watch);
  }
  return unused;
}

/* ---- threads ---- */

/* Stops the watcher for good before it calls a driver.  If a driver call does not return in time, the watcher is left
 * inside it. */
static void stop_queries(void) {
  struct timespec until;
  (void)clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec++;
  (void)pthread_mutex_timedlock(&querying, &until);
}

static void make_condition(void) {
  pthread_condattr_t monotonic;
  (void)pthread_condattr_init(&monotonic);
  (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  (void)pthread_cond_init(&watch_arrived, &monotonic);
  (void)pthread_condattr_destroy(&monotonic);
}

static void prepare_watches(void) {
  make_condition();
  (void)atexit(stop_queries);
}

/* Starts a thread unless `*runs` is true.  Returns 0 or an error number.  Call it under the lock of watches. */
static int start_thread(void *(*run)(void *), bool *runs) {
  pthread_t thread;
  sigset_t all, before;
  if (*runs) return 0;
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are left to the program's own threads */
  const int code = pthread_create(&thread, NULL, run, NULL);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  *runs = code == 0;
  if (*runs) (void)pthread_detach(thread);
  return code;
}

static rill_status start_threads(bool calls) {
  (void)pthread_once(&watch_once, prepare_watches);
  rill__watches_lock();
  int code = start_thread(run_watcher, &watcher_runs);
  if (code == 0 && calls) code = start_thread(run_caller, &caller_runs);
  rill__watches_unlock();
  RILL_REQUIRE(code == 0, RILL_ERROR_OUT_OF_MEMORY, "the thread that watches events could not be started: %s",
               strerror(code));
  return RILL_OK;
}

/* The parent's watches are not notified in the child, and not freed: the watcher may have been changing their lines. */
void rill__watches_after_fork(void) {
  (void)take_all(&arrived);
  (void)take_all(&due);
  rill__lines_forget();
  watcher_runs = caller_runs = false;
  (void)pthread_mutex_init(&querying, NULL);
  (void)pthread_cond_init(&watch_due, NULL);
  make_condition();
}

/* ---- the call ---- */

/* Binds the watch to the record that the event has now, and sets `over` if there is nothing to wait for.  `fresh`: a
 * new fence, used if the event stands for no fence; the fence that is used gets a reference.  Call it under the lock of
 * held work. */
static void bind(struct rill__watch *watch, struct rill__event *event, struct rill__fence *fresh) {
  const uint32_t state = atomic_load(&rill__core(event)->state);
  struct rill__fence *fence = rill__event_fence(event);
  if (state == RILL__EVENT_RECORDED && rill__event_is_shared(event)) {
    rill__ref(&event->base);
    watch->point = event;
    return;
  }
  if (state == RILL__EVENT_RECORDED) {
    fence = fresh;
    rill__fence_issue(fence, event, true);
  }
  watch->over = fence == NULL || rill__fence_state(fence) == FENCE_AWAITED; /* never recorded */
  if (watch->over) return;
  watch->fence = fence;
  rill__fence_add_wait(fence);
  if (fence == fresh) rill__event_attach(event, fence);
  if (rill__fence_state(fence) != FENCE_QUEUED) return;
  watch->next = fence->watches;
  fence->watches = watch;
}

/* Returns true if it is known without a lock that there is nothing to wait for.  Functions are called in the order of
 * their points, so a function for a complete point still goes through the watcher. */
static bool is_over_already(struct rill__event *event, const struct rill__listener *listener) {
  struct rill__event *point = NULL;
  const enum rill__meaning meaning = rill__event_meaning(event, &point);
  if (meaning == RILL__NO_RECORD) return true;
  if (listener->fn != NULL || meaning != RILL__RECORD_ISSUED || point == NULL || !rill__known_complete(point))
    return false;
  RILL__NOTE_ORDER(seen_event, point);
  return true;
}

static rill_status watch_point(struct rill__watch *watch, struct rill__event *event) {
  struct rill__fence *fresh = NULL;
  RILL_TRY(rill__fence_new(event, &fresh));
  rill__held_lock();
  const bool captured = atomic_load(&rill__core(event)->state) == RILL__EVENT_CAPTURED;
  if (!captured) bind(watch, event, fresh);
  const bool over = watch->over, queued = watch->fence != NULL && rill__fence_is_pending(watch->fence);
  rill__fence_unref(fresh);
  rill__held_unlock();
  if (captured) return rill__fail_captured_record(event);
  if (over) {
    tell(watch);
  } else if (!queued) { /* a queued watch may have ended by now */
    arrive(watch);
  }
  return RILL_OK;
}

/* The threads are started first, so that a watch that has been accepted is never left without a thread.  A function is
 * passed to its thread even if the point is already complete, because it must not run inside the caller's call. */
rill_status rill__event_watch(struct rill__event *event, const struct rill__listener *listener) {
  RILL_TRY(rill__check_usable(event->base.device));
  const bool over = is_over_already(event, listener);
  if (over && listener->fn == NULL) {
    notify_fd(listener->fd);
    return RILL_OK;
  }
  RILL_TRY(start_threads(listener->fn != NULL));
  struct rill__watch *const watch = calloc(1, sizeof *watch);
  RILL_REQUIRE(watch != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory to watch %s", rill__name_of(&event->base).text);
  watch->waker.wake = wake;
  watch->device = event->base.device;
  watch->listener = *listener;
  watch->over = over;
  if (over) {
    tell(watch);
    return RILL_OK;
  }
  const rill_status status = watch_point(watch, event);
  if (status != RILL_OK) free(watch);
  return status;
}
