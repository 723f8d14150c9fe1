/* Communicators: handles, breaking and destruction. */
#include "backends/comm/engine.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- handles ----
 *
 * A handle consists of a kind that rill does not use (8 bits) and a number that is never reused (56 bits).  Each
 * running call holds a pin; a communicator is destroyed when it has no references and no pins. */

enum { KIND = 0xc3, BUCKETS = 256 };

static struct {
  pthread_mutex_t lock;
  struct comm *found[BUCKETS]; /* hashed by handle; linked by next */
  uint64_t last;               /* the number that was assigned last */
  uint32_t apart;              /* running threads of rill__comm_run_apart */
  pthread_cond_t ended;
  bool forked;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER };

static struct comm **bucket_of(rill_comm handle) { return &all.found[handle.id % BUCKETS]; }

/* Returns the communicator of a valid handle; otherwise NULL, with the last error set.  Call under the lock. */
static struct comm *find(rill_comm handle) {
  const uint64_t number = handle.id & ((UINT64_C(1) << 56) - 1);
  struct comm *comm = *bucket_of(handle);
  while (comm != NULL && !rill_comm_equal(comm->handle, handle)) comm = comm->next;
  if (comm != NULL && comm->references > 0) return comm;
  if (handle.id >> 56 != KIND || number == 0 || number > all.last) {
    (void)rill__comm_fail(RILL_ERROR_INVALID_HANDLE, "comm 0x%llx is not a handle of a communicator",
                          (unsigned long long)handle.id);
  } else {
    (void)rill__comm_fail(RILL_ERROR_STALE_HANDLE, "the last reference to communicator 0x%llx has been released",
                          (unsigned long long)handle.id);
  }
  return NULL;
}

/* Assigns a handle to a communicator.  No other thread knows the handle yet. */
static void publish(struct comm *comm) {
  pthread_mutex_lock(&all.lock);
  comm->references = 1;
  comm->handle.id = (uint64_t)KIND << 56 | ++all.last;
  comm->next = *bucket_of(comm->handle);
  *bucket_of(comm->handle) = comm;
  pthread_mutex_unlock(&all.lock);
}

/* Removes the communicator from the table.  Call under the lock. */
static void forget(struct comm *comm) {
  struct comm **link = bucket_of(comm->handle);
  while (*link != comm) link = &(*link)->next;
  *link = comm->next;
}

static void end(struct comm *comm);

/* Releases the lock, and destroys the communicator if no reference or pin is left.  Call under the lock, after
 * decrementing a count.  In a child of fork the engines must not be called, so the memory is not freed. */
static void unlock_and_end(struct comm *comm) {
  const bool last = comm->references == 0 && comm->pins == 0;
  const bool forked = all.forked;
  if (last) forget(comm);
  pthread_mutex_unlock(&all.lock);
  if (last && !forked) end(comm);
}

rill_status rill__comm_pin(rill_comm handle, struct comm **out) {
  pthread_mutex_lock(&all.lock);
  const bool forked = all.forked;
  *out = forked ? NULL : find(handle);
  if (*out != NULL) (*out)->pins++;
  pthread_mutex_unlock(&all.lock);
  COMM_REQUIRE(!forked, RILL_ERROR_NO_DEVICE, "communicators do not survive a fork");
  if (*out == NULL) return rill__comm_last_error.status;
  rill__comm_about((*out)->label);
  return RILL_OK;
}

void rill__comm_unpin(struct comm *comm) {
  pthread_mutex_lock(&all.lock);
  comm->pins--;
  unlock_and_end(comm);
}

rill_status rill_comm_retain(rill_comm handle) {
  rill__comm_enter(__func__);
  pthread_mutex_lock(&all.lock);
  struct comm *comm = find(handle);
  if (comm != NULL) comm->references++;
  pthread_mutex_unlock(&all.lock);
  return comm != NULL ? RILL_OK : rill__comm_last_error.status;
}

