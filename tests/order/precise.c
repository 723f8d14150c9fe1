/* RILL_CHECK=order:precise on the cpu: kernels of rillcc --check against other uses of the same bytes. */
#include "order/watching.h"

#include "bytes.rill.h"

#include <rill/order.h>
#include <stdio.h>
#include <string.h>

enum { N = 4096, HALF = N / 2 };

struct rig {
  bool right; /* the program has its wait, or uses other bytes */
  rill_stream a, b, c;
  rill_event event;
  unsigned char *device, *device2, *pinned;
  unsigned *word; /* in device memory of its own, as the next is */
  unsigned *sums;
};

static const uint8_t zero;
static const rill_launch one_thread = { sizeof(rill_launch), .grid = { 1, 1, 1 }, .block = { 1, 1, 1 } };
static const rill_launch one_block = { sizeof(rill_launch), .grid = { 1, 1, 1 }, .block = { 64, 1, 1 } };
static const rill_launch many_blocks = { sizeof(rill_launch), .grid = { N / 64, 1, 1 }, .block = { 64, 1, 1 } };

static void write(rill_stream stream, unsigned char *p, unsigned n) {
  assert_ok(write_bytes_launch(stream, &many_blocks, p, n));
}
static void read(rill_stream stream, unsigned char *p, unsigned n, unsigned *sum) {
  assert_ok(read_bytes_launch(stream, &one_thread, p, n, sum));
}
static void fill(rill_stream stream, void *p, size_t size) { assert_ok(rill_fill_async(stream, p, &zero, 1, size)); }
static void order_after(rill_stream later, rill_stream earlier) { assert_ok(rill_stream_wait_stream(later, earlier)); }

/* ---- programs ---- */

static void halves_by_two_kernels(struct rig *r) {
  write(r->a, r->device, HALF + (r->right ? 0 : 1));
  write(r->b, r->device + HALF, HALF);
}

static void one_writes_one_reads(struct rig *r) {
  write(r->a, r->device, N);
  if (r->right) order_after(r->b, r->a);
  read(r->b, r->device + N - 1, 1, r->sums);
}

static void both_read(struct rig *r) {
  read(r->a, r->device, N, r->sums);
  read(r->b, r->device, N, r->sums + (r->right ? 1 : 0));
}

static void a_copy_out_of_a_result(struct rig *r) {
  write(r->a, r->device, N);
  if (r->right) order_after(r->b, r->a);
  assert_ok(rill_copy_async(r->b, r->pinned, r->device + N - 1, 1));
}

static void a_copy_comes_first(struct rig *r) {
  assert_ok(rill_copy_async(r->b, r->pinned, r->device, N));
  write(r->a, r->device + (r->right ? N : N - 1), N);
}

static void a_fill_of_what_is_read(struct rig *r) {
  read(r->a, r->device, HALF, r->sums);
  fill(r->b, r->device + HALF - (r->right ? 0 : 1), HALF);
}

static void the_host_reads_at_once(struct rig *r) {
  write(r->a, r->device, N);
  if (r->right) assert_ok(rill_stream_synchronize(r->a));
  assert_ok(rill_order_host_access(r->device + 7, 1, RILL_ORDER_READ, "results"));
}

static void odd_and_even(struct rig *r) {
  assert_ok(write_every_other_launch(r->a, &one_block, (unsigned *)(void *)r->device, N / 4, 0));
  assert_ok(write_every_other_launch(r->b, &one_block, (unsigned *)(void *)r->device, N / 4, r->right ? 1 : 2));
}

static void columns_of_a_matrix(struct rig *r) {
  assert_ok(write_rows_launch(r->a, &one_block, r->device, 64, 32, 64));
  assert_ok(rill_copy_2d_async(r->b, r->pinned, 64, r->device + (r->right ? 32 : 31), 64, 32, 64));
}

static void a_counter_and_a_copy(struct rig *r) {
  assert_ok(count_launch(r->a, &one_block, r->word));
  if (r->right) order_after(r->b, r->a);
  assert_ok(rill_copy_async(r->b, r->pinned, r->word, 4));
}

static void a_sum_and_a_fill(struct rig *r) {
  assert_ok(sum_up_launch(r->a, &one_block, (float *)(void *)r->word));
  if (r->right) order_after(r->b, r->a);
  fill(r->b, r->word, 4);
}

