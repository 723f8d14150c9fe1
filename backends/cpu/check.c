#include "backends/cpu/check.h"

#include "backends/cpu/fiber.h"
#include "backends/cpu/workers.h"

#include <stdio.h>
#include <string.h>

/* The memory that contains an access, or the memory nearest to it. */
struct place {
  struct cpu_bytes bytes;
  enum { SHARED_ARRAY, VARIABLE, DYNAMIC_SHARED, OF_MODULE, REGISTERED, ALLOCATED } kind;
  const char *name; /* for SHARED_ARRAY and VARIABLE */
};

static _Thread_local char words[400];

static bool is_in(struct cpu_bytes bytes, uintptr_t p) { return p - bytes.begin < bytes.size; }

/* ---- cache of allocations ---- */

/* The allocations found last.  The cache is valid until something is freed. */
enum { KNOWN = 4 };
static _Thread_local struct {
  uint64_t frees;
  unsigned next;
  struct cpu_bytes bytes[KNOWN];
} known;

static bool was_found(uintptr_t p, size_t size) {
  if (RILL__UNLIKELY(known.frees != rill__frees_count())) return false;
  for (unsigned i = 0; i < KNOWN; i++) {
    const struct cpu_bytes bytes = known.bytes[i];
    if (is_in(bytes, p) && size <= bytes.size - (p - bytes.begin)) return true;
  }
  return false;
}

/* Caches an allocation.  `frees`: the count of frees before the search. */
static void remember(uint64_t frees, struct cpu_bytes bytes) {
  if (known.frees != frees) memset(&known, 0, sizeof known);
  known.frees = frees;
  known.bytes[known.next++ % KNOWN] = bytes;
}

/* ---- variables of the image ---- */

static uintptr_t distance(struct cpu_bytes bytes, uintptr_t p) {
  if (p < bytes.begin) return bytes.begin - p;
  return is_in(bytes, p) ? 0 : p - bytes.begin - bytes.size;
}

/* Returns the object that contains `p` or is nearest to it; NULL if there are no objects.  `base`: added to the
 * objects' addresses. */
