/* Each operation, for each type and operator, in place and not, of any count: results, order, groups. */
#include "ranks.h"

#include "conformance/traces.h"

#include <rill/capture.h>
#include <rill/graph.h>
#include <rill/graph_exec.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>

enum { ALL_REDUCE, REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, KINDS };
static const char *const kinds[KINDS] = { "all_reduce", "reduce",         "broadcast",
                                          "all_gather", "reduce_scatter", "all_to_all" };

/* One collective operation, and where its data is. */
struct shape {
  int kind;
  const struct type *type;
  uint32_t op, root;
  size_t count;
  bool in_place;
};

static bool fans_out(int kind) { return kind == ALL_GATHER || kind == ALL_TO_ALL; }
static bool fans_in(int kind) { return kind == REDUCE_SCATTER || kind == ALL_TO_ALL; }

static rill_status call(const struct rank *r, const struct shape *s, void *dst, const void *src) {
  const uint32_t type = s->type->type;
  switch (s->kind) {
    case ALL_REDUCE: return rill_comm_all_reduce(r->comm, r->stream, dst, src, s->count, type, s->op);
    case REDUCE: return rill_comm_reduce(r->comm, r->stream, dst, src, s->count, type, s->op, s->root);
    case BROADCAST: return rill_comm_broadcast(r->comm, r->stream, dst, src, s->count, type, s->root);
    case ALL_GATHER: return rill_comm_all_gather(r->comm, r->stream, dst, src, s->count, type);
    case REDUCE_SCATTER: return rill_comm_reduce_scatter(r->comm, r->stream, dst, src, s->count, type, s->op);
    default: return rill_comm_all_to_all(r->comm, r->stream, dst, src, s->count, type);
  }
}

/* The value at `index` of dst afterwards; -1: unchanged. */
static int64_t expected_at(const struct rank *r, const struct shape *s, size_t index, uint32_t seed) {
  const uint32_t part = s->count > 0 ? (uint32_t)(index / s->count) : 0;
  switch (s->kind) {
    case ALL_REDUCE: return combined_at(r->ranks, index, seed, s->op);
    case REDUCE: return r->rank == s->root ? combined_at(r->ranks, index, seed, s->op) : -1;
    case BROADCAST: return value_at(s->root, index, seed);
    case ALL_GATHER: return value_at(part, index % s->count, seed);
    case REDUCE_SCATTER: return combined_at(r->ranks, index + s->count * r->rank, seed, s->op);
    default: return value_at(part, index % s->count + s->count * r->rank, seed);
  }
}

static const char *describe(const struct rank *r, const struct shape *s, size_t index, int64_t got, int64_t wanted) {
  static _Thread_local char text[256];
  (void)snprintf(text, sizeof text, "rank %u: %s of %zu %s, op %u, root %u%s: %lld at %zu, not %lld", r->rank,
                 kinds[s->kind], s->count, s->type->name, s->op, s->root, s->in_place ? ", in place" : "",
                 (long long)got, index, (long long)wanted);
  return text;
}

static const char *try_shape(const struct rank *r, const struct shape *s, uint32_t seed, struct buffer *src,
                             struct buffer *dst) {
  const uint32_t type = s->type->type;
  const size_t in = s->count * (fans_in(s->kind) ? r->ranks : 1), out = s->count * (fans_out(s->kind) ? r->ranks : 1);
  struct buffer *from = s->in_place && in < out ? dst : src, *to = s->in_place && in >= out ? src : dst;
  const size_t own = s->in_place && in != out ? s->count * r->rank : 0; /* this rank's part of the larger one */
  const size_t from_offset = in < out ? own : 0, to_offset = in > out ? own : 0;
  memset(dst->host, 0x11, dst->bytes);
  if (!s->in_place) memset(src->host, 0, src->bytes);
  for (size_t i = 0; i < in; i++) put_number(from->host, from_offset + i, type, value_at(r->rank, i, seed));
  RUN(buffer_upload(r, from));
  if (to != from) RUN(buffer_upload(r, to));
  COMM(call(r, s, (char *)to->device + to_offset * s->type->size, (char *)from->device + from_offset * s->type->size));
  RUN(buffer_download(r, to));
  RUN(rill_stream_synchronize(r->stream));
  unsigned char untouched[8];
  memset(untouched, 0x11, sizeof untouched);
  for (size_t i = 0; i < out; i++) {
    int64_t wanted = expected_at(r, s, i, seed);
    const int64_t got = get_number(to->host, to_offset + i, type);
    if (wanted == -1) wanted = s->in_place ? value_at(r->rank, i, seed) : get_number(untouched, 0, type);
    unsigned char as_type[8]; /* a product of five ranks does not fit into 8 bits, and wraps around */
    put_number(as_type, 0, type, wanted);
    wanted = get_number(as_type, 0, type);
    if (got != wanted) return describe(r, s, i, got, wanted);
  }
  return NULL;
}

