/* Operations: checks before an engine gets them, and groups. */
#include "backends/comm/engine.h"

#include <stdlib.h>
#include <string.h>

/* ---- checks ---- */

/* Returns how many parts of `count` elements a buffer has. */
static size_t parts_of_dst(const struct comm_op *op) {
  return op->kind == COMM_ALL_GATHER || op->kind == COMM_ALL_TO_ALL ? op->comm->ranks : 1;
}
static size_t parts_of_src(const struct comm_op *op) {
  return op->kind == COMM_REDUCE_SCATTER || op->kind == COMM_ALL_TO_ALL ? op->comm->ranks : 1;
}

/* Returns whether this rank uses the buffer. */
static bool has_dst(const struct comm_op *op) {
  return op->kind == COMM_REDUCE ? op->comm->rank == op->peer : op->kind != COMM_SEND && op->kind != COMM_BARRIER;
}
static bool has_src(const struct comm_op *op) {
  return op->kind == COMM_BROADCAST ? op->comm->rank == op->peer : op->kind != COMM_RECEIVE && op->kind != COMM_BARRIER;
}

/* Checks that overlapping buffers overlap exactly as the operation's in-place form does. */
static rill_status check_overlap(const struct comm_op *op) {
  const size_t part = op->count * op->size, own = part * op->comm->rank;
  const uintptr_t dst = (uintptr_t)op->dst, src = (uintptr_t)op->src;
  const uintptr_t dst_end = dst + part * parts_of_dst(op), src_end = src + part * parts_of_src(op);
  if (dst_end <= src || src_end <= dst) return RILL_OK;
  bool in_place = dst == src;
  if (op->kind == COMM_ALL_GATHER) in_place = src == dst + own;
  if (op->kind == COMM_REDUCE_SCATTER) in_place = dst == src + own;
  if (op->kind == COMM_ALL_TO_ALL) in_place = false;
  COMM_REQUIRE(in_place, RILL_ERROR_INVALID_ARGUMENT,
               "dst, %zu bytes at %p, and src, %zu bytes at %p, overlap, but not as the in-place form requires",
               (size_t)(dst_end - dst), op->dst, (size_t)(src_end - src), op->src);
  return RILL_OK;
}

static rill_status check_arguments(struct comm_op *op) {
  const struct comm *comm = op->comm;
  rill_device device;
  COMM_TRY_RILL(rill_stream_device(op->stream, &device), "stream");
  COMM_REQUIRE(rill_device_equal(device, comm->device), RILL_ERROR_WRONG_DEVICE,
               "the stream belongs to a device other than that of rank %u" COMM_HINT
               "use a stream of the rank's own device",
               comm->rank);
  COMM_REQUIRE(op->type >= RILL_COMM_INT8 && op->type <= RILL_COMM_BFLOAT16, RILL_ERROR_INVALID_ARGUMENT,
               "type %u is not one of RILL_COMM_INT8 ... RILL_COMM_BFLOAT16", op->type);
  COMM_REQUIRE(op->op >= RILL_COMM_SUM && op->op <= RILL_COMM_AVERAGE, RILL_ERROR_INVALID_ARGUMENT,
               "op %u is not one of RILL_COMM_SUM, _PRODUCT, _MAX, _MIN, _AVERAGE", op->op);
  const size_t size = comm_size_of(op->type);
  const bool pair = op->kind == COMM_SEND || op->kind == COMM_RECEIVE;
  COMM_REQUIRE(op->peer < comm->ranks, RILL_ERROR_OUT_OF_RANGE, "%s %u is outside the %u ranks", pair ? "peer" : "root",
               op->peer, comm->ranks);
  COMM_REQUIRE(op->count <= SIZE_MAX / 2 / size / comm->ranks, RILL_ERROR_OUT_OF_RANGE,
               "%zu elements of %zu bytes for %u ranks overflow", op->count, size, comm->ranks);
  COMM_REQUIRE(op->count <= comm->engine->max_count, RILL_ERROR_OUT_OF_RANGE,
               "%zu elements; %s takes at most %zu" COMM_HINT "split this into several operations", op->count,
               comm->engine->name, comm->engine->max_count);
  op->size = size;
  if (op->count == 0) return RILL_OK;
  COMM_REQUIRE(!has_dst(op) || op->dst != NULL, RILL_ERROR_INVALID_ARGUMENT, "dst is NULL");
  COMM_REQUIRE(!has_src(op) || op->src != NULL, RILL_ERROR_INVALID_ARGUMENT, "src is NULL");
  return has_dst(op) && has_src(op) ? check_overlap(op) : RILL_OK;
}

