#include "core/call.h"
#include "core/event_pool.h"
#include "core/held/held.h"
#include "core/memory.h"
#include "core/module.h"
#include "core/options.h"
#include "core/pool.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The backends of this build, in the order in which their devices are counted. */
#define BACKEND(name) extern const struct rill__backend rill__##name##_backend;
#define ABSENT(name, id)
#include "rill_backends.inc"
#undef BACKEND
#undef ABSENT

static const struct rill__backend *const backends[] = {
#define BACKEND(name) &rill__##name##_backend,
#define ABSENT(name, id)
#include "rill_backends.inc"
#undef BACKEND
#undef ABSENT
};
enum { BACKENDS = sizeof backends / sizeof backends[0] };

const struct rill__backend *rill__backend_at(size_t i) { return i < BACKENDS ? backends[i] : NULL; }

/* Those that this build was made without. */
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

/* Found once; constant afterwards. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct {
  struct rill__device **devices;
  uint32_t count;
  uint32_t first[BACKENDS], counts[BACKENDS]; /* by backend */
  uint32_t told[BACKENDS];                    /* by the vendor; more than counts if one could not be set up */
  char why[BACKENDS][512];                    /* why a backend has no device */
  rill_status status;                         /* why there is none at all */
} found;

static void destroy_device(struct rill__object *object) { rill__object_free(object); }

static struct rill__device *make_device(const struct rill__backend *backend, uint32_t ordinal) {
  struct rill__device *device = NULL;
  const size_t size = RILL__PART_OFFSET(struct rill__device) + backend->device_size;
  if (rill__object_new(size, NULL, NULL, destroy_device, &device) != RILL_OK) return NULL;
  device->base.device = device;
  device->base.borrowed = true;
  device->backend = backend;
  device->info = (rill_device_info)RILL_DEVICE_INFO_INIT;
  device->info.backend = backend->id;
  device->info.ordinal = (int32_t)ordinal;
  device->info.numa_node = -1;
  (void)pthread_mutex_init(&device->lock, NULL);
  (void)pthread_mutex_init(&device->pools_lock, NULL);
  if (backend->gpu) {
    (void)snprintf(device->name, sizeof device->name, "%s:%u", backend->name, ordinal);
  } else {
    (void)snprintf(device->name, sizeof device->name, "%s", backend->name);
  }
  /* A device is called by its name in every text. */
  device->base.label = strdup(device->name);
  const bool room = device->base.label != NULL && rill__event_pool_init(device);
  if (!room) (void)rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory for a device");
  if (!room || RILL_DOOR(device, device, init, device) != RILL_OK ||
      rill__object_publish(&device->base, RILL__DEVICE) != RILL_OK) {
    free(device->spare_events);
    rill__object_free(&device->base);
    return NULL;
  }
  return device;
}

static void before_fork(void) {
  for (uint32_t i = 0; i < found.count; i++) {
    pthread_mutex_lock(&found.devices[i]->lock);
    rill__pools_lock(found.devices[i]);
    rill__event_pool_lock(found.devices[i]);
  }
  rill__held_lock();
  rill__modules_lock();
  rill__globals_lock();
  rill__memory_lock();
  rill__handles_lock();
  for (int i = 0; i < BACKENDS; i++) {
    if (backends[i]->before_fork != NULL) backends[i]->before_fork();
  }
}

static void unlock_all(void) {
  rill__handles_unlock();
  rill__memory_unlock();
  rill__globals_unlock();
  rill__modules_unlock();
  rill__held_unlock();
  for (uint32_t i = found.count; i-- > 0;) {
    rill__event_pool_unlock(found.devices[i]);
    rill__pools_unlock(found.devices[i]);
    pthread_mutex_unlock(&found.devices[i]->lock);
  }
}

static void after_fork_in_parent(void) {
  for (int i = BACKENDS; i-- > 0;) {
    if (backends[i]->after_fork_in_parent != NULL) backends[i]->after_fork_in_parent();
  }
  unlock_all();
}

