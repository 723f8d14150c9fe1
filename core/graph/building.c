#include "core/graph/building.h"

#include "core/device/life.h"

#include <stdlib.h>

rill_status rill__find_node_of(const struct rill__graph *graph, rill_graph_node node, const char *what,
                               struct rill__graph_node **out) {
  RILL_TRY(rill__graph_node_find(node, what, graph, out));
  RILL_REQUIRE(rill__graph_of(*out) == graph, RILL_ERROR_INVALID_ARGUMENT,
               "%s 0x%llx is a node of graph 0x%llx, not of graph 0x%llx", what, (unsigned long long)node.id,
               (unsigned long long)rill__graph_of(*out)->base.id, (unsigned long long)graph->base.id);
  return RILL_OK;
}

rill_status rill__graph_fail_device(const struct rill__graph *graph, const struct rill__object *other) {
  RILL_TRY(rill__check_same_backend(&graph->base, other));
  return rill__fail(RILL_ERROR_WRONG_DEVICE,
                    "%s belongs to %s, and the graph to %s: as of version %d.%d all nodes of a graph must belong to "
                    "one device" RILL_HINT "create a graph for each device, and order their launches with events",
                    rill__name_of(other).text, other->device->name, graph->base.device->name, RILL_VERSION_MAJOR,
                    RILL_VERSION_MINOR);
}

rill_status rill__graph_check_event(const struct rill__graph *graph, const struct rill__event *event, bool records) {
  if (!records) return rill__check_same_backend(&graph->base, &event->base);
  RILL_TRY(rill__graph_check_device(graph, &event->base));
  RILL_REQUIRE(!rill__core(event)->cached, RILL_ERROR_INVALID_ARGUMENT,
               "%s is the cached event of a stream" RILL_HINT "record an event of your own",
               rill__name_of(&event->base).text);
  return RILL_OK;
}

rill_status rill__building_find_after(struct rill__building *building, const rill_graph_node *after, size_t count) {
  struct rill__capture_member *member = &building->stream.member;
  RILL_REQUIRE(after != NULL || count == 0, RILL_ERROR_INVALID_ARGUMENT, "after is NULL, but after_count is %zu",
               count);
  member->after = building->few;
  member->room = sizeof building->few / sizeof *building->few;
  if (count > member->room) {
    const bool fits = count <= SIZE_MAX / sizeof(struct rill__graph_node *);
    struct rill__graph_node **after_nodes = fits ? malloc(count * sizeof(struct rill__graph_node *)) : NULL;
    RILL_REQUIRE(after_nodes != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for %zu nodes", count);
    member->after = after_nodes;
    member->room = count;
  }
  for (size_t i = 0; i < count; i++)
    RILL_TRY(rill__find_node_of(building->graph, after[i], "after", &member->after[i]));
  member->count = count;
  return RILL_OK;
}

rill_status rill__building_check(const struct rill__building *building) {
  RILL_REQUIRE(building->out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  return rill__check_usable(building->graph->base.device);
}

rill_status rill__building_finish(struct rill__building *building, rill_status status) {
  struct rill__operation *empty = NULL;
  bool taken = false;
  RILL_TRY(status);
  if (building->stream.member.last == NULL) {
    RILL_TRY(rill__operation_empty(building->graph->base.device, &empty));
    RILL_TRY(rill__capture_add(&building->stream.stream, empty, &taken));
  }
  building->node.id = rill__node_id(building->stream.member.last);
  return RILL_OK;
}

void rill__building_end(struct rill__building *building) {
  if (building->stream.member.after != building->few) free(building->stream.member.after);
  if (building->out != NULL) *building->out = building->node;
}
