/* RILL_CHECK=order: more programs that lack a wait, of the kinds that pipelines, rings, pools, captures and rows of
 * memory invite; each is also there in its right form, which is not reported. */
#include "order/rig.h"
#include "order/watching.h"

#include <rill/order.h>
#include <string.h>

/* ---- pipelines ---- */

/* Both buffers are announced by one event, and the wait for the second one is forgotten. */
static void two_buffers_have_one_event(struct rig *r) {
  copy(r->a, r->device, r->pinned, N);
  record(r->a, r->event);
  wait(r->b, r->event);
  copy(r->b, r->pinned, r->device, N);
  copy(r->a, r->device2, r->pinned2, N);
  record(r->a, r->event);
  if (r->right) wait(r->b, r->event);
  copy(r->b, r->pinned2, r->device2, N);
}

/* The producer overwrites a slot that is still being read. */
static void a_ring_comes_round(struct rig *r) {
  enum { SLOTS = 3, SLOT = N / 4 };
  rill_event filled[SLOTS], emptied[SLOTS];
  for (unsigned i = 0; i < SLOTS; i++) {
    filled[i] = new_event("filled");
    emptied[i] = new_event("emptied");
  }
  for (unsigned i = 0; i < 2 * SLOTS; i++) {
    char *slot = r->device + i % SLOTS * SLOT;
    if (i >= SLOTS && r->right) wait(r->a, emptied[i % SLOTS]);
    fill(r->a, slot, SLOT);
    record(r->a, filled[i % SLOTS]);
    wait(r->b, filled[i % SLOTS]);
    copy(r->b, r->pinned + i % SLOTS * SLOT, slot, SLOT);
    record(r->b, emptied[i % SLOTS]);
  }
}

/* The producer waits for the slot after its own. */
static void a_ring_waits_for_its_neighbour(struct rig *r) {
  enum { SLOTS = 2, SLOT = N / 2 };
  const rill_event emptied[SLOTS] = { r->event, r->other };
  copy(r->b, r->pinned, r->device, SLOT);
  record(r->b, emptied[0]);
  copy(r->b, r->pinned + SLOT, r->device + SLOT, SLOT);
  record(r->b, emptied[1]);
  wait(r->a, emptied[r->right ? 1 : 0]);
  fill(r->a, r->device + SLOT, SLOT);
}

static void the_wait_comes_after_the_work(struct rig *r) {
  fill(r->a, r->device, N);
  record(r->a, r->event);
  if (r->right) wait(r->b, r->event);
  copy(r->b, r->pinned, r->device, N);
  wait(r->b, r->event);
}

static void the_wrong_one_waits(struct rig *r) {
  fill(r->a, r->device, N);
  if (r->right) order_after(r->b, r->a);
  else order_after(r->a, r->b);
  copy(r->b, r->pinned, r->device, N);
}

static void a_wait_is_for_the_record_before(struct rig *r) {
  fill(r->a, r->device, HALF);
  record(r->a, r->event);
  if (!r->right) wait(r->b, r->event);
  fill(r->a, r->device + HALF, HALF);
  record(r->a, r->event);
  if (r->right) wait(r->b, r->event);
  copy(r->b, r->pinned, r->device, N);
}

static void the_join_misses_a_branch(struct rig *r) {
  record(r->a, r->event);
  wait(r->b, r->event);
  wait(r->c, r->event);
  fill(r->b, r->device, HALF);
  fill(r->c, r->device + HALF, HALF);
  order_after(r->a, r->b);
  if (r->right) order_after(r->a, r->c);
  copy(r->a, r->pinned, r->device, N);
}

/* ---- the host ---- */

static void another_stream_is_asked(struct rig *r) {
  bool complete = false;
  fill(r->a, r->device, N);
  while (!complete) assert_ok(rill_stream_is_complete(r->right ? r->a : r->b, &complete));
  copy(r->b, r->pinned, r->device, N);
}

