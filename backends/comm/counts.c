/* Operations with counts per rank: groups of sends and receives. */
#include "backends/comm/engine.h"

/* The send or receive side of an operation: one part per rank, or a single part with rank `peer`. */
struct side {
  char *p;
  const size_t *counts, *offsets; /* in elements, per rank; offsets may be NULL: parts are contiguous */
  size_t next;                    /* offset of the next part, if offsets is NULL */
  size_t count;                   /* if counts is NULL: elements of the part with rank `peer` */
  uint32_t peer;
};

/* Finds the part with rank `i`; returns false if there is none.  Call in the order of the ranks. */
static bool part_with(struct side *side, uint32_t i, size_t size, char **p, size_t *count) {
  if (side == NULL || (side->counts == NULL && side->peer != i)) return false;
  const size_t offset = side->counts == NULL ? 0 : side->offsets != NULL ? side->offsets[i] : side->next;
  *count = side->counts != NULL ? side->counts[i] : side->count;
  *p = side->p != NULL ? side->p + offset * size : NULL;
  side->next += *count;
  return true;
}

/* Checks that the part with rank `i` does not overflow.  A part with an unknown type is refused later. */
static rill_status check_part(const struct side *side, uint32_t i, size_t size) {
  if (side == NULL || side->counts == NULL || size == 0) return RILL_OK;
  const size_t most = SIZE_MAX / 2 / size, offset = side->offsets != NULL ? side->offsets[i] : side->next;
  COMM_REQUIRE(side->counts[i] <= most && offset <= most - side->counts[i], RILL_ERROR_OUT_OF_RANGE,
               "the part of rank %u, %zu elements of %zu bytes at offset %zu, overflows", i, side->counts[i], size,
               offset);
  return RILL_OK;
}

/* Where a part, or several, are in memory; empty if begin is not below end. */
struct extent {
  uintptr_t begin, end;
};

/* Moves `cursor`, a copy of a side, past the part with rank `i`.  Returns the part, empty if there is none. */
static struct extent next_extent(struct side *cursor, uint32_t i, size_t size) {
  char *p = NULL;
  size_t count = 0;
  const bool is_one = part_with(cursor, i, size, &p, &count) && p != NULL && size != 0;
  return is_one && count <= SIZE_MAX / 2 / size ? (struct extent){ (uintptr_t)p, (uintptr_t)p + count * size }
                                                : (struct extent){ 0, 0 };
}

static bool extents_overlap(struct extent a, struct extent b) {
  return a.begin < a.end && b.begin < b.end && a.begin < b.end && b.begin < a.end;
}

/* Checks the parts of a side for overflow.  Sets the extent of all, and whether they are in the order of the ranks
 * without overlaps. */
static rill_status measure_side(const struct side *side, uint32_t ranks, size_t size, struct extent *all,
                                bool *in_order) {
  struct side cursor = side != NULL ? *side : (struct side){ .peer = ranks };
  *all = (struct extent){ 0, 0 };
  *in_order = true;
  for (uint32_t i = 0; i < ranks; i++) {
    COMM_TRY(check_part(&cursor, i, size));
    const struct extent part = next_extent(&cursor, i, size);
    if (part.begin >= part.end) continue;
    const bool first = all->begin >= all->end;
    *in_order &= first || part.begin >= all->end;
    if (first || part.begin < all->begin) all->begin = part.begin;
    if (first || part.end > all->end) all->end = part.end;
  }
  return RILL_OK;
}

/* Checks that no part of `dst` overlaps one of `other`: of src, or of dst itself.  In place, a part that a rank has for
 * itself is the same in both; an all-to-all has no such form. */
static rill_status check_parts_apart(const struct comm *comm, const struct side *dst, const struct side *other,
                                     size_t size) {
  const bool same = dst == other, may_be_in_place = !same && (dst->counts == NULL || other->counts == NULL);
  struct side to = *dst;
  for (uint32_t i = 0; i < comm->ranks; i++) {
    const struct extent a = next_extent(&to, i, size);
    struct side from = *other;
    for (uint32_t j = 0; j < comm->ranks; j++) {
      const struct extent b = next_extent(&from, j, size);
      const bool in_place = may_be_in_place && i == j && a.begin == b.begin;
      if ((same && i == j) || in_place || !extents_overlap(a, b)) continue;
      return rill__comm_fail(RILL_ERROR_INVALID_ARGUMENT,
                             "the part of rank %u of dst, %zu bytes at %p, and the part of rank %u of %s, %zu bytes at "
                             "%p, overlap",
                             i, (size_t)(a.end - a.begin), (void *)a.begin, j, same ? "dst" : "src",
                             (size_t)(b.end - b.begin), (void *)b.begin);
    }
  }
  return RILL_OK;
}

/* Compares parts only if what was measured leaves a doubt: the number of pairs grows with the square of the ranks. */
static rill_status check_parts(const struct comm *comm, const struct side *dst, const struct side *src, size_t size) {
  struct extent all_dst, all_src;
  bool dst_in_order, src_in_order;
  COMM_TRY(measure_side(dst, comm->ranks, size, &all_dst, &dst_in_order));
  COMM_TRY(measure_side(src, comm->ranks, size, &all_src, &src_in_order));
  if (!dst_in_order) COMM_TRY(check_parts_apart(comm, dst, dst, size));
  return extents_overlap(all_dst, all_src) ? check_parts_apart(comm, dst, src, size) : RILL_OK;
}

