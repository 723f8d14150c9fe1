/* Communicators: handles, joining, breaking, ending. */
#include "backends/comm/engine.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- handles ----
 *
 * An id is a kind that rill does not use (8 bits) and a number that is never used again (56).  Who is inside a call has
 * a pin; a communicator ends when its references and pins are 0. */

enum { KIND = 0xc3, BUCKETS = 256 };

static struct {
  pthread_mutex_t lock;
  struct comm *found[BUCKETS]; /* by the number, linked by next */
  uint64_t last;               /* number given out */
  uint32_t apart;              /* threads */
  pthread_cond_t ended;
  bool forked;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER };

static struct comm **bucket_of(rill_comm handle) { return &all.found[handle.id % BUCKETS]; }

/* The communicator of a living handle, or NULL with text.  Under the lock. */
static struct comm *find(rill_comm handle) {
  const uint64_t number = handle.id & ((UINT64_C(1) << 56) - 1);
  struct comm *comm = *bucket_of(handle);
  while (comm != NULL && !rill_comm_equal(comm->handle, handle)) comm = comm->next;
  if (comm != NULL && comm->references > 0) return comm;
  if (handle.id >> 56 != KIND || number == 0 || number > all.last) {
    (void)comm_fail(RILL_ERROR_INVALID_HANDLE, "comm 0x%llx is not a handle of a communicator",
                    (unsigned long long)handle.id);
  } else {
    (void)comm_fail(RILL_ERROR_STALE_HANDLE, "the last reference to communicator 0x%llx has been released",
                    (unsigned long long)handle.id);
  }
  return NULL;
}

/* Gives a communicator its handle, which nobody else knows yet. */
static void publish(struct comm *comm) {
  pthread_mutex_lock(&all.lock);
  comm->references = 1;
  comm->handle.id = (uint64_t)KIND << 56 | ++all.last;
  comm->next = *bucket_of(comm->handle);
  *bucket_of(comm->handle) = comm;
  pthread_mutex_unlock(&all.lock);
}

/* Takes it out of what is found.  Under the lock. */
static void forget(struct comm *comm) {
  struct comm **link = bucket_of(comm->handle);
  while (*link != comm) link = &(*link)->next;
  *link = comm->next;
}

static void end(struct comm *comm);

/* After a count went down.  Releases the lock. */
static void unlock_and_end(struct comm *comm) {
  const bool last = comm->references == 0 && comm->pins == 0;
  if (last) forget(comm);
  pthread_mutex_unlock(&all.lock);
  if (last) end(comm);
}

rill_status comm_pin(rill_comm handle, struct comm **out) {
  pthread_mutex_lock(&all.lock);
  const bool forked = all.forked;
  *out = forked ? NULL : find(handle);
  if (*out != NULL) (*out)->pins++;
  pthread_mutex_unlock(&all.lock);
  COMM_REQUIRE(!forked, RILL_ERROR_NO_DEVICE, "communicators do not survive a fork");
  if (*out == NULL) return comm_last_error.status;
  comm_about((*out)->label);
  return RILL_OK;
}

void comm_unpin(struct comm *comm) {
  pthread_mutex_lock(&all.lock);
  comm->pins--;
  unlock_and_end(comm);
}

rill_status rill_comm_retain(rill_comm handle) {
  comm_enter(__func__);
  pthread_mutex_lock(&all.lock);
  struct comm *comm = find(handle);
  if (comm != NULL) comm->references++;
  pthread_mutex_unlock(&all.lock);
  return comm != NULL ? RILL_OK : comm_last_error.status;
}

rill_status rill_comm_release(rill_comm handle) {
  comm_enter(__func__);
  if (handle.id == 0) return RILL_OK;
  pthread_mutex_lock(&all.lock);
  struct comm *comm = find(handle);
  if (comm != NULL) {
    comm->references--;
    unlock_and_end(comm);
    return RILL_OK;
  }
  pthread_mutex_unlock(&all.lock);
  return comm_last_error.status;
}