static void the_event_is_asked_before_the_work(struct rig *r) {
  bool ready = false;
  if (!r->right) record(r->a, r->event);
  copy(r->a, r->pinned, r->device, N);
  if (r->right) record(r->a, r->event);
  while (!ready) assert_ok(rill_event_is_ready(r->event, &ready));
  assert_ok(rill_order_host_access(r->pinned, N, RILL_ORDER_READ, "answer"));
}

static void the_device_is_synchronized_too_early(struct rig *r) {
  if (!r->right) assert_ok(rill_device_synchronize(dut.device));
  copy(r->a, r->pinned, r->device, N);
  if (r->right) assert_ok(rill_device_synchronize(dut.device));
  assert_ok(rill_order_host_access(r->pinned + N - 1, 1, RILL_ORDER_READ, "last byte"));
}

static void a_registered_source_changes(struct rig *r) {
  _Alignas(4096) static char buffer[N];
  assert_ok(rill_host_register(dut.device, buffer, sizeof buffer));
  copy(r->a, r->device, buffer, N);
  if (r->right) synchronize(r->a);
  assert_ok(rill_order_host_access(buffer, N, RILL_ORDER_WRITE, "registered"));
  synchronize(r->a);
  assert_ok(rill_host_unregister(buffer));
}

static void pinned_memory_is_filled_and_read(struct rig *r) {
  fill(r->a, r->pinned, N);
  if (r->right) synchronize(r->a);
  assert_ok(rill_order_host_access(r->pinned, 1, RILL_ORDER_READ, "zeros"));
}

static void the_host_writes_past_its_half(struct rig *r) {
  copy(r->a, r->device, r->pinned, HALF);
  assert_ok(rill_order_host_access(r->pinned + HALF - (r->right ? 0 : 1), HALF, RILL_ORDER_WRITE, "second half"));
}

static void only_one_of_two_is_waited_for(struct rig *r) {
  copy(r->a, r->device, r->pinned, HALF);
  copy(r->b, r->device + HALF, r->pinned + HALF, HALF);
  synchronize(r->a);
  if (r->right) synchronize(r->b);
  assert_ok(rill_order_host_access(r->pinned, N, RILL_ORDER_WRITE, "both halves"));
}

/* ---- rows ---- */

static void a_row_is_too_long(struct rig *r) {
  assert_ok(rill_copy_2d_async(r->a, r->device, 128, r->pinned, 128, r->right ? 64 : 65, 32));
  assert_ok(rill_fill_2d_async(r->b, r->device + 64, 128, &zero, 1, 64, 32));
}

static void many_short_rows_overlap(struct rig *r) {
  assert_ok(rill_copy_2d_async(r->a, r->device, 8, r->pinned, 8, 4, 1024));
  assert_ok(rill_copy_2d_async(r->b, r->device + (r->right ? 4 : 3), 8, r->pinned, 8, 4, 1023));
}

/* Rows with nothing between them are one range, however many. */
static void rows_without_gaps_overlap(struct rig *r) {
  assert_ok(rill_copy_2d_async(r->a, r->device, 1, r->pinned, 1, 1, 2 * N - 16));
  fill(r->b, r->device + 2 * N - (r->right ? 16 : 17), 16);
}

static void a_tile_reaches_into_the_next(struct rig *r) {
  const unsigned size = r->right ? 32 : 33;
  assert_ok(rill_fill_2d_async(r->a, r->device, 64, &zero, 1, size, size));
  assert_ok(rill_fill_2d_async(r->b, r->device + 32 * 64 + 32, 64, &zero, 1, 32, 32));
}

