#include "shapes_team.h"

#include <pthread.h>
#include <stdatomic.h>

enum { SPINS = 10000 }; /* some ten microseconds, before a thread sleeps */

static struct {
  size_t size;
  shape_function *function;
  const struct shape_data *data;
  pthread_mutex_t mutex;
  pthread_cond_t more;
  _Atomic unsigned round;
  _Atomic size_t busy;
} team = { .mutex = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER };

static void do_share(size_t me) {
  const size_t n = team.data->n;
  team.function(team.data, n * me / team.size, n * (me + 1) / team.size);
}

static void wait_for_round(unsigned round) {
  for (int i = 0; i < SPINS; i++)
    if (atomic_load(&team.round) == round) return;
  (void)pthread_mutex_lock(&team.mutex);
  while (atomic_load(&team.round) != round) (void)pthread_cond_wait(&team.more, &team.mutex);
  (void)pthread_mutex_unlock(&team.mutex);
}

static void *run_member(void *me) {
  for (unsigned round = 1;; round++) {
    wait_for_round(round);
    do_share((size_t)(uintptr_t)me);
    (void)atomic_fetch_sub(&team.busy, 1);
  }
  return NULL;
}

bool team_start(size_t size) {
  team.size = size;
  for (size_t me = 1; me < size; me++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_member, (void *)(uintptr_t)me) != 0) return false;
    (void)pthread_detach(thread);
  }
  return true;
}

void team_run(shape_function *function, const struct shape_data *data) {
  team.function = function;
  team.data = data;
  atomic_store(&team.busy, team.size - 1);
  (void)pthread_mutex_lock(&team.mutex);
  (void)atomic_fetch_add(&team.round, 1);
  (void)pthread_cond_broadcast(&team.more);
  (void)pthread_mutex_unlock(&team.mutex);
  do_share(0);
  while (atomic_load(&team.busy) > 0) continue;
}
