/* Checks that the memory that the cpu device holds for pending work is bounded for pageable sources, and freed
 * afterwards. */
#include "support/testing.h"

#include "gate.rill.h"

#include <stdio.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { CHECKED = 1 }; /* the sanitizers use additional memory for touched memory */
#elif defined(__has_feature)
enum { CHECKED = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) };
#else
enum { CHECKED = 0 };
#endif

/* Returns whether a check is on that uses additional memory; the order check also keeps pending work. */
static bool has_memory_of_its_own(void) {
  return CHECKED || rill_check_is_on("order") || rill_check_is_on("order:all");
}

enum { MIB = 1 << 20 };

/* Returns the resident memory of this process in bytes. */
static size_t resident(void) {
  unsigned long long size = 0, pages = 0;
  FILE *const file = fopen("/proc/self/statm", "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%llu %llu", &size, &pages), 2);
  (void)fclose(file);
  return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Blocks the stream with a kernel. A gate may be a host call, and a pageable source would then be read in stream order.
 * The limit is not passed in nanoseconds, because such a number could be taken for an address. */
static void close_with_a_kernel(rill_stream stream) {
  const rill_launch one = rill_launch_1d(1, 1);
  dut.host[0] = 0;
  assert_ok(wait_for_flag_launch(stream, &one, dut.host, 1, UINT64_MAX, dut.host + 1));
}
static void open_it(void) { __atomic_store_n(dut.host, 1, __ATOMIC_SEQ_CST); }

static void count(void *user, rill_status status) {
  if (status == RILL_OK) ++*(unsigned *)user;
}

static void a_long_queue_frees_its_memory(void) {
  if (dut.gpu) return;
  const unsigned calls = scaled(1000000);
  rill_stream stream = new_stream("stream");
  unsigned done = 0;
  close_with_a_kernel(stream);
  const size_t before = resident();
  for (unsigned i = 0; i < calls; i++) assert_ok(rill_stream_host_call(stream, count, &done));
  const size_t peak = resident();
  open_it();
  assert_completes(stream);
  assert_int_equal(done, calls);
  const size_t after = resident();
  print_message("%u operations queued: %zu MiB, afterwards %zu MiB\n", calls, (peak - before) / MIB,
                after > before ? (after - before) / MIB : 0);
  if (!has_memory_of_its_own()) assert_true(after < before + 8 * MIB);
}

/* ---- staging ---- */

struct copies {
  rill_stream stream;
  size_t size;
  unsigned count;
  /* pageable source, device memory, pinned memory that receives the last byte of each copy */
  unsigned char *source, *there, *back;
  _Atomic unsigned returned;
};

/* Copies from a source that is written again as soon as the call has returned. */
static const char *copies_a_lot(unsigned index, void *shared) {
  struct copies *const c = shared;
  (void)index;
  for (unsigned i = 0; i < c->count; i++) {
    memset(c->source, (int)i + 1, c->size);
    REQUIRE_OK(rill_copy_async(c->stream, c->there, c->source, c->size));
    (void)atomic_fetch_add(&c->returned, 1);
    REQUIRE_OK(rill_copy_async(c->stream, c->back + i, c->there + c->size - 1, 1));
  }
  return NULL;
}

static void await_copies(struct copies *c, unsigned number) {
  const uint64_t end = now_ns() + TIMEOUT_NS;
  while (atomic_load(&c->returned) < number && now_ns() < end) let_pass_ns(MILLISECOND);
  assert_int_equal(atomic_load(&c->returned), number);
}

/* Makes copies of `size` bytes until one blocks, and a few more. For each copy the queue uses `more` bytes of its own.
 */
static void check_staging(size_t size, size_t more) {
  const unsigned staged = (unsigned)(256 * MIB / size);
  struct copies c = { .stream = new_stream("stream"), .size = size, .count = staged + 4, .source = calloc(1, size) };
  rill_stream other = new_stream("other");
  assert_non_null(c.source);
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, size, &c.there));
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_PINNED, c.count, &c.back));
  memset(c.source, 1, size);
  memset(c.there, 1, size);
  memset(c.back, 0, c.count);
  const size_t before = resident();
  close_with_a_kernel(c.stream);
  struct background *const thread = start_threads(1, copies_a_lot, &c);
  await_copies(&c, staged);
  unsigned char small[100] = { 7 };
  assert_ok(rill_copy_async(other, dut.memory, small, sizeof small)); /* other streams are not blocked */
  assert_completes(other);
  const size_t peak = resident();
  assert_int_equal(atomic_load(&c.returned), staged);
  open_it();
  join_threads(thread);
  assert_completes(c.stream);
  const size_t after = resident();
  for (unsigned i = 0; i < c.count; i++) assert_int_equal(c.back[i], (unsigned char)(i + 1));
  print_message("%u copies of %zu bytes: %zu MiB, afterwards %zu MiB\n", c.count, size, (peak - before) / MIB,
                after > before ? (after - before) / MIB : 0);
  if (!has_memory_of_its_own()) assert_true(peak < before + 264 * MIB + staged * more && after < before + 8 * MIB);
  assert_ok(rill_free(c.there));
  assert_ok(rill_free(c.back));
  free(c.source);
}

/* A copy that would stage more than 256 MiB blocks until its stream has read the source. */
static void staging_memory_is_bounded(void) {
  if (dut.gpu) return;
  check_staging(16 * MIB, 0);
}

/* Small copies are stored in the queue, and also count. */
static void small_copies_are_counted(void) {
  if (dut.gpu) return;
  check_staging(4096, 512);
}

TESTS_ON_EACH_DEVICE("stress: peaks", TEST(a_long_queue_frees_its_memory), TEST(staging_memory_is_bounded),
                     TEST(small_copies_are_counted))
