/* Copies of one, two and three dimensions from every kind of memory to every kind, including memory of another device,
 * in sizes from one byte to megabytes, at odd offsets: C1, C7, C12, C17, C22 and C23 of the edge cases, and P8. */
#include "peers.h"
#include "pitched.h"

enum { FAR_DEVICE = MEMORY_KINDS, FAR_PINNED, ALL_KINDS };
enum { PAGE = 4096, LARGE = (3 << 20) + 77, MARGIN = 64 };

/* Shapes of copies; each fits into LARGE bytes plus the offset. */
static const struct box boxes[] = {
  { 0, 0, 0, 0, 0, 0, 1, 1, 1 },
  { 1, 0, 0, 3, 0, 0, 13, 1, 1 },
  { 0, 0, 0, 0, 0, 0, PAGE / 2, 1, 1 },
  { 7, 0, 0, 1, 0, 0, PAGE, 1, 1 },
  { 0, 0, 0, 0, 0, 0, 2 * PAGE, 1, 1 },
  { 5, 0, 0, 11, 0, 0, 65537, 1, 1 },
  { 3, 0, 0, 2, 0, 0, LARGE, 1, 1 },
  { 1, 3, 0, 5, 4, 0, 1, 2, 1 },
  { 9, PAGE + 1, 0, 4, PAGE / 2 + 3, 0, PAGE / 2, 3, 1 },
  { 0, PAGE, 0, 0, 2 * PAGE, 0, PAGE, 2, 1 },
  { 3, 3001, 0, 6, 3500, 0, 2999, 800, 1 },
  { 2, 11, 35, 1, 13, 39, 7, 3, 2 },
  { 0, PAGE, 2 * PAGE, 0, PAGE, 4 * PAGE, PAGE / 2, 2, 3 },
  { 5, 1000, 33000, 8, 1200, 40801, 999, 33, 60 },
};
enum { BOXES = sizeof boxes / sizeof *boxes, BYTES = LARGE + MARGIN };

static size_t end_of(const struct box *box, bool dst) {
  const size_t slices = (box->depth - 1) * (dst ? box->dst_slice : box->src_slice);
  return (dst ? box->dst_offset : box->src_offset) + slices +
         (box->height - 1) * (dst ? box->dst_pitch : box->src_pitch) + box->width;
}

static rill_status copy(rill_stream stream, unsigned char *dst, const unsigned char *src, const struct box *box) {
  if (box->depth > 1) {
    rill_copy_3d asked = RILL_COPY_3D_INIT;
    asked.dst = dst + box->dst_offset;
    asked.src = src + box->src_offset;
    asked.dst_pitch = box->dst_pitch;
    asked.dst_slice_pitch = box->dst_slice;
    asked.src_pitch = box->src_pitch;
    asked.src_slice_pitch = box->src_slice;
    asked.width = box->width;
    asked.height = box->height;
    asked.depth = box->depth;
    return rill_copy_3d_async(stream, &asked);
  }
  if (box->height > 1) {
    return rill_copy_2d_async(stream, dst + box->dst_offset, box->dst_pitch, src + box->src_offset, box->src_pitch,
                              box->width, box->height);
  }
  return rill_copy_async(stream, dst + box->dst_offset, src + box->src_offset, box->width);
}

static bool has(int kind) {
  if (kind >= MEMORY_KINDS) return dut.second.id != 0;
  return has_kind(kind);
}

static unsigned char *allocate(int kind) {
  void *p = NULL;
  if (kind < MEMORY_KINDS) return allocate_kind(kind, BYTES);
  assert_ok(rill_alloc(dut.second, BYTES, kind == FAR_DEVICE ? RILL_MEMORY_DEVICE : RILL_MEMORY_PINNED, &p));
  return p;
}

static void end(int kind, void *p) {
  if (kind < MEMORY_KINDS) {
    free_kind(kind, p);
  } else {
    assert_ok(rill_free(p));
  }
}

static unsigned char *pattern, *guards, *expected, *seen; /* host memory of BYTES bytes each */

static void make_host_buffers(void) {
  if (pattern != NULL) return;
  pattern = malloc(BYTES);
  guards = malloc(BYTES);
  expected = malloc(BYTES);
  seen = malloc(BYTES);
  for (size_t i = 0; i < BYTES; i++) pattern[i] = pitched_byte(i);
  memset(guards, PITCHED_GUARD, BYTES);
}

/* Makes one copy from `src`, which holds the pattern, and checks that no byte outside the destination changes. The
 * result is read after the copy has finished, because a pageable source is read at the call. */
static void check(rill_stream stream, unsigned char *dst, const unsigned char *src, const struct box *box) {
  const size_t n = end_of(box, true) + 1;
  assert_ok(rill_copy_async(stream, dst, guards, n));
  assert_ok(copy(stream, dst, src, box));
  assert_completes(stream);
  assert_ok(rill_copy_async(stream, seen, dst, n));
  assert_completes(stream);
  memcpy(expected, guards, n);
  copy_by_loops(expected, pattern, box);
  assert_memory_equal(seen, expected, n);
}

static void check_all(rill_stream stream) {
  make_host_buffers();
  for (int from = 0; from < ALL_KINDS; from++) {
    if (!has(from)) continue;
    unsigned char *src = allocate(from);
    assert_ok(rill_copy_async(stream, src, pattern, BYTES));
    for (int to = 0; to < ALL_KINDS; to++) {
      if (!has(to)) continue;
      unsigned char *dst = allocate(to);
      for (size_t i = 0; i < BOXES; i++) check(stream, dst, src, &boxes[i]);
      end(to, dst);
    }
    end(from, src);
  }
}

