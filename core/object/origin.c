#include "core/object/origin.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- recording and writing ---- */

/* Returns the start of this library, whose calls are left out of origins.  Returns NULL if it is linked into a program:
 * its functions then cannot be distinguished from the program's. */
static const void *own_library(void) {
  Dl_info self;
  if (dladdr((const void *)&rill__notes_origins, &self) == 0 || self.dli_fname == NULL) return NULL;
  const char *const slash = strrchr(self.dli_fname, '/');
  return strncmp(slash != NULL ? slash + 1 : self.dli_fname, "librill", 7) == 0 ? self.dli_fbase : NULL;
}

static bool is_frame_of(const void *library, const void *frame) {
  Dl_info info;
  return library != NULL && dladdr(frame, &info) != 0 && info.dli_fbase == library;
}

void rill__origin_take(struct rill__origin *out) {
  enum { OWN = 12 };
  void *frames[OWN + RILL__FRAMES];
  const void *const library = own_library();
  const int count = backtrace(frames, OWN + RILL__FRAMES);
  int first = 1; /* skips this function */
  while (first < count && is_frame_of(library, frames[first])) first++;
  *out = (struct rill__origin){ .count = 0 };
  for (; first < count && out->count < RILL__FRAMES; first++) out->frames[out->count++] = frames[first];
}

static size_t write_frame(const void *frame, const char *before, const char *after, char *text, size_t size) {
  Dl_info info;
  /* an address inside the call instruction: the return address may belong to another function */
  const uintptr_t call = (uintptr_t)frame - 1;
  int length;
  if (dladdr((const void *)call, &info) == 0 || info.dli_fname == NULL) {
    length = snprintf(text, size, "%s%p%s", before, frame, after);
  } else {
    const char *const slash = strrchr(info.dli_fname, '/');
    const char *const module = slash != NULL ? slash + 1 : info.dli_fname;
    const size_t offset = (size_t)(call - (uintptr_t)info.dli_fbase);
    length = info.dli_sname == NULL ? snprintf(text, size, "%s%.60s+0x%zx%s", before, module, offset, after)
                                    : snprintf(text, size, "%s%.60s+0x%zx (%.80s+0x%zx)%s", before, module, offset,
                                               info.dli_sname, (size_t)(call - (uintptr_t)info.dli_saddr), after);
  }
  return length < 0 ? 0 : (size_t)length;
}

void rill__origin_write(const struct rill__origin *origin, uint32_t most, const char *before, const char *after,
                        char *text, size_t size) {
  size_t used = 0;
  if (size > 0) text[0] = '\0';
  for (uint32_t i = 0; i < origin->count && i < most; i++) {
    char frame[320];
    const size_t length = write_frame(origin->frames[i], before, after, frame, sizeof frame);
    if (length >= sizeof frame || length >= size - used) return; /* only complete frames */
    memcpy(text + used, frame, length + 1);
    used += length;
  }
}

/* ---- origins of objects ---- */

bool rill__notes_origins;
void rill__origins_start(void) { rill__notes_origins = true; }

/* Indexed by kind and slot, in chunks like the slots.  Guarded by the lock. */
struct noted {
  uint64_t id; /* id of the object recorded last; the object is alive if and only if its slot says so */
  const struct rill__device *device;
  char label[64];
  struct rill__origin origin;
};
static struct noted *noted[RILL__KIND_END][RILL__CHUNKS];
static pthread_mutex_t noted_lock = PTHREAD_MUTEX_INITIALIZER;

void rill__origins_lock(void) { pthread_mutex_lock(&noted_lock); }
void rill__origins_unlock(void) { pthread_mutex_unlock(&noted_lock); }

/* Records the origin of an object.  If there is no host memory, the object is missing from the list and the call that
 * creates the object still succeeds. */
void rill__origin_note_(const struct rill__object *object) {
  struct rill__origin origin;
  rill__origin_take(&origin);
  const uint32_t slot = rill__object_slot(object);
  struct noted **const chunk = &noted[object->id >> 56][slot / RILL__CHUNK_SLOTS];
  pthread_mutex_lock(&noted_lock);
  if (*chunk == NULL) *chunk = calloc(RILL__CHUNK_SLOTS, sizeof **chunk);
  if (*chunk != NULL) {
    struct noted *const entry = &(*chunk)[slot % RILL__CHUNK_SLOTS];
    if (entry->id != object->id) {
      *entry = (struct noted){ .id = object->id, .device = object->device, .origin = origin };
      (void)snprintf(entry->label, sizeof entry->label, "%s", object->label != NULL ? object->label : "");
    }
  }
  pthread_mutex_unlock(&noted_lock);
}

/* Returns whether the recorded object is alive.  Call it under the lock. */
static bool is_noted_alive(const struct noted *entry) {
  const enum rill__kind kind = (enum rill__kind)(entry->id >> 56);
  const uint32_t index = (uint32_t)(entry->id >> 32) & 0xffffffu;
  struct rill__slot *const chunk = atomic_load(&rill__chunks[kind][index / RILL__CHUNK_SLOTS]);
  const uint64_t word = chunk == NULL ? 0 : atomic_load(&chunk[index % RILL__CHUNK_SLOTS].word);
  return word >> 32 == (uint32_t)entry->id && (uint32_t)word != 0;
}

void rill__origins_visit(const struct rill__device *device, rill__visit_object *visit, void *user) {
  pthread_mutex_lock(&noted_lock);
  for (int kind = 0; kind < RILL__KIND_END; kind++) {
    for (uint32_t i = 0; i < RILL__CHUNKS; i++) {
      for (uint32_t j = 0; noted[kind][i] != NULL && j < RILL__CHUNK_SLOTS; j++) {
        const struct noted *const entry = &noted[kind][i][j];
        if (entry->id == 0 || entry->device != device || !is_noted_alive(entry)) continue;
        visit(&(struct rill__live_object){ (enum rill__kind)kind, entry->label, &entry->origin }, user);
      }
    }
  }
  pthread_mutex_unlock(&noted_lock);
}
