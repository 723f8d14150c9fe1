#include "core/graph/graph.h"

#include <pthread.h>

static pthread_mutex_t claims_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t claim_ended = PTHREAD_COND_INITIALIZER;
static uint32_t in_child; /* claims of devices that work in the child of a fork */
static uint32_t forks;    /* threads that wait until there are none */

static bool works_in_child(const struct rill__graph_exec *exec) { return !exec->base.device->backend->gpu; }

void rill__exec_claim(struct rill__graph_exec *exec) {
  struct rill__exec_core *core = rill__core(exec);
  pthread_mutex_lock(&claims_lock);
  core->claimants++;
  while (core->claimed) (void)pthread_cond_wait(&claim_ended, &claims_lock);
  core->claimants--;
  core->claimed = true;
  if (works_in_child(exec)) in_child++;
  pthread_mutex_unlock(&claims_lock);
}

void rill__exec_unclaim(struct rill__graph_exec *exec) {
  struct rill__exec_core *core = rill__core(exec);
  pthread_mutex_lock(&claims_lock);
  core->claimed = false;
  if (works_in_child(exec)) in_child--;
  const bool wake = core->claimants > 0 || (in_child == 0 && forks > 0);
  pthread_mutex_unlock(&claims_lock);
  if (wake) (void)pthread_cond_broadcast(&claim_ended);
}

void rill__claims_lock(void) {
  pthread_mutex_lock(&claims_lock);
  forks++;
  while (in_child > 0) (void)pthread_cond_wait(&claim_ended, &claims_lock);
  forks--;
}

void rill__claims_unlock(void) { pthread_mutex_unlock(&claims_lock); }

void rill__claims_after_fork(void) {
  claim_ended = (pthread_cond_t)PTHREAD_COND_INITIALIZER; /* those that waited are not here */
  forks = 0;
}