enum { MOST = 300 };

static const char *try_all(struct rank *r) {
  static const size_t counts[] = { 0, 1, 7, MOST };
  struct buffer src, dst;
  const size_t bytes = (size_t)MOST * 8 * r->ranks;
  RUN(buffer_new(r, bytes, &src));
  RUN(buffer_new(r, bytes, &dst));
  const char *failure = NULL;
  uint32_t seed = 0;
  for (int kind = 0; kind < KINDS && failure == NULL; kind++) {
    for (size_t t = 0; t < TYPE_COUNT && failure == NULL; t++) {
      const bool reduces = kind == ALL_REDUCE || kind == REDUCE || kind == REDUCE_SCATTER;
      for (uint32_t op = RILL_COMM_SUM; op <= (reduces ? RILL_COMM_MIN : RILL_COMM_SUM) && failure == NULL; op++) {
        for (size_t c = 0; c < sizeof counts / sizeof *counts && failure == NULL; c++) {
          struct shape s = { kind, &types[t], op, seed % r->ranks, counts[c], false };
          failure = try_shape(r, &s, ++seed, &src, &dst);
          s.in_place = kind != ALL_TO_ALL;
          if (failure == NULL && s.in_place) failure = try_shape(r, &s, ++seed, &src, &dst);
        }
      }
    }
  }
  buffer_free(&src);
  buffer_free(&dst);
  return failure;
}

static void every_operation_of_every_type(void) { run_ranks(try_all, 0); }
static void every_operation_with_a_deadline(void) { run_ranks(try_all, TIMEOUT_NS); }

/* Of unsigned numbers with the highest bit, and of signed ones with a sign, the larger is the larger. */
static const char *compare_signs(struct rank *r) {
  struct buffer b;
  RUN(buffer_new(r, 64, &b));
  for (size_t t = 0; t < TYPE_COUNT; t++) {
    const uint32_t type = types[t].type;
    const bool is_unsigned = type == RILL_COMM_UINT8 || type == RILL_COMM_UINT32 || type == RILL_COMM_UINT64;
    for (uint32_t op = RILL_COMM_MAX; op <= RILL_COMM_MIN; op++) {
      put_number(b.host, 0, type, r->rank == 0 ? 1 : -2);
      RUN(buffer_upload(r, &b));
      COMM(rill_comm_all_reduce(r->comm, r->stream, b.device, b.device, 1, type, op));
      RUN(buffer_download(r, &b));
      RUN(rill_stream_synchronize(r->stream));
      const bool one = (op == RILL_COMM_MAX) != is_unsigned;
      REQUIRE((get_number(b.host, 0, type) == 1) == one);
    }
  }
  buffer_free(&b);
  return NULL;
}
static void comparisons_follow_the_sign_of_the_type(void) { run_ranks(compare_signs, 0); }

/* ---- sends and receives ---- */

static const char *pass_around(struct rank *r) {
  const uint32_t next = (r->rank + 1) % r->ranks, last = (r->rank + r->ranks - 1) % r->ranks;
  struct buffer src, dst;
  RUN(buffer_new(r, MOST * 8, &src));
  RUN(buffer_new(r, MOST * 8, &dst));
  for (size_t t = 0; t < TYPE_COUNT; t++) {
    for (size_t i = 0; i < MOST; i++) put_number(src.host, i, types[t].type, value_at(r->rank, i, 5));
    RUN(buffer_upload(r, &src));
    COMM(rill_comm_group_begin());
    COMM(rill_comm_send(r->comm, r->stream, src.device, MOST, types[t].type, next));
    COMM(rill_comm_receive(r->comm, r->stream, dst.device, MOST, types[t].type, last));
    COMM(rill_comm_group_end());
    RUN(buffer_download(r, &dst));
    RUN(rill_stream_synchronize(r->stream));
    for (size_t i = 0; i < MOST; i++) {
      REQUIRE(get_number(dst.host, i, types[t].type) == value_at(last, i, 5));
    }
  }
  buffer_free(&src);
  buffer_free(&dst);
  return NULL;
}
static void sends_and_receives_in_a_ring(void) { run_ranks(pass_around, 0); }