static const struct cpu_object *nearest_object(const struct cpu_object_list *list, uintptr_t base, uintptr_t p) {
  size_t first = 0, end = list->count; /* the first object that begins after p has an index in first..end */
  while (first < end) {
    const size_t middle = first + (end - first) / 2;
    if (list->objects[middle].begin + base <= p) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  if (first == 0) return list->count > 0 ? list->objects : NULL;
  const struct cpu_object *const before = &list->objects[first - 1];
  if (first == list->count) return before;
  const struct cpu_bytes left = { before->begin + base, before->size };
  const struct cpu_bytes right = { before[1].begin + base, before[1].size };
  return distance(left, p) <= distance(right, p) ? before : before + 1;
}

static bool place_object(const struct cpu_object_list *list, uintptr_t base, uintptr_t p, struct place *out) {
  const struct cpu_object *const object = nearest_object(list, base, p);
  if (object == NULL) return false;
  out->bytes = (struct cpu_bytes){ object->begin + base, object->size };
  out->name = object->name;
  return true;
}

/* ---- all memory ---- */

/* Returns true for memory that a kernel may access and that has no bounds to check: constants, stacks, arguments. */
static bool is_unbounded(const struct cpu_accessible *accessible, uintptr_t p) {
  const struct cpu_objects *const objects = accessible->objects;
  const bool in_image = p >= objects->begin && p < objects->end;
  const bool in_data = p >= objects->data_begin && p < objects->data_end;
  const bool in_relro = p >= objects->relro_begin && p < objects->relro_end;
  if (in_image && (!in_data || in_relro)) return true;
  return is_in(accessible->own[0], p) || is_in(accessible->own[1], p) || rill__cpu_fibers_own(p);
}

/* Finds the image's or block's object in which, or near which, `p` lies. */
static bool place_near(const struct cpu_accessible *accessible, uintptr_t p, struct place *out) {
  enum { BEFORE = 4096 };
  const struct cpu_objects *const objects = accessible->objects;
  out->kind = SHARED_ARRAY;
  if (p - accessible->locals < objects->local_bytes) return place_object(&objects->locals, accessible->locals, p, out);
  out->kind = VARIABLE;
  if (p >= objects->data_begin && p < objects->data_end) return place_object(&objects->variables, 0, p, out);
  out->kind = DYNAMIC_SHARED;
  out->bytes = (struct cpu_bytes){ accessible->shared, accessible->shared_bytes };
  return p - (accessible->shared - BEFORE) < BEFORE + CPU_SHARED_BYTES;
}

static const char *describe_place(const struct place *place, char text[160]) {
  const size_t size = place->bytes.size;
  const unsigned long long begin = place->bytes.begin;
  switch (place->kind) {
    case SHARED_ARRAY:
      (void)snprintf(text, 160, "the %zu bytes of the shared array \"%.60s\"", size, place->name);
      break;
    case VARIABLE: (void)snprintf(text, 160, "the %zu bytes of the variable \"%.60s\"", size, place->name); break;
    case DYNAMIC_SHARED: (void)snprintf(text, 160, "the block's %zu bytes of dynamic shared memory", size); break;
    case OF_MODULE: (void)snprintf(text, 160, "%zu bytes of a variable at 0x%llx", size, begin); break;
    case REGISTERED: (void)snprintf(text, 160, "%zu bytes registered at 0x%llx", size, begin); break;
    case ALLOCATED: (void)snprintf(text, 160, "%zu bytes allocated at 0x%llx", size, begin); break;
  }
  return text;
}

/* Finds the allocation, known to core, in which or near which `p` lies.  Returns NULL, or a complete message. */
static const char *place_allocation(const struct cpu_accessible *accessible, uintptr_t p, struct place *out) {
  struct rill__access access;
  char text[160];
  const uint64_t frees = rill__frees_count();
  rill__access_find(accessible->device, p, accessible->frees, &access);
  out->bytes = (struct cpu_bytes){ access.begin, access.size };
  out->kind = access.variable ? OF_MODULE : access.kind == RILL_MEMORY_REGISTERED ? REGISTERED : ALLOCATED;
  switch (access.what) {
    case RILL__ACCESS_RIGHT: remember(frees, out->bytes); return NULL;
    case RILL__ACCESS_LATE: out->bytes = (struct cpu_bytes){ p, SIZE_MAX }; return NULL;
    case RILL__ACCESS_BESIDE: return NULL;
    case RILL__ACCESS_FREED:
      (void)snprintf(words, sizeof words, "%zu bytes into %zu bytes at 0x%llx, which have been freed",
                     (size_t)(p - access.begin), access.size, (unsigned long long)access.begin);
      return words;
    case RILL__ACCESS_PEER:
      (void)snprintf(words, sizeof words, "in %s, of a device whose memory %s cannot access", describe_place(out, text),
                     accessible->device->name);
      return words;
    default: return "no memory is allocated there, or it has been freed";
  }
}

static const char *describe_fault(const struct place *place, uintptr_t p, size_t size) {
  enum { FAR = 1 << 20 };
  char text[160];
  const size_t away = distance(place->bytes, p);
  const bool before = p < place->bytes.begin, inside = is_in(place->bytes, p);
  const size_t bytes = inside ? size - (place->bytes.size - (p - place->bytes.begin)) : away;
  (void)snprintf(words, sizeof words, "%s%s%zu byte%s %s %s",
                 away > FAR ? "in memory that rill does not know (register it with rill_host_register), " : "",
                 inside ? "the last " : "", bytes, bytes == 1 ? "" : "s", before ? "before" : "past the end of",
                 describe_place(place, text));
  return words;
}

const char *rill__cpu_find_fault(const struct cpu_accessible *accessible, uintptr_t p, size_t size, uintptr_t of,
                                 bool *global) {
  struct place place;
  *global = of == 0 && was_found(p, size);
  if (size == 0 || *global) return NULL;
  const uintptr_t at = of != 0 ? of : p;
  if (is_unbounded(accessible, at)) return NULL;
  const char *const message = place_near(accessible, at, &place) ? NULL : place_allocation(accessible, at, &place);
  if (message != NULL) return message;
  *global = place.kind != SHARED_ARRAY && place.kind != DYNAMIC_SHARED;
  if (is_in(place.bytes, p) && size <= place.bytes.size - (p - place.bytes.begin)) return NULL;
  return describe_fault(&place, p, size);
}
