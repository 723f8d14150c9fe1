/* Parts of communicators (rill_comm_split), operations with a count for each rank, averages; and messages that do not
 * fit. */
#include "ranks.h"

#include <stdio.h>

enum { MOST = 40 };

/* ---- averages ---- */

/* Rank 0 has the number of ranks and three more for each, the others 0: the average is 1 and 3. */
static const char *average(struct rank *r) {
  struct buffer b;
  RUN(buffer_new(r, (size_t)8 * MAX_RANKS, &b));
  for (size_t t = 0; t < TYPE_COUNT; t++) {
    const uint32_t type = types[t].type;
    for (int kind = 0; kind < 3; kind++) {
      for (uint32_t i = 0; i < r->ranks; i++) put_number(b.host, i, type, r->rank == 0 ? (1 + i % 3) * r->ranks : 0);
      RUN(buffer_upload(r, &b));
      void *const p = b.device;
      const uint32_t root = r->ranks - 1;
      if (kind == 0) COMM(rill_comm_all_reduce(r->comm, r->stream, p, p, r->ranks, type, RILL_COMM_AVERAGE));
      if (kind == 1) COMM(rill_comm_reduce(r->comm, r->stream, p, p, r->ranks, type, RILL_COMM_AVERAGE, root));
      char *const own = (char *)p + r->rank * types[t].size;
      if (kind == 2) COMM(rill_comm_reduce_scatter(r->comm, r->stream, own, p, 1, type, RILL_COMM_AVERAGE));
      RUN(buffer_download(r, &b));
      RUN(rill_stream_synchronize(r->stream));
      for (uint32_t i = 0; i < r->ranks; i++) {
        const int64_t got = get_number(b.host, i, type);
        const bool result = kind == 0 || (kind == 1 && r->rank == root) || (kind == 2 && r->rank == i);
        REQUIRE(got == (result ? 1 + i % 3 : r->rank == 0 ? (1 + i % 3) * r->ranks : 0));
      }
    }
  }
  buffer_free(&b);
  return NULL;
}
static void averages_of_every_type(void) { run_ranks(average, 0); }

/* Of integers towards 0. */
static const char *average_of_negative(struct rank *r) {
  struct buffer b;
  RUN(buffer_new(r, 8, &b));
  *(int32_t *)b.host = r->rank == 0 ? -2 * (int32_t)r->ranks - 1 : 0;
  RUN(buffer_upload(r, &b));
  COMM(rill_comm_all_reduce(r->comm, r->stream, b.device, b.device, 1, RILL_COMM_INT32, RILL_COMM_AVERAGE));
  RUN(buffer_download(r, &b));
  RUN(rill_stream_synchronize(r->stream));
  REQUIRE(*(int32_t *)b.host == (r->ranks == 1 ? -3 : -2));
  buffer_free(&b);
  return NULL;
}
static void averages_of_integers_round_to_zero(void) { run_ranks(average_of_negative, 0); }

/* ---- with counts ---- */

/* How many elements rank `from` has for rank `to`; some none. */
static size_t count_of(uint32_t from, uint32_t to, uint32_t seed) { return (from * 3 + to * 5 + seed * 11) % 9; }

/* Offsets of the parts: contiguous, or with gaps. */
static size_t lay_out(const size_t *counts, uint32_t ranks, bool apart, size_t *offsets) {
  size_t next = 0;
  for (uint32_t i = 0; i < ranks; i++) {
    offsets[i] = apart ? (ranks - 1 - i) * 10 : next;
    next += counts[i];
  }
  return apart ? (size_t)ranks * 10 : next;
}

