/* Random changes of an execution object while the driver refuses some of the calls that they take: a change is
 * complete, or the object is unchanged (C7.2). Each node adds to its own cell or writes one, so a launch shows the
 * object's state. RILL_STRESS_SEED repeats a run. */
#include "tour.h"

#include "gate.rill.h"

#include <stdio.h>
#include <stdlib.h>

enum { NODES = 12, CHAINS = 3, ROUNDS = 60, CHANGES = 12, REFUSED = 1 };
enum kind { KERNEL, FILL, COPY, CALL, KINDS };

enum { VALUES = 100 };

struct node {
  enum kind kind;
  unsigned value; /* a kernel: which of its two cells; else what is written */
  bool pageable;  /* COPY: from pageable memory */
};

static struct {
  unsigned random, seed;
  rill_stream stream;
  rill_kernel increment;
  uint32_t *cells, *values;     /* pinned; two cells for each node; values[i] is i */
  uint32_t pageable[VALUES];    /* as values */
  uint32_t model[2 * NODES];    /* of cells */
  uint32_t called, last_called; /* by host calls: how many, the sum of their values */
  rill_graph_node made[NODES];
} all;

static unsigned pick(unsigned below) {
  all.random = all.random * 1664525u + 1013904223u;
  return (all.random >> 8) % below;
}

static void count_call(void *user, rill_status status) {
  assert_int_equal(status, RILL_OK);
  all.last_called += *(const uint32_t *)user;
  all.called++;
}

static void choose_value(struct node *node) {
  node->value = node->kind == KERNEL ? pick(2) : 1 + pick(VALUES - 1);
  node->pageable = pick(2) == 0;
}

static const uint32_t *source_of(const struct node *node) {
  return (node->pageable ? all.pageable : all.values) + node->value;
}

static rill_graph build(const struct node *nodes, rill_graph_node *made) {
  const rill_launch shape = rill_launch_1d(1, 1);
  rill_graph graph;
  assert_ok(rill_graph_create(vendor.device, &graph));
  for (unsigned i = 0; i < NODES; i++) {
    uint32_t *const cell = all.cells + (size_t)2 * i;
    const uint32_t value = nodes[i].value;
    const rill_graph_node *after = i >= CHAINS ? &made[i - CHAINS] : NULL;
    switch (nodes[i].kind) {
      case KERNEL:
        assert_ok(rill_graph_add_kernel(graph, after, after != NULL, all.increment, &shape, RILL_ARGS(cell + value),
                                        &made[i]));
        break;
      case FILL: assert_ok(rill_graph_add_fill(graph, after, after != NULL, cell, &value, 4, 1, &made[i])); break;
      case COPY:
        assert_ok(rill_graph_add_copy(graph, after, after != NULL, cell, source_of(&nodes[i]), 4, &made[i]));
        break;
      default:
        assert_ok(rill_graph_add_host_call(graph, after, after != NULL, count_call, all.values + value, &made[i]));
        break;
    }
  }
  return graph;
}

static void launch_and_compare(rill_graph_exec exec, const struct node *nodes, unsigned round) {
  uint32_t called = 0, sum = 0;
  all.called = all.last_called = 0;
  assert_ok(rill_graph_launch(exec, all.stream));
  assert_ok(rill_stream_synchronize(all.stream));
  for (unsigned i = 0; i < NODES; i++) {
    if (nodes[i].kind == KERNEL) all.model[2 * i + nodes[i].value]++;
    if (nodes[i].kind == FILL || nodes[i].kind == COPY) all.model[2 * i] = nodes[i].value;
    called += nodes[i].kind == CALL;
    sum += nodes[i].kind == CALL ? nodes[i].value : 0;
  }
  for (unsigned i = 0; i < 2 * NODES; i++) {
    if (all.cells[i] != all.model[i]) {
      fail_msg("seed %u, round %u: cell %u is %u, the model has %u", all.seed, round, i, all.cells[i], all.model[i]);
    }
  }
  if (all.called != called || all.last_called != sum) {
    fail_msg("seed %u, round %u: %u calls, sum %u; the model has %u, %u", all.seed, round, all.called, all.last_called,
             called, sum);
  }
}