rill_status rill_comm_release(rill_comm handle) {
  rill__comm_enter(__func__);
  if (handle.id == 0) return RILL_OK;
  pthread_mutex_lock(&all.lock);
  struct comm *comm = find(handle);
  if (comm != NULL) {
    comm->references--;
    unlock_and_end(comm);
    return RILL_OK;
  }
  pthread_mutex_unlock(&all.lock);
  return rill__comm_last_error.status;
}

/* ---- helper threads ---- */

struct apart {
  void *(*run)(void *argument);
  void *argument;
};

static void count_apart(int change) {
  pthread_mutex_lock(&all.lock);
  all.apart += (uint32_t)change;
  if (change < 0) pthread_cond_broadcast(&all.ended);
  pthread_mutex_unlock(&all.lock);
}

static void *run_apart(void *argument) {
  const struct apart apart = *(struct apart *)argument;
  free(argument);
  (void)apart.run(apart.argument);
  count_apart(-1);
  return NULL;
}

bool rill__comm_run_apart(void *(*run)(void *), void *argument) {
  struct apart *apart = malloc(sizeof *apart);
  pthread_t thread;
  count_apart(1);
  if (apart != NULL) {
    *apart = (struct apart){ run, argument };
    if (pthread_create(&thread, NULL, run_apart, apart) == 0) return pthread_detach(thread) == 0;
  }
  free(apart);
  count_apart(-1);
  return false;
}

/* ---- life ---- */

void rill__comm_free(struct comm *comm) {
  (void)rill_stream_release(comm->check_stream);
  (void)rill_free(comm->check_memory);
  /* Otherwise a comparison may still write the records, which are not freed then. */
  if (!comm->broken || !comm->engine->cannot_cancel) (void)rill_free(comm->check_device_memory);
  for (int i = 0; i < COMM_PAIR_SIZES; i++) {
    (void)rill_free(comm->pair_memory[i]);
    (void)rill_free(comm->pair_device_memory[i]);
  }
  (void)rill_free(comm->scratch);
  pthread_cond_destroy(&comm->changed);
  pthread_mutex_destroy(&comm->lock);
  free(comm);
}

static void *end_apart(void *argument) {
  struct comm *comm = argument;
  rill__comm_watch_remove(comm);
  if (comm->engine->drain != NULL) comm->engine->drain(comm);
  pthread_mutex_lock(&comm->lock);
  while (comm->broken && !comm->aborted) (void)pthread_cond_wait(&comm->changed, &comm->lock);
  pthread_mutex_unlock(&comm->lock);
  if (comm->engine->ends_when_quiet) {
    rill__comm_quiet_end(comm);
  } else {
    comm->engine->end(comm);
    rill__comm_free(comm);
  }
  return NULL;
}

/* Destroys a communicator on a helper thread, because destruction waits for operations. */
static void end(struct comm *comm) {
  if (!rill__comm_run_apart(end_apart, comm)) (void)end_apart(comm);
}

