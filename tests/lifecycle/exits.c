/* Ends a process in any order (C1.10): with live handles, blocked work, running threads, and calls from exit handlers
 * and destructors. */
#include "fault/children.h"
#include "life.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

enum { GOOD = 7 }; /* an exit code that nothing else gives */

static struct leftovers left;

static void begin(void) {
  life_begin();
  use(life.device);
  leave_leftovers(&left);
}

static void live_handles(void) {
  life_begin();
  use(life.device);
  rill_stream stream;
  rill_event event;
  uint32_t *memory = NULL;
  must(rill_stream_create(life.device, NULL, &stream));
  must(RILL_NEW(life.device, RILL_MEMORY_PINNED, 16, &memory));
  must(rill_stream_record_new_event(stream, NULL, &event));
  exit(GOOD);
}

static void pending_work(void) {
  begin();
  exit(GOOD);
}

static void pending_work_quick_exit(void) {
  begin();
  quick_exit(GOOD);
}

static void pending_work_underscore_exit(void) {
  begin();
  _exit(GOOD);
}

static void released_with_pending_work(void) {
  begin();
  must(rill_stream_release(left.stream));
  must(rill_stream_release(left.waiting));
  must(rill_stream_release(left.held));
  must(rill_event_release(left.event));
  must(rill_event_release(left.never));
  exit(GOOD);
}

/* ---- threads ---- */

static _Atomic unsigned running;

/* Never ends: the process does. */
static void *work_for_ever(void *argument) {
  const unsigned index = (unsigned)(uintptr_t)argument;
  (void)atomic_fetch_add(&running, 1);
  for (;;) {
    rill_event event;
    bool out;
    switch (index % 3) {
      case 0: use(life.cpu); break;
      case 1:
        if (rill_event_create(life.device, NULL, &event) == RILL_OK) ignore(rill_event_release(event));
        ignore(rill_stream_is_complete(left.stream, &out));
        break;
      default: ignore(rill_event_synchronize(left.event)); break; /* blocks */
    }
  }
  return NULL;
}

static void start_workers(void) {
  enum { WORKERS = 6 };
  for (unsigned i = 0; i < WORKERS; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work_for_ever, (void *)(uintptr_t)i) != 0) die("no thread");
    (void)pthread_detach(thread);
  }
  while (atomic_load(&running) < WORKERS) (void)sched_yield();
}

static void running_threads(void) {
  begin();
  start_workers();
  exit(GOOD);
}

static void *exit_here(void *argument) {
  (void)argument;
  use(life.cpu);
  exit(GOOD);
}

static void exit_from_another_thread(void) {
  pthread_t thread;
  begin();
  if (pthread_create(&thread, NULL, exit_here, NULL) != 0) die("no thread");
  (void)pthread_join(thread, NULL);
}

/* The first thread ends, and the last one the process. The first thread cannot be joined reliably, so a destructor
 * notices its end, in the last round of destructors. */
static pthread_key_t first_key;
static unsigned first_rounds;
static sem_t first_ends;

static void tell_first_ends(void *value) {
  if (++first_rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
    (void)pthread_setspecific(first_key, value);
  } else if (sem_post(&first_ends) != 0) {
    die("no semaphore");
  }
}

static void *last_thread(void *argument) {
  (void)argument;
  while (sem_wait(&first_ends) != 0) {
  }
  use(life.cpu);
  exit(GOOD);
}

static void first_thread_ends_first(void) {
  pthread_t thread;
  begin();
  if (sem_init(&first_ends, 0, 0) != 0 || pthread_key_create(&first_key, tell_first_ends) != 0 ||
      pthread_setspecific(first_key, &first_rounds) != 0 || pthread_create(&thread, NULL, last_thread, NULL) != 0) {
    die("no thread");
  }
  pthread_exit(NULL);
}

/* ---- calls at exit ---- */

static void use_at_exit(void) {
  use(life.cpu);
  if (!life.gpu) return;
  rill_stream stream; /* the driver may have shut down: any status, no crash */
  if (rill_stream_create(life.device, NULL, &stream) == RILL_OK) ignore(rill_stream_release(stream));
  bool out;
  ignore(rill_event_is_ready(left.event, &out));
  must(rill_stream_release(left.stream));
  must(rill_event_release(left.event));
}

static void from_a_handler_registered_first(void) {
  if (atexit(use_at_exit) != 0) die("no handler");
  begin();
  exit(GOOD);
}

static void from_a_handler_registered_last(void) {
  begin();
  if (atexit(use_at_exit) != 0) die("no handler");
  exit(GOOD);
}

static void first_use_in_a_handler(void) { exit((atexit(life_begin), GOOD)); }

static bool in_destructor;

__attribute__((destructor)) static void at_the_end(void) {
  if (in_destructor) use_at_exit();
}

static void from_a_destructor(void) {
  begin();
  in_destructor = true;
  exit(GOOD);
}

/* Thread-specific data may be destroyed after the thread's record in rill. */
static pthread_key_t key;

static void use_at_thread_end(void *value) {
  (void)value;
  use(life.cpu);
  rill_stream stream;
  must(rill_stream_create(life.device, NULL, &stream));
  must(rill_stream_release(stream));
}

static void *set_and_end(void *argument) {
  (void)pthread_setspecific(key, argument);
  use(life.device);
  return NULL;
}

static void from_thread_destructors(void) {
  enum { THREADS = 16 };
  life_begin();
  if (pthread_key_create(&key, use_at_thread_end) != 0) die("no key");
  use(life.device);
  for (int i = 0; i < THREADS; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, set_and_end, &key) != 0) die("no thread");
    (void)pthread_join(thread, NULL);
  }
  exit(GOOD);
}

/* The end of main, by way of the test runner. */
static void return_from_main(void) { begin(); }

int main(int argc, char **argv) {
  static const struct mode modes[] = {
#define EXITS(mode) MODE_EXITS(mode, GOOD, NULL)
    EXITS(live_handles),
    EXITS(pending_work),
    EXITS(pending_work_quick_exit),
    EXITS(pending_work_underscore_exit),
    EXITS(released_with_pending_work),
    EXITS(running_threads),
    EXITS(exit_from_another_thread),
    EXITS(first_thread_ends_first),
    EXITS(from_a_handler_registered_first),
    EXITS(from_a_handler_registered_last),
    EXITS(first_use_in_a_handler),
    EXITS(from_a_destructor),
    EXITS(from_thread_destructors),
    MODE(return_from_main),
  };
  return RUN_MODES("the end of a process", argc, argv, modes);
}