/* Without a group: the even ranks send first. */
static const char *ping_pong(struct rank *r) {
  enum { ROUNDS = 50 };
  const uint32_t peer = r->rank ^ 1;
  if (peer >= r->ranks) return NULL;
  struct buffer b;
  RUN(buffer_new(r, 8, &b));
  for (int64_t i = 0; i < ROUNDS; i++) {
    *(int64_t *)b.host = r->rank * 1000 + i;
    RUN(buffer_upload(r, &b));
    for (uint32_t step = 0; step < 2; step++) {
      if ((r->rank ^ step) % 2 == 0) COMM(rill_comm_send(r->comm, r->stream, b.device, 1, RILL_COMM_INT64, peer));
      else COMM(rill_comm_receive(r->comm, r->stream, b.device, 1, RILL_COMM_INT64, peer));
    }
    RUN(buffer_download(r, &b));
    RUN(rill_stream_synchronize(r->stream));
    /* The even one got its own number back. */
    REQUIRE(*(int64_t *)b.host == (r->rank & ~1u) * 1000 + i);
  }
  buffer_free(&b);
  return NULL;
}
static void sends_and_receives_alternately(void) { run_ranks(ping_pong, 0); }

static const char *send_to_itself(struct rank *r) {
  struct buffer b;
  RUN(buffer_new(r, 16, &b));
  ((int64_t *)b.host)[0] = 42 + r->rank;
  ((int64_t *)b.host)[1] = 0;
  RUN(buffer_upload(r, &b));
  COMM(rill_comm_group_begin());
  COMM(rill_comm_send(r->comm, r->stream, b.device, 1, RILL_COMM_INT64, r->rank));
  COMM(rill_comm_receive(r->comm, r->stream, (char *)b.device + 8, 1, RILL_COMM_INT64, r->rank));
  COMM(rill_comm_group_end());
  RUN(buffer_download(r, &b));
  RUN(rill_stream_synchronize(r->stream));
  REQUIRE(((int64_t *)b.host)[1] == 42 + r->rank);
  buffer_free(&b);
  return NULL;
}
static void a_rank_sends_to_itself(void) { run_ranks(send_to_itself, 0); }

/* ---- order ---- */

/* A host call that blocks until the test releases it. */
static void stand(void *user, rill_status stream_status) {
  (void)stream_status;
  (void)sem_wait(user);
}

/* The last rank's stream blocks before the barrier, and records when it was released: no rank passed the barrier
 * earlier. */
static const char *wait_at_barrier(struct rank *r) {
  sem_t gate;
  (void)sem_init(&gate, 0, 0);
  const bool last = r->rank + 1 == r->ranks;
  COMM(rill_comm_barrier(r->comm, r->stream)); /* NCCL connects the ranks, which may wait for their devices */
  RUN(rill_stream_synchronize(r->stream));
  if (last) RUN(rill_stream_host_call(r->stream, stand, &gate));
  COMM(rill_comm_barrier(r->comm, r->stream));
  rill_event passed = RILL_NULL_EVENT;
  RUN(rill_stream_record_new_event(r->stream, NULL, &passed));
  bool ready = false;
  uint64_t let_go = 0;
  if (last) {
    RUN(rill_event_is_ready(passed, &ready));
    REQUIRE(!ready);
    REQUIRE(rill_stream_synchronize_for(r->stream, 20 * MILLISECOND) == RILL_ERROR_TIMEOUT);
    let_go = now_ns();
    (void)sem_post(&gate);
  }
  RUN(rill_event_synchronize(passed));
  const uint64_t came_past = now_ns();
  struct buffer b; /* of processes on one machine, the clock is the same */
  RUN(buffer_new(r, 8, &b));
  *(uint64_t *)b.host = let_go;
  RUN(buffer_upload(r, &b));
  COMM(rill_comm_broadcast(r->comm, r->stream, b.device, b.device, 1, RILL_COMM_UINT64, r->ranks - 1));
  RUN(buffer_download(r, &b));
  RUN(rill_stream_synchronize(r->stream));
  REQUIRE(*(uint64_t *)b.host <= came_past);
  buffer_free(&b);
  RUN(rill_event_release(passed));
  (void)sem_destroy(&gate);
  return NULL;
}
static void a_barrier_waits_for_every_rank(void) { run_ranks(wait_at_barrier, 0); }