/* Some calls of those that changes may take, in one of their next uses. */
static void refuse_some(void) {
  static const char *const of_both[] = { "graph_set_kernel", "graph_create", "graph_add_kernel", "graph_instantiate" };
  static const char *const of_cuda[] = { "graph_update", "graph_set_copy", "graph_set_fill", "graph_set_host" };
  if (pick(4) == 0) vendor.fake->fail_call(vendor_name("graph_add_host"), 1 + pick(3), REFUSED);
  if (pick(4) == 0) {
    vendor.fake->fail_call(vendor_name(vendor.cuda ? "pointer_attribute" : "pointer_attributes"), 1 + pick(3), REFUSED);
  }
  for (size_t i = 0; i < 4; i++) {
    if (pick(3) == 0) vendor.fake->fail_call(vendor_name(of_both[i]), 1 + pick(2), REFUSED);
    if (vendor.cuda && pick(2) == 0) vendor.fake->fail_call(vendor_name(of_cuda[i]), 1 + pick(4), REFUSED);
  }
}

static rill_status set_one(rill_graph_exec exec, struct node *node, unsigned i) {
  uint32_t *cell = all.cells + (size_t)2 * i;
  choose_value(node);
  const uint32_t value = node->value;
  if (node->kind == FILL) return rill_graph_exec_set_fill(exec, all.made[i], cell, &value, 4, 1);
  if (node->kind == COPY) return rill_graph_exec_set_copy(exec, all.made[i], cell, source_of(node), 4);
  cell += value;
  return rill_graph_exec_set_kernel_arg(exec, all.made[i], 0, &cell, sizeof cell);
}

static rill_status change(rill_graph_exec exec, struct node *nodes) {
  const unsigned i = pick(NODES);
  if (pick(3) == 0 && nodes[i].kind != CALL) {
    refuse_some();
    return set_one(exec, &nodes[i], i);
  }
  rill_graph_node others[NODES];
  for (unsigned k = 0; k < NODES; k++) {
    if (pick(2) == 0) choose_value(&nodes[k]);
  }
  const rill_graph graph = build(nodes, others);
  refuse_some();
  const rill_status status = rill_graph_update(exec, graph);
  assert_ok(rill_graph_release(graph));
  return status;
}

struct counts {
  unsigned made, refused, half; /* half: refused after a part */
};

/* The driver's object is returned when it matches rill's. */
static bool is_half_changed(rill_graph_exec exec) {
  uintptr_t native = 0;
  assert_ok(rill_graph_exec_native(exec, &native));
  return native == 0;
}

static void run_round(unsigned round, struct counts *counts) {
  struct node nodes[NODES], changed[NODES];
  rill_graph_exec exec;
  for (unsigned i = 0; i < NODES; i++) {
    nodes[i].kind = round % 3 == 0 ? KERNEL : (enum kind)pick(KINDS);
    choose_value(&nodes[i]);
  }
  const rill_graph graph = build(nodes, all.made);
  assert_ok(rill_graph_instantiate(graph, &exec));
  for (unsigned i = 0; i < CHANGES; i++) {
    memcpy(changed, nodes, sizeof nodes);
    const bool taken = change(exec, changed) == RILL_OK;
    vendor.fake->clear();
    if (taken) memcpy(nodes, changed, sizeof nodes);
    *(taken ? &counts->made : &counts->refused) += 1;
    counts->half += is_half_changed(exec);
    if (pick(4) != 0) launch_and_compare(exec, nodes, round);
  }
  launch_and_compare(exec, nodes, round);
  assert_false(is_half_changed(exec));
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_graph_release(graph));
}

