/* NCCL and RCCL: one source that is compiled once for each, with a header of their differences (ENGINE_HEADER). */
#include "backends/comm/gpu_comm.h"

#include "backends/comm/engine.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include ENGINE_HEADER

static struct gpu_comm_api api;
static struct driver driver;
static int version;
static char why[512]; /* why the engine cannot be used; "" if it can */

/* ---- opening ---- */

struct symbol {
  const char *name;
  size_t offset;
  bool required;
};

static bool fill(void *into, void *library, const struct symbol *symbols, size_t count, const char *what) {
  for (size_t i = 0; i < count; i++) {
    void *symbol = dlsym(library, symbols[i].name);
    if (symbol == NULL && symbols[i].required) {
      (void)snprintf(why, sizeof why, "%s does not export %s: it is too old", what, symbols[i].name);
      return false;
    }
    memcpy((char *)into + symbols[i].offset, &symbol, sizeof symbol);
  }
  return true;
}

static const char *path_of(void *library) {
  struct link_map *map = NULL;
  return dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "";
}

/* Returns the loaded driver library, trying the newest version first; skips `first` unless NULL. */
static void *loaded_driver(const void *first) {
  static const char *const drivers[] = { DRIVER_LIBRARIES };
  for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++) {
    void *driver_library = dlopen(drivers[i], RTLD_NOW | RTLD_NOLOAD);
    if (driver_library != NULL && driver_library != first) return driver_library;
  }
  return NULL;
}

/* Opens the engine library: one that the process has loaded, else one in the driver's folder, else one that the loader
 * finds.  Libraries of the vendor are never closed. */