/* ---- submitting ---- */

/* Returns whether operation `i` is the first one of its communicator. */
static bool is_first(const struct comm_op *ops, size_t i) {
  for (size_t j = i; j-- > 0;) {
    if (ops[j].comm == ops[i].comm) return false;
  }
  return true;
}

static int by_address(const void *a, const void *b) {
  const uintptr_t x = (uintptr_t) * (struct comm *const *)a, y = (uintptr_t) * (struct comm *const *)b;
  return (x > y) - (x < y);
}

/* The communicators of operations, each once, in address order.  Turns that are taken in this order do not deadlock. */
struct comm_list {
  size_t count;
  struct comm **comms, *few[8];
};

static rill_status list_comms(struct comm_list *list, const struct comm_op *ops, size_t count) {
  size_t distinct = 0;
  for (size_t i = 0; i < count; i++) distinct += is_first(ops, i);
  list->comms = list->few;
  if (distinct > sizeof list->few / sizeof *list->few) list->comms = malloc(distinct * sizeof(struct comm *));
  COMM_REQUIRE(list->comms != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a group of %zu communicators",
               distinct);
  list->count = 0;
  for (size_t i = 0; i < count; i++) {
    if (is_first(ops, i)) list->comms[list->count++] = ops[i].comm;
  }
  qsort(list->comms, list->count, sizeof(struct comm *), by_address);
  return RILL_OK;
}

static void free_list(struct comm_list *list) {
  if (list->comms != list->few) free(list->comms);
}

static void pass_turns(const struct comm_list *list, enum comm_turn which) {
  for (size_t i = 0; i < list->count; i++) rill__comm_pass_turn(list->comms[i], which);
}

/* Takes the turns of all communicators, or fails without a turn. */
static rill_status take_turns(const struct comm_list *list, enum comm_turn which) {
  struct comm_list taken = { .count = 0, .comms = list->comms };
  while (taken.count < list->count) {
    const rill_status status = rill__comm_take_turn(list->comms[taken.count], which);
    if (status != RILL_OK) pass_turns(&taken, which);
    if (status != RILL_OK) return status;
    taken.count++;
  }
  return RILL_OK;
}

static void come_out(const struct comm_list *list) {
  for (size_t i = 0; i < list->count; i++) rill__comm_come_out(list->comms[i], true);
}

/* Goes inside of all communicators, or fails outside of all. */
static rill_status go_inside(const struct comm_list *list) {
  struct comm_list inside = { .count = 0, .comms = list->comms };
  while (inside.count < list->count) {
    const rill_status status = rill__comm_go_inside(list->comms[inside.count], true);
    if (status != RILL_OK) come_out(&inside);
    if (status != RILL_OK) return status;
    inside.count++;
  }
  return RILL_OK;
}

/* Describes operations to rill.  This is for engines that submit to native streams, because rill does not see these
 * submissions. */
static void note_begin(const struct comm_op *ops, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const rill_stream_note note = comm_note(&ops[i]);
    if (ops[i].number != 0) (void)!rill_stream_note_begin(ops[i].stream, &note);
  }
}

static void note_end(const struct comm_op *ops, size_t count) {
  for (size_t i = count; i-- > 0;) {
    if (ops[i].number != 0) (void)rill_stream_note_end(ops[i].stream);
  }
}