/* C1, C7, C12 */
static void copies_every_direction_and_size(void) { check_all(new_stream("stream")); }

static void set_peers(bool on) {
  rill_status (*const set)(rill_device, rill_device) = on ? rill_device_enable_peer : rill_device_disable_peer;
  assert_ok(set(dut.device, dut.second));
  assert_ok(set(dut.second, dut.device));
}

/* C17, P8: on a stream of the other device, and with peer access enabled. */
static void copies_from_the_other_device_in_every_direction(void) {
  needs_second_device();
  set_peers(false);
  check_all(new_stream_on(dut.second, "there"));
}

static void copies_with_peer_access_in_every_direction(void) {
  needs_peer();
  set_peers(true);
  check_all(new_stream("here"));
  check_all(new_stream_on(dut.second, "there"));
  set_peers(false);
}

/* ---- order ---- */

/* C6: a pageable source is read at the call; any other source is read when the copy runs. */
static void sources_are_read_at_the_right_time(void) {
  const struct box *const of[] = { &boxes[3], &boxes[10], &boxes[13] };
  make_host_buffers();
  for (int from = 0; from < ALL_KINDS; from++) {
    if (!has(from) || from == MANAGED) continue; /* not every GPU lets the host write managed memory concurrently */
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
      rill_stream stream = new_stream("stream");
      unsigned char *src = allocate(from), *dst = allocate(DEVICE), *early = allocate(PINNED);
      const bool host = from == PAGEABLE || from == PINNED || from == REGISTERED || from == FAR_PINNED;
      assert_ok(rill_copy_async(stream, src, from == PAGEABLE ? pattern : guards, BYTES));
      assert_ok(rill_copy_async(stream, dst, guards, BYTES));
      assert_completes(stream);
      memcpy(early, pattern, BYTES); /* opened early, because a copy from pageable memory may wait for the gate */
      struct gate *gate = from == PAGEABLE ? gate_close_for(stream, 50 * MILLISECOND) : gate_close(stream);
      if (!host) assert_ok(rill_copy_async(stream, src, early, BYTES));
      assert_ok(copy(stream, dst, src, of[i]));
      if (from == PAGEABLE) memset(src, 1, BYTES); /* this write is too late to be seen */
      else if (host) memcpy(src, pattern, BYTES);
      gate_open(gate);
      const size_t n = end_of(of[i], true) + 1;
      assert_ok(rill_copy_async(stream, seen, dst, n));
      assert_completes(stream);
      memcpy(expected, guards, n);
      copy_by_loops(expected, pattern, of[i]);
      assert_memory_equal(seen, expected, n);
      end(from, src);
      end(DEVICE, dst);
      end(PINNED, early);
    }
  }
}

/* ---- threads ---- */

enum { THREADS = 6 };

struct worker {
  rill_stream stream;
  unsigned char *src, *dst;
};

static const char *copies_again_and_again(unsigned index, void *shared) {
  const struct worker *worker = (const struct worker *)shared + index;
  unsigned char *mine = malloc(BYTES), *wanted = malloc(BYTES);
  const char *failed = NULL;
  for (unsigned round = 0; round < scaled(30) && failed == NULL; round++) {
    const struct box *box = &boxes[(round + index) % BOXES];
    const size_t n = end_of(box, true) + 1;
    memcpy(wanted, guards, n);
    copy_by_loops(wanted, pattern, box);
    if (rill_copy_async(worker->stream, worker->dst, guards, n) != RILL_OK ||
        copy(worker->stream, worker->dst, worker->src, box) != RILL_OK ||
        rill_stream_synchronize(worker->stream) != RILL_OK ||
        rill_copy_async(worker->stream, mine, worker->dst, n) != RILL_OK ||
        rill_stream_synchronize(worker->stream) != RILL_OK) {
      failed = rill_last_error_text();
    } else if (memcmp(mine, wanted, n) != 0) {
      failed = "a copy is wrong";
    }
  }
  free(mine);
  free(wanted);
  return failed;
}

/* C23: many threads use one device, each with its own stream and kinds of memory. */
static void threads_copy_at_once(void) {
  static const int kinds[THREADS][2] = { { PAGEABLE, DEVICE }, { PINNED, DEVICE },     { DEVICE, DEVICE },
                                         { DEVICE, PINNED },   { REGISTERED, PINNED }, { DEVICE, PAGEABLE } };
  struct worker workers[THREADS];
  make_host_buffers();
  for (unsigned i = 0; i < THREADS; i++) {
    workers[i] = (struct worker){ new_stream("worker"), allocate(kinds[i][0]), allocate(kinds[i][1]) };
    assert_ok(rill_copy_async(workers[i].stream, workers[i].src, pattern, BYTES));
  }
  run_threads(THREADS, copies_again_and_again, workers);
  for (unsigned i = 0; i < THREADS; i++) {
    end(kinds[i][0], workers[i].src);
    end(kinds[i][1], workers[i].dst);
  }
}

TESTS_ON_EACH_DEVICE("copies between all memory", TEST(copies_every_direction_and_size),
                     TEST(copies_from_the_other_device_in_every_direction),
                     TEST(copies_with_peer_access_in_every_direction), TEST(sources_are_read_at_the_right_time),
                     TEST(threads_copy_at_once))