static const char *exchange(struct rank *r, uint32_t seed, bool apart, struct buffer *src, struct buffer *dst) {
  const struct type *const type = &types[seed % TYPE_COUNT];
  size_t in[MAX_RANKS], out[MAX_RANKS], in_at[MAX_RANKS], out_at[MAX_RANKS];
  for (uint32_t i = 0; i < r->ranks; i++) {
    in[i] = count_of(i, r->rank, seed);
    out[i] = count_of(r->rank, i, seed);
  }
  (void)lay_out(in, r->ranks, apart, in_at);
  (void)lay_out(out, r->ranks, apart, out_at);
  memset(dst->host, 0x11, dst->bytes);
  for (uint32_t i = 0; i < r->ranks; i++) {
    for (size_t j = 0; j < out[i]; j++)
      put_number(src->host, out_at[i] + j, type->type, value_at(r->rank, j, seed + i));
  }
  RUN(buffer_upload(r, src));
  RUN(buffer_upload(r, dst));
  COMM(rill_comm_all_to_all_v(r->comm, r->stream, dst->device, in, apart ? in_at : NULL, src->device, out,
                              apart ? out_at : NULL, type->type));
  RUN(buffer_download(r, dst));
  RUN(rill_stream_synchronize(r->stream));
  for (uint32_t i = 0; i < r->ranks; i++) {
    for (size_t j = 0; j < in[i]; j++) {
      REQUIRE(get_number(dst->host, in_at[i] + j, type->type) == value_at(i, j, seed + r->rank));
    }
  }
  return NULL;
}

static const char *gather_and_scatter(struct rank *r, uint32_t seed, bool apart, bool in_place, struct buffer *src,
                                      struct buffer *dst) {
  const struct type *const type = &types[seed % TYPE_COUNT];
  const uint32_t root = seed % r->ranks;
  size_t counts[MAX_RANKS], at[MAX_RANKS];
  for (uint32_t i = 0; i < r->ranks; i++) counts[i] = count_of(i, root, seed);
  (void)lay_out(counts, r->ranks, apart, at);
  const size_t own = counts[r->rank];
  const bool is_root = r->rank == root;
  char *const whole_part = (char *)dst->device + at[r->rank] * type->size;
  memset(dst->host, 0x11, dst->bytes);
  for (size_t j = 0; j < own; j++) {
    put_number(src->host, j, type->type, value_at(r->rank, j, seed));
    if (in_place && is_root) put_number(dst->host, at[r->rank] + j, type->type, value_at(r->rank, j, seed));
  }
  RUN(buffer_upload(r, src));
  RUN(buffer_upload(r, dst));
  void *const part = in_place && is_root ? whole_part : src->device;
  COMM(rill_comm_gather_v(r->comm, r->stream, is_root ? dst->device : NULL, is_root ? counts : NULL,
                          is_root && apart ? at : NULL, part, own, type->type, root));
  RUN(buffer_download(r, dst));
  RUN(rill_stream_synchronize(r->stream));
  for (uint32_t i = 0; i < r->ranks && is_root; i++) {
    for (size_t j = 0; j < counts[i]; j++) {
      REQUIRE(get_number(dst->host, at[i] + j, type->type) == value_at(i, j, seed));
    }
  }
  /* and back, into what was cleared */
  memset(src->host, 0, src->bytes);
  if (!is_root || !in_place) RUN(buffer_upload(r, src));
  COMM(rill_comm_scatter_v(r->comm, r->stream, part, own, is_root ? dst->device : NULL, is_root ? counts : NULL,
                           is_root && apart ? at : NULL, type->type, root));
  if (!(in_place && is_root)) RUN(buffer_download(r, src));
  RUN(rill_stream_synchronize(r->stream));
  for (size_t j = 0; j < own && !(in_place && is_root); j++) {
    REQUIRE(get_number(src->host, j, type->type) == value_at(r->rank, j, seed));
  }
  return NULL;
}

static const char *with_counts(struct rank *r) {
  struct buffer src, dst;
  const size_t bytes = (size_t)MAX_RANKS * 10 * 8;
  RUN(buffer_new(r, bytes, &src));
  RUN(buffer_new(r, bytes, &dst));
  const char *failure = NULL;
  for (uint32_t seed = 0; seed < 2 * TYPE_COUNT && failure == NULL; seed++) {
    failure = exchange(r, seed, seed % 2 == 1, &src, &dst);
    for (int way = 0; way < 4 && failure == NULL; way++) {
      failure = gather_and_scatter(r, seed, way % 2 == 1, way / 2 == 1, &src, &dst);
    }
  }
  buffer_free(&src);
  buffer_free(&dst);
  return failure;
}
static void a_count_for_each_rank(void) { run_ranks(with_counts, TIMEOUT_NS); }