static void *open_library(void *vendor) {
  static const char *const beside[] = { ENGINE_BESIDE NULL };
  const char *path = path_of(vendor), *slash = strrchr(path, '/');
  void *library = NULL;
  for (size_t i = 0; beside[i] != NULL && library == NULL; i++) library = dlopen(beside[i], RTLD_NOW | RTLD_NOLOAD);
  for (size_t i = 0; beside[i] != NULL && library == NULL && slash != NULL; i++) {
    char name[PATH_MAX];
    (void)snprintf(name, sizeof name, "%.*s/%s", (int)(slash - path), path, beside[i]);
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (library == NULL) library = dlopen(ENGINE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  const char *said = library == NULL ? dlerror() : "";
  (void)snprintf(why, sizeof why, "%s", said != NULL ? said : ENGINE_LIBRARY);
  return library;
}

static void open_engine(void) {
  static const struct symbol symbols[] = {
#define GPU_COMM_FN(field, name, required, result, parameters) \
  { #name, offsetof(struct gpu_comm_api, field), required },
    GPU_COMM_FUNCTIONS
#undef GPU_COMM_FN
  };
  static const struct symbol driver_symbols[] = {
#define DRIVER_FN(field, name, required) { name, offsetof(struct driver, field), required },
    DRIVER_FUNCTIONS
#undef DRIVER_FN
  };
  void *vendor = loaded_driver(NULL); /* rill keeps it open */
  void *library = vendor != NULL ? open_library(vendor) : NULL;
  if (vendor == NULL) (void)snprintf(why, sizeof why, "the driver's library is not loaded");
  if (library == NULL) return;
  void *other = loaded_driver(vendor);
  if (other != NULL) {
    (void)snprintf(why, sizeof why, "%.150s uses %.150s, but rill uses %.150s", path_of(library), path_of(other),
                   path_of(vendor));
  } else if (fill(&api, library, symbols, sizeof symbols / sizeof *symbols, ENGINE_LIBRARY) &&
             fill(&driver, vendor, driver_symbols, sizeof driver_symbols / sizeof *driver_symbols, "the driver")) {
    if (api.get_version(&version) != GPU_COMM_SUCCESS) (void)snprintf(why, sizeof why, "ncclGetVersion failed");
  }
}

static rill_status start(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, open_engine);
  COMM_REQUIRE(why[0] == '\0', RILL_ERROR_UNSUPPORTED, "%s cannot be used: %s" COMM_HINT ENGINE_INSTALL, ENGINE_LIBRARY,
               why);
  return RILL_OK;
}

static uint32_t engine_version(void) { return (uint32_t)version; }

/* ---- failures ---- */

static const char *name_of(int code) {
  static const char *const names[] = { "ncclSuccess",       "ncclUnhandledCudaError", "ncclSystemError",
                                       "ncclInternalError", "ncclInvalidArgument",    "ncclInvalidUsage",
                                       "ncclRemoteError",   "ncclInProgress" };
  return code >= 0 && (size_t)code < sizeof names / sizeof *names ? names[code] : "ncclResult_t";
}

static rill_status fail(int code, const char *call) {
  const char *more = api.get_last_error != NULL ? api.get_last_error(NULL) : NULL;
  const bool arguments = code == GPU_COMM_INVALID_ARGUMENT || code == GPU_COMM_INVALID_USAGE;
  return rill__comm_fail_native(arguments ? RILL_ERROR_INVALID_ARGUMENT : RILL_ERROR_BACKEND, code, name_of(code),
                                "%s: %s%s%.400s" COMM_HINT "set NCCL_DEBUG=WARN in the environment for more detail",
                                call, api.get_error_string(code), more != NULL && more[0] != '\0' ? ": " : "",
                                more != NULL ? more : "");
}

#define CALL(what, call)                                       \
  do {                                                         \
    const int code_ = (call);                                  \
    if (code_ != GPU_COMM_SUCCESS) return fail(code_, (what)); \
  } while (0)

/* Makes the communicator's device current for calls of the engine, until leave_device. */
static rill_status enter(const struct comm *comm, int *before) {
  const int code = enter_device(&driver, comm, before);
  COMM_REQUIRE(code == 0, RILL_ERROR_BACKEND, "the driver cannot make the device of rank %u current: error %d",
               comm->rank, code);
  return RILL_OK;
}

/* ---- life ---- */

static rill_status make_id(uint8_t bytes[COMM_ID_BYTES]) {
  struct gpu_comm_id id;
  _Static_assert(sizeof id == COMM_ID_BYTES, "an id is its bytes");
  CALL("ncclGetUniqueId", api.get_unique_id(&id));
  memcpy(bytes, &id, sizeof id);
  return RILL_OK;
}

/* Calls `function` with the communicator's device current, or with the device unchanged if that fails. */
static void call_with(struct comm *comm, int (*function)(void *native)) {
  int before;
  const bool entered = enter_device(&driver, comm, &before) == 0;
  (void)function(comm->native);
  if (entered) leave_device(&driver, before);
}

static void abort_comm(struct comm *comm) {
  call_with(comm, api.abort);
  comm->native = NULL;
}

static void end(struct comm *comm) {
  if (comm->native != NULL) call_with(comm, api.destroy);
  comm->native = NULL;
}

static rill_status join_one(struct comm *comm, const struct gpu_comm_id *id) {
  int before;
  COMM_TRY(enter(comm, &before));
  const int code = api.init_rank(&comm->native, (int)comm->ranks, *id, (int)comm->rank);
  leave_device(&driver, before);
  return code == GPU_COMM_SUCCESS ? RILL_OK : fail(code, "ncclCommInitRank");
}

static rill_status join_group(struct comm *const *comms, uint32_t count, const struct gpu_comm_id *id) {
  CALL("ncclGroupStart", api.group_start());
  rill_status status = RILL_OK;
  for (uint32_t i = 0; i < count && status == RILL_OK; i++) status = join_one(comms[i], id);
  const struct comm_error first = rill__comm_last_error;
  int before = 0; /* group_end sets devices itself, and restores the one current now */
  const rill_status entered = enter(comms[0], &before);
  const int code = api.group_end();
  if (entered == RILL_OK) leave_device(&driver, before);
  if (status != RILL_OK) return rill__comm_fail_as(&first);
  return code == GPU_COMM_SUCCESS ? entered : fail(code, "ncclGroupEnd");
}

static rill_status join(struct comm *const *comms, uint32_t count, const uint8_t bytes[COMM_ID_BYTES]) {
  struct gpu_comm_id id;
  memcpy(&id, bytes, sizeof id);
  const rill_status status = count == 1 ? join_one(comms[0], &id) : join_group(comms, count, &id);
  if (status == RILL_OK) return RILL_OK;
  const struct comm_error error = rill__comm_last_error;
  for (uint32_t i = 0; i < count; i++) { /* abort the communicators that had started to join */
    if (comms[i]->native != NULL) abort_comm(comms[i]);
  }
  return rill__comm_fail_as(&error);
}

static rill_status split(struct comm *parent, uint32_t color, uint32_t key, struct comm *child) {
  enum { NO_COLOR = -1 };
  COMM_REQUIRE(api.split != NULL, RILL_ERROR_UNSUPPORTED, "%s has no ncclCommSplit, which NCCL has had since 2.18",
               ENGINE_LIBRARY);
  int before, ranks = 0, rank = 0;
  COMM_TRY(enter(parent, &before));
  int code =
      api.split(parent->native, color == RILL_COMM_NO_COLOR ? NO_COLOR : (int)color, (int)key, &child->native, NULL);
  if (code == GPU_COMM_SUCCESS && child->native != NULL) {
    code = api.comm_ranks(child->native, &ranks);
    if (code == GPU_COMM_SUCCESS) code = api.comm_rank(child->native, &rank);
  }
  leave_device(&driver, before);
  child->ranks = (uint32_t)ranks;
  child->rank = (uint32_t)rank;
  return code == GPU_COMM_SUCCESS ? RILL_OK : fail(code, "ncclCommSplit");
}

static rill_status poll_error(struct comm *comm) {
  int error = GPU_COMM_SUCCESS;
  CALL("ncclCommGetAsyncError", api.get_async_error(comm->native, &error));
  return error == GPU_COMM_SUCCESS || error == GPU_COMM_IN_PROGRESS ? RILL_OK : fail(error, "asynchronous error");
}

static void graph_ended(void *comm) { rill__comm_quiet_count_graph(comm, -1); } /* on a thread of the driver */

/* Makes the graph that the stream captures, its copies and its execution objects own a counted reference.  A runtime
 * without user objects (HIP 5.2) does not tell when a graph has ended: the count stays. */
static rill_status capture(struct comm *comm, rill_stream stream) {
  enum { ACTIVE = 1, NO_DESTRUCTOR_SYNC = 1, MOVE = 1 };
  uintptr_t native;
  int before, status = 0;
  void *graph = NULL, *object = NULL;
  size_t count = 0;
  COMM_TRY_RILL(rill_stream_native(stream, &native), "stream");
  rill__comm_quiet_count_graph(comm, 1);
  if (driver.create_object == NULL || driver.retain_object == NULL) return RILL_OK;
  int code = enter_device(&driver, comm, &before);
  const bool entered = code == 0;
  if (code == 0) code = driver.capture_info((void *)native, &status, NULL, &graph, NULL, &count);
  const bool captures = code == 0 && status == ACTIVE && graph != NULL; /* otherwise the engine refuses the operation */
  if (captures) code = driver.create_object(&object, comm, graph_ended, 1, NO_DESTRUCTOR_SYNC);
  const bool created = captures && code == 0;
  if (created) code = driver.retain_object(graph, object, 1, MOVE);
  if (created && code != 0) (void)driver.release_object(object, 1); /* which calls graph_ended */
  if (entered) leave_device(&driver, before);
  if (!created) rill__comm_quiet_count_graph(comm, -1);
  COMM_REQUIRE(code == 0, RILL_ERROR_BACKEND, "the driver cannot tell when the captured graph ends: error %d", code);
  return RILL_OK;
}

static int revoke(void *native) { return api.revoke(native, 0); }

/* Interrupts a blocked submission.  Older versions have no call for this; with them, `abort` runs while the submission
 * is still inside the engine. */
static bool interrupt(struct comm *comm) {
  if (api.revoke != NULL) call_with(comm, revoke);
  return api.revoke != NULL;
}

static void begin_watch(void) {
  int relaxed = 2;
  (void)driver.exchange_capture_mode(&relaxed);
}

/* ---- operations ---- */

static int submit_all_to_all(const struct comm_op *op, int type, void *stream) {
  const struct comm *comm = op->comm;
  const size_t part = op->count * op->size;
  int code = api.group_start();
  for (uint32_t i = 0; i < comm->ranks && code == GPU_COMM_SUCCESS; i++) {
    code = api.send((const char *)op->src + part * i, op->count, type, (int)i, comm->native, stream);
    if (code == GPU_COMM_SUCCESS) {
      code = api.receive((char *)op->dst + part * i, op->count, type, (int)i, comm->native, stream);
    }
  }
  const int ended = api.group_end();
  return code == GPU_COMM_SUCCESS ? ended : code;
}

static int submit_one(const struct comm_op *op, void *stream) {
  void *const native = op->comm->native;
  const int type = gpu_comm_number(op->type), reduction = gpu_comm_number(op->op), peer = (int)op->peer;
  void *const scratch = op->comm->scratch;
  switch (op->kind) {
    case COMM_ALL_REDUCE: return api.all_reduce(op->src, op->dst, op->count, type, reduction, native, stream);
    case COMM_REDUCE: return api.reduce(op->src, op->dst, op->count, type, reduction, peer, native, stream);
    case COMM_BROADCAST: return api.broadcast(op->src, op->dst, op->count, type, peer, native, stream);
    case COMM_ALL_GATHER: return api.all_gather(op->src, op->dst, op->count, type, native, stream);
    case COMM_REDUCE_SCATTER: return api.reduce_scatter(op->src, op->dst, op->count, type, reduction, native, stream);
    case COMM_ALL_TO_ALL: return submit_all_to_all(op, type, stream);
    case COMM_SEND: return api.send(op->src, op->count, type, peer, native, stream);
    case COMM_RECEIVE: return api.receive(op->dst, op->count, type, peer, native, stream);
    case COMM_BARRIER: return api.all_reduce(scratch, scratch, 1, type, reduction, native, stream);
    case COMM_KINDS: break;
  }
  return GPU_COMM_INVALID_ARGUMENT;
}

/* Breaks the communicators unless the engine rejected the arguments: only then is it certain that nothing has started.
 */
static rill_status give_up(const struct comm_op *ops, size_t count, int code, const char *call) {
  const rill_status status = fail(code, call);
  const struct comm_error error = rill__comm_last_error;
  for (size_t i = 0; i < count && status != RILL_ERROR_INVALID_ARGUMENT; i++)
    rill__comm_break(ops[i].comm, &error, true);
  return rill__comm_fail_as(&error);
}

static rill_status submit(const struct comm_op *ops, size_t count) {
  for (size_t i = 0; i < count; i++) { /* check all streams before anything starts */
    uintptr_t native;
    COMM_TRY_RILL(rill_stream_native(ops[i].stream, &native), "stream");
  }
  int before;
  COMM_TRY(enter(ops[0].comm, &before));
  const bool grouped = count > 1;
  int code = grouped ? api.group_start() : GPU_COMM_SUCCESS;
  const char *call = comm_kind_name(ops[0].kind);
  for (size_t i = 0; i < count && code == GPU_COMM_SUCCESS; i++) {
    uintptr_t native = 0;
    call = comm_kind_name(ops[i].kind);
    code = rill_stream_native(ops[i].stream, &native) == RILL_OK ? submit_one(&ops[i], (void *)native)
                                                                 : GPU_COMM_INVALID_ARGUMENT;
  }
  if (grouped) {
    const int ended = api.group_end();
    if (code == GPU_COMM_SUCCESS) {
      code = ended;
      call = "ncclGroupEnd";
    }
  }
  leave_device(&driver, before);
  return code == GPU_COMM_SUCCESS ? RILL_OK : give_up(ops, count, code, call);
}

const struct comm_engine ENGINE = {
  .name = ENGINE_NAME,
  .backend = ENGINE_BACKEND,
  .max_count = SIZE_MAX,
  .needs_scratch = true,
  .ends_when_quiet = true,
  .aborts_apart = true, /* the last rank of a process frees memory of all, which waits for whatever runs on the GPUs */
  .start = start,
  .version = engine_version,
  .make_id = make_id,
  .join = join,
  .split = split,
  .capture = capture,
  .submit = submit,
  .poll = poll_error,
  .interrupt = interrupt,
  .abort = abort_comm,
  .end = end,
  .begin_watch = begin_watch,
};
