#include "core/graph/dot.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct dot {
  char *text;
  size_t room, used; /* used: also counts the characters that did not fit */
};

static void write_char(struct dot *dot, char c) {
  if (dot->used + 1 < dot->room) dot->text[dot->used] = c;
  dot->used++;
}

static void write_words(struct dot *dot, const char *text) {
  while (*text != '\0') write_char(dot, *text++);
}

/* Writes text inside quotes. */
static void write_quoted(struct dot *dot, const char *text) {
  for (; *text != '\0'; text++) {
    if (*text == '"' || *text == '\\') write_char(dot, '\\');
    write_char(dot, (unsigned char)*text < ' ' ? ' ' : *text);
  }
}

static void write_formatted(struct dot *dot, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void write_formatted(struct dot *dot, const char *format, ...) {
  char text[200];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(text, sizeof text, format, args);
  va_end(args);
  write_words(dot, text);
}

static void write_launch(struct dot *dot, const struct rill__operation *operation) {
  const struct rill__launch *launch = &operation->launch;
  if (operation->label != NULL) {
    write_words(dot, "\\n");
    write_quoted(dot, launch->kernel->name);
  }
  write_formatted(dot, "\\n%u x %u x %u blocks of %u x %u x %u", launch->grid[0], launch->grid[1], launch->grid[2],
                  launch->block[0], launch->block[1], launch->block[2]);
  if (launch->shared_mem_bytes > 0) write_formatted(dot, "\\n%u bytes of shared memory", launch->shared_mem_bytes);
}

static void write_copy(struct dot *dot, const struct rill__copy_3d *copy) {
  if (copy->height <= 1 && copy->depth <= 1) {
    write_formatted(dot, "\\n%zu bytes", copy->width);
  } else {
    write_formatted(dot, "\\n%zu x %zu x %zu bytes", copy->width, copy->height, copy->depth);
  }
  write_formatted(dot, "\\n%p to %p", copy->src, copy->dst);
}

static void write_node(struct dot *dot, const struct rill__graph_node *node) {
  const struct rill__operation *operation = node->operation;
  const char *name = rill__operation_name(operation);
  write_formatted(dot, "  n%u [label=\"%u: %s", node->index, node->index, rill__node_kind_name(operation->kind));
  if (name != NULL) {
    write_words(dot, "\\n");
    write_quoted(dot, name);
  }
  switch (operation->kind) {
    case RILL_NODE_KERNEL: write_launch(dot, operation); break;
    case RILL_NODE_COPY: write_copy(dot, &operation->copy); break;
    case RILL_NODE_FILL:
      write_formatted(dot, "\\n%zu x %zu patterns of %zu bytes\\nto %p", operation->fill.rows.width,
                      operation->fill.rows.height, operation->fill.rows.pattern_size, operation->fill.rows.dst);
      break;
    case RILL_NODE_ALLOC:
    case RILL_NODE_FREE: write_formatted(dot, "\\n%p", operation->memory); break;
    default: break;
  }
  write_words(dot, "\"];\n");
}

size_t rill__graph_dot(const struct rill__graph *graph, char *text, size_t room) {
  struct dot dot = { text, room, 0 };
  write_words(&dot, "digraph rill {\n  node [shape=box];\n");
  for (uint32_t i = 0; i < graph->count; i++) write_node(&dot, graph->nodes[i]);
  for (uint32_t i = 0; i < graph->count; i++) {
    const struct rill__graph_node *node = graph->nodes[i];
    for (uint32_t k = 0; k < node->after_count; k++) write_formatted(&dot, "  n%u -> n%u;\n", node->after[k], i);
  }
  write_words(&dot, "}\n");
  if (room > 0) text[dot.used < room ? dot.used : room - 1] = '\0';
  return dot.used + 1;
}
