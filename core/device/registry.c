#include "core/device/registry.h"

#include "core/device/trace.h"
#include "core/diagnose/settings.h"
#include "core/object/origin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The backends that this build does not contain. */
static const struct {
  const char *name;
  uint32_t id;
} absent[] = {
#define BACKEND(name)
#define ABSENT(name, id) { #name, id },
#include "rill_backends.inc"
#undef BACKEND
#undef ABSENT
  { NULL, 0 },
};

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_cond_t known = PTHREAD_COND_INITIALIZER; /* signaled when a backend has become known */

/* ---- a search ---- */

static void destroy_device(struct rill__object *object) {
  free(rill__core((struct rill__device *)object)->cause.operations);
  rill__object_free(object);
}

static struct rill__device *make_device(const struct rill__backend *backend, uint32_t ordinal) {
  struct rill__device *device = NULL;
  const size_t size = RILL__PART_OFFSET(struct rill__device) + backend->device_size;
  if (rill__object_new(size, NULL, NULL, destroy_device, &device) != RILL_OK) return NULL;
  device->base.device = device;
  device->base.borrowed = true;
  device->backend = backend;
  device->reads_addresses = backend->memory->may_be_address != NULL;
  device->info = (rill_device_info)RILL_DEVICE_INFO_INIT;
  device->info.backend = backend->id;
  device->info.ordinal = (int32_t)ordinal;
  device->info.numa_node = -1;
  (void)pthread_mutex_init(&rill__core(device)->lock, NULL);
  (void)pthread_mutex_init(&rill__core(device)->pools_lock, NULL);
  for (int i = 0; i < RILL__EVENT_CACHES; i++) {
    (void)pthread_mutex_init(&rill__core(device)->spare_events[i].lock, NULL);
  }
  if (backend->gpu) {
    (void)snprintf(device->name, sizeof device->name, "%s:%u", backend->name, ordinal);
  } else {
    (void)snprintf(device->name, sizeof device->name, "%s", backend->name);
  }
  /* Every message about a device contains its name. */
  device->base.label = strdup(device->name);
  rill__core(device)->cause.operations = calloc(RILL__OPERATIONS_TEXT, 1);
  const bool named = device->base.label != NULL && rill__core(device)->cause.operations != NULL;
  if (!named) (void)rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory for a device");
  if (!named || RILL_DISPATCH(device, device, init, device) != RILL_OK ||
      rill__object_publish(&device->base, RILL__DEVICE) != RILL_OK) {
    destroy_device(&device->base);
    return NULL;
  }
  return device;
}

/* Sets the text of the last failure, with the vendor's code. */
static void explain_failed_setup(struct rill__search *search) {
  const struct rill__error_record *error = rill__failure();
  const size_t size = sizeof search->why;
  search->failed = error->status;
  int used = snprintf(search->why, size, "%s:%u could not be set up: %.300s", search->backend->name, search->count,
                      error->message);
  if (error->native_name[0] == '\0' || used < 0 || (size_t)used >= size) return;
  (void)snprintf(search->why + used, size - (size_t)used, " [%d %s]", (int)error->native_code, error->native_name);
}

static void read_environment(void) {
  rill__trace_start();
  if (rill__checks(RILL__CHECK_MEMORY)) rill__origins_start();
}

static void find_devices(struct rill__search *search) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, read_environment);
  atomic_load (&rill__around_search)(); /* a fork may happen during the first search */
  rill__errors_suspend();
  search->reported = search->backend->device->count(search->why, sizeof search->why);
  if (search->reported > 0) search->devices = calloc(search->reported, sizeof(struct rill__device *));
  if (search->reported > 0 && search->devices == NULL) (void)rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory");
  while (search->count < search->reported) {
    struct rill__device *device = search->devices == NULL ? NULL : make_device(search->backend, search->count);
    if (device == NULL) {
      explain_failed_setup(search);
      break; /* the ordinals must stay equal to the vendor's */
    }
    search->devices[search->count++] = device;
  }
  rill__errors_resume();
  atomic_load (&rill__around_search)();
}