static void boxes_meet_in_a_byte(struct rig *r) {
  rill_copy_3d box = RILL_COPY_3D_INIT;
  box.dst = r->device;
  box.src = r->pinned;
  box.dst_pitch = box.src_pitch = 16;
  box.dst_slice_pitch = box.src_slice_pitch = 256;
  box.width = box.height = 8;
  box.depth = 4;
  assert_ok(rill_copy_3d_async(r->a, &box));
  const size_t corner = 7 + 7 * 16 + 3 * 256;
  box.dst = r->device + corner + (r->right ? 1 : 0);
  box.src = r->pinned;
  assert_ok(rill_copy_3d_async(r->b, &box));
}

static void the_last_byte_is_shared(struct rig *r) {
  fill(r->a, r->device + 1, N - 1);
  copy(r->b, r->pinned, r->device + (r->right ? N : N - 1), 8);
}

/* ---- memory of pools ---- */

static void a_new_owner_is_not_alone(struct rig *r) {
  char *first = new_of_pool(r->a);
  fill(r->a, first, N);
  order_after(r->b, r->a);
  assert_ok(rill_free_async(r->b, first));
  char *second = new_of_pool(r->b);
  if (r->right) order_after(r->c, r->b);
  fill(r->c, second, N);
  if (r->right) order_after(r->b, r->c);
  else synchronize(r->c);
  assert_ok(rill_free_async(r->b, second));
}

static void the_use_is_noted_before_it_happens(struct rig *r) {
  char *p = new_of_pool(r->a);
  order_after(r->b, r->a);
  if (!r->right) assert_ok(rill_memory_record_use(p, r->b));
  fill(r->b, p, N);
  if (r->right) assert_ok(rill_memory_record_use(p, r->b));
  assert_ok(rill_free_async(r->a, p));
}

static void the_use_is_noted_for_another_stream(struct rig *r) {
  char *p = new_of_pool(r->a);
  order_after(r->b, r->a);
  fill(r->b, p, N);
  assert_ok(rill_memory_record_use(p, r->right ? r->b : r->c));
  assert_ok(rill_free_async(r->a, p));
}

/* ---- graphs ---- */

static rill_graph_exec instantiate(rill_graph graph) {
  rill_graph_exec exec;
  keep_graph_until_end(graph);
  assert_ok(rill_graph_instantiate(graph, &exec));
  keep_exec_until_end(exec);
  return exec;
}

/* A branch of a capture forks before the work that it needs. */
static void a_capture_forks_too_early(struct rig *r) {
  rill_graph graph;
  assert_ok(rill_stream_capture_begin(r->a, RILL_CAPTURE_THREAD));
  if (!r->right) record(r->a, r->event);
  fill(r->a, r->device, N);
  if (r->right) record(r->a, r->event);
  wait(r->b, r->event);
  copy(r->b, r->device2, r->device, N);
  record(r->b, r->other);
  wait(r->a, r->other);
  assert_ok(rill_stream_capture_end(r->a, &graph));
  assert_ok(rill_graph_launch(instantiate(graph), r->a));
}

/* Two execution objects of one graph are independent of each other, unlike two launches of one. */
static void one_graph_is_instantiated_twice(struct rig *r) {
  rill_graph graph;
  rill_graph_node node;
  rill_graph_exec first, second;
  assert_ok(rill_graph_create(dut.device, &graph));
  keep_graph_until_end(graph);
  assert_ok(rill_graph_add_fill(graph, NULL, 0, r->device, &zero, 1, N, &node));
  assert_ok(rill_graph_instantiate(graph, &first));
  keep_exec_until_end(first);
  assert_ok(rill_graph_instantiate(graph, &second));
  keep_exec_until_end(second);
  assert_ok(rill_graph_launch(first, r->a));
  assert_ok(rill_graph_launch(r->right ? first : second, r->b));
}

static void a_graph_is_launched_after_the_record(struct rig *r) {
  const rill_graph_exec exec = graph_of_fill(r->device);
  record(r->a, r->event);
  assert_ok(rill_graph_launch(exec, r->a));
  if (r->right) record(r->a, r->event);
  wait(r->b, r->event);
  copy(r->b, r->pinned, r->device, N);
}

