/* Graphs with pageable memory (C5.3, C7.1): a copy reads its source when it runs, and has written its destination
 * before later nodes run, for every kind of memory. */
#include "graphs.h"

enum { LARGE = (9 << 20) + 5 }; /* larger than a backend stages in one piece */

static void *need(void *p) {
  assert_non_null(p);
  return p;
}

static unsigned char byte_at(size_t i, unsigned seed) { return (unsigned char)(i * 31 + (i >> 8) + seed); }

static unsigned char *new_bytes(size_t n, unsigned seed) {
  unsigned char *const bytes = need(malloc(n));
  for (size_t i = 0; i < n; i++) bytes[i] = byte_at(i, seed);
  return bytes;
}

static unsigned char *new_device_bytes(size_t n) {
  void *p = NULL;
  assert_ok(rill_alloc(dut.device, n, RILL_MEMORY_DEVICE, &p));
  return p;
}

static rill_graph_node add_copy(rill_graph graph, const rill_graph_node *after, void *dst, const void *src, size_t n) {
  rill_graph_node node;
  assert_ok(rill_graph_add_copy(graph, after, after != NULL, dst, src, n, &node));
  return node;
}

static rill_graph_node add_rows(rill_graph graph, const rill_graph_node *after, void *dst, size_t dst_pitch,
                                const void *src, size_t src_pitch, size_t width, size_t height) {
  rill_graph_node node;
  assert_ok(rill_graph_add_copy_2d(graph, after, after != NULL, dst, dst_pitch, src, src_pitch, width, height, &node));
  return node;
}

struct cells {
  uint32_t next, cell[4];
};

static void write_next(void *user, rill_status status) {
  struct cells *const cells = user;
  assert_int_equal(status, RILL_OK);
  cells->next++;
  for (uint32_t i = 0; i < 4; i++) cells->cell[i] = 10 * cells->next + i;
}

static void reads_what_an_earlier_host_call_has_written(void) {
  rill_graph graph = new_graph();
  rill_graph_node node;
  struct cells *const cells = need(calloc(1, sizeof *cells));
  assert_ok(rill_graph_add_host_call(graph, NULL, 0, write_next, cells, &node));
  node = add_copy(graph, &node, dut.memory, cells->cell, sizeof cells->cell);
  node = add_copy(graph, &node, dut.host, dut.memory, sizeof cells->cell);
  node = add_copy(graph, &node, dut.host + 4, cells->cell, sizeof cells->cell); /* copies on to pinned memory */
  rill_graph_exec exec = new_exec(graph);
  for (uint32_t launch = 1; launch < 5; launch++) {
    run_exec(exec);
    for (uint32_t i = 0; i < 4; i++) {
      assert_int_equal(dut.host[i], 10 * launch + i);
      assert_int_equal(dut.host[4 + i], 10 * launch + i);
    }
  }
  free(cells);
}

static void add_1000(void *user, rill_status status) {
  assert_int_equal(status, RILL_OK);
  *(uint32_t *)user += 1000;
}

static void writes_before_later_nodes_run(void) {
  rill_graph graph = new_graph();
  uint32_t *const cell = need(calloc(1, sizeof *cell)), *const other = need(calloc(1, sizeof *other));
  rill_graph_node node = add_write(graph, NULL, 0, 0, 7);
  node = add_copy(graph, &node, cell, dut.memory, sizeof *cell);
  assert_ok(rill_graph_add_host_call(graph, &node, 1, add_1000, cell, &node));
  node = add_copy(graph, &node, other, cell, sizeof *cell);
  assert_ok(rill_graph_add_host_call(graph, &node, 1, add_1000, other, &node));
  node = add_copy(graph, &node, dut.memory, other, sizeof *cell);
  (void)add_read(graph, &node, 1, 0);
  run_graph(graph);
  assert_int_equal(dut.host[0], 2007);
  free(cell);
  free(other);
}

/* Work of the stream reads what an earlier graph launch wrote. */
static void writes_before_later_work_of_the_stream(void) {
  rill_graph graph = new_graph();
  rill_stream stream = new_stream("runs the graph");
  uint32_t *const cell = need(calloc(1, sizeof *cell));
  rill_graph_node node = add_write(graph, NULL, 0, 0, 7);
  (void)add_copy(graph, &node, cell, dut.memory, sizeof *cell);
  rill_graph_exec exec = new_exec(graph);
  assert_ok(rill_graph_launch(exec, stream));
  assert_ok(rill_copy_async(stream, dut.memory + 1, cell, sizeof *cell));
  assert_ok(rill_copy_async(stream, dut.host, dut.memory + 1, sizeof *cell));
  assert_completes(stream);
  assert_int_equal(dut.host[0], 7);
  free(cell);
}

/* ---- rows ---- */

static bool is_row_byte(size_t i, size_t pitch, size_t width) { return i % pitch < width; }

/* Checks `rows`, whose pitch is `pitch`: the rows have the bytes that new_bytes makes from `seed` with the pitch
 * `from_pitch`, and the gaps are 0. */