const struct rill__search *rill__backend_search(size_t i) {
  struct rill__search *search = &rill__searches[i];
  if (rill__search_is_done(search)) return search;
  RILL_ASSERT(rill__is_outside_epochs(), "a search runs outside epochs: a driver may take a long time to start");
  RILL_WITHOUT_CANCEL();
  rill__registry_lock();
  while (search->state == RILL__SEARCHING) pthread_cond_wait(&known, &registry_lock);
  if (search->state == RILL__UNKNOWN) {
    search->state = RILL__SEARCHING;
    rill__registry_unlock();
    find_devices(search);
    rill__registry_lock();
    RILL_ASSERT(search->state == RILL__SEARCHING, "one thread searches for devices and publishes the backend");
    search->state = RILL__KNOWN;
    pthread_cond_broadcast(&known);
  }
  rill__registry_unlock();
  return search;
}

/* ---- fork ---- */

void (*_Atomic rill__around_search)(void);

void rill__registry_lock(void) {
  pthread_mutex_lock(&registry_lock);
  rill__lock_taken(RILL__LOCK_REGISTRY);
}

void rill__registry_unlock(void) {
  rill__lock_released(RILL__LOCK_REGISTRY);
  pthread_mutex_unlock(&registry_lock);
}

void rill__registry_after_fork(void) {
  known = (pthread_cond_t)PTHREAD_COND_INITIALIZER; /* threads that waited do not exist in the child */
  for (int i = 0; i < RILL__BACKENDS; i++) {
    struct rill__search *search = &rill__searches[i];
    if (search->state != RILL__SEARCHING) continue;
    search->devices = NULL;
    search->count = search->reported = 0;
    /* a vendor's library cannot be initialized twice */
    search->state = search->backend->gpu ? RILL__KNOWN : RILL__UNKNOWN;
    (void)snprintf(search->why, sizeof search->why,
                   "the process was forked while another thread searched for devices; search for devices only in the "
                   "child, or start the child with exec");
  }
}

/* ---- devices by number ---- */

struct rill__device *rill__device_nth(uint64_t *index, bool gpus_only) {
  for (size_t i = 0; i < RILL__BACKENDS; i++) {
    if (gpus_only && !rill__searches[i].backend->gpu) continue;
    const struct rill__search *search = rill__backend_search(i);
    if (*index < search->count) return search->devices[*index];
    *index -= search->count;
  }
  return NULL;
}

uint32_t rill__device_count(void) {
  uint64_t left = UINT64_MAX;
  (void)rill__device_nth(&left, false);
  return (uint32_t)(UINT64_MAX - left);
}

rill_status rill__fail_without_cpu(void) {
  const struct rill__search *search = &rill__searches[RILL__BACKENDS - 1];
  const rill_status cause = search->failed != RILL_OK ? search->failed : RILL_ERROR_OUT_OF_MEMORY;
  return rill__fail(cause, "the CPU device could not be set up: %s", search->why);
}

/* ---- devices by name ---- */

/* Parses the part of a name after the backend's name, which must be "" or ":N"; returns false otherwise. */
static bool parse_ordinal(const char *text, uint64_t *ordinal) {
  *ordinal = 0;
  if (text[0] == '\0') return true;
  if (text[0] != ':' || text[1] == '\0') return false;
  for (const char *digit = text + 1; *digit != '\0'; digit++) {
    if (*digit < '0' || *digit > '9') return false;
    /* larger numbers name no device either */
    if (*ordinal < UINT32_MAX) *ordinal = *ordinal * 10 + (uint64_t)(*digit - '0');
  }
  return true;
}

static bool starts_with(const char *name, const char *word) {
  const size_t length = strlen(word);
  return strncmp(name, word, length) == 0 && (name[length] == '\0' || name[length] == ':');
}

/* Fails with the reason why there is no GPU, for each backend that could have one. */
static rill_status fail_no_gpu(const char *name) {
  char text[1152] = "";
  size_t used = 0;
  for (size_t i = 0; i < RILL__BACKENDS; i++) {
    if (!rill__searches[i].backend->gpu || used >= sizeof text) continue;
    const char *why = rill__backend_search(i)->why;
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%s: %.*s", used > 0 ? "; " : "",
                             rill__searches[i].backend->name, (int)strcspn(why, "\n"), why);
  }
  for (int i = 0; absent[i].name != NULL && used < sizeof text; i++) {
    used +=
        (size_t)snprintf(text + used, sizeof text - used, "%s%s: not built in", used > 0 ? "; " : "", absent[i].name);
  }
  return rill__fail(RILL_ERROR_NO_DEVICE, "there is no GPU for \"%s\": %s", name, text);
}