static void changes_are_complete_or_none(void) {
  const char *text = getenv("RILL_STRESS_SEED");
  struct counts counts = { 0, 0, 0 };
  all.seed = text != NULL ? (unsigned)strtoul(text, NULL, 10) : 1;
  all.random = all.seed * 2654435761u;
  if (!vendor.has_kernels) skip_because("no kernels for this vendor");
  rill_module module;
  assert_ok(rill_stream_create(vendor.device, NULL, &all.stream));
  assert_ok(rill_module_load(vendor.device, &gate_bundle, &module));
  assert_ok(rill_module_get_kernel(module, "increment", &all.increment));
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_PINNED, 2 * NODES, &all.cells));
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_PINNED, VALUES, &all.values));
  memset(all.cells, 0, sizeof all.model);
  for (uint32_t i = 0; i < VALUES; i++) all.values[i] = all.pageable[i] = i;
  for (unsigned round = 0; round < ROUNDS; round++) run_round(round, &counts);
  print_message("%u changes made, %u refused, %u half way\n", counts.made, counts.refused, counts.half);
  assert_true(counts.made > 0 && counts.refused > 0 && counts.half > 0);
  assert_ok(rill_free(all.cells));
  assert_ok(rill_free(all.values));
  assert_ok(rill_kernel_release(all.increment));
  assert_ok(rill_module_release(module));
  assert_ok(rill_stream_release(all.stream));
}

/* Only those of many nodes that differ are changed; on HIP only kernels are changed in this way. */
static void an_update_changes_what_differs(void) {
  struct node nodes[NODES];
  rill_graph_node others[NODES];
  rill_graph_exec exec;
  if (!vendor.has_kernels) skip_because("no kernels for this vendor");
  rill_module module;
  assert_ok(rill_module_load(vendor.device, &gate_bundle, &module));
  assert_ok(rill_module_get_kernel(module, "increment", &all.increment));
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_PINNED, 2 * NODES, &all.cells));
  for (unsigned i = 0; i < NODES; i++) nodes[i] = (struct node){ i % 2 == 0 || !vendor.cuda ? KERNEL : FILL, 1, false };
  const rill_graph graph = build(nodes, others);
  assert_ok(rill_graph_instantiate(graph, &exec));
  nodes[4].value = 0;
  nodes[7].value = vendor.cuda ? 5 : 0;
  const rill_graph other = build(nodes, others);
  const uint64_t kernels = vendor_calls("graph_set_kernel");
  const uint64_t fills = vendor.cuda ? vendor_calls("graph_set_fill") : 0;
  const uint64_t graphs = vendor_calls("graph_create");
  assert_ok(rill_graph_update(exec, other));
  assert_int_equal(vendor_calls("graph_set_kernel") - kernels, vendor.cuda ? 1 : 2);
  if (vendor.cuda) assert_int_equal(vendor_calls("graph_set_fill") - fills, 1);
  assert_int_equal(vendor_calls("graph_create") - graphs, 0);
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_graph_release(graph));
  assert_ok(rill_graph_release(other));
  assert_ok(rill_free(all.cells));
  assert_ok(rill_kernel_release(all.increment));
  assert_ok(rill_module_release(module));
}

static rill_graph_node add_copy(rill_graph graph, void *dst, const void *src, size_t n) {
  rill_graph_node node;
  assert_ok(rill_graph_add_copy(graph, NULL, 0, dst, src, n, &node));
  return node;
}

/* C1.3, C7.1: a copy with pageable memory is staged in pinned memory, which the driver may refuse, and which goes back
 * to it. */
