#include "order/rig.h"

#include "order/watching.h"

#include <stdio.h>
#include <string.h>

rill_graph_exec graph_of_fill(void *p) {
  rill_graph graph;
  rill_graph_exec exec;
  rill_graph_node node;
  assert_ok(rill_graph_create(dut.device, &graph));
  keep_graph_until_end(graph);
  assert_ok(rill_graph_add_fill(graph, NULL, 0, p, &zero, 1, N, &node));
  assert_ok(rill_graph_instantiate(graph, &exec));
  keep_exec_until_end(exec);
  return exec;
}

void run_bug(const struct planted *bug, bool right) {
  char labels[4][64];
  for (unsigned i = 0; i < 4; i++) {
    (void)snprintf(labels[i], sizeof labels[i], "%.40s %c%s", bug->name, "abcd"[i], right ? "'" : "");
  }
  struct rig r = { .right = right,
                   .a = new_stream(labels[0]),
                   .b = new_stream(labels[1]),
                   .c = new_stream(labels[2]),
                   .event = new_event("event"),
                   .other = new_event("other"),
                   .name = labels[3] };
  void *device = NULL, *pinned = NULL;
  assert_ok(rill_alloc(dut.device, 2 * N, RILL_MEMORY_DEVICE, &device));
  assert_ok(rill_alloc(dut.device, 2 * N, RILL_MEMORY_PINNED, &pinned));
  memset(pinned, 0, 2 * N);
  r.device = device;
  r.device2 = r.device + N;
  r.pinned = pinned;
  r.pinned2 = r.pinned + N;
  watch_begin();
  bug->run(&r);
  assert_ok(rill_device_synchronize(dut.device));
  const char *said = watch_end();
  assert_ok(rill_free(device));
  assert_ok(rill_free(pinned));
  if (right && said[0] != '\0') fail_msg("%s, in its right form: %s", bug->name, said);
  if (!right && strstr(said, bug->says) == NULL) fail_msg("%s: \"%s\" is not in: %s", bug->name, bug->says, said);
  if (!right && strstr(said, "possible") != NULL) fail_msg("%s: %s", bug->name, said);
  if (!right && strstr(said, bug->name) == NULL) fail_msg("%s: no stream is named in: %s", bug->name, said);
}