static rill_status open_gpu(const char *name, const char *origin, struct rill__device **out) {
  uint64_t ordinal = 0;
  RILL_REQUIRE(parse_ordinal(name + strlen("gpu"), &ordinal), RILL_ERROR_NOT_FOUND, "%s\"%s\" is not a device name",
               origin, name);
  uint64_t left = ordinal;
  *out = rill__device_nth(&left, true);
  if (*out != NULL) return RILL_OK;
  if (left == ordinal) return fail_no_gpu(name);
  RILL_REQUIRE(ordinal - left != 1, RILL_ERROR_NOT_FOUND, "%s\"%s\": there is 1 GPU, gpu:0", origin, name);
  return rill__fail(RILL_ERROR_NOT_FOUND, "%s\"%s\": there are %u GPUs, starting with gpu:0", origin, name,
                    (unsigned)(ordinal - left));
}

static rill_status open_of(size_t i, const char *name, const char *origin, struct rill__device **out) {
  const char *const backend = rill__searches[i].backend->name;
  uint64_t ordinal = 0;
  RILL_REQUIRE(parse_ordinal(name + strlen(backend), &ordinal), RILL_ERROR_NOT_FOUND, "%s\"%s\" is not a device name",
               origin, name);
  const struct rill__search *search = rill__backend_search(i);
  const bool set_up = ordinal < search->count, there = ordinal < search->reported;
  if (search->count == 0 && !search->backend->gpu) return rill__fail_without_cpu();
  RILL_REQUIRE(search->count > 0 && (set_up || !there), RILL_ERROR_NO_DEVICE, "%s\"%s\": %s", origin, name,
               search->why);
  const char *separator = search->why[0] != '\0' ? "; " : "";
  RILL_REQUIRE(set_up || search->count != 1, RILL_ERROR_NOT_FOUND, "%s\"%s\": there is 1 such device, %s:0%s%s", origin,
               name, backend, separator, search->why);
  RILL_REQUIRE(set_up, RILL_ERROR_NOT_FOUND, "%s\"%s\": there are %u such devices, starting with %s:0%s%s", origin,
               name, search->count, backend, separator, search->why);
  *out = search->devices[ordinal];
  return RILL_OK;
}

rill_status rill__device_open(const char *name, const char *origin, struct rill__device **out) {
  if (starts_with(name, "gpu")) return open_gpu(name, origin, out);
  for (size_t i = 0; i < RILL__BACKENDS; i++) {
    if (starts_with(name, rill__searches[i].backend->name)) return open_of(i, name, origin, out);
  }
  for (int i = 0; absent[i].name != NULL; i++) {
    uint64_t ordinal = 0;
    if (!starts_with(name, absent[i].name)) continue;
    RILL_REQUIRE(!parse_ordinal(name + strlen(absent[i].name), &ordinal), RILL_ERROR_NO_DEVICE,
                 "%s\"%s\": the %s backend is not built in" RILL_HINT "configure rill with -Drill_backend=%s", origin,
                 name, absent[i].name, absent[i].name);
  }
  return rill__fail(RILL_ERROR_NOT_FOUND,
                    "%s\"%s\" is not a device name" RILL_HINT "names are \"gpu\" or a backend's, with "
                    "\":N\" or without: \"%s\", \"%s:0\"",
                    origin, name, rill__searches[RILL__BACKENDS - 1].backend->name, rill__searches[0].backend->name);
}

/* Finds the index of a backend by its public number. */
rill_status rill__backend_find(uint32_t id, size_t *out) {
  for (*out = 0; *out < RILL__BACKENDS; ++*out) {
    if (rill__searches[*out].backend->id == id) return RILL_OK;
  }
  for (int i = 0; absent[i].name != NULL; i++) {
    RILL_REQUIRE(absent[i].id != id, RILL_ERROR_NO_DEVICE, "the %s backend is not built in", absent[i].name);
  }
  return rill__fail(RILL_ERROR_INVALID_ARGUMENT, "backend %u is not one of RILL_BACKEND_*", id);
}
