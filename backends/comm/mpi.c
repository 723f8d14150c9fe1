/* The MPI engine, for the CPU: a separate library that rill_comm loads.
 *
 * Parts (parts.c) hold the streams of operations that have not ended.  A progress thread starts the operations of each
 * communicator in the order of submission, once their streams have reached them, polls MPI, and ends the parts of
 * completed operations.  Operations of a broken communicator are dropped.
 *
 * MPI does not compare the arguments of the ranks, and may write past a buffer if they differ.  Before a collective
 * operation starts, a small reduction therefore compares its arguments on all ranks (mpi_progress.c); a receive is
 * matched with its message before MPI gets the buffer.
 *
 * No MPI function is called after MPI_Finalize, even if the program calls MPI_Finalize itself: it first deletes the
 * attributes of MPI_COMM_SELF, and the delete callback of one attribute stops this engine. */
#include "backends/comm/mpi_engine.h"
#include "backends/comm/mpi_types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const struct comm_services *rill__comm_mpi_services;

struct mpi_engine rill__comm_mpi_engine = {
  .parts = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER },
};

rill_status rill__comm_mpi_fail(int code, const char *call) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0, class = 0;
  (void)MPI_Error_string(code, text, &length);
  (void)MPI_Error_class(code, &class);
  return rill__comm_fail_native(RILL_ERROR_BACKEND, class, "MPI error class", "%s: %.400s", call, text);
}

/* ---- starting and finalizing ---- */

/* Stops the progress thread and waits until no thread is in MPI. */
static void stop_engine(void) {
  pthread_mutex_lock(&rill__comm_mpi_engine.parts.lock);
  rill__comm_mpi_engine.stop = rill__comm_mpi_engine.finalized = true;
  pthread_cond_broadcast(&rill__comm_mpi_engine.parts.changed);
  while ((rill__comm_mpi_engine.started && !rill__comm_mpi_engine.stopped) || rill__comm_mpi_engine.calling > 0) {
    (void)pthread_cond_wait(&rill__comm_mpi_engine.parts.changed, &rill__comm_mpi_engine.parts.lock);
  }
  pthread_mutex_unlock(&rill__comm_mpi_engine.parts.lock);
}

/* Stops the engine.  Called by MPI_Finalize as a delete callback; the program or at_exit has called MPI_Finalize. */
static int finalizing(MPI_Comm self, int key, void *value, void *extra) {
  (void)self, (void)key, (void)value, (void)extra;
  stop_engine();
  rill__comm_mpi_types_free();
  return MPI_SUCCESS;
}

/* Waits until all processes of the job exit, for at most `limit_ns` unless it is 0. */
static bool all_exit(uint64_t limit_ns) {
  const uint64_t start = comm_now();
  MPI_Request request = MPI_REQUEST_NULL;
  int done = 0;
  (void)MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (MPI_Ibarrier(MPI_COMM_WORLD, &request) != MPI_SUCCESS) return false;
  while (MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) {
    if (limit_ns != 0 && comm_now() - start > limit_ns) return false;
    const struct timespec pause = { .tv_nsec = 200000 };
    (void)nanosleep(&pause, NULL);
  }
  return done != 0;
}

/* Finalizes MPI, unless the process failed: without MPI_Finalize, mpirun ends the other processes, which may be waiting
 * for this one.  If only a communicator failed, the other processes may also be waiting, or they may have handled the
 * failure and will exit soon, so the wait for them is limited. */
static void at_exit(int status, void *unused) {
  enum { SECONDS = 30 };
  (void)unused;
  pthread_mutex_lock(&rill__comm_mpi_engine.parts.lock);
  const bool orderly = status == 0 && !rill__comm_mpi_engine.finalized;
  const bool any_dead = rill__comm_mpi_engine.any_dead;
  pthread_mutex_unlock(&rill__comm_mpi_engine.parts.lock);
  if (!orderly || !all_exit(any_dead ? SECONDS * UINT64_C(1000000000) : 0)) return;
  stop_engine(); /* MPICH stops using its lock when MPI_Finalize starts, even for a thread that holds it */
  (void)MPI_Finalize();
}