static void without_pinned_memory_an_object_stays_as_it_is(void) {
  enum { LARGE = 5 << 20, NO_MEMORY = 2 };
  static unsigned char large[LARGE];
  unsigned char *there = NULL, *seen = NULL;
  rill_graph graph, other;
  rill_graph_exec exec, none;
  rill_stream stream;
  assert_ok(rill_stream_create(vendor.device, NULL, &stream));
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_DEVICE, LARGE, &there));
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_PINNED, LARGE, &seen));
  assert_ok(rill_graph_create(vendor.device, &graph));
  assert_ok(rill_graph_create(vendor.device, &other));
  const rill_graph_node node = add_copy(graph, there, seen, 1);
  (void)add_copy(other, there, large, LARGE);
  assert_ok(rill_graph_instantiate(graph, &exec));
  assert_ok(rill_device_synchronize(vendor.device)); /* unused staging buffers are returned to the driver */
  const size_t alive = vendor.fake->live("memory");
  vendor.fake->fail_call(vendor_name("host_alloc"), 0, NO_MEMORY);
  assert_fails(rill_graph_exec_set_copy(exec, node, there, large, LARGE), RILL_ERROR_OUT_OF_MEMORY);
  assert_says("staging buffer of 4194304 bytes");
  assert_fails(rill_graph_update(exec, other), RILL_ERROR_OUT_OF_MEMORY);
  assert_fails(rill_graph_instantiate(other, &none), RILL_ERROR_OUT_OF_MEMORY);
  seen[0] = 7;
  assert_ok(rill_graph_launch(exec, stream));
  assert_ok(rill_copy_async(stream, seen + 1, there, 1));
  assert_ok(rill_stream_synchronize(stream));
  assert_int_equal(seen[1], 7);
  vendor.fake->clear();
  assert_ok(rill_graph_update(exec, other));
  memset(large, 9, LARGE);
  assert_ok(rill_graph_launch(exec, stream));
  assert_ok(rill_copy_async(stream, seen, there, LARGE));
  assert_ok(rill_stream_synchronize(stream));
  assert_memory_equal(seen, large, LARGE);
  assert_true(vendor.fake->live("memory") > alive);
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_device_synchronize(vendor.device));
  assert_int_equal(vendor.fake->live("memory"), alive);
  assert_ok(rill_graph_release(graph));
  assert_ok(rill_graph_release(other));
  assert_ok(rill_free(there));
  assert_ok(rill_free(seen));
  assert_ok(rill_stream_release(stream));
}

/* AMD's runtime frees memory for arguments with the execution object alone, so another takes its place after some
 * changes.  If it cannot be made, the old one is as before. */
static void an_object_takes_a_limited_number_of_changes(void) {
  enum { MOST = 64, TIMES = 3, OUT_OF_MEMORY = 2 };
  const struct node node = { KERNEL, 0, false };
  struct node nodes[NODES];
  rill_graph_exec exec;
  rill_module module;
  if (!vendor.has_kernels || vendor.cuda) skip_because("changes cost memory on HIP alone");
  assert_ok(rill_stream_create(vendor.device, NULL, &all.stream));
  assert_ok(rill_module_load(vendor.device, &gate_bundle, &module));
  assert_ok(rill_module_get_kernel(module, "increment", &all.increment));
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_PINNED, 2 * NODES, &all.cells));
  memset(all.cells, 0, sizeof all.model);
  memset(all.model, 0, sizeof all.model);
  for (unsigned i = 0; i < NODES; i++) nodes[i] = node;
  const rill_graph graph = build(nodes, all.made);
  assert_ok(rill_graph_instantiate(graph, &exec));
  const uint64_t sets = vendor_calls("graph_set_kernel"), objects = vendor_calls("graph_instantiate");
  for (unsigned i = 0; i < TIMES * (MOST + 1); i++) {
    uint32_t *const cell = all.cells + (i + 1) % 2;
    if (i % (MOST + 1) == MOST) {
      vendor.fake->fail_call(vendor_name("graph_instantiate"), 1, OUT_OF_MEMORY);
      assert_int_equal(rill_graph_exec_set_kernel_arg(exec, all.made[0], 0, &cell, sizeof cell),
                       RILL_ERROR_OUT_OF_MEMORY);
      assert_false(is_half_changed(exec));
      launch_and_compare(exec, nodes, i);
    }
    assert_ok(rill_graph_exec_set_kernel_arg(exec, all.made[0], 0, &cell, sizeof cell));
    nodes[0].value = (i + 1) % 2;
    if (i % 16 == 0) launch_and_compare(exec, nodes, i);
  }
  launch_and_compare(exec, nodes, 0);
  assert_int_equal(vendor_calls("graph_set_kernel") - sets, TIMES * MOST);
  assert_int_equal(vendor_calls("graph_instantiate") - objects, 2 * TIMES);
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_graph_release(graph));
  assert_ok(rill_free(all.cells));
  assert_ok(rill_kernel_release(all.increment));
  assert_ok(rill_module_release(module));
  assert_ok(rill_stream_release(all.stream));
}

TESTS_ONCE("graph changes that the driver refuses", TEST(vendor_begin), TEST(changes_are_complete_or_none),
           TEST(an_update_changes_what_differs), TEST(without_pinned_memory_an_object_stays_as_it_is),
           TEST(an_object_takes_a_limited_number_of_changes))