/* Numbers the operations.  Call in the turn COMM_SUBMITTING of their communicators. */
static void number_operations(struct comm_op *ops, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const bool own = rill_stream_equal(ops[i].stream, ops[i].comm->check_stream);
    ops[i].number = own ? 0 : ++ops[i].comm->numbered;
  }
}

static rill_status submit_noted(const struct comm_op *ops, size_t count) {
  const struct comm_engine *const engine = ops[0].comm->engine;
  if (engine->notes) return engine->submit(ops, count);
  note_begin(ops, count);
  const rill_status status = engine->submit(ops, count);
  note_end(ops, count);
  return status;
}

/* Submits operations, with one flight for each run of consecutive operations of one communicator and stream. */
static rill_status submit_watched(const struct comm_op *ops, size_t count) {
  struct comm_flight *flights = NULL;
  rill_status status = RILL_OK;
  for (size_t i = 0; i < count && status == RILL_OK; i++) {
    const bool same = i > 0 && ops[i].comm == ops[i - 1].comm && rill_stream_equal(ops[i].stream, ops[i - 1].stream);
    if (!same) status = rill__comm_flight_begin(&ops[i], &flights);
  }
  if (status == RILL_OK) status = submit_noted(ops, count);
  rill__comm_flights_end(flights, status == RILL_OK);
  return status;
}

/* Makes the numbers of operations that were not submitted available again. */
static void take_back_numbers(const struct comm_op *ops, size_t count) {
  for (size_t i = count; i-- > 0;) {
    if (ops[i].number != 0) ops[i].comm->numbered = ops[i].number - 1;
  }
}

/* An empty operation is passed to an engine that compares it.  RILL_CHECK=comm has already compared collective
 * operations, and messages unless the engine compares them. */
bool rill__comm_is_submitted(const struct comm_op *op) {
  const struct comm_engine *engine = op->comm->engine;
  return op->count > 0 || engine->takes_empty ||
         (engine->compares_messages && comm_is_message(op) && rill__comm_checks());
}

static size_t remove_empty(struct comm_op *ops, size_t count) {
  size_t left = 0;
  for (size_t i = 0; i < count; i++) {
    if (rill__comm_is_submitted(&ops[i])) ops[left++] = ops[i];
  }
  return left;
}

/* Submits in a turn of the communicators. */
static rill_status submit_in_turn(struct comm_op *ops, size_t count, const struct comm_list *list) {
  COMM_TRY(rill__comm_quiet_enter(ops, count));
  rill_status status = go_inside(list);
  if (status != RILL_OK) {
    rill__comm_quiet_leave(ops, count, false);
    return status;
  }
  number_operations(ops, count);
  status = submit_watched(ops, count);
  if (status != RILL_OK) take_back_numbers(ops, count);
  come_out(list);
  rill__comm_quiet_leave(ops, count, status == RILL_OK || status == RILL_ERROR_BACKEND);
  return status;
}

rill_status rill__comm_submit(struct comm_op *ops, size_t count) {
  count = remove_empty(ops, count);
  if (count == 0) return RILL_OK;
  struct comm_list list;
  COMM_TRY(list_comms(&list, ops, count));
  rill_status status = take_turns(&list, COMM_SUBMITTING);
  if (status == RILL_OK) {
    status = submit_in_turn(ops, count, &list);
    pass_turns(&list, COMM_SUBMITTING);
  }
  free_list(&list);
  return status;
}

static rill_status submit(struct comm_op *ops, size_t count) {
  if (!rill__comm_checks()) return rill__comm_submit(ops, count);
  struct comm_list list;
  COMM_TRY(list_comms(&list, ops, count));
  rill_status status = take_turns(&list, COMM_CHECKING);
  if (status == RILL_OK) {
    status = rill__comm_check(ops, count);
    if (status == RILL_OK) status = rill__comm_submit(ops, count);
    pass_turns(&list, COMM_CHECKING);
  }
  free_list(&list);
  return status;
}