/* Fills, operations and copies of one stream, 500 rounds without a check: each sees the results of earlier work. */
static const char *chain(struct rank *r) {
  enum { ROUNDS = 500 };
  struct buffer b;
  int64_t *seen = NULL;
  RUN(buffer_new(r, 8, &b));
  RUN(rill_alloc(r->device, ROUNDS * sizeof *seen, RILL_MEMORY_PINNED, (void **)&seen));
  const int64_t one = 1;
  RUN(rill_fill_async(r->stream, b.device, &one, sizeof one, 1));
  for (uint32_t i = 0; i < ROUNDS; i++) {
    const uint32_t op = i % 2 == 0 ? RILL_COMM_SUM : RILL_COMM_MIN;
    COMM(rill_comm_all_reduce(r->comm, r->stream, b.device, b.device, 1, RILL_COMM_INT64, op));
    RUN(rill_copy_async(r->stream, &seen[i], b.device, sizeof one));
    const int64_t next = i + r->rank;
    RUN(rill_fill_async(r->stream, b.device, &next, sizeof next, 1));
  }
  RUN(rill_stream_synchronize(r->stream));
  for (int64_t i = 0; i < ROUNDS; i++) {
    const int64_t n = r->ranks, sum = i == 0 ? n : n * (i - 1) + n * (n - 1) / 2;
    REQUIRE(seen[i] == (i % 2 == 0 ? sum : i - 1));
  }
  RUN(rill_free(seen));
  buffer_free(&b);
  return NULL;
}
static void runs_in_stream_order(void) { run_ranks(chain, 0); }

/* Operations of several streams run in the order of their submission, on every rank, whatever the streams do. */
static const char *two_streams(struct rank *r) {
  enum { ROUNDS = 60, BUSY = 1 << 18 };
  rill_stream streams[2] = { r->stream, RILL_NULL_STREAM };
  struct buffer b[2], busy;
  RUN(rill_stream_create(r->device, NULL, &streams[1]));
  RUN(buffer_new(r, BUSY, &busy));
  RUN(buffer_new(r, 8, &b[0]));
  RUN(buffer_new(r, 8, &b[1]));
  for (int64_t i = 0; i < ROUNDS; i++) {
    for (int k = 0; k < 2; k++) {
      const int64_t value = 10 * i + k + r->rank;
      RUN(rill_fill_async(streams[k], b[k].device, &value, sizeof value, 1));
    }
    for (int k = 0; k < 4; k++) { /* which stream comes first differs from rank to rank */
      RUN(rill_fill_async(streams[r->rank % 2], busy.device, &i, sizeof i, BUSY / sizeof i));
    }
    for (int k = 0; k < 2; k++) {
      COMM(rill_comm_all_reduce(r->comm, streams[k], b[k].device, b[k].device, 1, RILL_COMM_INT64, RILL_COMM_MAX));
      RUN(rill_copy_async(streams[k], b[k].host, b[k].device, sizeof(int64_t)));
    }
    for (int k = 0; k < 2; k++) {
      RUN(rill_stream_synchronize(streams[k]));
      REQUIRE(*(int64_t *)b[k].host == 10 * i + k + r->ranks - 1);
    }
  }
  RUN(rill_stream_release(streams[1]));
  buffer_free(&b[0]);
  buffer_free(&b[1]);
  buffer_free(&busy);
  return NULL;
}
static void streams_take_turns(void) { run_ranks(two_streams, 0); }

/* ---- groups ---- */

static const char *many_in_a_group(struct rank *r) {
  enum { OPS = 64 };
  struct buffer b;
  RUN(buffer_new(r, OPS * 8, &b));
  for (int64_t i = 0; i < OPS; i++) ((int64_t *)b.host)[i] = i + r->rank;
  RUN(buffer_upload(r, &b));
  COMM(rill_comm_group_begin());
  COMM(rill_comm_group_begin()); /* nested: the outer one counts */
  for (int64_t i = 0; i < OPS; i++) {
    void *p = (int64_t *)b.device + i;
    COMM(rill_comm_all_reduce(r->comm, r->stream, p, p, 1, RILL_COMM_INT64, RILL_COMM_MAX));
  }
  COMM(rill_comm_group_end());
  COMM(rill_comm_group_end());
  RUN(buffer_download(r, &b));
  RUN(rill_stream_synchronize(r->stream));
  for (int64_t i = 0; i < OPS; i++) REQUIRE(((int64_t *)b.host)[i] == i + r->ranks - 1);
  COMM_FAILS(rill_comm_group_end(), RILL_ERROR_INVALID_ARGUMENT, "this thread has no open group");
  COMM(rill_comm_group_begin());
  COMM(rill_comm_group_end()); /* empty */
  buffer_free(&b);
  return NULL;
}
static void a_group_of_many(void) { run_ranks(many_in_a_group, 0); }

