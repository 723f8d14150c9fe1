#include "core/timeline/vendor_ranges.h"

#include "core/timeline/injection.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

static const struct {
  const char *library, *push, *pop;
} known[] = {
  { "libnvToolsExt.so.1", "nvtxRangePushA", "nvtxRangePop" },
  { "librocprofiler-sdk-roctx.so.1", "roctxRangePushA", "roctxRangePop" },
  { "libroctx64.so.4", "roctxRangePushA", "roctxRangePop" },
};
enum { KNOWN = sizeof known / sizeof *known };

static struct {
  int (*push)(const char *name);
  int (*pop)(void);
} loaded[KNOWN + 1];
static size_t loaded_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find(void) {
  for (int i = 0; i < KNOWN; i++) {
    void *const library = dlopen(known[i].library, RTLD_LAZY | RTLD_NOLOAD); /* never closed, so it stays loaded */
    void *const push = library != NULL ? dlsym(library, known[i].push) : NULL;
    void *const pop = library != NULL ? dlsym(library, known[i].pop) : NULL;
    if (push == NULL || pop == NULL) continue;
    memcpy(&loaded[loaded_count].push, &push, sizeof push);
    memcpy(&loaded[loaded_count].pop, &pop, sizeof pop);
    loaded_count++;
  }
  /* The NVTX library passes its ranges to the same profiler. */
  const bool has_nvtx = loaded_count > 0 && dlopen(known[0].library, RTLD_LAZY | RTLD_NOLOAD) != NULL;
  if (!has_nvtx && rill__injection_open(&loaded[loaded_count].push, &loaded[loaded_count].pop)) loaded_count++;
}

void rill__vendor_range_push(const char *name) {
  (void)pthread_once(&once, find);
  for (size_t i = 0; i < loaded_count; i++) (void)loaded[i].push(name);
}

void rill__vendor_range_pop(void) {
  (void)pthread_once(&once, find);
  for (size_t i = 0; i < loaded_count; i++) (void)loaded[i].pop();
}