/* The MPI that this file was built for.  At run time the process may have loaded another one, whose handles differ. */
#ifdef OMPI_MAJOR_VERSION
#define BUILT_FOR "Open MPI"
#else
#define BUILT_FOR "MPICH or a compatible MPI"
#endif

/* Returns how much of a library's version text to print: its first line, at most 80 bytes. */
static int first_line(const char *text) {
  const size_t length = strcspn(text, "\n");
  return length < 80 ? (int)length : 80;
}

static rill_status check_library(void) {
  static char text[8192]; /* the longest MPI_MAX_LIBRARY_VERSION_STRING of any library */
  int length = 0;
  (void)MPI_Get_library_version(text, &length);
  const bool open_mpi = strstr(text, "Open MPI") != NULL;
  COMM_REQUIRE(open_mpi == (strcmp(BUILT_FOR, "Open MPI") == 0), RILL_ERROR_UNSUPPORTED,
               "this process uses \"%.*s\", but librill_comm_mpi was built for " BUILT_FOR COMM_HINT
               "build rill with -Drill_mpi= for the MPI of the program",
               first_line(text), text);
  return RILL_OK;
}

static rill_status begin_mpi(void) {
  COMM_TRY(check_library());
  int initialized = 0, finalized = 0, level = MPI_THREAD_SINGLE, key = MPI_KEYVAL_INVALID;
  (void)MPI_Finalized(&finalized);
  COMM_REQUIRE(!finalized, RILL_ERROR_UNSUPPORTED, "MPI has been finalized in this process");
  (void)MPI_Initialized(&initialized);
  if (initialized) {
    (void)MPI_Query_thread(&level);
  } else {
    (void)MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
  }
  COMM_REQUIRE(level >= MPI_THREAD_MULTIPLE, RILL_ERROR_UNSUPPORTED,
               "MPI provides thread level %d, but MPI_THREAD_MULTIPLE (%d) is required" COMM_HINT
               "call MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided) instead of MPI_Init",
               level, MPI_THREAD_MULTIPLE);
  rill_device cpu;
  COMM_TRY_RILL(rill_device_open("cpu", &cpu), "the CPU");
  COMM_TRY_RILL(rill_stream_create(cpu, RILL_STREAM_OPTIONS(.label = "rill_comm"), &rill__comm_mpi_engine.parts.stream),
                "a stream");
  rill__comm_mpi_types_make();
  rill__comm_mpi_engine.checks = rill_check_is_on("comm");
  comm_init_condition(&rill__comm_mpi_engine.parts.changed); /* no thread waits on it yet */
  (void)MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, finalizing, &key, NULL);
  (void)MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
  pthread_t thread;
  rill__comm_mpi_engine.started = pthread_create(&thread, NULL, rill__comm_mpi_progress, NULL) == 0;
  COMM_REQUIRE(rill__comm_mpi_engine.started, RILL_ERROR_OUT_OF_MEMORY, "could not create the progress thread");
  (void)pthread_detach(thread);
  if (!initialized) (void)on_exit(at_exit, NULL);
  return RILL_OK;
}

static rill_status start(void) {
  static pthread_mutex_t once =
      PTHREAD_MUTEX_INITIALIZER; /* a second thread waits until the first has initialized MPI */
  static bool started;
  pthread_mutex_lock(&once);
  const rill_status status = started ? RILL_OK : begin_mpi();
  started |= status == RILL_OK;
  pthread_mutex_unlock(&once);
  return status;
}

/* Bracket MPI calls of all threads except the progress thread, so that MPI_Finalize waits for them. */
static rill_status enter_mpi(void) {
  pthread_mutex_lock(&rill__comm_mpi_engine.parts.lock);
  const bool finalized = rill__comm_mpi_engine.finalized;
  if (!finalized) rill__comm_mpi_engine.calling++;
  pthread_mutex_unlock(&rill__comm_mpi_engine.parts.lock);
  COMM_REQUIRE(!finalized, RILL_ERROR_UNSUPPORTED, "MPI has been finalized in this process");
  return RILL_OK;
}