static const char *refuse(struct rank *r) {
  struct buffer b;
  size_t counts[MAX_RANKS] = { 0 }, others[MAX_RANKS] = { 0 };
  RUN(buffer_new(r, 64, &b));
  char *const p = b.device;
  COMM_FAILS(rill_comm_all_to_all_v(r->comm, r->stream, p, NULL, NULL, p, counts, NULL, RILL_COMM_INT8),
             RILL_ERROR_INVALID_ARGUMENT, "dst_counts is NULL");
  COMM_FAILS(rill_comm_gather_v(r->comm, r->stream, p, counts, NULL, p, 1, RILL_COMM_INT8, r->ranks),
             RILL_ERROR_OUT_OF_RANGE, "root");
  COMM_FAILS(rill_comm_scatter_v(r->comm, r->stream, p, 1, p, NULL, NULL, RILL_COMM_INT8, r->rank),
             RILL_ERROR_INVALID_ARGUMENT, "src_counts is NULL");
  others[r->rank] = 2;
  COMM_FAILS(rill_comm_gather_v(r->comm, r->stream, p, others, NULL, p + 8, 1, RILL_COMM_INT8, r->rank),
             RILL_ERROR_INVALID_ARGUMENT, "sends 1 elements to itself, but receives 2");
  COMM_FAILS(rill_comm_all_to_all_v(r->comm, r->stream, p, counts, NULL, p, counts, NULL, 77),
             RILL_ERROR_INVALID_ARGUMENT, "type 77");
  others[r->rank] = SIZE_MAX / 8;
  COMM_FAILS(rill_comm_all_to_all_v(r->comm, r->stream, p, counts, others, p, counts, NULL, RILL_COMM_DOUBLE),
             RILL_ERROR_OUT_OF_RANGE, "0 elements of 8 bytes at offset 2305843009213693951, overflows");
  COMM_FAILS(rill_comm_gather_v(r->comm, r->stream, p, others, NULL, p, 1, RILL_COMM_DOUBLE, r->rank),
             RILL_ERROR_OUT_OF_RANGE, "2305843009213693951 elements of 8 bytes at offset 0, overflows");
  /* In a group the end also fails, and nothing remains of it. */
  COMM(rill_comm_group_begin());
  COMM_FAILS(rill_comm_all_to_all_v(r->comm, r->stream, p, NULL, NULL, p, counts, NULL, RILL_COMM_INT8),
             RILL_ERROR_INVALID_ARGUMENT, "dst_counts is NULL");
  COMM_FAILS(rill_comm_group_end(), RILL_ERROR_INVALID_ARGUMENT, "dst_counts is NULL");
  COMM(rill_comm_barrier(r->comm, r->stream));
  RUN(rill_stream_synchronize(r->stream));
  buffer_free(&b);
  return NULL;
}
static void refuses_mismatched_counts(void) { run_ranks(refuse, TIMEOUT_NS); }

/* ---- splitting ---- */

/* The sum over a communicator.  The buffer is the caller's: to free pinned memory waits for the devices of all ranks.
 */
static const char *sum_of(struct rank *r, struct buffer *b, rill_comm comm, int64_t own, int64_t *out) {
  *(int64_t *)b->host = own;
  RUN(buffer_upload(r, b));
  COMM(rill_comm_all_reduce(comm, r->stream, b->device, b->device, 1, RILL_COMM_INT64, RILL_COMM_SUM));
  RUN(buffer_download(r, b));
  RUN(rill_stream_synchronize(r->stream));
  *out = *(int64_t *)b->host;
  return NULL;
}