/* ---- groups ---- */

/* A thread's open group.  Its communicators are pinned. */
struct group {
  uint32_t depth;
  struct comm_op *ops;
  size_t count, capacity;
  struct comm_error failure; /* of the first operation that was rejected */
};

static pthread_key_t group_key;
static pthread_once_t group_once = PTHREAD_ONCE_INIT;

static void free_group(void *argument) { /* called when the thread ends */
  struct group *group = argument;
  for (size_t i = 0; i < group->count; i++) rill__comm_unpin(group->ops[i].comm);
  free(group->ops);
  free(group);
}

static void make_group_key(void) { (void)pthread_key_create(&group_key, free_group); }

/* Returns the calling thread's group; NULL if it never opened one. */
static struct group *own_group(void) {
  (void)pthread_once(&group_once, make_group_key);
  return pthread_getspecific(group_key);
}

/* Adds an operation, and takes over its pin. */
static rill_status add_to_group(struct group *group, const struct comm_op *op) {
  const struct comm_engine *first = group->count > 0 ? group->ops[0].comm->engine : op->comm->engine;
  COMM_REQUIRE(op->comm->engine == first, RILL_ERROR_WRONG_BACKEND,
               "the group has operations of %s, but this operation is of %s", first->name, op->comm->engine->name);
  if (group->count == group->capacity) {
    const size_t capacity = group->capacity * 2 + 16;
    struct comm_op *ops = realloc(group->ops, capacity * sizeof *ops);
    COMM_REQUIRE(ops != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a group of %zu operations", capacity);
    group->ops = ops;
    group->capacity = capacity;
  }
  group->ops[group->count++] = *op;
  return RILL_OK;
}

rill_status rill__comm_group_open(void) {
  struct group *group = own_group();
  if (group == NULL) {
    group = calloc(1, sizeof *group);
    const bool kept = group != NULL && pthread_setspecific(group_key, group) == 0;
    if (!kept) free(group);
    COMM_REQUIRE(kept, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a group");
  }
  group->depth++;
  return RILL_OK;
}

rill_status rill__comm_group_close(void) {
  struct group *group = own_group();
  COMM_REQUIRE(group != NULL && group->depth > 0, RILL_ERROR_INVALID_ARGUMENT,
               "this thread has no open group" COMM_HINT "call rill_comm_group_begin first");
  if (--group->depth > 0) return RILL_OK;
  struct group ended = *group; /* copied so that the thread may begin another group */
  *group = (struct group){ .depth = 0 };
  struct comm_op *ops =
      malloc(ended.count * sizeof *ops +
             1); /* a copy, because `submit` modifies it and the pins of `ended.ops` are still needed */
  rill_status status = RILL_OK;
  if (ended.failure.status != RILL_OK) {
    status = rill__comm_fail_as(&ended.failure);
  } else if (ops == NULL) {
    status = rill__comm_fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory for a group of %zu operations", ended.count);
  } else if (ended.count > 0) {
    memcpy(ops, ended.ops, ended.count * sizeof *ops);
    status = submit(ops, ended.count);
  }
  for (size_t i = 0; i < ended.count; i++) rill__comm_unpin(ended.ops[i].comm);
  free(ended.ops);
  free(ops);
  return status;
}

rill_status rill__comm_group_refuse(rill_status status) {
  struct group *const group = own_group();
  if (group != NULL && group->depth > 0 && group->failure.status == RILL_OK) group->failure = rill__comm_last_error;
  return status;
}

rill_status rill_comm_group_begin(void) {
  rill__comm_enter(__func__);
  return rill__comm_group_open();
}

rill_status rill_comm_group_end(void) {
  rill__comm_enter(__func__);
  return rill__comm_group_close();
}

/* ---- the operations ---- */

static rill_status take(struct comm_op *op, struct group *group, bool *grouped) {
  COMM_TRY(check_arguments(op));
  const bool compared = rill__comm_checks() || op->comm->engine->takes_empty;
  if (op->count == 0 && !compared) return rill__comm_check_intact(op->comm);
  *grouped = group != NULL;
  return *grouped ? add_to_group(group, op) : submit(op, 1);
}

rill_status rill__comm_enqueue(rill_comm handle, struct comm_op op, const char *api) {
  rill__comm_enter(api);
  struct group *group = own_group();
  if (group != NULL && group->depth == 0) group = NULL;
  bool grouped = false;
  rill_status status = rill__comm_pin(handle, &op.comm);
  if (status == RILL_OK) {
    struct comm *const comm = op.comm;
    status = rill__comm_inject(&op);
    if (status == RILL_OK) status = take(&op, group, &grouped);
    if (status != RILL_OK || !grouped) rill__comm_unpin(comm);
  }
  return status == RILL_OK ? RILL_OK : rill__comm_group_refuse(status);
}

/* Enqueues an operation, in a function with parameters `comm` and `stream`. */
#define ENQUEUE(KIND, DST, SRC, COUNT, TYPE, OPERATOR, PEER) \
  rill__comm_enqueue(comm,                                   \
                     (struct comm_op){ .stream = stream,     \
                                       .dst = (DST),         \
                                       .src = (SRC),         \
                                       .count = (COUNT),     \
                                       .kind = (KIND),       \
                                       .type = (TYPE),       \
                                       .op = (OPERATOR),     \
                                       .peer = (PEER) },     \
                     __func__)

rill_status rill_comm_all_reduce(rill_comm comm, rill_stream stream, void *dst, const void *src, size_t count,
                                 uint32_t type, uint32_t op) {
  return ENQUEUE(COMM_ALL_REDUCE, dst, src, count, type, op, 0);
}

rill_status rill_comm_reduce(rill_comm comm, rill_stream stream, void *dst, const void *src, size_t count,
                             uint32_t type, uint32_t op, uint32_t root) {
  return ENQUEUE(COMM_REDUCE, dst, src, count, type, op, root);
}

rill_status rill_comm_broadcast(rill_comm comm, rill_stream stream, void *dst, const void *src, size_t count,
                                uint32_t type, uint32_t root) {
  return ENQUEUE(COMM_BROADCAST, dst, src, count, type, RILL_COMM_SUM, root);
}

rill_status rill_comm_all_gather(rill_comm comm, rill_stream stream, void *dst, const void *src, size_t count,
                                 uint32_t type) {
  return ENQUEUE(COMM_ALL_GATHER, dst, src, count, type, RILL_COMM_SUM, 0);
}

rill_status rill_comm_reduce_scatter(rill_comm comm, rill_stream stream, void *dst, const void *src, size_t count,
                                     uint32_t type, uint32_t op) {
  return ENQUEUE(COMM_REDUCE_SCATTER, dst, src, count, type, op, 0);
}

rill_status rill_comm_all_to_all(rill_comm comm, rill_stream stream, void *dst, const void *src, size_t count,
                                 uint32_t type) {
  return ENQUEUE(COMM_ALL_TO_ALL, dst, src, count, type, RILL_COMM_SUM, 0);
}

rill_status rill_comm_send(rill_comm comm, rill_stream stream, const void *src, size_t count, uint32_t type,
                           uint32_t peer) {
  return ENQUEUE(COMM_SEND, NULL, src, count, type, RILL_COMM_SUM, peer);
}

rill_status rill_comm_receive(rill_comm comm, rill_stream stream, void *dst, size_t count, uint32_t type,
                              uint32_t peer) {
  return ENQUEUE(COMM_RECEIVE, dst, NULL, count, type, RILL_COMM_SUM, peer);
}

rill_status rill_comm_barrier(rill_comm comm, rill_stream stream) {
  return ENQUEUE(COMM_BARRIER, NULL, NULL, 1, RILL_COMM_INT32, RILL_COMM_SUM, 0);
}