static void leave_mpi(void) {
  pthread_mutex_lock(&rill__comm_mpi_engine.parts.lock);
  rill__comm_mpi_engine.calling--;
  pthread_cond_broadcast(&rill__comm_mpi_engine.parts.changed);
  pthread_mutex_unlock(&rill__comm_mpi_engine.parts.lock);
}

static uint32_t version(void) {
  int major = 0, minor = 0;
  if (enter_mpi() != RILL_OK) return 0;
  (void)MPI_Get_version(&major, &minor);
  leave_mpi();
  return (uint32_t)(major * 100 + minor);
}

/* ---- ids and joining ---- */

struct id {
  enum { OF_WORLD, OF_WORLD_BY_NUMBER, OF_HANDLE } kind;
  int32_t handle;  /* result of MPI_Comm_c2f */
  uint64_t number; /* OF_WORLD_BY_NUMBER: chosen by the process that created the id */
};

static rill_status make_id(uint8_t bytes[COMM_ID_BYTES]) {
  struct timespec time;
  (void)clock_gettime(CLOCK_REALTIME, &time);
  const struct id id = { OF_WORLD_BY_NUMBER, 0, (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec };
  memcpy(bytes, &id, sizeof id);
  return RILL_OK;
}

static rill_status world(uint32_t *ranks, uint32_t *rank) {
  int n = 0, i = 0;
  COMM_TRY(enter_mpi());
  (void)MPI_Comm_size(MPI_COMM_WORLD, &n);
  (void)MPI_Comm_rank(MPI_COMM_WORLD, &i);
  leave_mpi();
  *ranks = (uint32_t)n;
  *rank = (uint32_t)i;
  return RILL_OK;
}

static rill_status of_handle(int32_t handle, const char *library, uint8_t bytes[COMM_ID_BYTES], uint32_t *ranks,
                             uint32_t *rank) {
  char own[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0, n = 0, i = 0;
  COMM_TRY(enter_mpi());
  (void)MPI_Get_library_version(own, &length);
  const bool same = strcmp(own, library) == 0;
  const bool null = same && MPI_Comm_f2c(handle) == MPI_COMM_NULL;
  if (same && !null) {
    (void)MPI_Comm_size(MPI_Comm_f2c(handle), &n);
    (void)MPI_Comm_rank(MPI_Comm_f2c(handle), &i);
  }
  leave_mpi();
  COMM_REQUIRE(same, RILL_ERROR_INVALID_ARGUMENT, "the program uses \"%.*s\", but librill_comm_mpi uses \"%.*s\"",
               first_line(library), library, first_line(own), own);
  COMM_REQUIRE(!null, RILL_ERROR_INVALID_ARGUMENT,
               "handle %d is MPI_COMM_NULL" COMM_HINT "a process that MPI_Comm_split left out joins no communicator",
               (int)handle);
  const struct id id = { OF_HANDLE, handle, 0 };
  memcpy(bytes, &id, sizeof id);
  *ranks = (uint32_t)n;
  *rank = (uint32_t)i;
  return RILL_OK;
}

/* Fails on all ranks if two processes have different ids or the same rank. */
static rill_status check_same(MPI_Comm mpi, const struct id *id, uint32_t ranks, uint32_t rank) {
  const uint64_t own[2] = { id->number, ~id->number };
  uint64_t least[2];
  int given = 0;
  (void)MPI_Allreduce(own, least, 2, MPI_UINT64_T, MPI_MIN,
                      mpi); /* the minimum of the complements is the complement of the maximum */
  COMM_REQUIRE(least[0] == ~least[1], RILL_ERROR_INVALID_ARGUMENT,
               "the processes did not join with the same id" COMM_HINT "join several communicators in the same order");
  (void)MPI_Comm_rank(mpi, &given);
  int wrong = (uint32_t)given != rank, any = 0;
  (void)MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, mpi);
  COMM_REQUIRE(!any, RILL_ERROR_INVALID_ARGUMENT, "two processes joined as the same rank, this one as rank %u of %u",
               rank, ranks);
  return RILL_OK;
}

/* Creates the MPI communicator of an id.  Collective over all processes that the id names. */
static rill_status open_id(const uint8_t bytes[COMM_ID_BYTES], uint32_t ranks, uint32_t rank, MPI_Comm *out) {
  struct id id;
  memcpy(&id, bytes, sizeof id);
  const MPI_Comm from = id.kind == OF_HANDLE ? MPI_Comm_f2c(id.handle) : MPI_COMM_WORLD;
  int n = 0;
  (void)MPI_Comm_size(from, &n);
  COMM_REQUIRE((uint32_t)n == ranks, RILL_ERROR_UNSUPPORTED,
               "%u ranks join, but MPI has %d processes" COMM_HINT
               "for a subset of them, create an MPI communicator and use rill_comm_mpi_id",
               ranks, n);
  const int code = MPI_Comm_split(from, 0, (int)rank, out);
  if (code != MPI_SUCCESS) return rill__comm_mpi_fail(code, "MPI_Comm_split");
  (void)MPI_Comm_set_errhandler(*out, MPI_ERRORS_RETURN);
  const rill_status status = check_same(*out, &id, ranks, rank);
  if (status != RILL_OK) (void)MPI_Comm_free(out);
  return status;
}

/* Frees what is left of destroyed communicators, or keeps it if other ranks have not received a state of this rank yet.
 */
static void end_exchanges(struct joined *list) {
  while (list != NULL) {
    struct joined *joined = list;
    list = joined->next;
    if (rill__comm_mpi_end_exchange(joined)) {
      (void)MPI_Comm_free(&joined->apart);
      (void)rill__comm_mpi_free_peers(joined);
      free(joined);
      continue;
    }
    pthread_mutex_lock(&rill__comm_mpi_engine.parts.lock);
    joined->next = rill__comm_mpi_engine.left;
    rill__comm_mpi_engine.left = joined;
    pthread_mutex_unlock(&rill__comm_mpi_engine.parts.lock);
  }
}

static struct joined *take_left(void) {
  pthread_mutex_lock(&rill__comm_mpi_engine.parts.lock);
  struct joined *left = rill__comm_mpi_engine.left;
  rill__comm_mpi_engine.left = NULL;
  pthread_mutex_unlock(&rill__comm_mpi_engine.parts.lock);
  return left;
}

/* Creates comm->native, which owns `mpi` on success.  Collective over the ranks of `mpi`. */
static rill_status new_joined(struct comm *comm, MPI_Comm mpi) {
  end_exchanges(take_left());
  struct joined *joined = calloc(1, sizeof *joined);
  uint64_t *looked = calloc(comm->ranks, sizeof *looked);
  struct mpi_peer *peers = calloc(comm->ranks, sizeof *peers);
  MPI_Comm apart = MPI_COMM_NULL;
  const int code = MPI_Comm_dup(mpi, &apart); /* collective, so it is called even if this rank has no memory */
  if (code == MPI_SUCCESS) (void)MPI_Comm_set_errhandler(apart, MPI_ERRORS_RETURN);
  uint64_t serial = comm_now();
  if (code == MPI_SUCCESS) (void)MPI_Bcast(&serial, 1, MPI_UINT64_T, 0, apart);
  if (code != MPI_SUCCESS || joined == NULL || looked == NULL || peers == NULL) {
    free(peers);
    free(looked);
    free(joined);
    if (code != MPI_SUCCESS) return rill__comm_mpi_fail(code, "MPI_Comm_dup");
    (void)MPI_Comm_free(&apart);
    return rill__comm_fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory for a communicator");
  }
  *joined = (struct joined){ .comm = comm,
                             .ranks = comm->ranks,
                             .mpi = mpi,
                             .apart = apart,
                             .last = &joined->first,
                             .looked = looked,
                             .peers = peers,
                             .serial = serial,
                             .comparison = MPI_REQUEST_NULL };
  for (uint32_t i = 0; i < comm->ranks; i++) peers[i].request = MPI_REQUEST_NULL;
  comm->native = joined;
  pthread_mutex_lock(&rill__comm_mpi_engine.parts.lock);
  joined->next = rill__comm_mpi_engine.all;
  rill__comm_mpi_engine.all = joined;
  pthread_mutex_unlock(&rill__comm_mpi_engine.parts.lock);
  return RILL_OK;
}

static rill_status join(struct comm *const *comms, uint32_t count, const uint8_t bytes[COMM_ID_BYTES]) {
  (void)count; /* always 1 */
  MPI_Comm mpi;
  COMM_TRY(enter_mpi());
  rill_status status = open_id(bytes, comms[0]->ranks, comms[0]->rank, &mpi);
  if (status == RILL_OK) {
    status = new_joined(comms[0], mpi);
    if (status != RILL_OK) (void)MPI_Comm_free(&mpi);
  }
  leave_mpi();
  return status;
}

static rill_status split(struct comm *parent, uint32_t color, uint32_t key, struct comm *child) {
  const struct joined *joined = parent->native;
  MPI_Comm mpi = MPI_COMM_NULL;
  int ranks = 0, rank = 0;
  COMM_TRY(enter_mpi());
  const int code =
      MPI_Comm_split(joined->apart, color == RILL_COMM_NO_COLOR ? MPI_UNDEFINED : (int)color, (int)key, &mpi);
  rill_status status = code == MPI_SUCCESS ? RILL_OK : rill__comm_mpi_fail(code, "MPI_Comm_split");
  child->ranks = 0;
  if (status == RILL_OK && mpi != MPI_COMM_NULL) {
    (void)MPI_Comm_set_errhandler(mpi, MPI_ERRORS_RETURN);
    (void)MPI_Comm_size(mpi, &ranks);
    (void)MPI_Comm_rank(mpi, &rank);
    child->ranks = (uint32_t)ranks;
    child->rank = (uint32_t)rank;
    status = new_joined(child, mpi);
    if (status != RILL_OK) (void)MPI_Comm_free(&mpi);
  }
  leave_mpi();
  return status;
}

static rill_status pass(const uint8_t id[COMM_ID_BYTES], uint32_t ranks, uint32_t rank, bool have,
                        uint8_t bytes[COMM_ID_BYTES]) {
  struct {
    uint8_t bytes[COMM_ID_BYTES], have;
  } message = { .have = have };
  memcpy(message.bytes, bytes, COMM_ID_BYTES);
  MPI_Comm mpi;
  COMM_TRY(enter_mpi());
  const rill_status status = open_id(id, ranks, rank, &mpi);
  if (status == RILL_OK) {
    (void)MPI_Bcast(&message, sizeof message, MPI_BYTE, 0, mpi);
    (void)MPI_Comm_free(&mpi);
  }
  leave_mpi();
  COMM_TRY(status);
  COMM_REQUIRE(rank == 0 || message.have != 0, RILL_ERROR_BACKEND, "rank 0 could not create the id");
  memcpy(bytes, message.bytes, COMM_ID_BYTES);
  return RILL_OK;
}

static void abort_comm(struct comm *comm) {
  struct joined *joined = comm->native;
  pthread_mutex_lock(&rill__comm_mpi_engine.parts.lock);
  joined->dead = rill__comm_mpi_engine.any_dead = true;
  if (!joined->was_notified) rill__comm_mpi_set_due(joined);
  pthread_cond_broadcast(&rill__comm_mpi_engine.parts.changed);
  pthread_mutex_unlock(&rill__comm_mpi_engine.parts.lock);
}

static void drain(struct comm *comm) {
  struct joined *joined = comm->native;
  pthread_mutex_lock(&rill__comm_mpi_engine.parts.lock);
  while ((joined->outstanding > 0 || joined->exchanging || !rill__comm_mpi_is_settled(joined)) &&
         !rill__comm_mpi_engine.stopped) {
    (void)pthread_cond_wait(&rill__comm_mpi_engine.parts.changed, &rill__comm_mpi_engine.parts.lock);
  }
  joined->ending = true;
  for (uint32_t i = 0; i < comm->ranks && !joined->dead; i++) joined->peers[i].due = false; /* nothing waits any more */
  pthread_mutex_unlock(&rill__comm_mpi_engine.parts.lock);
}

static void end(struct comm *comm) {
  struct joined *joined = comm->native;
  pthread_mutex_lock(&rill__comm_mpi_engine.parts.lock);
  while ((joined->exchanging || rill__comm_mpi_is_due(joined)) && !rill__comm_mpi_engine.stopped) {
    (void)pthread_cond_wait(&rill__comm_mpi_engine.parts.changed, &rill__comm_mpi_engine.parts.lock);
  }
  COMM_ASSERT(rill__comm_mpi_engine.stopped || rill__comm_mpi_is_settled(joined));
  struct joined **link = &rill__comm_mpi_engine.all;
  while (*link != joined) link = &(*link)->next;
  *link = joined->next;
  pthread_mutex_unlock(&rill__comm_mpi_engine.parts.lock);
  free(joined->looked);
  if (!joined->dead && enter_mpi() == RILL_OK) {
    COMM_ASSERT(joined->comparison == MPI_REQUEST_NULL);
    (void)MPI_Comm_free(&joined->mpi);
    joined->next = NULL;
    end_exchanges(joined);
    leave_mpi();
    return;
  }
  const bool used = joined->comparison != MPI_REQUEST_NULL; /* MPI may still write `pair` */
  if (rill__comm_mpi_free_peers(joined) && !used) free(joined);
}

/* ---- submitting ---- */

/* Creates the work items of operations, linked in order, and their parts. */
static rill_status new_works(const struct comm_op *ops, size_t count, struct work **works, struct comm_part **parts) {
  for (size_t i = 0; i < count; i++) {
    struct comm_part *part = NULL;
    COMM_TRY(rill__comm_part_of(&rill__comm_mpi_engine.parts, &ops[i], parts, &part));
    struct work *work = calloc(1, sizeof *work);
    COMM_REQUIRE(work != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for an operation");
    work->op = ops[i];
    work->part = part;
    work->request = MPI_REQUEST_NULL;
    *works = work;
    works = &work->next;
  }
  return RILL_OK;
}

static void free_all(struct work *works, struct comm_part *parts) {
  while (works != NULL) {
    struct work *work = works;
    works = work->next;
    free(work);
  }
  rill__comm_parts_free(parts);
}

static void queue_all(struct work *works) {
  pthread_mutex_lock(&rill__comm_mpi_engine.parts.lock);
  while (works != NULL) {
    struct work *work = works;
    works = work->next;
    struct joined *joined = work->op.comm->native;
    rill__comm_mpi_count(joined, work);
    work->next = NULL;
    *joined->last = work;
    joined->last = &work->next;
    joined->outstanding++;
  }
  pthread_mutex_unlock(&rill__comm_mpi_engine.parts.lock);
}

static rill_status submit(const struct comm_op *ops, size_t count) {
  struct work *works = NULL;
  struct comm_part *parts = NULL;
  const rill_status made = new_works(ops, count, &works, &parts);
  if (made != RILL_OK) {
    free_all(works, parts);
    return made;
  }
  queue_all(works);
  const rill_status status = rill__comm_parts_submit(parts, RILL_OK);
  if (status == RILL_OK) return RILL_OK;
  /* The other ranks have started an operation that this rank cannot, so the communicator is broken. */
  const struct comm_error why = *rill__comm_mpi_services->last_error();
  for (size_t i = 0; i < count; i++) rill__comm_mpi_services->break_comm(ops[i].comm, &why, true);
  return status;
}

static const struct comm_engine comm_mpi = {
  .name = "mpi",
  .backend = RILL_BACKEND_CPU,
  .max_count = INT32_MAX,
  .keeps_deadlines = true,
  .compares_messages = true,
  .takes_empty = true,
  .notes = true,
  .cannot_cancel = true,
  .start = start,
  .version = version,
  .make_id = make_id,
  .join = join,
  .split = split,
  .submit = submit,
  .abort = abort_comm,
  .drain = drain,
  .end = end,
  .world = world,
  .of_handle = of_handle,
  .pass = pass,
};

RILL_API comm_mpi_engine_fn COMM_MPI_SYMBOL;

const struct comm_engine *COMM_MPI_SYMBOL(const struct comm_services *given, uint32_t rill_version_of_user) {
  if (rill_version_of_user != rill_version()) return NULL;
  rill__comm_mpi_services = given;
  return &comm_mpi;
}