static void assert_rows(const unsigned char *rows, size_t size, size_t pitch, size_t from_pitch, size_t width,
                        unsigned seed) {
  for (size_t i = 0; i < size; i++) {
    const unsigned char expected = is_row_byte(i, pitch, width) ? byte_at(i / pitch * from_pitch + i % pitch, seed) : 0;
    if (rows[i] != expected) fail_msg("byte %zu of rows is %u, not %u", i, rows[i], expected);
  }
}

static void keeps_the_gaps_between_rows(void) {
  enum { WIDTH = 24, HEIGHT = 5, PITCH = 40, TO_PITCH = 56, SIZE = (HEIGHT - 1) * TO_PITCH + WIDTH };
  rill_graph graph = new_graph();
  unsigned char *const from = new_bytes(HEIGHT * PITCH, 3), *const direct = need(calloc(1, SIZE)),
                       *const by_device = need(calloc(1, SIZE)), *const there = new_device_bytes(HEIGHT * 64);
  (void)add_rows(graph, NULL, direct, TO_PITCH, from, PITCH, WIDTH, HEIGHT);
  rill_graph_node node = add_rows(graph, NULL, there, 64, from, PITCH, WIDTH, HEIGHT);
  (void)add_rows(graph, &node, by_device, TO_PITCH, there, 64, WIDTH, HEIGHT);
  rill_graph_exec exec = new_exec(graph);
  for (unsigned seed = 3; seed < 6; seed++) {
    for (size_t i = 0; i < HEIGHT * PITCH; i++) from[i] = byte_at(i, seed);
    run_exec(exec);
    assert_rows(direct, SIZE, TO_PITCH, PITCH, WIDTH, seed);
    assert_rows(by_device, SIZE, TO_PITCH, PITCH, WIDTH, seed);
  }
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_free(there));
  free(from);
  free(direct);
  free(by_device);
}

/* Copies a box of pageable memory to the device and back, and directly to pageable memory. */
static void copies_boxes(const size_t size[3], size_t pitch, size_t slice) {
  const size_t bytes = slice * size[2], packed = size[0] * size[1] * size[2];
  rill_stream stream = new_stream("captures");
  unsigned char *const from = new_bytes(bytes, 1), *const to = need(calloc(1, bytes)),
                       *const there = new_device_bytes(packed), *const direct = need(calloc(1, packed));
  const rill_copy_3d up = {
    sizeof up, there, from, size[0], size[0] * size[1], pitch, slice, size[0], size[1], size[2]
  };
  const rill_copy_3d down = { sizeof down,       to,      there,   pitch,  slice, size[0],
                              size[0] * size[1], size[0], size[1], size[2] };
  rill_copy_3d to_host = up;
  rill_graph graph;
  to_host.dst = direct;
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_THREAD));
  assert_ok(rill_copy_3d_async(stream, &up));
  assert_ok(rill_copy_3d_async(stream, &down));
  assert_ok(rill_copy_3d_async(stream, &to_host));
  assert_ok(rill_stream_capture_end(stream, &graph));
  keep_graph_until_end(graph);
  run_graph(graph);
  for (size_t i = 0; i < bytes; i++) {
    const size_t z = i / slice, y = i % slice / pitch, x = i % slice % pitch;
    const bool inside = x < size[0] && y < size[1];
    if (to[i] != (inside ? from[i] : 0)) fail_msg("byte %zu of a box is %u", i, to[i]);
    if (inside && direct[(z * size[1] + y) * size[0] + x] != from[i]) fail_msg("byte %zu of a box is missing", i);
  }
  assert_ok(rill_free(there));
  free(from);
  free(to);
  free(direct);
}

static void copies_three_dimensions(void) {
  needs_graphs();
  copies_boxes((size_t[]){ 24, 5, 3 }, 40, 240);
  copies_boxes((size_t[]){ 24, 5, 3 }, 40, 250); /* the slice pitch is not a multiple of the row pitch */
}

static void copies_large_boxes(void) {
  needs_graphs();
  copies_boxes((size_t[]){ 1000, 300, 17 }, 1024, 1024 * 310);        /* several slices in one piece */
  copies_boxes((size_t[]){ 3000, 1700, 2 }, 3001, 3001 * 1700);       /* several rows in one piece */
  copies_boxes((size_t[]){ (4 << 20) + 3, 2, 1 }, 5 << 20, 10 << 20); /* less than a row in one piece */
}

static void copies_more_than_is_staged_at_once(void) {
  rill_graph graph = new_graph();
  unsigned char *const from = new_bytes(LARGE, 1), *const to = need(malloc(LARGE)),
                       *const there = new_device_bytes(LARGE);
  rill_graph_node node = add_copy(graph, NULL, there, from, LARGE);
  (void)add_copy(graph, &node, to, there, LARGE);
  rill_graph_exec exec = new_exec(graph);
  for (unsigned seed = 1; seed < 3; seed++) {
    for (size_t i = 0; i < LARGE; i++) from[i] = byte_at(i, seed);
    memset(to, 0, LARGE);
    run_exec(exec);
    assert_memory_equal(to, from, LARGE);
  }
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_free(there));
  free(from);
  free(to);
}