static const char *split(struct rank *r) {
  struct buffer b;
  RUN(buffer_new(r, 8, &b));
  for (uint32_t colors = 1; colors <= 3; colors++) {
    rill_comm part;
    rill_comm_info info = RILL_COMM_INFO_INIT;
    /* In reverse order: the last one of a color is its rank 0. */
    COMM(rill_comm_split(r->comm, r->rank % colors, r->ranks - r->rank, RILL_COMM_OPTIONS(.label = "part"), &part));
    COMM(rill_comm_get_info(part, &info));
    uint32_t ranks = 0, rank = 0;
    int64_t expected = 0, sum = 0;
    for (uint32_t i = 0; i < r->ranks; i++) {
      if (i % colors != r->rank % colors) continue;
      ranks++;
      rank += i > r->rank;
      expected += i + 1;
    }
    REQUIRE(info.ranks == ranks && info.rank == rank);
    REQUIRE(rill_device_equal(info.device, r->device));
    const char *failure = sum_of(r, &b, part, r->rank + 1, &sum);
    if (failure != NULL) return failure;
    REQUIRE(sum == expected);
    /* The parent stays usable, and the part runs after the parent's next operation. */
    failure = sum_of(r, &b, r->comm, 1, &sum);
    if (failure != NULL) return failure;
    REQUIRE(sum == r->ranks);
    failure = sum_of(r, &b, part, 1, &sum);
    if (failure != NULL) return failure;
    REQUIRE(sum == ranks);
    COMM(rill_comm_release(part));
  }
  buffer_free(&b);
  return NULL;
}
static void splits_by_color_and_key(void) { run_ranks(split, TIMEOUT_NS); }

static const char *leave_out(struct rank *r) {
  rill_comm part = { 1 };
  const bool out = r->rank == 0;
  struct buffer b;
  RUN(buffer_new(r, 8, &b));
  COMM(rill_comm_split(r->comm, out ? RILL_COMM_NO_COLOR : 7, 0, NULL, &part));
  REQUIRE((part.id == 0) == out);
  int64_t sum = 0;
  const char *failure = out ? NULL : sum_of(r, &b, part, 1, &sum);
  if (failure != NULL) return failure;
  REQUIRE(out || sum == r->ranks - 1);
  COMM(rill_comm_release(part));
  COMM_FAILS(rill_comm_split(r->comm, 0, 0, NULL, NULL), RILL_ERROR_INVALID_ARGUMENT, "out");
  COMM_FAILS(rill_comm_split(r->comm, 1u << 31, 0, NULL, &part), RILL_ERROR_INVALID_ARGUMENT, "2147483648");
  COMM_FAILS(rill_comm_split((rill_comm){ 0 }, 0, 0, NULL, &part), RILL_ERROR_INVALID_HANDLE, "");
  REQUIRE(part.id == 0);
  buffer_free(&b);
  return NULL;
}
static void leaves_ranks_out(void) { run_ranks(leave_out, TIMEOUT_NS); }

/* While operations of the parent run. */
static const char *split_while_busy(struct rank *r) {
  struct buffer b;
  RUN(buffer_new(r, 8, &b));
  *(int64_t *)b.host = 1;
  RUN(buffer_upload(r, &b));
  for (int i = 0; i < 20; i++) {
    rill_comm part;
    COMM(rill_comm_all_reduce(r->comm, r->stream, b.device, b.device, 1, RILL_COMM_INT64, RILL_COMM_MAX));
    COMM(rill_comm_split(r->comm, r->rank / 2, 0, NULL, &part));
    COMM(rill_comm_all_reduce(part, r->stream, b.device, b.device, 1, RILL_COMM_INT64, RILL_COMM_MAX));
    COMM(rill_comm_release(part));
  }
  RUN(buffer_download(r, &b));
  RUN(rill_stream_synchronize(r->stream));
  REQUIRE(*(int64_t *)b.host == 1);
  buffer_free(&b);
  return NULL;
}
static void splits_while_operations_run(void) { run_ranks(split_while_busy, TIMEOUT_NS); }

TESTS_ONCE("parts of rill_comm", TEST(averages_of_every_type), TEST(averages_of_integers_round_to_zero),
           TEST(a_count_for_each_rank), TEST(refuses_mismatched_counts), TEST(splits_by_color_and_key),
           TEST(leaves_ranks_out), TEST(splits_while_operations_run))