static void the_host_refills_the_source_of_a_graph(struct rig *r) {
  rill_graph graph;
  rill_graph_node node;
  assert_ok(rill_graph_create(dut.device, &graph));
  assert_ok(rill_graph_add_copy(graph, NULL, 0, r->device, r->pinned, N, &node));
  const rill_graph_exec exec = instantiate(graph);
  for (unsigned i = 0; i < 2; i++) {
    assert_ok(rill_order_host_access(r->pinned, N, RILL_ORDER_WRITE, "inputs"));
    assert_ok(rill_graph_launch(exec, r->a));
    if (r->right) synchronize(r->a);
  }
}

/* ---- held streams ---- */

/* The event is recorded, but before the work that it should mark. */
static void a_held_stream_is_let_go_too_early(struct rig *r) {
  wait(r->b, r->event);
  copy(r->b, r->pinned, r->device, N);
  if (!r->right) record(r->a, r->event);
  fill(r->a, r->device, N);
  if (r->right) record(r->a, r->event);
}

/* Work that was queued on a held stream comes after a wait that is added to its stream later, through another one. */
static void a_held_copy_races_with_its_source(struct rig *r) {
  wait(r->b, r->event);
  copy(r->b, r->device2, r->device, N);
  record(r->a, r->event);
  if (r->right) order_after(r->c, r->b);
  fill(r->c, r->device, N);
}

/* ---- declared ranges ---- */

static void a_reader_meets_a_writer(struct rig *r) {
  assert_ok(rill_order_access(r->a, r->device, N, RILL_ORDER_READ, "weights"));
  if (r->right) order_after(r->b, r->a);
  assert_ok(rill_order_access(r->b, r->device + N - 1, 1, RILL_ORDER_READ | RILL_ORDER_WRITE, "update"));
}

static void a_declared_range_is_copied(struct rig *r) {
  assert_ok(rill_order_access(r->a, r->device, HALF, RILL_ORDER_WRITE, "sums"));
  copy(r->b, r->pinned, r->device + (r->right ? HALF : 0), HALF);
}

/* ---- running them ---- */

/* Launches a graph that the driver never gets, because its memory may not exist. */
static void refuse_launch(rill_graph_exec exec, rill_stream stream) {
  assert_ok(rill_fault_set("graph_launch:1=out_of_memory"));
  assert_int_equal(rill_graph_launch(exec, stream), RILL_ERROR_OUT_OF_MEMORY);
  rill_fault_clear();
}

/* Memory of rill_alloc is freed before the last launch. */
static void a_graph_outlives_its_allocation(struct rig *r) {
  void *buffer = NULL;
  assert_ok(rill_alloc(dut.device, N, RILL_MEMORY_DEVICE, &buffer));
  const rill_graph_exec exec = graph_of_fill(buffer);
  if (!r->right) assert_ok(rill_free(buffer));
  refuse_launch(exec, r->a);
  if (r->right) assert_ok(rill_free(buffer));
}

static void a_graph_reads_a_freed_source(struct rig *r) {
  rill_graph graph;
  rill_graph_exec exec;
  rill_graph_node node;
  void *buffer = NULL;
  assert_ok(rill_alloc(dut.device, N, RILL_MEMORY_DEVICE, &buffer));
  assert_ok(rill_graph_create(dut.device, &graph));
  keep_graph_until_end(graph);
  assert_ok(rill_graph_add_copy(graph, NULL, 0, r->pinned, buffer, N, &node));
  assert_ok(rill_graph_instantiate(graph, &exec));
  keep_exec_until_end(exec);
  if (!r->right) assert_ok(rill_free(buffer));
  refuse_launch(exec, r->a);
  if (r->right) assert_ok(rill_free(buffer));
}