rill_status rill__comm_new(const struct comm_engine *engine, rill_device device, const rill_device_info *info,
                           const rill_comm_options *options, struct comm **out) {
  struct comm *comm = calloc(1, sizeof *comm);
  COMM_REQUIRE(comm != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a communicator");
  comm->engine = engine;
  comm->device = device;
  comm->ordinal = info->ordinal;
  comm->timeout = options->timeout_ns;
  comm->last = &comm->first;
  (void)pthread_mutex_init(&comm->lock, NULL);
  comm_init_condition(&comm->changed);
  rill_stream stream; /* opening the default stream creates the device's context */
  rill_status status = rill_device_default_stream(device, &stream);
  if (status == RILL_OK) status = rill_stream_context(stream, &comm->context);
  if (status == RILL_OK && engine->needs_scratch) status = rill_alloc(device, 8, RILL_MEMORY_DEVICE, &comm->scratch);
  if (status != RILL_OK) (void)rill__comm_fail_rill(status, "preparing the device");
  if (status != RILL_OK) {
    rill__comm_free(comm);
    return status;
  }
  rill__comm_quiet_add(comm);
  publish(comm);
  *out = comm;
  return RILL_OK;
}

void rill__comm_discard(struct comm *comm) {
  pthread_mutex_lock(&all.lock);
  forget(comm);
  pthread_mutex_unlock(&all.lock);
  if (comm->engine->ends_when_quiet) rill__comm_quiet_end(comm); /* freeing its memory is part of its end */
  else rill__comm_free(comm);
}

/* ---- at exit and fork ---- */

static void forked(void) {
  (void)pthread_mutex_init(&all.lock, NULL);
  rill__comm_quiet_forked();
  all.forked = true;
}

static void wait_for_apart(uint32_t left, uint64_t ns) {
  const struct timespec until = comm_after(ns);
  pthread_mutex_lock(&all.lock);
  while (all.apart > left && pthread_cond_timedwait(&all.ended, &all.lock, &until) != ETIMEDOUT) continue;
  pthread_mutex_unlock(&all.lock);
}

/* Waits for helper threads, and stops the other threads.  Vendor libraries crash if they are called during their own
 * teardown, so helper threads get time to finish: on a loaded machine, destroying a communicator can take half a
 * minute.  The watch thread is stopped last, because communicators are destroyed only once it has seen their operations
 * end or time out.  The wait is bounded, because a communicator without a deadline may wait for a peer that never
 * arrives.  Communicators that cannot end quietly because of graphs are not waited for (quiet.c). */
static void at_exit(void) {
  enum { FOR_ENDS = 60, FOR_WATCH = 2 };
  if (all.forked) return;
  rill__comm_quiet_leave_process();
  wait_for_apart(rill__comm_watch_is_started() ? 1 : 0, FOR_ENDS * UINT64_C(1000000000));
  rill__comm_quiet_stop();
  rill__comm_watch_stop();
  rill__comm_local_stop();
  wait_for_apart(0, FOR_WATCH * UINT64_C(1000000000));
}

static void first_use(void) {
  comm_init_condition(&all.ended);
  rill__comm_quiet_init();
  (void)pthread_atfork(NULL, NULL, forked);
  (void)atexit(at_exit); /* for a join that was abandoned */
}

/* Registers at_exit.  Exit handlers run in reverse order of registration, and this one must run before those of the
 * engine's libraries, so it is registered after a join has loaded all of them. */
void rill__comm_handle_exit(const struct comm_engine *engine) {
  static atomic_uint handled; /* one bit per backend */
  const unsigned bit = 1u << engine->backend;
  if ((atomic_fetch_or(&handled, bit) & bit) == 0) (void)atexit(at_exit);
}

rill_status rill__comm_begin_use(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, first_use);
  COMM_REQUIRE(!all.forked, RILL_ERROR_NO_DEVICE, "communicators do not survive a fork");
  return RILL_OK;
}

/* ---- breaking ---- */

rill_status rill__comm_check_intact(struct comm *comm) {
  pthread_mutex_lock(&comm->lock);
  const bool broken = comm->broken;
  const struct comm_error failure = broken ? comm->failure : (struct comm_error){ .status = RILL_OK };
  pthread_mutex_unlock(&comm->lock);
  return broken ? rill__comm_fail_as(&failure) : RILL_OK;
}

/* Invariant: at most one call has a turn, and calls get it in the order of their tickets.  `first` is the ticket of
 * that call, or, if no call has the turn, that of the next one.  A broken communicator gives no turn to anybody, so
 * calls that stop waiting need not return their tickets. */
rill_status rill__comm_take_turn(struct comm *comm, enum comm_turn which) {
  struct comm_turns *const turns = &comm->turns[which];
  pthread_mutex_lock(&comm->lock);
  const uint64_t ticket = turns->next++;
  while (!comm->broken && turns->first != ticket) (void)pthread_cond_wait(&comm->changed, &comm->lock);
  const bool broken = comm->broken;
  COMM_ASSERT(broken || !turns->taken);
  if (!broken) turns->taken = true;
  pthread_mutex_unlock(&comm->lock);
  return broken ? rill__comm_check_intact(comm) : RILL_OK;
}

void rill__comm_pass_turn(struct comm *comm, enum comm_turn which) {
  struct comm_turns *const turns = &comm->turns[which];
  pthread_mutex_lock(&comm->lock);
  COMM_ASSERT(turns->taken && turns->first < turns->next);
  turns->taken = false;
  if (++turns->first != turns->next) pthread_cond_broadcast(&comm->changed);
  pthread_mutex_unlock(&comm->lock);
}

