/* RILL_CHECK=order: programs that lack a wait, which are reported, and the same programs with it, which are not
 * reported. The first kinds of mistakes are invented; the others occurred in public projects and were repaired. */
#include "order/rig.h"
#include "order/watching.h"

#include <rill/order.h>
#include <stdio.h>
#include <string.h>

/* ---- invented ---- */

static void reads_before_it_is_written(struct rig *r) {
  copy(r->a, r->device, r->pinned, N);
  if (r->right) order_after(r->b, r->a);
  copy(r->b, r->device2, r->device, N);
}

static void writes_what_is_being_read(struct rig *r) {
  copy(r->a, r->pinned, r->device, N);
  if (r->right) order_after(r->b, r->a);
  fill(r->b, r->device, N);
}

static void both_write(struct rig *r) {
  fill(r->a, r->device, N);
  if (r->right) order_after(r->b, r->a);
  fill(r->b, r->device, N);
}

static void halves_overlap_by_a_byte(struct rig *r) {
  fill(r->a, r->device, HALF + (r->right ? 0 : 1));
  fill(r->b, r->device + HALF, HALF);
}

static void columns_overlap(struct rig *r) {
  assert_ok(rill_fill_2d_async(r->a, r->device, 64, &zero, 1, r->right ? 32 : 33, 16));
  assert_ok(rill_copy_2d_async(r->b, r->pinned, 64, r->device + 32, 64, 32, 16));
}

static void slices_overlap(struct rig *r) {
  rill_copy_3d box = RILL_COPY_3D_INIT;
  box.dst = r->device;
  box.src = r->pinned;
  box.dst_pitch = box.src_pitch = 32;
  box.dst_slice_pitch = box.src_slice_pitch = 512;
  box.width = 16;
  box.height = 8;
  box.depth = 4;
  assert_ok(rill_copy_3d_async(r->a, &box));
  fill(r->b, r->device + 2 * 512 + 3 * 32 + (r->right ? 16 : 15), 16);
}

static void waits_too_early(struct rig *r) {
  if (!r->right) record(r->a, r->event);
  copy(r->a, r->device, r->pinned, N);
  if (r->right) record(r->a, r->event);
  wait(r->b, r->event);
  copy(r->b, r->pinned2, r->device, N);
}

static void waits_for_another_event(struct rig *r) {
  record(r->b, r->other);
  fill(r->a, r->device, N);
  record(r->a, r->event);
  wait(r->b, r->right ? r->event : r->other);
  fill(r->b, r->device, N);
}

static void another_stream_waits(struct rig *r) {
  fill(r->a, r->device, N);
  record(r->a, r->event);
  wait(r->right ? r->b : r->c, r->event);
  fill(r->b, r->device, N);
}

static void the_chain_has_a_gap(struct rig *r) {
  fill(r->a, r->device, N);
  order_after(r->b, r->a);
  record(r->b, r->event);
  if (!r->right) record(r->c, r->event);
  wait(r->c, r->event);
  copy(r->c, r->pinned, r->device, N);
}

static void the_host_waits_for_another_stream(struct rig *r) {
  fill(r->a, r->device, N);
  fill(r->b, r->device2, N);
  synchronize(r->right ? r->a : r->b);
  fill(r->b, r->device, N);
}

static void the_host_waits_for_an_old_record(struct rig *r) {
  record(r->a, r->event);
  fill(r->a, r->device, N);
  if (r->right) record(r->a, r->event);
  assert_ok(rill_event_synchronize(r->event));
  fill(r->b, r->device, N);
}

/* The work of the first stream is done, but the host has not queried it. */
static void is_ordered_by_luck(struct rig *r) {
  struct gate *gate = gate_close(r->b);
  fill(r->a, r->device, N);
  if (r->right) order_after(r->b, r->a);
  gate_open(gate);
  synchronize(r->c);
  fill(r->b, r->device, N);
}

