#include "core/graph/graph.h"

#include <pthread.h>

static pthread_mutex_t claims_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t claim_ended = PTHREAD_COND_INITIALIZER;
static uint32_t in_child; /* number of claims on objects of devices that keep working in a forked child */
static uint32_t forks;    /* threads that wait until in_child is 0 */

static bool usable_in_child(const struct rill__graph_exec *exec) { return !exec->base.device->backend->gpu; }

static void lock_claims(void) {
  pthread_mutex_lock(&claims_lock);
  rill__lock_taken(RILL__LOCK_CLAIMS);
}

static void unlock_claims(void) {
  rill__lock_released(RILL__LOCK_CLAIMS);
  pthread_mutex_unlock(&claims_lock);
}

void rill__exec_claim(struct rill__graph_exec *exec) {
  struct rill__exec_core *core = rill__core(exec);
  RILL_ASSERT(rill__is_outside_epochs() || atomic_load(&core->held_launches) > 0,
              "a thread waits for a claim only outside epochs");
  RILL_WITHOUT_CANCEL();
  lock_claims();
  core->claimants++;
  while (core->claimed) (void)pthread_cond_wait(&claim_ended, &claims_lock);
  core->claimants--;
  core->claimed = true;
  if (usable_in_child(exec)) in_child++;
  unlock_claims();
}

void rill__exec_unclaim(struct rill__graph_exec *exec) {
  struct rill__exec_core *core = rill__core(exec);
  lock_claims();
  RILL_ASSERT(core->claimed, "a claim ends once");
  core->claimed = false;
  if (usable_in_child(exec)) in_child--;
  /* All claimants share one condition variable, so a wake-up costs every one of them; it is sent only if someone can
   * continue. */
  const bool wake = core->claimants > 0 || (in_child == 0 && forks > 0);
  unlock_claims();
  if (wake) (void)pthread_cond_broadcast(&claim_ended);
}

void rill__claims_lock(void) {
  lock_claims();
  forks++;
  /* Returns with the lock taken, so no claim begins until the fork is over. */
  while (in_child > 0) (void)pthread_cond_wait(&claim_ended, &claims_lock);
  forks--;
}

void rill__claims_unlock(void) { unlock_claims(); }

void rill__claims_after_fork(void) {
  claim_ended = (pthread_cond_t)PTHREAD_COND_INITIALIZER; /* threads that waited do not exist in the child */
  forks = 0;
}