/* If one operation is refused, the others of its group are not submitted either, and the next group works. */
static const char *refused_group(struct rank *r) {
  struct buffer b;
  RUN(buffer_new(r, 8, &b));
  *(int64_t *)b.host = 7;
  RUN(buffer_upload(r, &b));
  COMM(rill_comm_group_begin());
  if (r->rank == 0) COMM(rill_comm_send(r->comm, r->stream, b.device, 1, RILL_COMM_INT64, 1));
  COMM_FAILS(rill_comm_barrier((rill_comm){ 5 }, r->stream), RILL_ERROR_INVALID_HANDLE, "comm 0x5");
  COMM_FAILS(rill_comm_group_end(), RILL_ERROR_INVALID_HANDLE, "comm 0x5");
  COMM(rill_comm_all_reduce(r->comm, r->stream, b.device, b.device, 1, RILL_COMM_INT64, RILL_COMM_SUM));
  RUN(buffer_download(r, &b));
  RUN(rill_stream_synchronize(r->stream));
  REQUIRE(*(int64_t *)b.host == 7 * (int64_t)r->ranks);
  buffer_free(&b);
  return NULL;
}
static void a_refused_operation_refuses_its_group(void) { run_ranks(refused_group, 0); }

/* ---- misuse ---- */

static const char *misuse(struct rank *r) {
  struct buffer b;
  RUN(buffer_new(r, 4096, &b));
  char *p = b.device;
  const rill_comm c = r->comm;
  const rill_stream s = r->stream;
  const uint32_t I = RILL_COMM_INT32, S = RILL_COMM_SUM;
  COMM_FAILS(rill_comm_all_reduce((rill_comm){ 0 }, s, p, p, 1, I, S), RILL_ERROR_INVALID_HANDLE, "comm 0x0");
  COMM_FAILS(rill_comm_all_reduce((rill_comm){ s.id }, s, p, p, 1, I, S), RILL_ERROR_INVALID_HANDLE, "not a handle");
  COMM_FAILS(rill_comm_all_reduce((rill_comm){ c.id + 1000000 }, s, p, p, 1, I, S), RILL_ERROR_INVALID_HANDLE,
             "not a handle");
  COMM_FAILS(rill_comm_all_reduce(c, (rill_stream){ c.id }, p, p, 1, I, S), RILL_ERROR_INVALID_HANDLE, "stream");
  COMM_FAILS(rill_comm_all_reduce(c, s, NULL, p, 1, I, S), RILL_ERROR_INVALID_ARGUMENT, "dst is NULL");
  COMM_FAILS(rill_comm_all_reduce(c, s, p, NULL, 1, I, S), RILL_ERROR_INVALID_ARGUMENT, "src is NULL");
  COMM_FAILS(rill_comm_all_reduce(c, s, p, p, 1, 0, S), RILL_ERROR_INVALID_ARGUMENT, "type 0");
  COMM_FAILS(rill_comm_all_reduce(c, s, p, p, 1, 11, S), RILL_ERROR_INVALID_ARGUMENT, "type 11");
  COMM_FAILS(rill_comm_all_reduce(c, s, p, p, 1, I, 0), RILL_ERROR_INVALID_ARGUMENT, "op 0");
  COMM_FAILS(rill_comm_all_reduce(c, s, p, p, 1, I, 6), RILL_ERROR_INVALID_ARGUMENT, "op 6");
  COMM_FAILS(rill_comm_all_reduce(c, s, p, p, SIZE_MAX / 2, I, S), RILL_ERROR_OUT_OF_RANGE, "overflow");
  COMM_FAILS(rill_comm_all_reduce(c, s, p, p + 4, 2, I, S), RILL_ERROR_INVALID_ARGUMENT, "overlap");
  COMM_FAILS(rill_comm_reduce(c, s, p, p, 1, I, S, r->ranks), RILL_ERROR_OUT_OF_RANGE, "root");
  COMM_FAILS(rill_comm_broadcast(c, s, p, p, 1, I, r->ranks), RILL_ERROR_OUT_OF_RANGE, "root");
  COMM_FAILS(rill_comm_send(c, s, p, 1, I, r->ranks), RILL_ERROR_OUT_OF_RANGE, "peer");
  COMM_FAILS(rill_comm_receive(c, s, p, 1, I, r->ranks + 7), RILL_ERROR_OUT_OF_RANGE, "peer");
  COMM_FAILS(rill_comm_receive(c, s, NULL, 1, I, 0), RILL_ERROR_INVALID_ARGUMENT, "dst is NULL");
  COMM_FAILS(rill_comm_all_gather(c, s, p, p + 4 * ((r->rank + 1) % r->ranks), 1, I), RILL_ERROR_INVALID_ARGUMENT,
             "overlap");
  COMM_FAILS(rill_comm_all_to_all(c, s, p, p, 1, I), RILL_ERROR_INVALID_ARGUMENT, "overlap");
  COMM_FAILS(rill_comm_get_info(c, NULL), RILL_ERROR_INVALID_ARGUMENT, "info is NULL");
  COMM_FAILS(rill_comm_retain((rill_comm){ 1 }), RILL_ERROR_INVALID_HANDLE, "rill_comm_retain");
  COMM(rill_comm_release(RILL_NULL_COMM));

  rill_comm_info info = RILL_COMM_INFO_INIT;
  COMM(rill_comm_get_info(c, &info));
  REQUIRE(info.ranks == r->ranks && info.rank == r->rank && rill_device_equal(info.device, r->device));
  REQUIRE(info.engine[0] != '\0' && info.engine_version > 0);
  rill_error error = RILL_ERROR_INIT;
  COMM_FAILS(rill_comm_all_reduce(c, s, p, p, 1, 0, S), RILL_ERROR_INVALID_ARGUMENT, "");
  REQUIRE(rill_comm_last_error(&error) == RILL_OK);
  REQUIRE(error.status == RILL_ERROR_INVALID_ARGUMENT && strcmp(error.api, "rill_comm_all_reduce") == 0);
  REQUIRE(strcmp(error.object, "team") == 0);
  COMM(rill_comm_validate(c));
  RUN(rill_stream_synchronize(s));
  buffer_free(&b);
  return NULL;
}
static void refuses_misuse(void) { run_ranks(misuse, 0); }

