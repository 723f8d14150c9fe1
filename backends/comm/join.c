/* Ids of communicators, and joining. */
#include "backends/comm/engine.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- ids ---- */

enum { ID_MAGIC = 0x6d6d6f63 }; /* "comm" */

struct id {
  uint32_t magic, backend; /* backend: number of the engine that created the id */
  uint8_t bytes[COMM_ID_BYTES];
  uint64_t check; /* hash of the fields above: an engine may crash if its bytes are damaged */
  uint8_t spare[sizeof(rill_comm_id) - 16 - COMM_ID_BYTES];
};
_Static_assert(sizeof(struct id) == sizeof(rill_comm_id), "an id is its bytes");

/* Returns the FNV-1a hash; never 0. */
static uint64_t hash(uint64_t start, const void *bytes, size_t size) {
  uint64_t result = start ^ UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < size; i++) result = (result ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
  return result | 1;
}

void rill__comm_id_write(rill_comm_id *out, uint32_t backend, const uint8_t bytes[COMM_ID_BYTES]) {
  struct id id = { .magic = ID_MAGIC, .backend = backend };
  memcpy(id.bytes, bytes, COMM_ID_BYTES);
  id.check = hash(0, &id, offsetof(struct id, check));
  memcpy(out, &id, sizeof id);
}

/* Returns the number of the engine for ranks of one process. */
static uint32_t engine_within(uint32_t backend) { return backend == RILL_BACKEND_CPU ? (uint32_t)COMM_LOCAL : backend; }

/* Returns the number of the engine of an id that has been checked. */
static uint32_t engine_of(const struct id *id, uint32_t backend) {
  return backend == RILL_BACKEND_CPU ? id->backend : backend;
}

/* Checks and copies an id.  An id of MPI is also valid for GPUs. */
static rill_status read_id(const rill_comm_id *given, uint32_t backend, struct id *id) {
  memcpy(id, given, sizeof *id);
  bool clean = id->magic == ID_MAGIC && id->check == hash(0, id, offsetof(struct id, check));
  for (size_t i = 0; i < sizeof id->spare; i++) clean &= id->spare[i] == 0;
  COMM_REQUIRE(clean, RILL_ERROR_INVALID_ARGUMENT,
               "id is not valid" COMM_HINT "pass all bytes that rill_comm_id_create returned, unchanged");
  const bool local = id->backend == COMM_LOCAL;
  COMM_REQUIRE(id->backend == engine_within(backend) || id->backend == RILL_BACKEND_CPU, RILL_ERROR_WRONG_BACKEND,
               "id is for devices of backend %u, but the device is of backend %u",
               local ? RILL_BACKEND_CPU : id->backend, backend);
  return RILL_OK;
}

/* Returns whether an MPI launcher started this process together with others.  If so, ids are made for MPI: programs
 * that pass rank 0's id to all processes then work on the CPU as they do on GPUs. */
static bool is_launched(void) {
  static const char *const sizes[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS" };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    const char *const size = getenv(sizes[i]);
    if (size != NULL && strtoul(size, NULL, 10) > 1) return true;
  }
  return false;
}

rill_status rill_comm_id_create(rill_device device, rill_comm_id *out) {
  rill__comm_enter(__func__);
  if (out != NULL) memset(out, 0, sizeof *out);
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  COMM_TRY_RILL(rill_device_get_info(device, &info), "device");
  COMM_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  COMM_TRY(rill__comm_begin_use());
  const struct comm_engine *engine = NULL;
  uint8_t bytes[COMM_ID_BYTES] = { 0 };
  COMM_TRY(rill__comm_engine_start(is_launched() ? info.backend : engine_within(info.backend), &engine));
  COMM_TRY(engine->make_id(bytes));
  rill__comm_id_write(out, engine->backend, bytes);
  return RILL_OK;
}

/* ---- joining ---- */

/* A join in progress.  If there is a deadline that the engine does not enforce, the join runs on its own thread,
 * because such an engine cannot be interrupted.  The struct is freed by that thread or by the waiting one,
 * whichever ends last. */
struct join {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool done, abandoned;
  rill_status status;
  struct comm_error error;
  struct id id;
  struct comm *parent; /* pinned; for rill_comm_split, like the next two */
  uint32_t color, key;
  uint32_t count;
  struct comm *comms[];
};

static void free_join(struct join *join) {
  if (join->parent != NULL) rill__comm_unpin(join->parent);
  pthread_cond_destroy(&join->changed);
  pthread_mutex_destroy(&join->lock);
  free(join);
}

