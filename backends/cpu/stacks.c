/* How much stack the kernels of an image need that was compiled at run time.
 *
 * The compiler tells the frame of each function, but not who calls whom.  Each kernel is one function, and all others
 * together are the most that one can be in at a time, unless they call themselves: that, only the guard of the stack
 * finds.  rillcc looks closer (tools/rillcc_lib/stacks.py, which says the same of what is added here). */
#include "backends/cpu/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT = 8 << 20, RESERVE = 16 << 10, FRAME = 128 };

static bool text_contains(const char *text, size_t length, const char *word) {
  const char *const found = strstr(text, word);
  return found != NULL && found + strlen(word) <= text + length;
}

/* Lines are "place:function TAB bytes TAB kind"; forms of a kernel are made by one template. */
bool rill__cpu_stacks_read(const char *sizes, uint64_t *need, char *why, size_t why_size) {
  uint64_t kernel = 0, others = 0;
  for (const char *line = sizes; *line != '\0';) {
    const size_t length = strcspn(line, "\n"), name = strcspn(line, "\t");
    const char *const next = line + length + (line[length] == '\n');
    if (name < length) {
      char *kind = NULL;
      const uint64_t bytes = strtoull(line + name + 1, &kind, 10) + FRAME;
      if (kind < line + length && strncmp(kind, "\tdynamic", 8) == 0 && (kind[8] == '\n' || kind[8] == '\0')) {
        (void)snprintf(why, why_size,
                       "%.*s: error: its stack frame has no bound: alloca, or an array whose size is known at run time "
                       "only",
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
  (void)snprintf(why, why_size, "error: a kernel needs %llu bytes of stack, %d are the most: an array is too large",
                 (unsigned long long)*need, LIMIT);
  return false;
}

void rill__cpu_stacks_write(void *image, size_t size, uint64_t need) {
  static const char mark[16] = RILL_CPU_STACKS_MARK;
  char *const place = memmem(image, size, mark, sizeof mark);
  const size_t left = place != NULL ? size - (size_t)(place - (char *)image) : 0;
  if (left >= sizeof mark + 2 * sizeof need) memcpy(place + sizeof mark + sizeof need, &need, sizeof need);
}
