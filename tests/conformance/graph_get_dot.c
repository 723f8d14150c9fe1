/* rill_graph_get_dot */
#include "graphs.h"

static rill_status get(uint64_t id) {
  size_t size = 0;
  return rill_graph_get_dot((rill_graph){ id }, NULL, &size);
}

static void refuses_bad_handles(void) {
  refuses_bad_graphs("rill_graph_get_dot", get);
  rill_graph graph = new_graph();
  char text[4];
  size_t size = 4;
  assert_fails(rill_graph_get_dot(graph, text, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_get_dot(graph, NULL, &size), RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(size, 0);
}

static void contains(const char *text, const char *part) {
  if (strstr(text, part) == NULL) fail_msg("\"%s\" is not in:\n%s", part, text);
}

/* G35: each node is described for a human reader. */
static void describes_nodes(void) {
  rill_graph graph = new_graph();
  rill_graph_node first = add_write(graph, NULL, 0, 0, 1), last = first;
  char text[4096];
  size_t size = sizeof text;
  last = add_increment(graph, &last, 1, dut.memory, "a \"label\"\n");
  last = add_read(graph, &last, 1, 0);
  assert_ok(rill_graph_add_copy_2d(graph, &last, 1, dut.memory, 32, dut.memory + 64, 32, 8, 3, &last));
  assert_ok(rill_graph_get_dot(graph, text, &size));
  assert_int_equal(size, strlen(text) + 1);
  assert_memory_equal(text, "digraph ", 8);
  contains(text, "0: fill\\n1 x 1 patterns of 4 bytes");
  contains(text, "1: kernel\\na \\\"label\\\" \\nincrement\\n1 x 1 x 1 blocks of 1 x 1 x 1");
  contains(text, "2: copy\\n4 bytes");
  contains(text, "3: copy\\n8 x 3 x 1 bytes");
  contains(text, "n0 -> n1;");
  contains(text, "n2 -> n3;\n}\n");
}

/* G35 */
static void writes_as_much_as_fits(void) {
  rill_graph graph = new_graph();
  char complete[512], part[512];
  size_t size = 0, all = sizeof complete;
  add_write(graph, NULL, 0, 0, 1);
  assert_ok(rill_graph_get_dot(graph, complete, &all));
  assert_ok(rill_graph_get_dot(graph, NULL, &size));
  assert_int_equal(size, all);
  for (size_t room = 1; room <= all; room++) {
    memset(part, 'x', sizeof part);
    size = room;
    assert_ok(rill_graph_get_dot(graph, part, &size));
    assert_int_equal(size, all);
    assert_memory_equal(part, complete, room - 1);
    assert_int_equal(part[room - 1], 0);
    assert_int_equal(part[room], 'x');
  }
}

TESTS_ON_EACH_DEVICE("rill_graph_get_dot", TEST(refuses_bad_handles), TEST(describes_nodes),
                     TEST(writes_as_much_as_fits))