static void after_fork_in_child(void) {
  rill__threads_after_fork();
  rill__held_after_fork();
  for (int i = BACKENDS; i-- > 0;) {
    if (backends[i]->after_fork_in_child != NULL) backends[i]->after_fork_in_child();
  }
  unlock_all();
}

/* The last error's text, with the vendor's code. */
static void explain_failed_setup(char *why, size_t size, const struct rill__backend *backend, uint32_t ordinal) {
  const struct rill__error_record *error = rill__failure();
  int used = snprintf(why, size, "%s:%u could not be set up: %.300s", backend->name, ordinal, error->message);
  if (error->native_name[0] == '\0' || used < 0 || (size_t)used >= size) return;
  (void)snprintf(why + used, size - (size_t)used, " [%d %s]", (int)error->native_code, error->native_name);
}

static void find_devices(void) {
  for (int i = 0; i < BACKENDS; i++) {
    const uint32_t count = backends[i]->device->count(found.why[i], sizeof found.why[i]);
    found.first[i] = found.count;
    found.told[i] = count;
    for (uint32_t ordinal = 0; ordinal < count; ordinal++) {
      struct rill__device **grown = realloc(found.devices, (found.count + 1) * sizeof *grown);
      if (grown == NULL) (void)rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory");
      struct rill__device *device = grown == NULL ? NULL : make_device(backends[i], ordinal);
      if (grown != NULL) found.devices = grown;
      if (device == NULL) {
        explain_failed_setup(found.why[i], sizeof found.why[i], backends[i], ordinal);
        break; /* numbers must stay the vendor's */
      }
      found.devices[found.count++] = device;
      found.counts[i]++;
    }
  }
  if (found.count == 0) found.status = RILL_ERROR_OUT_OF_MEMORY;
  (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

struct rill__device *rill__device_at(uint32_t index) {
  return index < found.count ? found.devices[index] : NULL;
}

static rill_status need_devices(void) {
  (void)pthread_once(&once, find_devices);
  RILL_REQUIRE(found.status == RILL_OK, found.status, "not even the CPU could be set up: %s", found.why[BACKENDS - 1]);
  return RILL_OK;
}

/* The first to come writes the cause, then publishes it; the others wait for those few stores. */
static bool first_to_lose(struct rill__device *device) {
  if (!atomic_exchange(&device->losing, true)) return true;
  while (atomic_load_explicit(&device->lost, memory_order_acquire) == RILL_OK) (void)sched_yield();
  return false;
}

rill_status rill__device_lost(struct rill__device *device, int32_t code, const char *name, const char *format, ...) {
  if (first_to_lose(device)) {
    va_list list;
    va_start(list, format);
    (void)vsnprintf(device->cause.text, sizeof device->cause.text, format, list);
    va_end(list);
    device->cause.code = code;
    (void)snprintf(device->cause.name, sizeof device->cause.name, "%s", name);
    atomic_store_explicit(&device->lost, RILL_ERROR_DEVICE_LOST, memory_order_release);
  }
  if (atomic_load(&device->held_streams) != 0) rill__held_device_lost(device);
  return rill__fail_lost(device);
}

void rill__device_close(struct rill__device *device, rill_status status, const char *text) {
  if (!first_to_lose(device)) return;
  (void)snprintf(device->cause.text, sizeof device->cause.text, "%s", text);
  atomic_store_explicit(&device->lost, status, memory_order_release);
}

rill_status rill__fail_lost(struct rill__device *device) {
  const rill_status status = atomic_load_explicit(&device->lost, memory_order_acquire);
  if (status != RILL_ERROR_DEVICE_LOST) return rill__fail(status, "%s: %s", device->name, device->cause.text);
  return rill__fail_native(status, device->cause.code, device->cause.name,
                           "%s is lost: %s" RILL_HINT
                           "the process cannot use this device again; end it, or use another "
                           "device",
                           device->name, device->cause.text);
}

_Atomic bool rill__is_shared;

rill_status rill__device_activate(struct rill__device *device) {
  RILL_TRY(rill__check_usable(device));
  if (atomic_load_explicit(&device->active, memory_order_acquire)) return RILL_OK;
  rill_status status = RILL_OK;
  pthread_mutex_lock(&device->lock);
  if (!atomic_load(&device->active)) {
    status = RILL_DOOR(device, device, activate, device);
    if (status == RILL_OK) atomic_store_explicit(&device->active, true, memory_order_release);
  }
  pthread_mutex_unlock(&device->lock);
  return status;
}

rill_status rill__check_same_backend(const struct rill__object *a, const struct rill__object *b) {
  RILL_REQUIRE(a->device->backend == b->device->backend, RILL_ERROR_WRONG_BACKEND,
               "%s is of %s, %s of %s" RILL_HINT "order work across backends with host waits", rill__name_of(a).text,
               a->device->name, rill__name_of(b).text, b->device->name);
  return RILL_OK;
}

rill_status rill__fail_other_device(const struct rill__object *a, const struct rill__object *b) {
  RILL_TRY(rill__check_same_backend(a, b));
  return rill__fail(RILL_ERROR_WRONG_DEVICE, "%s is of %s, %s of %s", rill__name_of(a).text, a->device->name,
                    rill__name_of(b).text, b->device->name);
}

uint32_t rill_version(void) {
  return (uint32_t)RILL_VERSION_MAJOR << 16 | (uint32_t)RILL_VERSION_MINOR << 8 | (uint32_t)RILL_VERSION_PATCH;
}

rill_status rill_device_count(int32_t *count) {
  RILL_ENTER();
  if (count != NULL) *count = 0;
  RILL_REQUIRE(count != NULL, RILL_ERROR_INVALID_ARGUMENT, "count is NULL");
  RILL_TRY(need_devices());
  *count = (int32_t)found.count;
  return RILL_OK;
}

rill_status rill_device_get(int32_t index, rill_device *out) {
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_DEVICE;
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  RILL_TRY(need_devices());
  RILL_REQUIRE(index >= 0 && (uint32_t)index < found.count, RILL_ERROR_NOT_FOUND,
               "there is no device %d: devices are 0 to %u", (int)index, found.count - 1);
  out->id = found.devices[index]->base.id;
  return RILL_OK;
}

/* The part of `name` behind "backend", which must be "" or ":N".  False if it is neither. */
static bool parse_ordinal(const char *text, uint64_t *ordinal) {
  *ordinal = 0;
  if (text[0] == '\0') return true;
  if (text[0] != ':' || text[1] == '\0') return false;
  for (const char *digit = text + 1; *digit != '\0'; digit++) {
    if (*digit < '0' || *digit > '9') return false;
    if (*ordinal < UINT32_MAX) *ordinal = *ordinal * 10 + (uint64_t)(*digit - '0'); /* more is no device either */
  }
  return true;
}

static bool starts_with(const char *name, const char *word) {
  const size_t length = strlen(word);
  return strncmp(name, word, length) == 0 && (name[length] == '\0' || name[length] == ':');
}

/* Why there is no GPU, for each backend that could have had one. */
static rill_status fail_no_gpu(const char *name) {
  char text[768] = "";
  size_t used = 0;
  for (int i = 0; i < BACKENDS; i++) {
    if (!backends[i]->gpu || used >= sizeof text) continue;
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%s: %s", used > 0 ? "; " : "", backends[i]->name,
                             found.why[i]);
  }
  for (int i = 0; absent[i].name != NULL && used < sizeof text; i++) {
    used +=
        (size_t)snprintf(text + used, sizeof text - used, "%s%s: not built in", used > 0 ? "; " : "", absent[i].name);
  }
  return rill__fail(RILL_ERROR_NO_DEVICE, "there is no GPU for \"%s\": %s", name, text);
}

static rill_status open_by_name(const char *name, const char *origin, struct rill__device **out) {
  uint64_t ordinal = 0;
  if (starts_with(name, "gpu")) {
    uint32_t gpus = 0;
    while (gpus < found.count && found.devices[gpus]->backend->gpu) gpus++;
    RILL_REQUIRE(parse_ordinal(name + 3, &ordinal), RILL_ERROR_NOT_FOUND, "%s\"%s\" is no device name", origin, name);
    if (gpus == 0) return fail_no_gpu(name);
    RILL_REQUIRE(ordinal < gpus, RILL_ERROR_NOT_FOUND, "%s\"%s\": there are %u GPUs, from gpu:0 on", origin, name,
                 gpus);
    *out = found.devices[ordinal];
    return RILL_OK;
  }
  for (int i = 0; i < BACKENDS; i++) {
    if (!starts_with(name, backends[i]->name)) continue;
    RILL_REQUIRE(parse_ordinal(name + strlen(backends[i]->name), &ordinal), RILL_ERROR_NOT_FOUND,
                 "%s\"%s\" is no device name", origin, name);
    const bool set_up = ordinal < found.counts[i], there = ordinal < found.told[i];
    RILL_REQUIRE(found.counts[i] > 0 && (set_up || !there), RILL_ERROR_NO_DEVICE, "%s\"%s\": %s", origin, name,
                 found.why[i]);
    RILL_REQUIRE(ordinal < found.counts[i], RILL_ERROR_NOT_FOUND, "%s\"%s\": there are %u such devices, from %s:0 on",
                 origin, name, found.counts[i], backends[i]->name);
    *out = found.devices[found.first[i] + ordinal];
    return RILL_OK;
  }
  for (int i = 0; absent[i].name != NULL; i++) {
    RILL_REQUIRE(!starts_with(name, absent[i].name), RILL_ERROR_NO_DEVICE,
                 "%s\"%s\": the %s backend is not built in" RILL_HINT "configure rill with -Drill_backend=%s", origin,
                 name, absent[i].name, absent[i].name);
  }
  return rill__fail(RILL_ERROR_NOT_FOUND,
                    "%s\"%s\" is no device name" RILL_HINT "names are \"gpu\" or a backend's, with "
                    "\":N\" or without: \"%s\", \"%s:0\"",
                    origin, name, backends[BACKENDS - 1]->name, backends[0]->name);
}

rill_status rill_device_open(const char *name, rill_device *out) {
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_DEVICE;
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  RILL_TRY(need_devices());
  struct rill__device *device = found.devices[0]; /* the first GPU, else the CPU */
  const char *origin = "";
  if (name == NULL) {
    name = getenv("RILL_DEVICE");
    origin = "RILL_DEVICE=";
  }
  if (name != NULL && (name[0] != '\0' || origin[0] == '\0')) RILL_TRY(open_by_name(name, origin, &device));
  out->id = device->base.id;
  return RILL_OK;
}

/* The index of a backend by its public number. */
static rill_status find_backend(uint32_t id, int *out) {
  for (*out = 0; *out < BACKENDS; ++*out) {
    if (backends[*out]->id == id) return RILL_OK;
  }
  for (int i = 0; absent[i].name != NULL; i++) {
    RILL_REQUIRE(absent[i].id != id, RILL_ERROR_NO_DEVICE, "the %s backend is not built in", absent[i].name);
  }
  return rill__fail(RILL_ERROR_INVALID_ARGUMENT, "backend %u is none of RILL_BACKEND_*", id);
}

rill_status rill_device_of_native_stream(uint32_t backend, uintptr_t native, rill_device *out) {
  RILL_ENTER();
  int i = 0;
  if (out != NULL) *out = RILL_NULL_DEVICE;
  RILL_TRY(find_backend(backend, &i));
  RILL_REQUIRE(native > 2, RILL_ERROR_INVALID_ARGUMENT,
               "native is %u: a default stream of whichever device is current" RILL_HINT "name the device yourself",
               (unsigned)native);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  RILL_TRY(need_devices());
  RILL_REQUIRE(found.counts[i] > 0, RILL_ERROR_NO_DEVICE, "%s: %s", backends[i]->name, found.why[i]);
  RILL_REQUIRE(backends[i]->device->of_native_stream != NULL, RILL_ERROR_UNSUPPORTED,
               "streams of %s have no native form, in any version", backends[i]->name);
  uint32_t ordinal = 0;
  RILL_TRY(RILL_DOOR(found.devices[found.first[i]], device, of_native_stream, native, &ordinal));
  RILL_REQUIRE(ordinal < found.counts[i], RILL_ERROR_NOT_FOUND, "native stream 0x%llx is of %s:%u, which is not here",
               (unsigned long long)native, backends[i]->name, ordinal);
  out->id = found.devices[found.first[i] + ordinal]->base.id;
  return RILL_OK;
}

/* Threads that ask at the same time are told the same. */
static void read_clocks(struct rill__device *device, rill_device_info *info) {
  if (!atomic_load_explicit(&device->clocks_known, memory_order_acquire)) {
    uint32_t core = 0, memory = 0;
    RILL_DOOR(device, device, clocks, device, &core, &memory);
    atomic_store_explicit(&device->core_clock_khz, core, memory_order_relaxed);
    atomic_store_explicit(&device->memory_clock_khz, memory, memory_order_relaxed);
    atomic_store_explicit(&device->clocks_known, true, memory_order_release);
  }
  info->core_clock_khz = atomic_load_explicit(&device->core_clock_khz, memory_order_relaxed);
  info->memory_clock_khz = atomic_load_explicit(&device->memory_clock_khz, memory_order_relaxed);
}

rill_status rill_device_get_info(rill_device device, rill_device_info *info) {
  RILL_ENTER();
  const rill_device_info none = RILL_DEVICE_INFO_INIT;
  const bool writable = info != NULL && info->struct_size >= sizeof(size_t);
  if (writable) rill__options_write(info, &none, sizeof none);
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_TRY(rill__options_check_output(info, "info"));
  rill_device_info result = d->info;
  read_clocks(d, &result);
  rill__options_write(info, &result, sizeof result);
  return RILL_OK;
}

bool rill_device_supports(rill_device device, uint32_t feature, const char **why) {
  const char *reason = "";
  bool answer = false;
  struct rill__thread *const self __attribute__((cleanup(rill__leave))) = rill__enter(__func__);
  struct rill__device *d = self == NULL ? NULL : rill__find(device.id, RILL__DEVICE);
  if (d == NULL) {
    reason = "the handle is no device";
  } else if (feature < RILL_FEATURE_PEER || feature > RILL_FEATURE_KERNEL_ARGS) {
    reason = "the number is no feature";
  } else {
    answer = RILL_DOOR(d, device, supports, d, feature, &reason);
  }
  if (why != NULL) *why = reason;
  return answer;
}

rill_status rill_device_default_stream(rill_device device, rill_stream *out) {
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_STREAM;
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  struct rill__stream *stream = NULL;
  RILL_TRY(rill__device_default_stream(d, &stream));
  out->id = stream->base.id;
  return RILL_OK;
}

rill_status rill_device_synchronize(rill_device device) {
  rill__reclaim();
  RILL_ENTER();
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_TRY(rill__device_activate(d));
  rill__leave(&self); /* devices live for ever */
  rill__held_wait_for_device(d);
  RILL_TRY(RILL_DOOR(d, device, synchronize, d));
  rill__staging_give_back();
  rill__memory_synchronized(d);
  return RILL_OK;
}

rill_status rill_device_get_memory(rill_device device, uint64_t *free_bytes, uint64_t *total_bytes) {
  RILL_ENTER();
  if (free_bytes != NULL) *free_bytes = 0;
  if (total_bytes != NULL) *total_bytes = 0;
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(free_bytes != NULL && total_bytes != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL",
               free_bytes == NULL ? "free" : "total");
  RILL_TRY(rill__device_activate(d));
  return RILL_DOOR(d, device, get_memory, d, free_bytes, total_bytes);
}
