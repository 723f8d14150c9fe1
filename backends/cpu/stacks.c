/* Computes the stack that the kernels of an image compiled at run time need.
 *
 * The compiler reports the frame size of each function, but not the call graph.  Each kernel is one function.  The sum
 * of all other frames is an upper bound of what a call chain needs, except with recursion, which only the stack's guard
 * catches.  rillcc computes a tighter bound (tools/rillcc_lib/stacks.py, which also explains the constants added here).
 */
#include "backends/cpu/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT = 8 << 20, RESERVE = 16 << 10, FRAME = 128 };

static bool text_contains(const char *text, size_t length, const char *word) {
  const char *const found = strstr(text, word);
  return found != NULL && found + strlen(word) <= text + length;
}

/* Lines have the form "place:function TAB bytes TAB kind".  The functions of kernels are instances of one template. */
bool rill__cpu_stacks_read(const char *sizes, uint64_t *need, char *why, size_t why_size) {
  uint64_t kernel = 0, others = 0;
  for (const char *line = sizes; *line != '\0';) {
    const size_t length = strcspn(line, "\n"), name = strcspn(line, "\t");
    const char *const next = line + length + (line[length] == '\n');
    if (name < length) {
      char *kind = NULL;
      const uint64_t bytes = strtoull(line + name + 1, &kind, 10) + FRAME;
      if (kind < line + length && strncmp(kind, "\tdynamic", 8) == 0 && (kind[8] == '\n' || kind[8] == '\0')) {
        (void)snprintf(
            why, why_size,
            "%.*s: error: its stack frame has no fixed size: it uses alloca, or an array whose size is known "
            "only at run time",
            name < 100 ? (int)name : 100, line);
        return false;
      }
      if (text_contains(line, name, "rill_host_forms")) {
        kernel = bytes > kernel ? bytes : kernel;
      } else {
        others += bytes;
      }
    }
    line = next;
  }
  *need = kernel + others + RESERVE;
  if (*need <= LIMIT) return true;
  (void)snprintf(why, why_size, "error: a kernel needs %llu bytes of stack, but the limit is %d: an array is too large",
                 (unsigned long long)*need, LIMIT);
  return false;
}

void rill__cpu_stacks_write(void *image, size_t size, uint64_t need) {
  static const char mark[16] = RILL_CPU_STACKS_MARK;
  char *const place = memmem(image, size, mark, sizeof mark);
  const size_t left = place != NULL ? size - (size_t)(place - (char *)image) : 0;
  if (left >= sizeof mark + 2 * sizeof need) memcpy(place + sizeof mark + sizeof need, &need, sizeof need);
}