/* ---- launches and changes ---- */

/* Each launch reads what the previous launch wrote, on any stream. */
static void launches_on_two_streams_do_not_overlap(void) {
  rill_graph graph = new_graph();
  rill_stream streams[2] = { new_stream("first"), new_stream("second") };
  uint32_t *const cell = need(calloc(1, sizeof *cell));
  rill_graph_node node = add_copy(graph, NULL, dut.memory, cell, sizeof *cell);
  node = add_increment(graph, &node, 1, dut.memory, NULL);
  (void)add_copy(graph, &node, cell, dut.memory, sizeof *cell);
  rill_graph_exec exec = new_exec(graph);
  struct gate *gate = gate_close(streams[0]);
  for (unsigned i = 0; i < 20; i++) assert_ok(rill_graph_launch(exec, streams[i % 2]));
  gate_open(gate);
  for (unsigned i = 0; i < 2; i++) assert_completes(streams[i]);
  assert_int_equal(*cell, 20);
  free(cell);
}

/* Changes the copy to other pageable memory, to pinned memory, and back. */
static void changes_one_copy(void) {
  rill_graph graph = new_graph();
  uint32_t *const cells = need(calloc(4, sizeof *cells));
  for (uint32_t i = 0; i < 4; i++) cells[i] = 10 + i;
  dut.host[1] = 77;
  const rill_graph_node in = add_copy(graph, NULL, dut.memory, cells, sizeof *cells);
  (void)add_copy(graph, &in, dut.host, dut.memory, sizeof *cells);
  rill_graph_exec exec = new_exec(graph);
  const uint32_t *const sources[] = { cells + 1, dut.host + 1, cells + 2, cells + 3, dut.host + 1 };
  run_exec(exec);
  assert_int_equal(dut.host[0], 10);
  for (unsigned i = 0; i < sizeof sources / sizeof *sources; i++) {
    assert_ok(rill_graph_exec_set_copy(exec, in, dut.memory, sources[i], sizeof *cells));
    run_exec(exec);
    assert_int_equal(dut.host[0], *sources[i]);
  }
  free(cells);
}

static void a_change_leaves_earlier_launches_alone(void) {
  rill_graph graphs[3];
  rill_stream stream = new_stream("runs the graph");
  uint32_t *const cells = need(calloc(3, sizeof *cells));
  for (unsigned i = 0; i < 3; i++) {
    graphs[i] = new_graph();
    cells[i] = 10 + i;
    const rill_graph_node in = add_copy(graphs[i], NULL, dut.memory + i, cells + i, sizeof *cells);
    (void)add_copy(graphs[i], &in, dut.host + i, dut.memory + i, sizeof *cells);
  }
  rill_graph_exec exec = new_exec(graphs[0]);
  struct gate *gate = gate_close(stream);
  for (unsigned i = 0; i < 3; i++) {
    if (i > 0) assert_ok(rill_graph_update(exec, graphs[i]));
    assert_ok(rill_graph_launch(exec, stream));
  }
  assert_ok(rill_graph_release(graphs[0]));
  gate_open(gate);
  assert_completes(stream);
  for (unsigned i = 0; i < 3; i++) assert_int_equal(dut.host[i], 10 + i);
  free(cells);
}

/* Capturing a launch creates nodes from the object's steps; the nodes outlive the object. */
static void is_launched_in_a_capture(void) {
  rill_graph graph = new_graph(), captured;
  rill_stream stream = new_stream("captures");
  uint32_t *const cell = need(calloc(1, sizeof *cell));
  const rill_graph_node in = add_copy(graph, NULL, dut.memory, cell, sizeof *cell);
  (void)add_read(graph, &in, 1, 0);
  rill_graph_exec exec = new_exec(graph);
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_THREAD));
  assert_ok(rill_graph_launch(exec, stream));
  assert_ok(rill_stream_capture_end(stream, &captured));
  keep_graph_until_end(captured);
  assert_ok(rill_graph_exec_release(exec));
  *cell = 5;
  run_graph(captured);
  assert_int_equal(dut.host[0], 5);
  free(cell);
}

TESTS_ON_EACH_DEVICE("graphs with pageable memory", TEST(reads_what_an_earlier_host_call_has_written),
                     TEST(writes_before_later_nodes_run), TEST(writes_before_later_work_of_the_stream),
                     TEST(keeps_the_gaps_between_rows), TEST(copies_three_dimensions), TEST(copies_large_boxes),
                     TEST(copies_more_than_is_staged_at_once), TEST(launches_on_two_streams_do_not_overlap),
                     TEST(changes_one_copy), TEST(a_change_leaves_earlier_launches_alone),
                     TEST(is_launched_in_a_capture))