static void only_asks_without_an_answer(struct rig *r) {
  bool complete = false;
  fill(r->a, r->device, N);
  if (r->right) {
    while (!complete) assert_ok(rill_stream_is_complete(r->a, &complete));
  }
  fill(r->b, r->device, N);
}

static void set_true(void *user, rill_status status) {
  (void)status;
  *(bool *)user = true;
}

static void races_with_what_follows_a_host_call(struct rig *r) {
  bool called = false;
  assert_ok(rill_stream_host_call(r->a, set_true, &called));
  fill(r->a, r->device, N);
  if (r->right) synchronize(r->a);
  fill(r->b, r->device, N);
  synchronize(r->a);
}

static void branches_of_a_graph_race(struct rig *r) {
  rill_graph graph;
  rill_graph_exec exec;
  rill_graph_node first, second;
  assert_ok(rill_graph_create(dut.device, &graph));
  keep_graph_until_end(graph);
  assert_ok(rill_graph_add_fill(graph, NULL, 0, r->device, &zero, 1, N, &first));
  assert_ok(rill_graph_add_copy(graph, &first, r->right ? 1 : 0, r->pinned, r->device, N, &second));
  assert_ok(rill_graph_instantiate(graph, &exec));
  keep_exec_until_end(exec);
  assert_ok(rill_graph_launch(exec, r->a));
}

static void a_graph_races_with_a_stream(struct rig *r) {
  const rill_graph_exec exec = graph_of_fill(r->device);
  assert_ok(rill_graph_launch(exec, r->a));
  if (r->right) order_after(r->b, r->a);
  copy(r->b, r->pinned, r->device, N);
}

static void declared_ranges_overlap(struct rig *r) {
  assert_ok(rill_order_access(r->a, r->device, HALF + 1, RILL_ORDER_WRITE, "left half"));
  if (r->right) order_after(r->b, r->a);
  assert_ok(rill_order_access(r->b, r->device + HALF, HALF, RILL_ORDER_READ, "right half"));
}

static void the_host_writes_a_source_too_early(struct rig *r) {
  copy(r->a, r->device, r->pinned, N);
  if (r->right) synchronize(r->a);
  assert_ok(rill_order_host_access(r->pinned, N, RILL_ORDER_WRITE, "next batch"));
  r->pinned[0] = 1;
}

static void a_new_stream_knows_nothing(struct rig *r) {
  rill_stream short_lived = RILL_NULL_STREAM;
  assert_ok(rill_stream_create(dut.device, RILL_STREAM_OPTIONS(.label = r->name), &short_lived));
  fill(short_lived, r->device, N);
  if (r->right) order_after(r->b, short_lived);
  assert_ok(rill_stream_release(short_lived));
  fill(r->b, r->device, N);
}

/* ---- kinds that were found in public projects ---- */

/* One event is recorded on each of several streams, and waited for once: the wait is for the last record. */
static void one_event_for_several_streams(struct rig *r) {
  fill(r->a, r->device, HALF);
  fill(r->b, r->device + HALF, HALF);
  record(r->a, r->event);
  if (r->right) wait(r->c, r->event);
  record(r->b, r->event);
  wait(r->c, r->event);
  copy(r->c, r->pinned, r->device, N);
}

/* The first of several threads starts an upload and forgets to record the event, and an event that was never recorded
 * counts as complete for the others. */
static void the_record_was_forgotten(struct rig *r) {
  copy(r->a, r->device, r->pinned, N);
  if (r->right) record(r->a, r->event);
  assert_ok(rill_stream_wait_event(r->b, r->event, RILL_WAIT_IF_RECORDED));
  copy(r->b, r->pinned2, r->device, N);
}

/* A helper copies on the default stream, which other streams are not ordered with. */
static void a_helper_uses_the_default_stream(struct rig *r) {
  rill_stream standard;
  assert_ok(rill_device_default_stream(dut.device, &standard));
  copy(standard, r->device, r->pinned, N);
  if (r->right) order_after(r->a, standard);
  copy(r->a, r->device2, r->device, N);
}