static void a_pointer_in_memory(struct rig *r) {
  unsigned char *const target = r->device + HALF;
  assert_ok(rill_copy_async(r->a, r->word, &target, sizeof target));
  assert_ok(write_through_launch(r->a, &one_block, (unsigned char *const *)(void *)r->word, 64));
  fill(r->b, r->device + HALF + (r->right ? 64 : 63), 64);
}

static void a_variable_of_the_module(struct rig *r) {
  assert_ok(write_variable_launch(r->a, &one_thread, 1));
  if (r->right) order_after(r->b, r->a);
  assert_ok(write_variable_launch(r->b, &one_thread, 2));
}

static void the_event_is_too_early(struct rig *r) {
  if (!r->right) assert_ok(rill_stream_record_event(r->a, r->event, 0));
  write(r->a, r->device, N);
  if (r->right) assert_ok(rill_stream_record_event(r->a, r->event, 0));
  assert_ok(rill_stream_wait_event(r->b, r->event, 0));
  write(r->b, r->device, 1);
}

/* The kernel runs late, when the streams are ordered in another way already. */
static void a_kernel_after_a_gate(struct rig *r) {
  struct gate *gate = gate_close(r->a);
  write(r->a, r->device, 64);
  if (r->right) order_after(r->b, r->a);
  fill(r->b, r->device, 1);
  order_after(r->b, r->a);
  gate_open(gate);
}

static void memory_is_freed_under_a_kernel(struct rig *r) {
  void *p = NULL;
  assert_ok(rill_alloc_async(r->a, N, &p));
  write(r->a, p, N);
  order_after(r->b, r->a);
  read(r->b, p, N, r->sums);
  if (r->right) assert_ok(rill_memory_record_use(p, r->b));
  assert_ok(rill_free_async(r->a, p));
}

static const struct {
  const char *name;
  void (*run)(struct rig *r);
  const char *says;
} bugs[] = {
  { "halves", halves_by_two_kernels, "writes and the kernel writes 1 byte at" },
  { "write and read", one_writes_one_reads, "writes and the kernel reads 1 byte at" },
  { "sums", both_read, "writes and the kernel writes 4 bytes at" },
  { "copy", a_copy_out_of_a_result, "the kernel writes and the copy reads 1 byte at" },
  { "copy first", a_copy_comes_first, "the copy reads and the kernel writes 1 byte at" },
  { "fill", a_fill_of_what_is_read, "the kernel reads and the fill writes 1 byte at" },
  { "host", the_host_reads_at_once, "declared access of the host \"results\"" },
  { "every other", odd_and_even, "the kernel writes and the kernel writes 4 bytes at" },
  { "columns", columns_of_a_matrix, "the kernel writes and the copy reads 1 byte at" },
  { "counter", a_counter_and_a_copy, "the kernel writes and the copy reads 4 bytes at" },
  { "sum", a_sum_and_a_fill, "the kernel writes and the fill writes 4 bytes at" },
  { "pointer", a_pointer_in_memory, "the kernel writes and the fill writes 1 byte at" },
  { "variable", a_variable_of_the_module, "the kernel writes and the kernel writes 4 bytes at" },
  { "event", the_event_is_too_early, "the kernel writes and the kernel writes 1 byte at" },
  { "gate", a_kernel_after_a_gate, "the kernel writes and the fill writes 1 byte at" },
  { "free", memory_is_freed_under_a_kernel, "rill_memory_record_use" },
};
enum { BUGS = sizeof bugs / sizeof *bugs };

/* ---- correct or possibly correct programs ---- */

static void atomics_are_permitted(struct rig *r) {
  assert_ok(count_launch(r->a, &one_block, r->word));
  assert_ok(count_launch(r->b, &one_block, r->word));
}

static void sums_are_permitted(struct rig *r) {
  assert_ok(sum_up_launch(r->a, &one_block, (float *)(void *)r->word));
  assert_ok(sum_up_launch(r->b, &one_block, (float *)(void *)r->word));
}

static void shared_arrays_are_a_blocks_own(struct rig *r) {
  assert_ok(reverse_block_launch(r->a, &one_block, r->word));
  assert_ok(reverse_block_launch(r->b, &one_block, (unsigned *)(void *)r->device));
}

static void a_flag_may_order(struct rig *r) {
  assert_ok(produce_launch(r->a, &one_thread, (unsigned *)(void *)r->device, r->word));
  assert_ok(consume_launch(r->b, &one_thread, (unsigned *)(void *)r->device, r->word, 1000));
}