static const struct planted bugs[] = {
  PLANTED(two_buffers_have_one_event, "is not ordered after the copy"),
  PLANTED(a_ring_comes_round, "the copy reads and the fill writes"),
  PLANTED(a_ring_waits_for_its_neighbour, "the copy reads and the fill writes"),
  PLANTED(the_wait_comes_after_the_work, "is not ordered after the fill"),
  PLANTED(the_wrong_one_waits, "is not ordered after the fill"),
  PLANTED(a_wait_is_for_the_record_before, "reads 2048 bytes at"),
  PLANTED(the_join_misses_a_branch, "reads 2048 bytes at"),
  PLANTED(another_stream_is_asked, "is not ordered after the fill"),
  PLANTED(the_event_is_asked_before_the_work, "declared access of the host \"answer\""),
  PLANTED(the_device_is_synchronized_too_early, "declared access of the host \"last byte\""),
  PLANTED(a_registered_source_changes, "declared access of the host \"registered\""),
  PLANTED(pinned_memory_is_filled_and_read, "declared access of the host \"zeros\""),
  PLANTED(the_host_writes_past_its_half, "writes 1 byte at"),
  PLANTED(only_one_of_two_is_waited_for, "declared access of the host \"both halves\""),
  PLANTED(a_row_is_too_long, "the copy writes and the fill writes 1 byte at"),
  PLANTED(many_short_rows_overlap, "the copy writes and the copy writes 1 byte at"),
  PLANTED(rows_without_gaps_overlap, "the copy writes and the fill writes 1 byte at"),
  PLANTED(a_tile_reaches_into_the_next, "the fill writes and the fill writes 1 byte at"),
  PLANTED(boxes_meet_in_a_byte, "the copy writes and the copy writes 1 byte at"),
  PLANTED(the_last_byte_is_shared, "the fill writes and the copy reads 1 byte at"),
  PLANTED(a_new_owner_is_not_alone, "is not ordered after the allocation"),
  PLANTED(the_use_is_noted_before_it_happens, "rill_free_async"),
  PLANTED(the_use_is_noted_for_another_stream, "rill_memory_record_use"),
  PLANTED(a_capture_forks_too_early, "copy of a graph"),
  PLANTED(one_graph_is_instantiated_twice, "fill of a graph"),
  PLANTED(a_graph_is_launched_after_the_record, "is not ordered after the fill of a graph"),
  PLANTED(the_host_refills_the_source_of_a_graph, "declared access of the host \"inputs\""),
  PLANTED(a_graph_outlives_its_allocation, "fill of a graph of 4096 bytes on stream"),
  PLANTED(a_graph_reads_a_freed_source, "reads memory that was freed"),
  PLANTED(a_held_stream_is_let_go_too_early, "the fill"),
  PLANTED(a_held_copy_races_with_its_source, "the fill"),
  PLANTED(a_reader_meets_a_writer, "declared access \"update\""),
  PLANTED(a_declared_range_is_copied, "declared access \"sums\""),
};
enum { BUGS = sizeof bugs / sizeof *bugs };

static void each_mistake_is_reported(void) {
  for (unsigned i = 0; i < BUGS; i++) run_bug(&bugs[i], false);
}

static void corrected_programs_are_not_reported(void) {
  for (unsigned i = 0; i < BUGS; i++) run_bug(&bugs[i], true);
}

/* ---- correct programs that look like mistakes ---- */

/* A copy reads pageable memory at the call. */
static void pageable_memory_is_taken_at_once(struct rig *r) {
  char buffer[64] = "";
  copy(r->a, r->device, buffer, sizeof buffer);
  assert_ok(rill_order_host_access(buffer, sizeof buffer, RILL_ORDER_WRITE, "stack"));
  memset(buffer, 1, sizeof buffer);
}

static void all_only_read(struct rig *r) {
  copy(r->a, r->pinned, r->device, N);
  copy(r->b, r->pinned2, r->device, N);
  assert_ok(rill_order_access(r->c, r->device, N, RILL_ORDER_READ, "also"));
}

