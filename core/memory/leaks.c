/* Objects and memory that the user has created and not released. */
#include "core/device/backends.h"
#include "core/memory/memory.h"
#include "core/object/origin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- collecting ---- */

/* One object or allocation.  Things are compared as bytes, so each one is zeroed before it is filled in. */
struct thing {
  char what[32], label[64];
  uint64_t bytes;
  struct rill__origin origin;
};

struct things {
  struct thing *first;
  size_t count, room;
  bool no_memory;
};

static struct thing *add_thing(struct things *things, const char *what, const char *label,
                               const struct rill__origin *origin) {
  if (things->count == things->room) {
    const size_t room = things->room == 0 ? 64 : 2 * things->room;
    struct thing *const grown = realloc(things->first, room * sizeof *grown);
    if (grown == NULL) {
      things->no_memory = true;
      return NULL;
    }
    things->first = grown;
    things->room = room;
  }
  struct thing *const thing = &things->first[things->count++];
  memset(thing, 0, sizeof *thing);
  (void)snprintf(thing->what, sizeof thing->what, "%s", what);
  (void)snprintf(thing->label, sizeof thing->label, "%s", label);
  thing->origin.count = origin->count;
  memcpy(thing->origin.frames, origin->frames, origin->count * sizeof origin->frames[0]);
  return thing;
}

static void add_live_guard(const struct rill__guard *guard, void *user) {
  if (guard->of_graph) return;
  const char *const what = guard->imported ? "imported memory" : rill__memory_kind_name(guard->kind);
  struct thing *const thing = add_thing(user, what, guard->label, &guard->origin);
  if (thing != NULL) thing->bytes = guard->size;
}

static void add_live_object(const struct rill__live_object *object, void *user) {
  (void)add_thing(user, rill__kind_name(object->kind), object->label, object->origin);
}

static int compare_things(const void *a, const void *b) { return memcmp(a, b, sizeof(struct thing)); }

/* Returns all live objects and allocations, sorted so that equal ones follow one another. */
static struct things collect_things(struct rill__device *device) {
  struct things things = { .first = NULL };
  rill__guards_visit(device, add_live_guard, &things);
  rill__origins_visit(device, add_live_object, &things);
  if (things.count > 0) qsort(things.first, things.count, sizeof things.first[0], compare_things);
  return things;
}

/* Returns the number of equal things from `first` on. */
static size_t count_equal(const struct things *things, size_t first) {
  size_t end = first + 1;
  while (end < things->count && compare_things(&things->first[first], &things->first[end]) == 0) end++;
  return end - first;
}

bool rill__leaks_list(struct rill__device *device, rill_leak *leaks, size_t *count) {
  struct things things = collect_things(device);
  const size_t room = *count;
  *count = 0;
  for (size_t i = 0, alike; i < things.count && !things.no_memory; i += alike, ++*count) {
    const struct thing *const thing = &things.first[i];
    alike = count_equal(&things, i);
    if (*count >= room) continue;
    rill_leak *const leak = &leaks[*count];
    memset(leak, 0, sizeof *leak);
    memcpy(leak->what, thing->what, sizeof leak->what);
    memcpy(leak->label, thing->label, sizeof leak->label);
    leak->bytes = thing->bytes;
    leak->count = alike;
    rill__origin_write(&thing->origin, RILL__FRAMES, "", "\n", leak->where, sizeof leak->where);
  }
  free(things.first);
  return !things.no_memory;
}

/* ---- at exit ---- */

static _Atomic pid_t watcher; /* the process that started to record: a child of fork also has its parent's objects */

bool rill__leaks_watch(struct rill__device *device) {
  atomic_store(&watcher, getpid());
  return rill__guards_start(device);
}

static void write_thing(const struct thing *thing, size_t alike) {
  char text[1200], where[800], size[48] = "";
  const bool many = alike > 1;
  rill__origin_write(&thing->origin, RILL__FRAMES, "    ", "\n", where, sizeof where);
  if (thing->bytes != 0)
    (void)snprintf(size, sizeof size, ", %llu bytes%s", (unsigned long long)thing->bytes, many ? " each" : "");
  const int length = snprintf(text, sizeof text, "  %zu x %s%s%s%s%s, made at\n%s", alike, thing->what,
                              thing->label[0] != '\0' ? " \"" : "", thing->label, thing->label[0] != '\0' ? "\"" : "",
                              size, where[0] != '\0' ? where : "    (unknown)\n");
  if (length > 0 && write(STDERR_FILENO, text, (size_t)length) < 0) return; /* standard error is closed */
}

static void write_leaks(struct rill__device *device) {
  enum { MAX_LINES = 100 };
  struct things things = collect_things(device);
  char line[160];
  size_t written = 0, left = 0;
  for (size_t i = 0, alike; i < things.count; i += alike) {
    alike = count_equal(&things, i);
    if (i == 0) {
      const int length =
          snprintf(line, sizeof line,
                   "rill: %s: %zu not released at exit (addr2line -fe PROGRAM 0xOFFSET prints the line of a call):\n",
                   device->name, things.count);
      if (write(STDERR_FILENO, line, (size_t)length) < 0) break;
    }
    if (written < MAX_LINES) write_thing(&things.first[i], alike);
    if (written++ >= MAX_LINES) left += alike;
  }
  if (left > 0) {
    const int length = snprintf(line, sizeof line, "  and %zu more\n", left);
    if (write(STDERR_FILENO, line, (size_t)length) < 0) left = 0;
  }
  free(things.first);
}

/* Runs after the program's own exit functions, which may release things.  Drivers may have been unloaded, so no memory
 * is compared. */
static void __attribute__((destructor)) write_at_exit(void) {
  if (atomic_load(&watcher) != getpid()) return;
  const struct rill__backend *backend;
  for (size_t i = 0; (backend = rill__backend_at(i)) != NULL; i++) {
    struct rill__device *device;
    for (uint32_t n = 0; (device = rill__device_at(backend, n)) != NULL; n++) {
      if (rill__core(device)->guards == NULL) continue;
      rill__guards_write_found(device);
      write_leaks(device);
    }
  }
}