rill_status rill__comm_go_inside(struct comm *comm, bool submits) {
  pthread_mutex_lock(&comm->lock);
  const bool broken = comm->broken;
  if (!broken) comm->inside++;
  if (!broken && submits) comm->submitting_since = comm_now();
  pthread_mutex_unlock(&comm->lock);
  if (broken) return rill__comm_check_intact(comm);
  if (submits) rill__comm_watch_wake(comm);
  return RILL_OK;
}

void rill__comm_come_out(struct comm *comm, bool submits) {
  pthread_mutex_lock(&comm->lock);
  comm->inside--;
  if (submits) comm->submitting_since = 0;
  pthread_cond_broadcast(&comm->changed);
  pthread_mutex_unlock(&comm->lock);
}

/* Makes the last error name the operation that it ended: the oldest one in flight, or, without a deadline, the last
 * one.
 */
static rill_status name_ended_operation(struct comm *comm) {
  const struct comm_error error = rill__comm_last_error;
  uint64_t number = atomic_load(&comm->numbered);
  struct comm_op_text what;
  (void)snprintf(what.text, sizeof what.text, "rank %u of %u, after its operation %llu", comm->rank, comm->ranks,
                 (unsigned long long)number);
  pthread_mutex_lock(&comm->lock);
  if (comm->first != NULL) {
    const struct comm_op *const op = &comm->first->op;
    what = comm_describe(op);
    number = op->number != 0 ? op->number : op->for_number;
  }
  pthread_mutex_unlock(&comm->lock);
  char missing[320] = "";
  rill__comm_name_missing(comm, number, missing, sizeof missing);
  return rill__comm_fail_native(error.status, error.native_code, error.native_name, "%s: %.400s%.200s" COMM_HINT "%s",
                                what.text, error.message, missing, error.hint);
}

rill_status rill__comm_poll(struct comm *comm) {
  COMM_TRY(rill__comm_go_inside(comm, false));
  rill_status status = comm->engine->poll != NULL ? comm->engine->poll(comm) : RILL_OK;
  if (status != RILL_OK && !comm->engine->keeps_deadlines) status = name_ended_operation(comm);
  const struct comm_error why = rill__comm_last_error;
  rill__comm_come_out(comm, false);
  if (status != RILL_OK) rill__comm_break(comm, &why, true);
  return status;
}

/* Waits for submissions that are inside the engine before it aborts: an ordinary submission returns by itself, and one
 * that waits for a peer is interrupted if the engine can do that. */
static void *abort_now(void *argument) {
  struct comm *comm = argument;
  const struct timespec until = comm_after(UINT64_C(200000000));
  pthread_mutex_lock(&comm->lock);
  while (comm->inside != 0 && pthread_cond_timedwait(&comm->changed, &comm->lock, &until) != ETIMEDOUT) continue;
  const bool blocked = comm->inside != 0;
  pthread_mutex_unlock(&comm->lock);
  if (blocked && comm->engine->interrupt != NULL && comm->engine->interrupt(comm)) {
    pthread_mutex_lock(&comm->lock);
    while (comm->inside != 0) (void)pthread_cond_wait(&comm->changed, &comm->lock);
    pthread_mutex_unlock(&comm->lock);
  }
  comm->engine->abort(comm);
  pthread_mutex_lock(&comm->lock);
  comm->aborted = true;
  pthread_cond_broadcast(&comm->changed);
  pthread_mutex_unlock(&comm->lock);
  return NULL;
}

void rill__comm_break(struct comm *comm, const struct comm_error *why, bool apart) {
  pthread_mutex_lock(&comm->lock);
  if (comm->broken) {
    while (!apart && !comm->aborted) (void)pthread_cond_wait(&comm->changed, &comm->lock);
    pthread_mutex_unlock(&comm->lock);
    return;
  }
  comm->broken = true;
  comm->failure = *why;
  struct comm_flight *flights = comm->first;
  comm->first = NULL;
  comm->last = &comm->first;
  pthread_cond_broadcast(&comm->changed);
  pthread_mutex_unlock(&comm->lock);
  /* must come first: after the abort, the device may continue past the operations to the work after them */
  rill__comm_watch_tell(flights, why);
  if (!apart || !rill__comm_run_apart(abort_now, comm)) (void)abort_now(comm);
}