/* Replaces an id of MPI for GPUs: rank 0 creates an id of the engine, which MPI broadcasts. */
static rill_status translate_id(struct join *join) {
  const struct comm *comm = join->comms[0];
  if (join->id.backend == comm->engine->backend) return RILL_OK;
  const struct comm_engine *mpi = NULL;
  uint8_t bytes[COMM_ID_BYTES] = { 0 };
  COMM_TRY(rill__comm_engine_start(RILL_BACKEND_CPU, &mpi));
  const rill_status made = comm->rank == 0 ? comm->engine->make_id(bytes) : RILL_OK;
  COMM_TRY(mpi->pass(join->id.bytes, comm->ranks, comm->rank, made == RILL_OK, bytes));
  memcpy(join->id.bytes, bytes, sizeof bytes);
  return made;
}

static void drop_comms(struct join *join, bool joined) {
  for (uint32_t i = 0; i < join->count; i++) {
    rill__comm_watch_remove(join->comms[i]);
    if (joined) join->comms[i]->engine->abort(join->comms[i]);
    if (joined) join->comms[i]->engine->end(join->comms[i]);
    rill__comm_discard(join->comms[i]);
  }
}

/* Splits the parent.  The call counts as a submission to the parent, so that in the meantime the parent is not
 * destroyed and accepts no operation. */
static rill_status split_parent(struct join *join) {
  struct comm *parent = join->parent;
  COMM_TRY(rill__comm_take_turn(parent, COMM_SUBMITTING));
  rill_status status = rill__comm_go_inside(parent, true);
  if (status == RILL_OK) {
    const uint64_t which[2] = { ++parent->splits, join->color };
    join->comms[0]->family = hash(parent->family, which, sizeof which);
    status = parent->engine->split(parent, join->color, join->key, join->comms[0]);
    rill__comm_come_out(parent, true);
  }
  rill__comm_pass_turn(parent, COMM_SUBMITTING);
  return status;
}

static rill_status join_by_id(struct join *join) {
  COMM_TRY(translate_id(join));
  for (uint32_t i = 0; i < join->count; i++) join->comms[i]->family = hash(0, join->id.bytes, COMM_ID_BYTES);
  return join->comms[0]->engine->join(join->comms, join->count, join->id.bytes);
}