static const char *use_after_release(struct rank *r) {
  COMM(rill_comm_retain(r->comm));
  COMM(rill_comm_release(r->comm));
  COMM(rill_comm_barrier(r->comm, r->stream)); /* one reference is left */
  RUN(rill_stream_synchronize(r->stream));
  const rill_comm stale = r->comm;
  COMM(rill_comm_release(r->comm));
  r->comm = RILL_NULL_COMM;
  COMM_FAILS(rill_comm_barrier(stale, r->stream), RILL_ERROR_STALE_HANDLE, "has been released");
  COMM_FAILS(rill_comm_release(stale), RILL_ERROR_STALE_HANDLE, "has been released");
  return NULL;
}
static void counts_references(void) { run_ranks(use_after_release, 0); }

/* Released at once: what was submitted still completes. */
static const char *release_early(struct rank *r) {
  struct buffer b;
  RUN(buffer_new(r, 8, &b));
  const int64_t own = r->rank;
  RUN(rill_fill_async(r->stream, b.device, &own, sizeof own, 1));
  for (int i = 0; i < 20; i++) {
    COMM(rill_comm_all_reduce(r->comm, r->stream, b.device, b.device, 1, RILL_COMM_INT64, RILL_COMM_MAX));
  }
  COMM(rill_comm_release(r->comm));
  r->comm = RILL_NULL_COMM;
  RUN(buffer_download(r, &b));
  RUN(rill_stream_synchronize(r->stream));
  REQUIRE(*(int64_t *)b.host == (int64_t)r->ranks - 1);
  buffer_free(&b);
  return NULL;
}
static void submitted_work_outlives_the_handle(void) {
  for (int i = 0; i < 5; i++) run_ranks(release_early, i % 2 == 0 ? 0 : TIMEOUT_NS);
}

/* ---- captures ---- */

/* x = (x + own) * 2 of all ranks, as a graph: a copy, a sum over the ranks, and a copy of that. Each launch continues
 * from the results of the last one. */
