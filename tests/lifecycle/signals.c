/* Signals that arrive while a thread waits: the wait goes on, for as long as it has to (T13). */
#include "life.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

enum { ENOUGH = 50 }; /* signals handled in one wait */

static _Atomic unsigned handled;

static void handle(int number) {
  (void)number;
  (void)atomic_fetch_add(&handled, 1);
}

/* A waiting thread and its result. */
struct waiter {
  rill_status (*wait)(struct waiter *waiter);
  struct leftovers left;
  pthread_t thread;
  _Atomic bool waits, returned;
  rill_status status;
  uint64_t passed_ns;
};

static void *wait_here(void *argument) {
  struct waiter *waiter = argument;
  atomic_store(&waiter->waits, true);
  const uint64_t start = now_ns();
  waiter->status = waiter->wait(waiter);
  waiter->passed_ns = now_ns() - start;
  atomic_store(&waiter->returned, true);
  return NULL;
}

enum { LIMIT_NS = 40 * MILLISECOND };

static rill_status wait_for_stream(struct waiter *w) { return rill_stream_synchronize(w->left.stream); }
static rill_status wait_for_event(struct waiter *w) { return rill_event_synchronize(w->left.event); }
static rill_status wait_for_device(struct waiter *w) { return (void)w, rill_device_synchronize(life.device); }
static rill_status wait_for_held(struct waiter *w) { return rill_stream_synchronize(w->left.held); }
static rill_status wait_long(struct waiter *w) { return rill_stream_synchronize_for(w->left.stream, TIMEOUT_NS); }
static rill_status wait_shortly(struct waiter *w) { return rill_stream_synchronize_for(w->left.stream, LIMIT_NS); }
static rill_status wait_shortly_for_event(struct waiter *w) {
  return rill_event_synchronize_for(w->left.event, LIMIT_NS);
}
static rill_status wait_shortly_for_held(struct waiter *w) {
  return rill_stream_synchronize_for(w->left.held, LIMIT_NS);
}

static void start(struct waiter *waiter, rill_status (*wait)(struct waiter *)) {
  memset(waiter, 0, sizeof *waiter);
  waiter->wait = wait;
  leave_leftovers(&waiter->left);
  atomic_store(&handled, 0);
  assert_int_equal(pthread_create(&waiter->thread, NULL, wait_here, waiter), 0);
  while (!atomic_load(&waiter->waits)) (void)sched_yield();
}

static void end(struct waiter *waiter) {
  (void)pthread_join(waiter->thread, NULL);
  assert_ok(rill_stream_synchronize(waiter->left.stream));
  assert_ok(rill_stream_synchronize(waiter->left.held));
  assert_ok(rill_stream_release(waiter->left.stream));
  assert_ok(rill_stream_release(waiter->left.waiting));
  assert_ok(rill_stream_release(waiter->left.held));
  assert_ok(rill_event_release(waiter->left.event));
  assert_ok(rill_event_release(waiter->left.never));
  assert_ok(rill_free(waiter->left.memory));
}

static void release_held(struct waiter *waiter) {
  assert_ok(rill_stream_record_event(waiter->left.waiting, waiter->left.never, 0));
}

/* A wait without a limit, or with a long one, returns when the work is done and not before. */
static void check_endless(rill_status (*wait)(struct waiter *)) {
  static struct waiter waiter;
  close_gates();
  start(&waiter, wait);
  for (unsigned seen = 0; seen < ENOUGH; seen = atomic_load(&handled)) {
    assert_int_equal(pthread_kill(waiter.thread, SIGUSR1), 0);
    (void)sched_yield();
  }
  assert_false(atomic_load(&waiter.returned));
  open_gates();
  release_held(&waiter);
  end(&waiter);
  assert_int_equal(waiter.status, RILL_OK);
}

/* A wait with a short limit: TIMEOUT, and never early. */
static void check_limited(rill_status (*wait)(struct waiter *)) {
  static struct waiter waiter;
  close_gates();
  start(&waiter, wait);
  while (!atomic_load(&waiter.returned)) {
    if (pthread_kill(waiter.thread, SIGUSR1) != 0) break;
    (void)sched_yield();
  }
  open_gates();
  release_held(&waiter);
  end(&waiter);
  assert_int_equal(waiter.status, RILL_ERROR_TIMEOUT);
  assert_true(waiter.passed_ns >= LIMIT_NS);
  assert_true(atomic_load(&handled) > 0);
}

static void waits_continue(void) {
  check_endless(wait_for_stream);
  check_endless(wait_for_event);
  check_endless(wait_for_device);
  check_endless(wait_for_held);
  check_endless(wait_long);
}

static void limits_hold(void) {
  check_limited(wait_shortly);
  check_limited(wait_shortly_for_event);
  check_limited(wait_shortly_for_held);
}

int main(void) {
  static const struct test tests[] = { TEST(waits_continue), TEST(limits_hold) };
  const struct sigaction action = { .sa_handler = handle }; /* no SA_RESTART: system calls are interrupted */
  (void)sigaction(SIGUSR1, &action, NULL);
  life_begin();
  return RUN_ONCE("signals", tests);
}