static void *run_join(void *argument) {
  struct join *join = argument;
  const rill_status status = join->parent != NULL ? split_parent(join) : join_by_id(join);
  pthread_mutex_lock(&join->lock);
  join->status = status;
  if (status != RILL_OK) join->error = rill__comm_last_error;
  join->done = true;
  const bool abandoned = join->abandoned;
  pthread_cond_broadcast(&join->changed);
  pthread_mutex_unlock(&join->lock);
  if (abandoned) { /* the other ranks joined after the deadline */
    drop_comms(join, status == RILL_OK && join->comms[0]->ranks > 0);
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
  const bool splits = join->parent != NULL;
  const struct comm *const known = splits ? join->parent : join->comms[0];
  const uint32_t rank = known->rank, ranks = known->ranks;
  pthread_mutex_unlock(&join->lock);
  if (done) return RILL_OK;
  return rill__comm_fail(RILL_ERROR_TIMEOUT, "rank %u of %u: the others have not %s within %llu ns", rank, ranks,
                         splits ? "called rill_comm_split" : "joined", (unsigned long long)timeout);
}

/* Joins and returns the handles.  Takes ownership of the join. */
static rill_status run(struct join *join, rill_comm *out) {
  const uint64_t timeout = join->comms[0]->timeout;
  if (timeout == 0 || join->comms[0]->engine->joins_in_time) {
    (void)run_join(join);
  } else if (rill__comm_run_apart(run_join, join)) {
    COMM_TRY(wait_for_join(join, timeout));
  } else {
    join->status = rill__comm_fail(RILL_ERROR_OUT_OF_MEMORY, "could not create a thread for joining");
    join->error = rill__comm_last_error;
  }
  const bool joined = join->status == RILL_OK && join->comms[0]->ranks > 0;
  if (joined) rill__comm_handle_exit(join->comms[0]->engine);
  rill_status status = join->status == RILL_OK ? RILL_OK : rill__comm_fail_as(&join->error);
  for (uint32_t i = 0; i < join->count && joined && status == RILL_OK; i++) {
    status = rill__comm_watch_add(join->comms[i]);
  }
  for (uint32_t i = 0; i < join->count && joined && status == RILL_OK; i++) out[i] = join->comms[i]->handle;
  if (status != RILL_OK || !joined) drop_comms(join, joined);
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
  COMM_REQUIRE(join != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for joining");
  (void)pthread_mutex_init(&join->lock, NULL);
  comm_init_condition(&join->changed);
  *out = join;
  return RILL_OK;
}

/* Adds the rank of a device to a join. */
static rill_status add_rank(struct join *join, const struct comm_engine *engine, rill_device device, uint32_t ranks,
                            uint32_t rank, const rill_comm_options *options) {
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  COMM_TRY_RILL(rill_device_get_info(device, &info), "device");
  struct comm *comm = NULL;
  COMM_TRY(rill__comm_new(engine, device, &info, options, &comm));
  comm->ranks = ranks;
  comm->rank = rank;
  (void)snprintf(comm->label, sizeof comm->label, "%s", options->label != NULL ? options->label : "");
  join->comms[join->count++] = comm;
  return RILL_OK;
}

rill_status rill_comm_create(rill_device device, const rill_comm_id *id, uint32_t ranks, uint32_t rank,
                             const rill_comm_options *options, rill_comm *out) {
  rill__comm_enter(__func__);
  if (out != NULL) *out = RILL_NULL_COMM;
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  COMM_TRY_RILL(rill_device_get_info(device, &info), "device");
  COMM_REQUIRE(id != NULL && out != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL", id == NULL ? "id" : "out");
  rill_comm_options o = RILL_COMM_OPTIONS_INIT;
  struct id checked;
  COMM_TRY(read_id(id, info.backend, &checked));
  COMM_REQUIRE(ranks >= 1 && ranks <= INT32_MAX && rank < ranks, RILL_ERROR_OUT_OF_RANGE,
               "rank %u of %u is out of range", rank, ranks);
  COMM_TRY(read_options(options, &o));
  COMM_TRY(rill__comm_begin_use());
  const struct comm_engine *engine = NULL;
  struct join *join = NULL;
  COMM_TRY(rill__comm_engine_start(engine_of(&checked, info.backend), &engine));
  COMM_TRY(new_join(1, &join));
  join->id = checked;
  const rill_status status = add_rank(join, engine, device, ranks, rank, &o);
  if (status == RILL_OK) return run(join, out);
  free_join(join);
  return status;
}

/* Checks that all devices are of one backend, and that no GPU appears twice. */
static rill_status check_devices(const rill_device *devices, uint32_t count, rill_device_info *first) {
  for (uint32_t i = 0; i < count; i++) {
    rill_device_info info = RILL_DEVICE_INFO_INIT;
    COMM_TRY_RILL(rill_device_get_info(devices[i], &info), "devices");
    if (i == 0) *first = info;
    COMM_REQUIRE(info.backend == first->backend, RILL_ERROR_WRONG_BACKEND,
                 "devices[%u] is of backend %u, but devices[0] is of backend %u", i, info.backend, first->backend);
    for (uint32_t j = 0; j < i && info.backend != RILL_BACKEND_CPU; j++) {
      COMM_REQUIRE(!rill_device_equal(devices[i], devices[j]), RILL_ERROR_INVALID_ARGUMENT,
                   "devices[%u] and devices[%u] are the same", j, i);
    }
  }
  return RILL_OK;
}

rill_status rill_comm_create_all(const rill_device *devices, uint32_t count, const rill_comm_options *options,
                                 rill_comm *out) {
  rill__comm_enter(__func__);
  COMM_REQUIRE(devices != NULL && out != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL",
               devices == NULL ? "devices" : "out");
  COMM_REQUIRE(count >= 1 && count <= 4096, RILL_ERROR_OUT_OF_RANGE, "count is %u, not from 1 to 4096", count);
  memset(out, 0, count * sizeof *out);
  rill_device_info first = RILL_DEVICE_INFO_INIT;
  rill_comm_options o = RILL_COMM_OPTIONS_INIT;
  COMM_TRY(check_devices(devices, count, &first));
  COMM_TRY(read_options(options, &o));
  COMM_TRY(rill__comm_begin_use());
  const struct comm_engine *engine = NULL;
  struct join *join = NULL;
  COMM_TRY(rill__comm_engine_start(engine_within(first.backend), &engine));
  COMM_TRY(new_join(count, &join));
  join->id.backend = engine->backend;
  rill_status status = engine->make_id(join->id.bytes);
  for (uint32_t i = 0; i < count && status == RILL_OK; i++) {
    status = add_rank(join, engine, devices[i], count, i, &o);
  }
  if (status == RILL_OK) return run(join, out);
  drop_comms(join, false);
  free_join(join);
  return status;
}

rill_status rill_comm_split(rill_comm handle, uint32_t color, uint32_t key, const rill_comm_options *options,
                            rill_comm *out) {
  rill__comm_enter(__func__);
  if (out != NULL) *out = RILL_NULL_COMM;
  struct join *join = NULL;
  rill_comm_options o = RILL_COMM_OPTIONS_INIT;
  COMM_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  COMM_TRY(read_options(options, &o));
  COMM_TRY(new_join(1, &join));
  rill_status status = rill__comm_pin(handle, &join->parent);
  if (status == RILL_OK && color != RILL_COMM_NO_COLOR && (color > INT32_MAX || key > INT32_MAX)) {
    status =
        rill__comm_fail(RILL_ERROR_INVALID_ARGUMENT, "color %u and key %u: neither may exceed INT32_MAX", color, key);
  }
  if (status == RILL_OK) {
    join->color = color;
    join->key = key <= INT32_MAX ? key : 0;
    status = add_rank(join, join->parent->engine, join->parent->device, 0, 0, &o);
  }
  if (status == RILL_OK) return run(join, out);
  free_join(join);
  return status;
}