/* Results are read on the host after an asynchronous copy that was taken for a synchronous one. */
static void results_are_read_at_once(struct rig *r) {
  fill(r->a, r->device, N);
  copy(r->a, r->pinned, r->device, N);
  if (r->right) synchronize(r->a);
  assert_ok(rill_order_host_access(r->pinned, N, RILL_ORDER_READ, "results"));
}

/* Tests with several streams share tensors without any order. */
static void three_streams_share_a_tensor(struct rig *r) {
  fill(r->a, r->device, N);
  if (r->right) order_after(r->b, r->a);
  copy(r->b, r->device2, r->device, N);
  if (r->right) order_after(r->c, r->b);
  fill(r->c, r->device2, N);
}

/* A side stream is entered without waiting for the current one. */
static void a_side_stream_does_not_wait(struct rig *r) {
  fill(r->a, r->device, N);
  if (r->right) order_after(r->b, r->a);
  copy(r->b, r->device2, r->device, N);
  if (r->right) order_after(r->a, r->b);
  copy(r->a, r->pinned, r->device2, N);
}

/* A side stream copies a tensor out, whose memory goes back to the allocator without a note of that use. */
static void a_use_is_not_recorded(struct rig *r) {
  char *tensor = new_of_pool(r->a);
  fill(r->a, tensor, N);
  order_after(r->b, r->a);
  copy(r->b, r->pinned, tensor, N);
  if (r->right) assert_ok(rill_memory_record_use(tensor, r->b));
  assert_ok(rill_free_async(r->a, tensor));
}

/* Outgoing messages are sent on a fresh stream, which is never joined before the message is dropped. */
static void a_message_is_dropped_while_it_is_sent(struct rig *r) {
  char *message = new_of_pool(r->a);
  fill(r->a, message, N);
  record(r->a, r->event);
  wait(r->b, r->event);
  copy(r->b, r->device2, message, N);
  if (r->right) record(r->b, r->other);
  if (r->right) wait(r->a, r->other);
  assert_ok(rill_free_async(r->a, message));
}

/* An arena gives memory of one stream's intermediate results to another stream. */
static void an_arena_ignores_streams(struct rig *r) {
  char *arena = r->device;
  copy(r->a, arena, r->pinned, HALF);
  copy(r->a, r->device2, arena, HALF);
  if (r->right) order_after(r->b, r->a);
  copy(r->b, arena, r->pinned2, HALF);
}

/* The host prepares the next batch in a buffer that is still being uploaded: there are two, and the third batch does
 * not wait for the first. */
static void the_next_batch_overwrites_an_upload(struct rig *r) {
  const rill_event done[2] = { r->event, r->other };
  for (unsigned batch = 0; batch < 3; batch++) {
    char *buffer = r->pinned + batch % 2 * HALF;
    if (batch >= 2 && r->right) assert_ok(rill_event_synchronize(done[batch % 2]));
    assert_ok(rill_order_host_access(buffer, HALF, RILL_ORDER_WRITE, "batch"));
    memset(buffer, (int)batch, HALF);
    copy(r->a, r->device + batch % 2 * HALF, buffer, HALF);
    record(r->a, done[batch % 2]);
  }
}

/* An array is copied to the host on one stream and overwritten on another. */
static void an_array_changes_while_it_is_copied_out(struct rig *r) {
  copy(r->a, r->pinned, r->device, N);
  if (r->right) synchronize(r->a);
  fill(r->b, r->device, N);
}

/* Inputs are staged on one stream, and the graph that uses them is launched on another. */
static void a_graph_starts_before_its_inputs(struct rig *r) {
  const rill_graph_exec exec = graph_of_fill(r->device);
  copy(r->b, r->device, r->pinned, N);
  if (r->right) order_after(r->a, r->b);
  assert_ok(rill_graph_launch(exec, r->a));
}

/* A buffer remembers the stream of its allocation, and is freed there after a use on another one. */
static void a_buffer_is_freed_where_it_was_allocated(struct rig *r) {
  char *buffer = new_of_pool(r->a);
  order_after(r->b, r->a);
  fill(r->b, buffer, N);
  if (r->right) order_after(r->a, r->b);
  assert_ok(rill_free_async(r->a, buffer));
}

