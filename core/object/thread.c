#include "core/object/locks.h"

#include <dlfcn.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

_Thread_local struct rill__thread *rill__self __attribute__((tls_model("initial-exec")));
_Thread_local bool rill__in_host_call __attribute__((tls_model("initial-exec")));
#if RILL_CHECKS
_Thread_local uint32_t rill__locks __attribute__((tls_model("initial-exec")));
#endif
_Atomic uint64_t rill__epoch = 1;
bool rill__has_membarrier;

static _Atomic(struct rill__thread *) all_threads;
static _Atomic uint64_t last_thread_number;
static pthread_key_t thread_end;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;

static int membarrier(int command) { return (int)syscall(SYS_membarrier, command, 0, 0); }

static void put_record_back(void *record) {
  struct rill__thread *thread = record;
  rill__self = NULL;
  atomic_store(&thread->epoch, 0);
  atomic_store(&thread->in_use, false);
}

static void prepare_threads(void) {
  (void)pthread_key_create(&thread_end, put_record_back); /* without a key, a record is never reused */
  rill__has_membarrier = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

/* Keeps the library or plugin that contains this copy of rill loaded from the first call on, even if dlclose is called:
 * ending threads, process exit and the vendors' threads call back into it.  No lock may be held, because the loader has
 * its own lock and may be running a constructor that calls rill. */
static void pin_library(void) {
  static _Atomic bool stays;
  Dl_info self;
  if (atomic_load(&stays)) return;
  if (dladdr(&thread_once, &self) != 0 && self.dli_fname != NULL) {
    /* has no effect if rill is linked into the program */
    (void)dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  }
  atomic_store(&stays, true);
}

static _Atomic bool recorders_are_off;

static struct rill__recorder *new_recorder(void) {
  if (atomic_load(&recorders_are_off)) return NULL;
  struct rill__recorder *recorder = aligned_alloc(_Alignof(struct rill__recorder), sizeof *recorder);
  if (recorder != NULL) memset(recorder, 0, sizeof *recorder);
  return recorder;
}

struct rill__thread *rill__threads_first(void) {
  return atomic_load(&all_threads);
}

void rill__recorders_off(void) {
  atomic_store(&recorders_are_off, true);
  for (struct rill__thread *thread = rill__threads_first(); thread != NULL; thread = thread->next) {
    free(atomic_exchange(&thread->recorder, NULL));
  }
}

struct rill__thread *rill__thread_attach(void) {
  pin_library();
  pthread_once(&thread_once, prepare_threads);
  struct rill__thread *thread = atomic_load(&all_threads);
  for (; thread != NULL; thread = thread->next) {
    bool in_use = false;
    if (atomic_compare_exchange_strong(&thread->in_use, &in_use, true)) break;
  }
  if (thread == NULL) {
    thread = calloc(1, sizeof *thread);
    if (thread == NULL) return NULL;
    atomic_init(&thread->in_use, true);
    atomic_init(&thread->recorder, new_recorder());
    thread->next = atomic_load(&all_threads);
    while (!atomic_compare_exchange_weak(&all_threads, &thread->next, thread)) {
    }
  }
  thread->number = atomic_fetch_add(&last_thread_number, 1) + 1;
  thread->error.status = RILL_OK;
  thread->suspend_depth = 0; /* the thread that owned the record before may not have survived a fork */
  thread->ranges = 0;
  thread->reclaims = false;
  (void)pthread_setspecific(thread_end, thread);
  rill__self = thread;
  return thread;
}

/* Returns true if a thread other than the caller could be inside a call.  A thread that attaches after this scan needs
 * no attention: the exchange by which it attaches orders the scan before its first look-up of a slot. */
static bool has_other_threads(void) {
  for (struct rill__thread *thread = atomic_load(&all_threads); thread != NULL; thread = thread->next) {
    if (thread != rill__self && atomic_load(&thread->in_use)) return true;
  }
  return false;
}

uint64_t rill__oldest_epoch(struct rill__thread **holder) {
  if (RILL__MEMBARRIER_USABLE && has_other_threads()) {
    (void)membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
  }
  uint64_t oldest = UINT64_MAX;
  *holder = NULL;
  for (struct rill__thread *thread = atomic_load(&all_threads); thread != NULL; thread = thread->next) {
    /* A thread that attaches after the loop has started is not visited, and need not be: it finds the slot dead (see
     * has_other_threads). */
    const uint64_t epoch = atomic_load_explicit(&thread->epoch, memory_order_seq_cst);
    if (epoch == 0 || epoch >= oldest) continue;
    oldest = epoch;
    *holder = thread;
  }
  return oldest;
}

static bool uses(struct rill__thread *thread, uint64_t id, uint64_t before) {
  const uint64_t epoch = atomic_load(&thread->epoch);
  if (epoch == 0 || epoch > before) return false;
  bool found = false;
  for (uint32_t i = 0; i < 4; i++) found |= atomic_load(&thread->ids[i]) == id;
  return found;
}

void rill__wait_for_users(uint64_t id) {
  const uint64_t before = atomic_fetch_add(&rill__epoch, 1);
  struct rill__thread *holder = NULL;
  /* called for its ordering: an id announced by a call that found the handle live is visible afterwards */
  (void)rill__oldest_epoch(&holder);
  for (struct rill__thread *thread = atomic_load(&all_threads); thread != NULL; thread = thread->next) {
    while (thread != rill__self && uses(thread, id, before)) (void)sched_yield();
  }
}

void rill__threads_after_fork(void) {
  rill__in_host_call = false; /* the host call belongs to the parent's stream */
  for (struct rill__thread *thread = atomic_load(&all_threads); thread != NULL; thread = thread->next) {
    if (thread == rill__self) continue;
    atomic_store(&thread->epoch, 0);
    atomic_fetch_add(&thread->wait.number, atomic_load(&thread->wait.number) % 2);
    atomic_store(&thread->in_use, false);
  }
  rill__has_membarrier = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}