/* Adds the parts of `dst` and `src` to this thread's group as sends and receives. */
static rill_status enqueue_parts(struct comm_op op, struct side *dst, struct side *src, const char *api) {
  const rill_comm handle = op.handle;
  const uint32_t ranks = op.comm->ranks, rank = op.comm->rank;
  const size_t size = comm_size_of(op.type);
  COMM_TRY(check_parts(op.comm, dst, src, size));
  for (uint32_t i = 0; i < ranks; i++) {
    char *to = NULL, *from = NULL;
    size_t in = 0, out = 0;
    const bool receives = part_with(dst, i, size, &to, &in), sends = part_with(src, i, size, &from, &out);
    if (i == rank && receives && sends) {
      COMM_REQUIRE(in == out, RILL_ERROR_INVALID_ARGUMENT, "rank %u sends %zu elements to itself, but receives %zu",
                   rank, out, in);
      if (to == from) continue; /* already in place */
    }
    op.peer = i;
    op.kind = COMM_SEND, op.dst = NULL, op.src = from, op.count = out;
    if (sends) COMM_TRY(rill__comm_enqueue(handle, op, api));
    op.kind = COMM_RECEIVE, op.dst = to, op.src = NULL, op.count = in;
    if (receives) COMM_TRY(rill__comm_enqueue(handle, op, api));
  }
  return RILL_OK;
}

static rill_status exchange(rill_comm handle, rill_stream stream, uint32_t type, struct side *dst, struct side *src,
                            const char *api) {
  COMM_TRY(rill__comm_group_open());
  struct comm_op op = { .handle = handle, .stream = stream, .type = type, .op = RILL_COMM_SUM };
  rill_status status = rill__comm_pin(handle, &op.comm);
  struct comm *const comm = op.comm;
  if (status == RILL_OK) status = enqueue_parts(op, dst, src, api);
  if (status == RILL_OK) status = rill__comm_check_intact(comm);
  if (status != RILL_OK) rill__comm_group_refuse(status);
  const rill_status ended = rill__comm_group_close();
  if (comm != NULL) rill__comm_unpin(comm);
  return status != RILL_OK ? status : ended;
}

rill_status rill_comm_all_to_all_v(rill_comm comm, rill_stream stream, void *dst, const size_t *dst_counts,
                                   const size_t *dst_offsets, const void *src, const size_t *src_counts,
                                   const size_t *src_offsets, uint32_t type) {
  rill__comm_enter(__func__);
  if (dst_counts == NULL || src_counts == NULL) {
    return rill__comm_group_refuse(
        rill__comm_fail(RILL_ERROR_INVALID_ARGUMENT, "%s is NULL", dst_counts == NULL ? "dst_counts" : "src_counts"));
  }
  struct side to = { .p = dst, .counts = dst_counts, .offsets = dst_offsets };
  struct side from = { .p = (char *)(uintptr_t)src, .counts = src_counts, .offsets = src_offsets };
  return exchange(comm, stream, type, &to, &from, __func__);
}

/* Finds out whether this rank is the root. */
static rill_status find_root(rill_comm handle, uint32_t root, const size_t *counts, const char *name, bool *is_root) {
  struct comm *comm = NULL;
  COMM_TRY(rill__comm_pin(handle, &comm));
  const uint32_t ranks = comm->ranks;
  *is_root = comm->rank == root;
  rill__comm_unpin(comm);
  COMM_REQUIRE(root < ranks, RILL_ERROR_OUT_OF_RANGE, "root %u is outside the %u ranks", root, ranks);
  COMM_REQUIRE(!*is_root || counts != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL, and this rank is the root", name);
  return RILL_OK;
}

rill_status rill_comm_gather_v(rill_comm comm, rill_stream stream, void *dst, const size_t *dst_counts,
                               const size_t *dst_offsets, const void *src, size_t src_count, uint32_t type,
                               uint32_t root) {
  rill__comm_enter(__func__);
  bool is_root = false;
  const rill_status status = find_root(comm, root, dst_counts, "dst_counts", &is_root);
  if (status != RILL_OK) return rill__comm_group_refuse(status);
  struct side to = { .p = dst, .counts = dst_counts, .offsets = dst_offsets };
  struct side from = { .p = (char *)(uintptr_t)src, .count = src_count, .peer = root };
  return exchange(comm, stream, type, is_root ? &to : NULL, &from, __func__);
}

rill_status rill_comm_scatter_v(rill_comm comm, rill_stream stream, void *dst, size_t dst_count, const void *src,
                                const size_t *src_counts, const size_t *src_offsets, uint32_t type, uint32_t root) {
  rill__comm_enter(__func__);
  bool is_root = false;
  const rill_status status = find_root(comm, root, src_counts, "src_counts", &is_root);
  if (status != RILL_OK) return rill__comm_group_refuse(status);
  struct side to = { .p = dst, .count = dst_count, .peer = root };
  struct side from = { .p = (char *)(uintptr_t)src, .counts = src_counts, .offsets = src_offsets };
  return exchange(comm, stream, type, &to, is_root ? &from : NULL, __func__);
}
