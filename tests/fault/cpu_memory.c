/* The memory limit of the cpu device (C5.1, C5.2), where RILL_CPU_MEMORY is 64 MiB; and the memory that an allocation
 * reclaims before it fails (C1.3). */
#include "fault/children.h"
#include "support/testing.h"

#include <stdio.h>
#include <sys/resource.h>

enum { MIB = 1 << 20, LIMIT = 64 * MIB };

static uint64_t free_now(void) {
  uint64_t free_bytes = 0, total_bytes = 0;
  assert_ok(rill_device_get_memory(dut.device, &free_bytes, &total_bytes));
  assert_int_equal(total_bytes, LIMIT);
  return free_bytes;
}

static void total_is_the_limit(void) {
  assert_int_equal(dut.info.memory_total, LIMIT);
  assert_true(free_now() <= LIMIT);
}

/* All kinds of memory count, and freed memory can be allocated again. */
static void allocations_of_all_kinds_share_the_limit(void) {
  static const uint32_t kinds[] = { RILL_MEMORY_DEVICE, RILL_MEMORY_PINNED, RILL_MEMORY_MANAGED };
  void *held[64], *p = NULL;
  for (unsigned round = 0; round < 3; round++) {
    const uint64_t before = free_now();
    unsigned count = 0;
    rill_status status = RILL_OK;
    while (count < 64 && (status = rill_alloc(dut.device, MIB, kinds[count % 3], &p)) == RILL_OK) {
      held[count++] = p;
      assert_true(free_now() + (uint64_t)count * MIB <= before);
    }
    assert_int_equal(status, RILL_ERROR_OUT_OF_MEMORY);
    assert_in_range(count, 56, 63); /* this includes the tests' own memory */
    char text[32];
    (void)snprintf(text, sizeof text, "%d bytes requested", MIB);
    assert_says(text);
    (void)snprintf(text, sizeof text, "%llu bytes free of %d", (unsigned long long)free_now(), LIMIT);
    assert_says(text);
    for (unsigned i = 0; i < count; i++) assert_ok(rill_free(held[i]));
    assert_int_equal(free_now(), before);
  }
}

static void a_pool_counts_and_is_not_lost(void) {
  rill_pool pool;
  rill_stream stream = new_stream("stream");
  void *p[80];
  unsigned count = 0;
  rill_status status = RILL_OK;
  const uint64_t before = free_now();
  assert_ok(rill_pool_create(dut.device, NULL, &pool));
  while (count < 80 && (status = rill_pool_alloc_async(pool, stream, MIB, &p[count])) == RILL_OK) count++;
  assert_int_equal(status, RILL_ERROR_OUT_OF_MEMORY);
  assert_in_range(count, 50, 64);
  for (unsigned i = 0; i < count; i++) assert_ok(rill_free_async(stream, p[i]));
  assert_ok(rill_stream_synchronize(stream));
  assert_ok(rill_pool_alloc_async(pool, stream, 16 * MIB, &p[0])); /* the failure was not sticky */
  assert_ok(rill_free_async(stream, p[0]));
  assert_ok(rill_pool_trim(pool, 0));
  assert_int_equal(free_now(), before);
  assert_ok(rill_pool_release(pool));
}

/* ---- reclaiming ---- */

/* Leaves this many freed bytes in a pool. */
static rill_pool pool_with(rill_stream stream, uint32_t kind, size_t bytes) {
  rill_pool pool;
  void *p = NULL;
  assert_ok(rill_pool_create(dut.device, RILL_POOL_OPTIONS(.kind = kind), &pool));
  assert_ok(rill_pool_alloc_async(pool, stream, bytes, &p));
  assert_ok(rill_fill_async(stream, p, &(uint32_t){ 1 }, 4, bytes / 4));
  assert_ok(rill_free_async(stream, p));
  return pool;
}

/* Allocates memory with rill_alloc and from a pool that fits only after reclaiming. */
static void takes_forty(rill_stream stream) {
  rill_pool pool;
  void *p = NULL;
  assert_ok(rill_alloc(dut.device, 40 * MIB, RILL_MEMORY_DEVICE, &p));
  assert_ok(rill_free(p));
  assert_ok(rill_pool_create(dut.device, NULL, &pool));
  assert_ok(rill_pool_alloc_async(pool, stream, 40 * MIB, &p));
  assert_ok(rill_free_async(stream, p));
  assert_ok(rill_stream_synchronize(stream));
  assert_ok(rill_pool_trim(pool, 0));
  assert_ok(rill_pool_release(pool));
}

/* On the cpu, memory of one kind makes room for the others. */
static void unused_memory_of_all_pools_is_reclaimed(void) {
  static const uint32_t kinds[] = { RILL_MEMORY_DEVICE, RILL_MEMORY_PINNED, RILL_MEMORY_MANAGED };
  rill_stream stream = new_stream("stream"), other = new_stream("other");
  for (size_t i = 0; i < 3; i++) {
    const rill_pool pool = pool_with(other, kinds[i], 40 * MIB);
    assert_ok(rill_stream_synchronize(other));
    takes_forty(stream);
    assert_ok(rill_pool_release(pool));
  }
}