/* Columns side by side, more of them than are checked one by one. */
static void columns_are_interleaved(struct rig *r) {
  void *wide = NULL;
  assert_ok(rill_alloc(dut.device, 5000 * 8, RILL_MEMORY_DEVICE, &wide));
  assert_ok(rill_fill_2d_async(r->a, wide, 8, &zero, 1, 4, 5000));
  assert_ok(rill_fill_2d_async(r->b, (char *)wide + 4, 8, &zero, 1, 4, 5000));
  assert_ok(rill_free(wide));
}

/* Launches of one execution object do not overlap. */
static void a_graph_is_launched_on_two_streams(struct rig *r) {
  const rill_graph_exec exec = graph_of_fill(r->device);
  assert_ok(rill_graph_launch(exec, r->a));
  assert_ok(rill_graph_launch(exec, r->b));
}

static void note_done(void *user, rill_status status) {
  (void)status;
  atomic_store((_Atomic bool *)user, true);
}

/* The call has reported to the host that earlier work is done. */
static void a_host_call_says_so(struct rig *r) {
  _Atomic bool done = false;
  fill(r->a, r->device, N);
  assert_ok(rill_stream_host_call(r->a, note_done, &done));
  while (!atomic_load(&done)) let_pass_ns(1000);
  fill(r->b, r->device, N);
  synchronize(r->a);
}

/* An address that a pool hands out again counts as other memory. */
static void memory_is_used_again_in_order(struct rig *r) {
  for (unsigned i = 0; i < 8; i++) {
    const rill_stream stream = i % 2 == 0 ? r->a : r->b;
    char *p = new_of_pool(stream);
    fill(stream, p, N);
    assert_ok(rill_free_async(stream, p));
  }
}

static void an_event_outlives_its_stream(struct rig *r) {
  rill_stream gone;
  assert_ok(rill_stream_create(dut.device, NULL, &gone));
  fill(gone, r->device, N);
  record(gone, r->event);
  assert_ok(rill_stream_release(gone));
  wait(r->b, r->event);
  copy(r->b, r->pinned, r->device, N);
}

/* A launch waits for an event, and its buffer is freed on the same stream before the event is recorded. */
static void a_held_launch_comes_before_the_free(struct rig *r) {
  char *buffer = new_of_pool(r->a);
  const rill_graph_exec exec = graph_of_fill(buffer);
  wait(r->a, r->event);
  assert_ok(rill_graph_launch(exec, r->a));
  assert_ok(rill_free_async(r->a, buffer));
  record(r->b, r->event);
}

/* Memory of the program is unregistered, and is still its own. */
static void registered_memory_is_not_freed(struct rig *r) {
  static char own[N];
  assert_ok(rill_host_register(dut.device, own, N));
  const rill_graph_exec exec = graph_of_fill(own);
  assert_ok(rill_host_unregister(own));
  if (!dut.gpu) assert_ok(rill_graph_launch(exec, r->a));
}

static void correct_programs_are_not_reported(void) {
  static const struct planted programs[] = {
    PLANTED(a_held_launch_comes_before_the_free, ""),
    PLANTED(registered_memory_is_not_freed, ""),
    PLANTED(pageable_memory_is_taken_at_once, ""),
    PLANTED(all_only_read, ""),
    PLANTED(columns_are_interleaved, ""),
    PLANTED(a_graph_is_launched_on_two_streams, ""),
    PLANTED(a_host_call_says_so, ""),
    PLANTED(memory_is_used_again_in_order, ""),
    PLANTED(an_event_outlives_its_stream, ""),
  };
  for (unsigned i = 0; i < sizeof programs / sizeof *programs; i++) run_bug(&programs[i], true);
}

TESTS_ON_EACH_DEVICE("RILL_CHECK=order, more", TEST(each_mistake_is_reported),
                     TEST(corrected_programs_are_not_reported), TEST(correct_programs_are_not_reported))