/* The waiting kernel is submitted first, with more work after it, and runs when everything has been submitted. */
static void a_flag_may_order_the_other_way(struct rig *r) {
  struct gate *gate = gate_close(r->a);
  assert_ok(consume_launch(r->a, &one_thread, (unsigned *)(void *)r->device2, r->word, 1000));
  fill(r->a, r->device, 64);
  fill(r->b, r->device, 64);
  assert_ok(produce_launch(r->b, &one_thread, r->word + 1, r->word));
  gate_open(gate);
}

static void a_volatile_flag_may_order(struct rig *r) {
  assert_ok(produce_volatile_launch(r->a, &one_thread, (unsigned *)(void *)r->device, r->word));
  assert_ok(consume_volatile_launch(r->b, &one_thread, (unsigned *)(void *)r->device, r->word, 1000));
}

static void the_host_may_have_looked(struct rig *r) {
  fill(r->a, r->device, 64);
  write(r->a, r->pinned, 64);
  fill(r->b, r->device, 64);
}

static const struct {
  const char *name;
  void (*run)(struct rig *r);
} silent[] = { { "atomics", atomics_are_permitted },
               { "float atomics", sums_are_permitted },
               { "shared", shared_arrays_are_a_blocks_own },
               { "flag", a_flag_may_order },
               { "flag the other way", a_flag_may_order_the_other_way },
               { "volatile flag", a_volatile_flag_may_order },
               { "pinned", the_host_may_have_looked } };
enum { SILENT = sizeof silent / sizeof *silent };

/* ---- running them ---- */

static void *new_memory(size_t size, uint32_t kind) {
  void *p = NULL;
  assert_ok(rill_alloc(dut.device, size, kind, &p));
  memset(p, 0, size);
  return p;
}

static const char *run_watched(const char *name, bool right, void (*run)(struct rig *r)) {
  char labels[3][64];
  for (unsigned i = 0; i < 3; i++)
    (void)snprintf(labels[i], sizeof labels[i], "%s %c%s", name, "abc"[i], right ? "'" : "");
  struct rig r = { .right = right,
                   .a = new_stream(labels[0]),
                   .b = new_stream(labels[1]),
                   .c = new_stream(labels[2]),
                   .event = new_event("event"),
                   .device = new_memory(2 * N, RILL_MEMORY_DEVICE),
                   .pinned = new_memory(2 * N, RILL_MEMORY_PINNED),
                   .word = new_memory(256, RILL_MEMORY_DEVICE),
                   .sums = new_memory(8, RILL_MEMORY_DEVICE) };
  r.device2 = r.device + N;
  watch_begin();
  run(&r);
  assert_ok(rill_device_synchronize(dut.device));
  const char *said = watch_end();
  assert_ok(rill_free(r.device));
  assert_ok(rill_free(r.pinned));
  assert_ok(rill_free(r.word));
  assert_ok(rill_free(r.sums));
  return said;
}

static void skip_unless_checked(void) {
  if (dut.gpu) skip_because("only kernels on the cpu tell what they access");
}

static void each_mistake_is_reported(void) {
  skip_unless_checked();
  for (unsigned i = 0; i < BUGS; i++) {
    const char *said = run_watched(bugs[i].name, false, bugs[i].run);
    if (strstr(said, bugs[i].says) == NULL) fail_msg("%s: \"%s\" is not in: %s", bugs[i].name, bugs[i].says, said);
    if (strstr(said, "possible") != NULL) fail_msg("%s: %s", bugs[i].name, said);
  }
}

static void corrected_programs_are_not_reported(void) {
  skip_unless_checked();
  for (unsigned i = 0; i < BUGS; i++) {
    const char *said = run_watched(bugs[i].name, true, bugs[i].run);
    if (said[0] != '\0') fail_msg("%s, in its right form: %s", bugs[i].name, said);
  }
}

static void possibly_correct_programs_are_not_reported(void) {
  skip_unless_checked();
  for (unsigned i = 0; i < SILENT; i++) {
    const char *said = run_watched(silent[i].name, false, silent[i].run);
    if (said[0] != '\0') fail_msg("%s: %s", silent[i].name, said);
  }
}

TESTS_ON_EACH_DEVICE("RILL_CHECK=order:precise", TEST(each_mistake_is_reported),
                     TEST(corrected_programs_are_not_reported), TEST(possibly_correct_programs_are_not_reported))