/* ---- threads apart ---- */

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

bool comm_run_apart(void *(*run)(void *), void *argument) {
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

/* What rill has of it goes; the engine has nothing any more. */
static void free_comm(struct comm *comm) {
  (void)rill_stream_release(comm->check_stream);
  (void)rill_free(comm->check_memory);
  (void)rill_free(comm->check_device_memory);
  (void)rill_free(comm->scratch);
  pthread_cond_destroy(&comm->changed);
  pthread_mutex_destroy(&comm->lock);
  pthread_mutex_destroy(&comm->submitting);
  free(comm);
}

static void *end_apart(void *argument) {
  struct comm *comm = argument;
  comm_watch_remove(comm);
  pthread_mutex_lock(&comm->lock);
  while (comm->broken && !comm->aborted) (void)pthread_cond_wait(&comm->changed, &comm->lock);
  pthread_mutex_unlock(&comm->lock);
  comm->engine->end(comm);
  free_comm(comm);
  return NULL;
}

/* Ending waits for operations, so it does not happen on the thread that releases. */
static void end(struct comm *comm) {
  if (!comm_run_apart(end_apart, comm)) (void)end_apart(comm);
}

static rill_status new_comm(const struct comm_engine *engine, rill_device device, const rill_device_info *info,
                            const rill_comm_options *options, struct comm **out) {
  struct comm *comm = calloc(1, sizeof *comm);
  COMM_REQUIRE(comm != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a communicator");
  comm->engine = engine;
  comm->device = device;
  comm->ordinal = info->ordinal;
  comm->timeout = options->timeout_ns;
  comm->last = &comm->first;
  (void)pthread_mutex_init(&comm->submitting, NULL);
  (void)pthread_mutex_init(&comm->lock, NULL);
  comm_init_condition(&comm->changed);
  rill_stream stream; /* asking for it makes the device's context */
  rill_status status = rill_device_default_stream(device, &stream);
  if (status == RILL_OK) status = rill_stream_context(stream, &comm->context);
  if (status == RILL_OK && engine->needs_scratch) status = rill_alloc(device, 8, RILL_MEMORY_DEVICE, &comm->scratch);
  if (status != RILL_OK) (void)comm_fail_rill(status, "preparing the device");
  if (status != RILL_OK) {
    free_comm(comm);
    return status;
  }
  publish(comm);
  *out = comm;
  return RILL_OK;
}

/* ---- at exit and fork ---- */

static void forked(void) {
  (void)pthread_mutex_init(&all.lock, NULL);
  all.forked = true;
}

static void wait_for_apart(uint32_t left, uint64_t ns) {
  const struct timespec until = comm_after(ns);
  pthread_mutex_lock(&all.lock);
  while (all.apart > left && pthread_cond_timedwait(&all.ended, &all.lock, &until) != ETIMEDOUT) continue;
  pthread_mutex_unlock(&all.lock);
}

/* Vendors' libraries crash when they are called while they are torn down, so what runs apart is given time to end: on a
 * full machine the end of a communicator takes seconds.  The watch comes last, since communicators end when it has seen
 * their operations end, or their deadlines pass.  One without a deadline that waits for a peer which never comes would
 * take for ever. */
static void at_exit(void) {
  enum { FOR_ENDS = 10, FOR_WATCH = 2 };
  if (all.forked) return;
  wait_for_apart(comm_watch_is_started() ? 1 : 0, FOR_ENDS * UINT64_C(1000000000));
  comm_watch_stop();
  wait_for_apart(0, FOR_WATCH * UINT64_C(1000000000));
}

static void first_use(void) {
  comm_init_condition(&all.ended);
  (void)pthread_atfork(NULL, NULL, forked);
  (void)atexit(at_exit); /* of a joining that was abandoned */
}

/* Handlers run in reverse order: what an engine needs at exit is there only before those of its own libraries run,
 * which have all been loaded when it has joined. */
static void handle_exit(const struct comm_engine *engine) {
  static atomic_uint handled; /* a bit for each backend */
  const unsigned bit = 1u << engine->backend;
  if ((atomic_fetch_or(&handled, bit) & bit) == 0) (void)atexit(at_exit);
}

static rill_status begin_use(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, first_use);
  COMM_REQUIRE(!all.forked, RILL_ERROR_NO_DEVICE, "communicators do not survive a fork");
  return RILL_OK;
}

/* ---- ids ---- */

enum { ID_MAGIC = 0x6d6d6f63 }; /* "comm" */

struct id {
  uint32_t magic, backend; /* RILL_BACKEND_* of the engine that made it */
  uint8_t bytes[COMM_ID_BYTES];
  uint8_t spare[sizeof(rill_comm_id) - 8 - COMM_ID_BYTES];
};
_Static_assert(sizeof(struct id) == sizeof(rill_comm_id), "an id is its bytes");

void comm_id_write(rill_comm_id *out, uint32_t backend, const uint8_t bytes[COMM_ID_BYTES]) {
  struct id id = { .magic = ID_MAGIC, .backend = backend };
  memcpy(id.bytes, bytes, COMM_ID_BYTES);
  memcpy(out, &id, sizeof id);
}

/* An id of MPI serves GPUs too. */
static rill_status read_id(const rill_comm_id *given, uint32_t backend, struct id *id) {
  memcpy(id, given, sizeof *id);
  bool clean = id->magic == ID_MAGIC;
  for (size_t i = 0; i < sizeof id->spare; i++) clean &= id->spare[i] == 0;
  COMM_REQUIRE(clean, RILL_ERROR_INVALID_ARGUMENT,
               "id is none" COMM_HINT "pass all bytes that rill_comm_id_create gave, as they are");
  COMM_REQUIRE(id->backend == backend || id->backend == RILL_BACKEND_CPU, RILL_ERROR_WRONG_BACKEND,
               "id is for devices of backend %u, the device is of backend %u", id->backend, backend);
  return RILL_OK;
}

rill_status rill_comm_id_create(rill_device device, rill_comm_id *out) {
  comm_enter(__func__);
  if (out != NULL) memset(out, 0, sizeof *out);
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  COMM_TRY_RILL(rill_device_get_info(device, &info), "device");
  COMM_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  COMM_TRY(begin_use());
  const struct comm_engine *engine = NULL;
  uint8_t bytes[COMM_ID_BYTES] = { 0 };
  COMM_TRY(comm_engine_start(info.backend, &engine));
  COMM_TRY(engine->make_id(bytes));
  comm_id_write(out, info.backend, bytes);
  return RILL_OK;
}

/* ---- joining ---- */

/* One joining, on a thread of its own where there is a deadline: the engines cannot be interrupted.  Whoever
 * comes last, the thread or the one who waits for it, frees it. */
struct join {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool done, abandoned;
  rill_status status;
  struct comm_error error;
  struct id id;
  uint32_t count;
  struct comm *comms[];
};

static void free_join(struct join *join) {
  pthread_cond_destroy(&join->changed);
  pthread_mutex_destroy(&join->lock);
  free(join);
}

/* An id of MPI, for GPUs: rank 0 makes the engine's, which MPI passes around. */
static rill_status translate_id(struct join *join) {
  const struct comm *comm = join->comms[0];
  if (join->id.backend == comm->engine->backend) return RILL_OK;
  const struct comm_engine *mpi = NULL;
  uint8_t bytes[COMM_ID_BYTES] = { 0 };
  COMM_TRY(comm_engine_start(RILL_BACKEND_CPU, &mpi));
  const rill_status made = comm->rank == 0 ? comm->engine->make_id(bytes) : RILL_OK;
  COMM_TRY(mpi->pass(join->id.bytes, comm->ranks, comm->rank, made == RILL_OK, bytes));
  memcpy(join->id.bytes, bytes, sizeof bytes);
  return made;
}

static void drop_comms(struct join *join, bool joined) {
  for (uint32_t i = 0; i < join->count; i++) {
    comm_watch_remove(join->comms[i]);
    if (joined) join->comms[i]->engine->abort(join->comms[i]);
    if (joined) join->comms[i]->engine->end(join->comms[i]);
    pthread_mutex_lock(&all.lock);
    forget(join->comms[i]);
    pthread_mutex_unlock(&all.lock);
    free_comm(join->comms[i]);
  }
}

static void *run_join(void *argument) {
  struct join *join = argument;
  rill_status status = translate_id(join);
  if (status == RILL_OK) status = join->comms[0]->engine->join(join->comms, join->count, join->id.bytes);
  pthread_mutex_lock(&join->lock);
  join->status = status;
  if (status != RILL_OK) join->error = comm_last_error;
  join->done = true;
  const bool abandoned = join->abandoned;
  pthread_cond_broadcast(&join->changed);
  pthread_mutex_unlock(&join->lock);
  if (abandoned) { /* the deadline has passed, and then the others came */
    drop_comms(join, status == RILL_OK);
    free_join(join);
  }
  return NULL;
}

static rill_status wait_for_join(struct join *join, uint64_t timeout) {
  const struct timespec until = comm_after(timeout);
  pthread_mutex_lock(&join->lock);
  while (!join->done && pthread_cond_timedwait(&join->changed, &join->lock, &until) != ETIMEDOUT) continue;
  const bool done = join->done;
  join->abandoned = !done;
  const uint32_t rank = join->comms[0]->rank, ranks = join->comms[0]->ranks;
  pthread_mutex_unlock(&join->lock);
  COMM_REQUIRE(done, RILL_ERROR_TIMEOUT, "rank %u of %u: the others have not joined within %llu ns", rank, ranks,
               (unsigned long long)timeout);
  return RILL_OK;
}

/* Joins, and gives the handles; takes the join over. */
static rill_status run(struct join *join, rill_comm *out) {
  const uint64_t timeout = join->comms[0]->timeout;
  if (timeout == 0) {
    (void)run_join(join);
  } else if (comm_run_apart(run_join, join)) {
    COMM_TRY(wait_for_join(join, timeout));
  } else {
    join->status = comm_fail(RILL_ERROR_OUT_OF_MEMORY, "no thread to join with");
    join->error = comm_last_error;
  }
  const bool joined = join->status == RILL_OK;
  if (joined) handle_exit(join->comms[0]->engine);
  rill_status status = joined ? RILL_OK : comm_fail_as(&join->error);
  for (uint32_t i = 0; i < join->count && status == RILL_OK; i++) status = comm_watch_add(join->comms[i]);
  for (uint32_t i = 0; i < join->count && status == RILL_OK; i++) out[i] = join->comms[i]->handle;
  if (status != RILL_OK) drop_comms(join, joined);
  free_join(join);
  return status;
}

static rill_status read_options(const rill_comm_options *from, rill_comm_options *into) {
  if (from == NULL) return RILL_OK;
  size_t given;
  memcpy(&given, from, sizeof given);
  COMM_REQUIRE(given >= sizeof given, RILL_ERROR_INVALID_ARGUMENT,
               "rill_comm_options.struct_size is %zu" COMM_HINT "initialize the struct with its _INIT macro", given);
  for (size_t i = sizeof *into; i < given; i++) {
    COMM_REQUIRE(((const unsigned char *)from)[i] == 0, RILL_ERROR_INVALID_ARGUMENT,
                 "rill_comm_options has a field at byte %zu that this library of %zu bytes does not know", i,
                 sizeof *into);
  }
  memcpy(into, from, given < sizeof *into ? given : sizeof *into);
  return RILL_OK;
}

static rill_status new_join(uint32_t count, struct join **out) {
  struct join *join = calloc(1, sizeof *join + count * sizeof *join->comms);
  COMM_REQUIRE(join != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory to join with");
  (void)pthread_mutex_init(&join->lock, NULL);
  comm_init_condition(&join->changed);
  *out = join;
  return RILL_OK;
}

/* Adds the rank of a device to a joining. */
static rill_status add_rank(struct join *join, const struct comm_engine *engine, rill_device device, uint32_t ranks,
                            uint32_t rank, const rill_comm_options *options) {
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  COMM_TRY_RILL(rill_device_get_info(device, &info), "device");
  struct comm *comm = NULL;
  COMM_TRY(new_comm(engine, device, &info, options, &comm));
  comm->ranks = ranks;
  comm->rank = rank;
  (void)snprintf(comm->label, sizeof comm->label, "%s", options->label != NULL ? options->label : "");
  join->comms[join->count++] = comm;
  return RILL_OK;
}

rill_status rill_comm_create(rill_device device, const rill_comm_id *id, uint32_t ranks, uint32_t rank,
                             const rill_comm_options *options, rill_comm *out) {
  comm_enter(__func__);
  if (out != NULL) *out = RILL_NULL_COMM;
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  COMM_TRY_RILL(rill_device_get_info(device, &info), "device");
  COMM_REQUIRE(id != NULL && out != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL", id == NULL ? "id" : "out");
  rill_comm_options o = RILL_COMM_OPTIONS_INIT;
  struct id checked;
  COMM_TRY(read_id(id, info.backend, &checked));
  COMM_REQUIRE(ranks >= 1 && ranks <= INT32_MAX && rank < ranks, RILL_ERROR_OUT_OF_RANGE, "rank %u of %u", rank, ranks);
  COMM_TRY(read_options(options, &o));
  COMM_TRY(begin_use());
  const struct comm_engine *engine = NULL;
  struct join *join = NULL;
  COMM_TRY(comm_engine_start(info.backend, &engine));
  COMM_TRY(new_join(1, &join));
  join->id = checked;
  const rill_status status = add_rank(join, engine, device, ranks, rank, &o);
  if (status == RILL_OK) return run(join, out);
  free_join(join);
  return status;
}

/* The devices are of one backend, each once. */
static rill_status check_devices(const rill_device *devices, uint32_t count, rill_device_info *first) {
  for (uint32_t i = 0; i < count; i++) {
    rill_device_info info = RILL_DEVICE_INFO_INIT;
    COMM_TRY_RILL(rill_device_get_info(devices[i], &info), "devices");
    if (i == 0) *first = info;
    COMM_REQUIRE(info.backend == first->backend, RILL_ERROR_WRONG_BACKEND,
                 "devices[%u] is of backend %u, devices[0] of backend %u", i, info.backend, first->backend);
    for (uint32_t j = 0; j < i; j++) {
      COMM_REQUIRE(!rill_device_equal(devices[i], devices[j]), RILL_ERROR_INVALID_ARGUMENT,
                   "devices[%u] and devices[%u] are the same", j, i);
    }
  }
  return RILL_OK;
}

rill_status rill_comm_create_all(const rill_device *devices, uint32_t count, const rill_comm_options *options,
                                 rill_comm *out) {
  comm_enter(__func__);
  COMM_REQUIRE(devices != NULL && out != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL",
               devices == NULL ? "devices" : "out");
  COMM_REQUIRE(count >= 1 && count <= 4096, RILL_ERROR_OUT_OF_RANGE, "count %u is outside 1 to 4096", count);
  memset(out, 0, count * sizeof *out);
  rill_device_info first = RILL_DEVICE_INFO_INIT;
  rill_comm_options o = RILL_COMM_OPTIONS_INIT;
  COMM_TRY(check_devices(devices, count, &first));
  COMM_REQUIRE(first.backend != RILL_BACKEND_CPU, RILL_ERROR_UNSUPPORTED,
               "on the CPU each rank is a process" COMM_HINT "see rill/comm_mpi.h");
  COMM_TRY(read_options(options, &o));
  COMM_TRY(begin_use());
  const struct comm_engine *engine = NULL;
  struct join *join = NULL;
  COMM_TRY(comm_engine_start(first.backend, &engine));
  COMM_TRY(new_join(count, &join));
  join->id.backend = first.backend;
  rill_status status = engine->make_id(join->id.bytes);
  for (uint32_t i = 0; i < count && status == RILL_OK; i++) {
    status = add_rank(join, engine, devices[i], count, i, &o);
  }
  if (status == RILL_OK) return run(join, out);
  drop_comms(join, false);
  free_join(join);
  return status;
}

/* ---- breaking ---- */

rill_status comm_check_whole(struct comm *comm) {
  pthread_mutex_lock(&comm->lock);
  const bool broken = comm->broken;
  const struct comm_error failure = broken ? comm->failure : (struct comm_error){ .status = RILL_OK };
  pthread_mutex_unlock(&comm->lock);
  return broken ? comm_fail_as(&failure) : RILL_OK;
}

rill_status comm_go_inside(struct comm *comm, bool submits) {
  pthread_mutex_lock(&comm->lock);
  const bool broken = comm->broken;
  if (!broken) comm->inside++;
  if (!broken && submits) comm->submitting_since = comm_now();
  pthread_mutex_unlock(&comm->lock);
  if (broken) return comm_check_whole(comm);
  if (submits) comm_watch_wake(comm);
  return RILL_OK;
}

void comm_come_out(struct comm *comm, bool submits) {
  pthread_mutex_lock(&comm->lock);
  comm->inside--;
  if (submits) comm->submitting_since = 0;
  pthread_cond_broadcast(&comm->changed);
  pthread_mutex_unlock(&comm->lock);
}

rill_status comm_poll(struct comm *comm) {
  COMM_TRY(comm_go_inside(comm, false));
  const rill_status status = comm->engine->poll != NULL ? comm->engine->poll(comm) : RILL_OK;
  const struct comm_error why = comm_last_error;
  comm_come_out(comm, false);
  if (status != RILL_OK) comm_break(comm, &why, true);
  return status;
}

/* A submission that is inside the engine is let out first: an ordinary one comes by itself, one that waits for a peer
 * is interrupted where the engine can do that. */
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

void comm_break(struct comm *comm, const struct comm_error *why, bool apart) {
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
  comm_watch_tell(flights, why); /* before the device can come past the operations */
  if (!apart || !comm_run_apart(abort_now, comm)) (void)abort_now(comm);
}

rill_status rill_comm_abort(rill_comm handle) {
  comm_enter(__func__);
  struct comm *comm = NULL;
  COMM_TRY(comm_pin(handle, &comm));
  const struct comm_error why = { .status = RILL_ERROR_BACKEND, .message = "rill_comm_abort ended the communicator" };
  comm_break(comm, &why, false);
  comm_unpin(comm);
  return RILL_OK;
}

/* ---- what a communicator tells ---- */

rill_status rill_comm_validate(rill_comm handle) {
  comm_enter(__func__);
  struct comm *comm = NULL;
  COMM_TRY(comm_pin(handle, &comm));
  const rill_status status = comm_poll(comm);
  comm_unpin(comm);
  return status;
}

rill_status rill_comm_get_info(rill_comm handle, rill_comm_info *out) {
  comm_enter(__func__);
  struct comm *comm = NULL;
  COMM_TRY(comm_pin(handle, &comm));
  rill_status status = RILL_OK;
  if (out == NULL || out->struct_size < sizeof(size_t)) {
    status = comm_fail(RILL_ERROR_INVALID_ARGUMENT, "info is NULL, or its struct_size is 0");
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
  comm_unpin(comm);
  return status;
}