static const char *capture_sums(struct rank *r, struct buffer *b, rill_graph_exec *exec) {
  int64_t *const p = b->device;
  rill_graph graph = RILL_NULL_GRAPH;
  RUN(rill_stream_capture_begin(r->stream, RILL_CAPTURE_THREAD));
  RUN(rill_copy_async(r->stream, p + 1, p, 8));
  COMM(rill_comm_group_begin());
  COMM(rill_comm_all_reduce(r->comm, r->stream, p + 1, p + 1, 1, RILL_COMM_INT64, RILL_COMM_SUM));
  COMM(rill_comm_all_reduce(r->comm, r->stream, p + 2, p + 3, 1, RILL_COMM_INT64, RILL_COMM_MAX));
  COMM(rill_comm_group_end());
  RUN(rill_copy_async(r->stream, p, p + 1, 8));
  RUN(rill_stream_capture_end(r->stream, &graph));
  RUN(rill_graph_instantiate(graph, exec));
  RUN(rill_graph_release(graph));
  return NULL;
}

static const char *launch_sums(struct rank *r) {
  enum { LAUNCHES = 4 };
  struct buffer b;
  rill_graph_exec exec = RILL_NULL_GRAPH_EXEC;
  RUN(buffer_new(r, 32, &b));
  int64_t *const seen = b.host;
  memset(seen, 0, b.bytes);
  seen[0] = r->rank;
  seen[3] = 10 + r->rank;
  RUN(rill_stream_capture_begin(r->stream, RILL_CAPTURE_THREAD)); /* the engine has never had this stream */
  COMM_FAILS(rill_comm_barrier(r->comm, r->stream), RILL_ERROR_CAPTURE_ACTIVE, "capturing");
  RUN(rill_stream_capture_abort(r->stream));
  RUN(buffer_upload(r, &b));
  COMM(rill_comm_barrier(r->comm, r->stream));
  RUN(rill_stream_synchronize(r->stream));
  const char *failure = capture_sums(r, &b, &exec);
  if (failure != NULL) return failure;
  RUN(buffer_download(r, &b));
  RUN(rill_stream_synchronize(r->stream));
  REQUIRE(seen[0] == r->rank && seen[2] == 0); /* nothing has happened yet */
  int64_t expected = (int64_t)r->ranks * (r->ranks - 1) / 2;
  for (int i = 0; i < LAUNCHES; i++) {
    RUN(rill_graph_launch(exec, r->stream));
    /* Operations of the stream itself run in between. */
    COMM(rill_comm_all_reduce(r->comm, r->stream, (char *)b.device + 8, b.device, 1, RILL_COMM_INT64, RILL_COMM_MIN));
    RUN(buffer_download(r, &b));
    RUN(rill_stream_synchronize(r->stream));
    REQUIRE(seen[0] == expected && seen[1] == expected && seen[2] == 10 + (int64_t)r->ranks - 1);
    expected *= r->ranks;
  }
  RUN(rill_graph_exec_release(exec));
  buffer_free(&b);
  return NULL;
}

/* A graph of the CPU cannot have it: the refusal says which operation, and the capture continues without it. */
static const char *refuse_capture(struct rank *r) {
  struct buffer b;
  rill_graph graph = RILL_NULL_GRAPH;
  rill_graph_exec exec = RILL_NULL_GRAPH_EXEC;
  char says[96];
  RUN(buffer_new(r, 16, &b));
  int64_t *const p = b.device;
  const int64_t own = 5 + r->rank;
  COMM(rill_comm_barrier(r->comm, r->stream));
  RUN(rill_stream_synchronize(r->stream));
  (void)snprintf(says, sizeof says, "all_reduce of rank %u of %u (operation 2), 16 bytes: its stream is capturing",
                 r->rank, r->ranks);
  RUN(rill_stream_capture_begin(r->stream, RILL_CAPTURE_THREAD));
  RUN(rill_fill_async(r->stream, p, &own, sizeof own, 1));
  COMM_FAILS(rill_comm_all_reduce(r->comm, r->stream, p, p, 2, RILL_COMM_INT64, RILL_COMM_SUM), RILL_ERROR_UNSUPPORTED,
             says);
  COMM(rill_comm_validate(r->comm));
  RUN(rill_copy_async(r->stream, p + 1, p, 8));
  RUN(rill_stream_capture_end(r->stream, &graph));
  RUN(rill_graph_instantiate(graph, &exec));
  RUN(rill_graph_launch(exec, r->stream));
  COMM(rill_comm_all_reduce(r->comm, r->stream, p, p, 2, RILL_COMM_INT64, RILL_COMM_MAX));
  RUN(buffer_download(r, &b));
  RUN(rill_stream_synchronize(r->stream));
  for (int i = 0; i < 2; i++) REQUIRE(((int64_t *)b.host)[i] == 5 + (int64_t)r->ranks - 1);
  RUN(rill_graph_exec_release(exec));
  RUN(rill_graph_release(graph));
  buffer_free(&b);
  return NULL;
}

