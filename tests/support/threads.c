/* Threads and time. */
#include "testing_internal.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

struct background {
  unsigned count;
  thread_body body;
  void *shared;
  pthread_barrier_t start;
  pthread_mutex_t lock;
  char failure[512]; /* of the thread that failed first */
  struct worker {
    struct background *all;
    unsigned index;
    pthread_t thread;
  } workers[];
};

static void *work(void *argument) {
  const struct worker *self = argument;
  struct background *all = self->all;
  (void)pthread_barrier_wait(&all->start);
  const char *text = all->body(self->index, all->shared);
  if (text != NULL) {
    pthread_mutex_lock(&all->lock);
    if (all->failure[0] == '\0') {
      (void)snprintf(all->failure, sizeof all->failure, "thread %u: %s", self->index,
                     text[0] != '\0' ? text : "failed without a last error");
    }
    pthread_mutex_unlock(&all->lock);
  }
  return NULL;
}

struct background *start_threads(unsigned count, thread_body body, void *shared) {
  struct background *all = calloc(1, sizeof *all + count * sizeof *all->workers);
  assert_non_null(all);
  *all = (struct background){ .count = count, .body = body, .shared = shared };
  assert_int_equal(pthread_barrier_init(&all->start, NULL, count), 0);
  assert_int_equal(pthread_mutex_init(&all->lock, NULL), 0);
  for (unsigned i = 0; i < count; i++) {
    all->workers[i].all = all;
    all->workers[i].index = i;
    assert_int_equal(pthread_create(&all->workers[i].thread, NULL, work, &all->workers[i]), 0);
  }
  return all;
}

void join_threads(struct background *all) {
  for (unsigned i = 0; i < all->count; i++) pthread_join(all->workers[i].thread, NULL);
  pthread_barrier_destroy(&all->start);
  pthread_mutex_destroy(&all->lock);
  char failure[sizeof all->failure];
  memcpy(failure, all->failure, sizeof failure);
  free(all);
  if (failure[0] != '\0') fail_msg("%s", failure);
}

void run_threads(unsigned count, thread_body body, void *shared) { join_threads(start_threads(count, body, shared)); }

uint64_t now_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 * MILLISECOND + (uint64_t)now.tv_nsec;
}

void let_pass_ns(uint64_t ns) {
  const uint64_t end = now_ns() + ns;
  for (uint64_t now = now_ns(); now < end; now = now_ns()) {
    const uint64_t left = end - now;
    const struct timespec pause = { (time_t)(left / (1000 * MILLISECOND)), (long)(left % (1000 * MILLISECOND)) };
    (void)nanosleep(&pause, NULL);
  }
}

unsigned scaled(unsigned rounds) {
  const char *text = getenv("RILL_STRESS");
  unsigned long percent = text != NULL ? strtoul(text, NULL, 10) : 100;
  if (UNDER_RACE_DETECTOR) percent /= 10;
  const unsigned long result = rounds * percent / 100;
  return result == 0 ? 1 : (unsigned)result;
}