/* Blocks that waited for recorded uses, which have completed. */
static void waiting_blocks_are_reclaimed(void) {
  rill_stream stream = new_stream("stream"), other = new_stream("other");
  rill_pool pool;
  void *p = NULL;
  assert_ok(rill_pool_create(dut.device, RILL_POOL_OPTIONS(.kind = RILL_MEMORY_PINNED), &pool));
  assert_ok(rill_pool_alloc_async(pool, stream, 40 * MIB, &p));
  struct gate *gate = gate_close(other);
  assert_ok(rill_memory_record_use(p, other));
  assert_ok(rill_free_async(stream, p));
  gate_open(gate);
  assert_completes(other);
  takes_forty(stream);
  assert_ok(rill_pool_release(pool));
}

/* Pools that have been released with memory that was waiting. */
static void memory_of_released_pools_is_reclaimed(void) {
  rill_stream stream = new_stream("stream"), other = new_stream("other");
  struct gate *gate = gate_close(other);
  const rill_pool pool = pool_with(other, RILL_MEMORY_MANAGED, 40 * MIB);
  assert_ok(rill_pool_release(pool));
  gate_open(gate);
  assert_completes(other);
  takes_forty(stream);
}

/* Frees that were deferred while work was held. */
static void deferred_frees_are_reclaimed(void) {
  rill_stream stream = new_stream("stream"), held = new_stream("held");
  rill_event event = new_event("event");
  void *p = NULL;
  assert_ok(rill_alloc(dut.device, 30 * MIB, RILL_MEMORY_DEVICE, &p));
  assert_ok(rill_stream_wait_event(held, event, 0));
  assert_ok(rill_fill_async(held, p, &(uint32_t){ 1 }, 4, 1));
  assert_ok(rill_free(p));
  assert_ok(rill_stream_record_event(stream, event, 0));
  takes_forty(stream);
}

/* ---- settings ---- */

static int print_memory(void) {
  rill_device device;
  uint64_t free_bytes = 0, total_bytes = 0;
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  const char *const limit = getenv("LIMIT_ADDRESS_SPACE");
  if (limit != NULL && setrlimit(RLIMIT_AS, &(struct rlimit){ strtoul(limit, NULL, 10), RLIM_INFINITY }) != 0) return 2;
  if (rill_device_open("cpu", &device) != RILL_OK) return 3;
  if (rill_device_get_memory(device, &free_bytes, &total_bytes) != RILL_OK) return 4;
  if (rill_device_get_info(device, &info) != RILL_OK || info.memory_total != total_bytes) return 5;
  (void)printf("[%llu of %llu]\n", (unsigned long long)free_bytes, (unsigned long long)total_bytes);
  return 0;
}

static void check_setting(const char *variable, const char *expected) {
  static struct child child;
  run_child("memory", &variable, 1, &child);
  assert_int_equal(child.exit_code, 0);
  if (strstr(child.output, expected) == NULL) fail_msg("%s: \"%s\" expected in: %s", variable, expected, child.output);
}

static void the_environment_sets_the_limit(void) {
  check_setting("RILL_CPU_MEMORY=3MiB", "[3145728 of 3145728]");
  check_setting("RILL_CPU_MEMORY=1000000", "[1000000 of 1000000]");
  static struct child usual, child;
  const char *variable = "RILL_CPU_MEMORY=";
  run_child("memory", &variable, 1, &usual);
  assert_int_equal(usual.exit_code, 0);
  assert_null(strstr(usual.output, "RILL_CPU_MEMORY"));
  check_setting("RILL_CPU_MEMORY=1000000TiB", usual.output); /* never more than there is */
  variable = "RILL_CPU_MEMORY=2 GB";
  run_child("memory", &variable, 1, &child);
  assert_non_null(strstr(child.output, "RILL_CPU_MEMORY=2 GB is not a size such as 2GiB"));
  assert_non_null(strstr(child.output, usual.output)); /* the device exists, with its usual memory */
}

/* An address space of 1 GiB leaves less than that. A sanitizer alone needs more. */
static void limits_of_the_process_count(void) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  static struct child child;
  const char *const variables[] = { "LIMIT_ADDRESS_SPACE=1073741824", "RILL_CPU_MEMORY=" };
  unsigned long long free_bytes = 0, total = 0;
  run_child("memory", variables, 2, &child);
  assert_int_equal(child.exit_code, 0);
  assert_int_equal(sscanf(child.output, "[%llu of %llu]", &free_bytes, &total), 2);
  assert_true(total > 0 && total < 1073741824);
#endif
}

int main(int argc, char **argv) {
  (void)argv;
  if (argc > 1) return print_memory();
  static const struct test tests[] = { TEST(total_is_the_limit),
                                       TEST(allocations_of_all_kinds_share_the_limit),
                                       TEST(a_pool_counts_and_is_not_lost),
                                       TEST(unused_memory_of_all_pools_is_reclaimed),
                                       TEST(waiting_blocks_are_reclaimed),
                                       TEST(memory_of_released_pools_is_reclaimed),
                                       TEST(deferred_frees_are_reclaimed),
                                       TEST(the_environment_sets_the_limit),
                                       TEST(limits_of_the_process_count) };
  return RUN_ON_EACH_DEVICE("memory of the cpu device", tests);
}