static void captures_operations(void) {
  for (int watched = 0; watched < 2; watched++) {
    run_ranks(on_cpu() ? refuse_capture : launch_sums, watched != 0 ? TIMEOUT_NS : 0);
  }
}

/* ---- reports and traces ---- */

static void wait_for_flag(void *user, rill_status status) {
  (void)status;
  while (!atomic_load((atomic_bool *)user)) (void)sched_yield();
}

/* The stream stands still before the second operation, which the report names. */
static const char *ask_for_report(struct rank *r) {
  static _Thread_local char text[4096], expected[96];
  struct buffer b;
  atomic_bool flag = false;
  size_t size = sizeof text;
  RUN(buffer_new(r, 64, &b));
  COMM(rill_comm_barrier(r->comm, r->stream));
  RUN(rill_stream_synchronize(r->stream));
  RUN(rill_stream_host_call(r->stream, wait_for_flag, &flag));
  const rill_status status =
      rill_comm_all_reduce(r->comm, r->stream, b.device, b.device, 8, RILL_COMM_INT64, RILL_COMM_SUM);
  const rill_status explained = rill_stream_explain(r->stream, text, &size);
  atomic_store(&flag, true);
  COMM(status);
  RUN(explained);
  (void)snprintf(expected, sizeof expected,
                 on_cpu() ? "all_reduce 2 of team, rank %u of %u, 64 bytes"
                          : ": all_reduce 2 of \"team\", rank %u of %u, 64 bytes\n",
                 r->rank, r->ranks);
  RUN(rill_stream_synchronize(r->stream));
  buffer_free(&b);
  if (strstr(text, expected) != NULL) return NULL;
  (void)fprintf(stderr, "\"%s\" is not in: %s", expected, text);
  return "the report does not name the operation";
}
static void reports_name_operations(void) { run_ranks(ask_for_report, 0); }

static uint32_t traced_ranks;

static const char *run_some(struct rank *r) {
  struct buffer b;
  RUN(buffer_new(r, 64, &b));
  char *const p = b.device;
  if (r->rank == 0 || with_mpi()) traced_ranks = r->ranks;
  COMM(rill_comm_all_reduce(r->comm, r->stream, p, p, 4, RILL_COMM_INT64, RILL_COMM_SUM));
  COMM(rill_comm_group_begin());
  COMM(rill_comm_send(r->comm, r->stream, p, 4, RILL_COMM_INT32, (r->rank + 1) % r->ranks));
  COMM(rill_comm_receive(r->comm, r->stream, p + 32, 4, RILL_COMM_INT32, (r->rank + r->ranks - 1) % r->ranks));
  COMM(rill_comm_group_end());
  RUN(rill_stream_synchronize(r->stream));
  buffer_free(&b);
  return NULL;
}

/* A bar for each operation of each rank of this process, also in groups; and none for what is not the program's. */
static void traces_show_operations(void) {
  start_trace();
  run_ranks(run_some, 0);
  assert_ok(rill_trace_stop());
  char *text = read_trace();
  const uint32_t here = with_mpi() ? 1 : traced_ranks;
  assert_int_equal(count_of(text, "\"cat\":\"communication\""), 3 * here);
  assert_int_equal(count_of(text, "\"name\":\"all_reduce\",\"args\":{\"group\":\"team\",\"number\":1,"), here);
  assert_int_equal(count_of(text, "\"name\":\"send\",\"args\":{\"group\":\"team\",\"number\":2,"), here);
  assert_int_equal(count_of(text, "\"name\":\"receive\",\"args\":{\"group\":\"team\",\"number\":3,"), here);
  assert_int_equal(count_of(text, "\"bytes\":32,\"submitted\""), here);
  free(text);
}

TESTS_ONCE("operations of rill_comm", TEST(every_operation_of_every_type), TEST(every_operation_with_a_deadline),
           TEST(comparisons_follow_the_sign_of_the_type), TEST(sends_and_receives_in_a_ring),
           TEST(sends_and_receives_alternately), TEST(a_rank_sends_to_itself), TEST(a_barrier_waits_for_every_rank),
           TEST(runs_in_stream_order), TEST(streams_take_turns), TEST(a_group_of_many),
           TEST(a_refused_operation_refuses_its_group), TEST(refuses_misuse), TEST(counts_references),
           TEST(submitted_work_outlives_the_handle), TEST(captures_operations), TEST(reports_name_operations),
           TEST(traces_show_operations))