/* A finalizer frees memory on the stream of the task in which it happens to run. */
static void a_finalizer_frees_on_its_own_stream(struct rig *r) {
  char *buffer = new_of_pool(r->a);
  fill(r->a, buffer, N);
  if (r->right) order_after(r->c, r->a);
  assert_ok(rill_free_async(r->c, buffer));
}

/* A captured copy has a temporary buffer that is dropped after the capture, before the graph is launched. */
static void a_graph_outlives_its_buffer(struct rig *r) {
  rill_graph graph;
  rill_graph_exec exec;
  char *buffer = new_of_pool(r->a);
  assert_ok(rill_stream_capture_begin(r->a, RILL_CAPTURE_THREAD));
  copy(r->a, r->device, buffer, N);
  assert_ok(rill_stream_capture_end(r->a, &graph));
  keep_graph_until_end(graph);
  assert_ok(rill_graph_instantiate(graph, &exec));
  keep_exec_until_end(exec);
  if (!r->right) assert_ok(rill_free_async(r->a, buffer));
  assert_ok(rill_graph_launch(exec, r->a));
  if (r->right) assert_ok(rill_free_async(r->a, buffer));
}

/* Layers are spread over devices: the next token's activations arrive while those before them are being read. */
static void a_peer_overwrites_what_is_read(struct rig *r) {
  copy(r->a, r->pinned, r->device, N);
  record(r->a, r->event);
  if (r->right) wait(r->b, r->event);
  copy(r->b, r->device, r->device2, N);
}

/* A free is taken for a synchronize, which it is not where the memory is of a pool. */
static void a_free_is_taken_for_a_synchronize(struct rig *r) {
  char *temporary = new_of_pool(r->a);
  copy(r->a, r->pinned, r->device, N);
  assert_ok(rill_free_async(r->a, temporary));
  if (r->right) synchronize(r->a);
  assert_ok(rill_order_host_access(r->pinned, N, RILL_ORDER_READ, "result"));
}

/* The event is recorded with the work before the copy, not with the copy. */
static void the_event_is_in_another_batch(struct rig *r) {
  fill(r->a, r->device, N);
  if (!r->right) record(r->a, r->event);
  copy(r->a, r->device2, r->device, N);
  if (r->right) record(r->a, r->event);
  wait(r->b, r->event);
  copy(r->b, r->pinned, r->device2, N);
}

/* Two graphs that share memory are made to be launched in turn, and are launched side by side. */
static void graphs_share_memory(struct rig *r) {
  const rill_graph_exec first = graph_of_fill(r->device), second = graph_of_fill(r->device);
  assert_ok(rill_graph_launch(first, r->a));
  assert_ok(rill_graph_launch(second, r->right ? r->a : r->b));
}

/* The first contents of a buffer are copied in when it is made, on a stream that nobody waits for. */
static void first_contents_come_late(struct rig *r) {
  char *buffer = new_of_pool(r->c);
  copy(r->c, buffer, r->pinned, N);
  if (r->right) order_after(r->a, r->c);
  copy(r->a, r->pinned2, buffer, N);
  synchronize(r->a);
  synchronize(r->c);
  assert_ok(rill_free_async(r->c, buffer));
}

/* ---- running them ---- */