rill_status rill_comm_abort(rill_comm handle) {
  rill__comm_enter(__func__);
  struct comm *comm = NULL;
  COMM_TRY(rill__comm_pin(handle, &comm));
  const struct comm_error why = { .status = RILL_ERROR_BACKEND, .message = "rill_comm_abort ended the communicator" };
  rill__comm_break(comm, &why, comm->engine->aborts_apart);
  rill__comm_unpin(comm);
  return RILL_OK;
}

/* ---- reports ---- */

/* Returns another rank of the same communicator in this process, or NULL.  Call under the lock. */
static struct comm *find_rank(const struct comm *of, uint32_t rank) {
  for (int i = 0; i < BUCKETS; i++) {
    for (struct comm *comm = all.found[i]; comm != NULL; comm = comm->next) {
      if (comm != of && comm->family == of->family && comm->rank == rank && comm->ranks == of->ranks) return comm;
    }
  }
  return NULL;
}

/* Appends why a rank has not reached operation `number`.  Returns the length of the text; 0 if the rank has reached the
 * operation. */
static int describe_missing(struct comm *comm, uint64_t number, char *text, size_t size) {
  const unsigned long long made = atomic_load(&comm->numbered);
  if (made < number) return snprintf(text, size, "; rank %u has called %llu operations", comm->rank, made);
  pthread_mutex_lock(&comm->lock);
  const struct comm_flight *oldest = comm->first;
  const bool stands = oldest != NULL && oldest->since == 0 && oldest->op.number <= number;
  const unsigned long long at = stands ? oldest->op.number : 0;
  pthread_mutex_unlock(&comm->lock);
  return stands ? snprintf(text, size, "; the stream of rank %u has not reached its operation %llu", comm->rank, at)
                : 0;
}

void rill__comm_name_missing(const struct comm *comm, uint64_t number, char *text, size_t size) {
  enum { LONGEST = 80 };
  size_t used = strlen(text);
  pthread_mutex_lock(&all.lock);
  for (uint32_t i = 0; i < comm->ranks && comm->family != 0 && used + LONGEST < size; i++) {
    struct comm *other = i != comm->rank ? find_rank(comm, i) : NULL;
    const int wrote = other != NULL ? describe_missing(other, number, text + used, size - used) : 0;
    used += wrote > 0 ? (size_t)wrote : 0;
  }
  pthread_mutex_unlock(&all.lock);
}

rill_status rill_comm_validate(rill_comm handle) {
  rill__comm_enter(__func__);
  struct comm *comm = NULL;
  COMM_TRY(rill__comm_pin(handle, &comm));
  const rill_status status = rill__comm_poll(comm);
  rill__comm_unpin(comm);
  return status;
}

rill_status rill_comm_get_info(rill_comm handle, rill_comm_info *out) {
  rill__comm_enter(__func__);
  struct comm *comm = NULL;
  COMM_TRY(rill__comm_pin(handle, &comm));
  rill_status status = RILL_OK;
  if (out == NULL || out->struct_size < sizeof(size_t)) {
    status = rill__comm_fail(RILL_ERROR_INVALID_ARGUMENT, "info is NULL, or its struct_size is 0");
  } else {
    rill_comm_info info = RILL_COMM_INFO_INIT;
    const size_t size = out->struct_size < sizeof info ? out->struct_size : sizeof info;
    info.struct_size = out->struct_size;
    info.device = comm->device;
    info.ranks = comm->ranks;
    info.rank = comm->rank;
    info.engine_version = comm->engine->version();
    info.timeout_ns = comm->timeout;
    (void)snprintf(info.engine, sizeof info.engine, "%s", comm->engine->name);
    memcpy(out, &info, size);
  }
  rill__comm_unpin(comm);
  return status;
}
