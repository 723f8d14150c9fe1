/* A fake profiler for NVTX 3: writes the ranges that it receives to standard error. */
#include <stdint.h>
#include <stdio.h>

typedef void any_function(void);
typedef any_function **const *function_table;
struct callbacks {
  size_t struct_size;
  int (*get_functions)(int module, function_table *table, unsigned *size);
};

int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t table));

static int push(const char *name) { return fprintf(stderr, "push %s\n", name); }
static int pop(void) { return fprintf(stderr, "pop\n"); }

int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t table)) {
  const struct callbacks *const callbacks = get_table(1);
  function_table table = NULL;
  unsigned size = 0;
  if (callbacks == NULL || callbacks->struct_size < sizeof *callbacks || !callbacks->get_functions(1, &table, &size) ||
      size < 12) {
    return 0;
  }
  *table[9] = (any_function *)push;
  *table[11] = (any_function *)pop;
  return 1;
}