static const struct planted bugs[] = {
  PLANTED(reads_before_it_is_written, "copy of 4096 bytes"),
  PLANTED(writes_what_is_being_read, "the copy reads and the fill writes"),
  PLANTED(both_write, "the fill writes and the fill writes"),
  PLANTED(halves_overlap_by_a_byte, "writes 1 byte at"),
  PLANTED(columns_overlap, "the fill writes and the copy reads 1 byte"),
  PLANTED(slices_overlap, "the copy writes and the fill writes 1 byte"),
  PLANTED(waits_too_early, "record an event on stream"),
  PLANTED(waits_for_another_event, "wait for it before the fill"),
  PLANTED(another_stream_waits, "is not ordered after the fill"),
  PLANTED(the_chain_has_a_gap, "is not ordered after the fill"),
  PLANTED(the_host_waits_for_another_stream, "is not ordered after the fill"),
  PLANTED(the_host_waits_for_an_old_record, "is not ordered after the fill"),
  PLANTED(is_ordered_by_luck, "is not ordered after the fill"),
  PLANTED(only_asks_without_an_answer, "is not ordered after the fill"),
  PLANTED(races_with_what_follows_a_host_call, "is not ordered after the fill"),
  PLANTED(branches_of_a_graph_race, "fill of a graph"),
  PLANTED(a_graph_races_with_a_stream, "is not ordered after the fill of a graph"),
  PLANTED(declared_ranges_overlap, "declared access \"left half\""),
  PLANTED(the_host_writes_a_source_too_early, "declared access of the host \"next batch\""),
  PLANTED(a_new_stream_knows_nothing, "is not ordered after the fill"),
  PLANTED(one_event_for_several_streams, "is not ordered after the fill"),
  PLANTED(the_record_was_forgotten, "is not ordered after the copy"),
  PLANTED(a_helper_uses_the_default_stream, "is not ordered after the copy"),
  PLANTED(results_are_read_at_once, "synchronize with stream"),
  PLANTED(three_streams_share_a_tensor, "is not ordered after the fill"),
  PLANTED(a_side_stream_does_not_wait, "is not ordered after the copy"),
  PLANTED(a_use_is_not_recorded, "rill_memory_record_use"),
  PLANTED(a_message_is_dropped_while_it_is_sent, "rill_free_async"),
  PLANTED(an_arena_ignores_streams, "is not ordered after the copy"),
  PLANTED(the_next_batch_overwrites_an_upload, "declared access of the host \"batch\""),
  PLANTED(an_array_changes_while_it_is_copied_out, "the copy reads and the fill writes"),
  PLANTED(a_graph_starts_before_its_inputs, "fill of a graph"),
  PLANTED(a_buffer_is_freed_where_it_was_allocated, "rill_free_async"),
  PLANTED(a_finalizer_frees_on_its_own_stream, "rill_free_async"),
  PLANTED(a_graph_outlives_its_buffer, "memory that was freed by the rill_free_async"),
  PLANTED(a_peer_overwrites_what_is_read, "the copy reads and the copy writes"),
  PLANTED(a_free_is_taken_for_a_synchronize, "declared access of the host \"result\""),
  PLANTED(the_event_is_in_another_batch, "is not ordered after the copy"),
  PLANTED(graphs_share_memory, "fill of a graph"),
  PLANTED(first_contents_come_late, "is not ordered after the copy"),
};
enum { BUGS = sizeof bugs / sizeof *bugs };

static void each_mistake_is_reported(void) {
  for (unsigned i = 0; i < BUGS; i++) run_bug(&bugs[i], false);
}

static void corrected_programs_are_not_reported(void) {
  for (unsigned i = 0; i < BUGS; i++) run_bug(&bugs[i], true);
}

static void each_mistake_is_reported_once(void) {
  struct rig r = { .a = new_stream("again a"), .b = new_stream("again b") };
  void *device = NULL;
  assert_ok(rill_alloc(dut.device, N, RILL_MEMORY_DEVICE, &device));
  r.device = device;
  watch_begin();
  for (unsigned i = 0; i < 10; i++) {
    fill(r.a, r.device, N);
    fill(r.b, r.device, N);
    assert_ok(rill_device_synchronize(dut.device));
  }
  const char *said = watch_end();
  const char *first = strstr(said, "RILL_CHECK=order");
  assert_non_null(first);
  assert_null(strstr(first + 1, "RILL_CHECK=order"));
  assert_ok(rill_free(device));
}

TESTS_ON_EACH_DEVICE("RILL_CHECK=order", TEST(each_mistake_is_reported), TEST(corrected_programs_are_not_reported),
                     TEST(each_mistake_is_reported_once))
