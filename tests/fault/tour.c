#include "tour.h"

#include "gate.rill.h"

#include <rill/bundle.h>

#include <sched.h>

/* Poisons an output, and notes it if it is not null after a failure. */
#define POISON(out) memset(&(out), 0xa5, sizeof(out))
#define CHECKED(tour, status, out) check_null((tour), (status), &(out), sizeof(out), __func__)

static rill_status check_null(struct tour *tour, rill_status status, void *out, size_t size, const char *name) {
  const unsigned char *bytes = out;
  bool null = true;
  for (size_t i = 0; i < size; i++) null = null && bytes[i] == 0;
  if (status != RILL_OK && !null) {
    tour->spoiled = name;
    memset(out, 0, size);
  }
  return status;
}

/* Copies of gate_bundle: what one has loaded is not there for the others. */
static rill_bundle own_bundle, ref_bundle, preload_bundle;

static const rill_bundle *bundle(rill_bundle *copy) {
  *copy = gate_bundle;
  return copy;
}

static void note_call(void *user, rill_status status) {
  struct tour *t = user;
  (void)atomic_fetch_add(&t->reported, (int)status);
  (void)atomic_fetch_add(&t->called, 1);
}

#define STEP(name) static rill_status step_##name(struct tour *t)

/* A step with one output. */
#define MAKING(name, out, call)        \
  STEP(name) {                         \
    POISON(out);                       \
    const rill_status status = (call); \
    return CHECKED(t, status, out);    \
  }

/* ---- make ---- */

MAKING(make_default_stream, t->default_stream, rill_device_default_stream(vendor.device, &t->default_stream))
MAKING(make_stream, t->stream, rill_stream_create(vendor.device, RILL_STREAM_OPTIONS(.label = "stream"), &t->stream))
MAKING(make_high, t->high,
       rill_stream_create(vendor.device, RILL_STREAM_OPTIONS(.priority = RILL_PRIORITY_HIGH), &t->high))
MAKING(make_other, t->other,
       rill_stream_create(vendor.device, RILL_STREAM_OPTIONS(.blocking = true, .label = "other"), &t->other))
MAKING(make_second_stream, t->second_stream, rill_stream_create(vendor.second, NULL, &t->second_stream))
MAKING(import_stream, t->imported, rill_stream_import(vendor.device, vendor.native_stream, NULL, &t->imported))
MAKING(import_null, t->null_stream, rill_stream_import(vendor.device, 0, NULL, &t->null_stream))
MAKING(import_legacy, t->legacy, rill_stream_import(vendor.device, 1, NULL, &t->legacy))
MAKING(import_per_thread, t->per_thread, rill_stream_import(vendor.device, 2, NULL, &t->per_thread))
MAKING(make_event, t->event, rill_event_create(vendor.device, NULL, &t->event))
MAKING(make_start, t->start, rill_event_create(vendor.device, RILL_EVENT_OPTIONS(.timing = true), &t->start))
MAKING(make_end, t->end,
       rill_event_create(vendor.device, RILL_EVENT_OPTIONS(.timing = true, .blocking_sync = true), &t->end))
MAKING(make_shared, t->shared, rill_event_create(vendor.device, RILL_EVENT_OPTIONS(.blocking_sync = true), &t->shared))
MAKING(make_first, t->first, rill_event_create(vendor.device, NULL, &t->first))
MAKING(make_before_work, t->before_work, rill_event_create(vendor.device, NULL, &t->before_work))
MAKING(import_event, t->from_vendor, rill_event_import(vendor.device, vendor.native_event, NULL, &t->from_vendor))
MAKING(cached_event, t->cached, rill_stream_cached_event(t->stream, &t->cached))
MAKING(record_new_event, t->fresh, rill_stream_record_new_event(t->stream, NULL, &t->fresh))
MAKING(alloc_device, t->memory, RILL_NEW(vendor.device, RILL_MEMORY_DEVICE, TOUR_WORDS, &t->memory))
MAKING(alloc_more, t->more, RILL_NEW(vendor.device, RILL_MEMORY_DEVICE, TOUR_WORDS, &t->more))
MAKING(alloc_pinned, t->pinned, RILL_NEW(vendor.device, RILL_MEMORY_PINNED, TOUR_WORDS, &t->pinned))
MAKING(alloc_managed, t->managed, RILL_NEW(vendor.device, RILL_MEMORY_MANAGED, TOUR_WORDS, &t->managed))
MAKING(alloc_second, t->second_memory, RILL_NEW(vendor.second, RILL_MEMORY_DEVICE, TOUR_WORDS, &t->second_memory))
MAKING(load_module, t->module, rill_module_load(vendor.device, bundle(&own_bundle), &t->module))
MAKING(get_kernel, t->kernel, rill_module_get_kernel(t->module, "increment", &t->kernel))

/* The image that the bundle has for the device. */
static rill_status load_image(rill_module *out) {
  rill_status status = RILL_ERROR_NOT_FOUND;
  for (size_t i = 0; i < gate_bundle.image_count && status == RILL_ERROR_NOT_FOUND; i++) {
    const rill_bundle_image *image = &gate_bundle.images[i];
    if (strcmp(image->backend, vendor.backend) != 0) continue;
    status = rill_module_load_image(vendor.device, image->data, image->size, out);
  }
  return status;
}

MAKING(load_image_module, t->image_module, load_image(&t->image_module))
MAKING(get_image_kernel, t->image_kernel, rill_module_get_kernel(t->image_module, "increment", &t->image_kernel))

STEP(load_second) {
  rill_module module;
  POISON(module);
  rill_status status = rill_module_load(vendor.second, bundle(&own_bundle), &module);
  if (CHECKED(t, status, module) != RILL_OK) return status;
  POISON(t->second_kernel);
  status = rill_module_get_kernel(module, "increment", &t->second_kernel);
  ignore(rill_module_release(module));
  return CHECKED(t, status, t->second_kernel);
}

/* ---- use: getters ---- */

#define GETTING(name, type, call)      \
  STEP(name) {                         \
    type out;                          \
    POISON(out);                       \
    const rill_status status = (call); \
    return CHECKED(t, status, out);    \
  }

GETTING(count_devices, int32_t, rill_device_count(&out))
GETTING(get_device, rill_device, rill_device_get(0, &out))
GETTING(open_device, rill_device, rill_device_open(vendor.backend, &out))
GETTING(stream_native, uintptr_t, rill_stream_native(t->high, &out))
GETTING(stream_context, uintptr_t, rill_stream_context(t->stream, &out))
GETTING(stream_device, rill_device, rill_stream_device(t->stream, &out))
GETTING(stream_priority, int32_t, rill_stream_priority(t->high, &out))
GETTING(stream_is_blocking, bool, rill_stream_is_blocking(t->other, &out))
GETTING(stream_label, const char *, rill_stream_label(t->other, &out))
GETTING(stream_id, uint64_t, rill_stream_id(t->stream, &out))
GETTING(event_native, uintptr_t, rill_event_native(t->end, &out))
GETTING(event_device, rill_device, rill_event_device(t->event, &out))
GETTING(event_is_recorded, bool, rill_event_is_recorded(t->event, &out))
GETTING(kernel_arg_size, size_t, rill_kernel_arg_size(t->kernel, 0, &out))

STEP(get_info) {
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  (void)t;
  return rill_device_get_info(vendor.device, &info);
}

STEP(kernel_get_info) {
  rill_kernel_info info = RILL_KERNEL_INFO_INIT;
  return rill_kernel_get_info(t->kernel, &info);
}

/* Asked of the driver the first time that a module is asked. */
STEP(module_get_global) {
  struct {
    void *p;
    size_t size;
  } out;
  POISON(out);
  const rill_status status = rill_module_get_global(t->module, "gate_step", &out.p, &out.size);
  if (status == RILL_OK && out.size != sizeof(unsigned)) t->spoiled = __func__;
  return CHECKED(t, status, out);
}

GETTING(module_native, uintptr_t, rill_module_native(t->module, &out))
GETTING(kernel_native, uintptr_t, rill_kernel_native(t->kernel, &out))
GETTING(kernel_arg_offset, size_t, rill_kernel_arg_offset(t->kernel, 0, &out))
GETTING(kernel_occupancy, uint32_t, rill_kernel_occupancy(t->kernel, 32, 0, &out))

STEP(kernel_suggest_block) {
  uint32_t out[2];
  POISON(out);
  const rill_status status = rill_kernel_suggest_block(t->kernel, 0, 0, &out[0], &out[1]);
  return CHECKED(t, status, out);
}

GETTING(kernel_available_shared, size_t, rill_kernel_available_shared(t->kernel, 32, 1, &out))
GETTING(kernel_cooperative_blocks, uint32_t, rill_kernel_cooperative_blocks(t->kernel, 32, 0, &out))

STEP(kernel_active_clusters) {
  uint32_t out;
  rill_launch shape = rill_launch_1d(64, 32);
  shape.cluster.x = 2;
  POISON(out);
  const rill_status status = rill_kernel_active_clusters(t->kernel, &shape, &out);
  return CHECKED(t, status, out);
}

STEP(ask_features) {
  for (uint32_t feature = RILL_FEATURE_PEER; feature < RILL_FEATURE_END_; feature++) {
    const char *why = NULL;
    const bool has = rill_device_supports(vendor.device, feature, &why);
    if (why == NULL || has != (why[0] == '\0')) t->spoiled = __func__;
  }
  return RILL_OK;
}

/* Not answered from what was asked before. */
STEP(get_memory) {
  uint64_t sizes[2];
  POISON(sizes);
  const rill_status status = rill_device_get_memory(vendor.device, &sizes[0], &sizes[1]);
  return CHECKED(t, status, sizes);
}

/* ---- use: references ---- */

#define COUNTING(kind, handle)                                    \
  STEP(retain_##kind) { return rill_##kind##_retain(t->handle); } \
  STEP(unretain_##kind) { return rill_##kind##_release(t->handle); }

COUNTING(stream, stream)
COUNTING(event, event)
COUNTING(module, module)
COUNTING(kernel, kernel)

/* ---- use: work ---- */

static const size_t bytes = TOUR_WORDS * sizeof(uint32_t);

static rill_status fill(rill_stream stream, void *dst, size_t pattern_size) {
  static const uint32_t pattern[4] = { 0x01020304, 0x05060708, 0x090a0b0c, 0x0d0e0f10 };
  return rill_fill_async(stream, dst, pattern, pattern_size, bytes / pattern_size);
}

STEP(fill_1) { return fill(t->stream, t->memory, 1); }
STEP(fill_2) { return fill(t->stream, t->memory, 2); }
STEP(fill_4) { return fill(t->stream, t->memory, 4); }
STEP(fill_8) { return fill(t->stream, t->memory, 8); }
STEP(fill_16) { return fill(t->stream, t->memory, 16); }
STEP(fill_on_imported) { return fill(t->imported, t->more, 4); }
STEP(fill_on_null) { return fill(t->null_stream, t->more, 4); }
STEP(fill_on_per_thread) { return fill(t->per_thread, t->more, 4); }
STEP(fill_on_second) { return fill(t->second_stream, t->second_memory, 4); }
STEP(copy_up) { return rill_copy_async(t->stream, t->memory, t->pinned, bytes); }
STEP(copy_across) { return rill_copy_async(t->stream, t->more, t->memory, bytes); }
STEP(copy_down) { return rill_copy_async(t->stream, t->pinned, t->more, bytes); }
STEP(copy_pageable_up) { return rill_copy_async(t->stream, t->memory, t->pageable, bytes); }
STEP(copy_pageable_down) { return rill_copy_async(t->stream, t->pageable, t->memory, bytes); }

/* Shapes with something between rows and slices, of which TOUR_WORDS hold several. */
static rill_status fill_2d(rill_stream stream, void *dst, size_t pattern_size) {
  static const uint32_t pattern[4] = { 0x01020304, 0x05060708, 0x090a0b0c, 0x0d0e0f10 };
  return rill_fill_2d_async(stream, dst, 48, pattern, pattern_size, 32 / pattern_size, 5);
}

STEP(fill_2d_1) { return fill_2d(t->stream, t->memory, 1); }
STEP(fill_2d_2) { return fill_2d(t->stream, t->memory, 2); }
STEP(fill_2d_4) { return fill_2d(t->stream, t->memory, 4); }
STEP(fill_2d_8) { return fill_2d(t->stream, t->memory, 8); }
STEP(fill_2d_16) { return fill_2d(t->stream, t->memory, 16); }
STEP(fill_2d_pinned) { return fill_2d(t->stream, t->pinned, 16); }
STEP(fill_2d_on_null) { return fill_2d(t->null_stream, t->more, 4); }

static rill_status copy_2d(rill_stream stream, void *dst, const void *src) {
  return rill_copy_2d_async(stream, dst, 40, src, 48, 32, 5);
}

static rill_status copy_3d(rill_stream stream, void *dst, const void *src, size_t slice) {
  rill_copy_3d box = RILL_COPY_3D_INIT;
  box.dst = dst;
  box.src = src;
  box.dst_pitch = box.src_pitch = 20;
  box.dst_slice_pitch = slice;
  box.src_slice_pitch = 80;
  box.width = 16;
  box.height = box.depth = 3;
  return rill_copy_3d_async(stream, &box);
}

STEP(copy_2d_up) { return copy_2d(t->stream, t->memory, t->pinned); }
STEP(copy_2d_across) { return copy_2d(t->stream, t->more, t->memory); }
STEP(copy_2d_pinned) { return copy_2d(t->stream, t->pinned + 4, t->pinned); }
STEP(copy_2d_pageable) { return copy_2d(t->stream, t->memory, t->pageable); }
STEP(copy_2d_on_null) { return copy_2d(t->null_stream, t->more, t->memory); }
STEP(copy_3d_down) { return copy_3d(t->stream, t->pinned, t->more, 60); }
STEP(copy_3d_uneven) { return copy_3d(t->stream, t->memory, t->more, 70); } /* slices of no whole rows */
STEP(copy_peer) { return rill_copy_async(t->stream, t->second_memory, t->memory, bytes); }

/* In one, for what is registered stays so until the end. */
STEP(register_host) {
  rill_status status = rill_host_register(vendor.device, t->registered, sizeof t->registered);
  if (status != RILL_OK) return status;
  status = rill_copy_async(t->stream, t->registered, t->memory, bytes);
  const rill_status ended = rill_host_unregister(t->registered);
  if (ended != RILL_OK && rill_host_unregister(t->registered) == RILL_ERROR_NOT_FOUND) t->spoiled = __func__;
  return status != RILL_OK ? status : ended;
}

STEP(enable_peer) {
  (void)t;
  return rill_device_enable_peer(vendor.device, vendor.second);
}
STEP(disable_peer) {
  (void)t;
  return rill_device_disable_peer(vendor.device, vendor.second);
}
GETTING(is_peer_enabled, bool, ((void)t, rill_device_is_peer_enabled(vendor.device, vendor.second, &out)))
/* Where there is none, another step has said so. */
STEP(prefetch) { return t->managed == NULL ? RILL_OK : rill_memory_prefetch_async(t->stream, t->managed, bytes); }
STEP(advise) {
  return t->managed == NULL ? RILL_OK : rill_memory_advise(t->managed, bytes, vendor.device, RILL_ADVICE_ACCESSED_BY);
}
STEP(advise_host) {
  return t->managed == NULL ? RILL_OK
                            : rill_memory_advise(t->managed, bytes, vendor.cpu, RILL_ADVICE_PREFERRED_LOCATION);
}

STEP(memory_get_info) {
  rill_memory_info info = RILL_MEMORY_INFO_INIT;
  return rill_memory_get_info(t->memory, &info);
}

static rill_status launch(rill_stream stream, rill_kernel kernel, uint32_t *counter, uint32_t shared) {
  rill_launch shape = rill_launch_1d(1, 1);
  shape.shared_mem_bytes = shared;
  return rill_stream_launch(stream, kernel, &shape, RILL_ARGS(counter));
}

STEP(launch_plain) { return launch(t->stream, t->kernel, t->memory, 0); }
/* What a launch may have on the vendor's devices: all but what another step has. */
STEP(launch_cooperative) {
  rill_launch shape = rill_launch_1d(1, 1);
  const rill_launch_attribute attribute = { RILL_ATTR_COOPERATIVE, 0, { 1 } };
  uint32_t *counter = t->memory;
  shape.attributes = &attribute;
  shape.attribute_count = 1;
  return rill_stream_launch(t->stream, t->kernel, &shape, RILL_ARGS(counter));
}

STEP(launch_cluster_attributes) {
  rill_launch shape = rill_launch_1d(2, 1);
  rill_launch_attribute attributes[] = { { RILL_ATTR_PRIORITY, 0, { -1 } },
                                         { RILL_ATTR_PROGRAMMATIC_SERIALIZATION, 0, { 1 } },
                                         { RILL_ATTR_PROGRAMMATIC_EVENT, 0, { 0 } },
                                         { RILL_ATTR_ACCESS_POLICY, 0, { 0 } } };
  attributes[2].value.event = t->event;
  memset(&attributes[3].value, 0, sizeof attributes[3].value);
  attributes[3].value.access.base = t->memory;
  attributes[3].value.access.size = TOUR_WORDS;
  uint32_t *counter = t->memory;
  shape.cluster.x = 2;
  shape.attributes = attributes;
  shape.attribute_count = 4;
  return rill_stream_launch(t->stream, t->kernel, &shape, RILL_ARGS(counter));
}

STEP(launch_large_cluster) {
  rill_launch shape = rill_launch_1d(16, 1);
  uint32_t *counter = t->memory;
  shape.cluster.x = 16;
  return rill_stream_launch(t->stream, t->kernel, &shape, RILL_ARGS(counter));
}

static rill_status launch_constant(const struct tour *t) {
  static const unsigned step = 3;
  const rill_constant constant = { "gate_step", &step, sizeof step };
  rill_launch shape = rill_launch_1d(1, 1);
  uint32_t *counter = t->memory;
  shape.constants = &constant;
  shape.constant_count = 1;
  return rill_stream_launch(t->stream, t->kernel, &shape, RILL_ARGS(counter));
}

STEP(launch_constants) { return launch_constant(t); }
STEP(held_launch_constants) { return launch_constant(t); }
STEP(launch_on_null) { return launch(t->legacy, t->kernel, t->more, 0); }
STEP(launch_on_second) { return launch(t->second_stream, t->second_kernel, t->second_memory, 0); }

STEP(launch_with_shared) {
  const uint64_t most = vendor.info.shared_per_block_optin, usual = vendor.info.shared_per_block;
  return launch(t->stream, t->kernel, t->memory, (uint32_t)(most > usual + 1024 ? usual + 1024 : 1024));
}

STEP(launch_ref) {
  const rill_launch shape = rill_launch_1d(1, 1);
  if (t->ref.bundle == NULL) t->ref = (rill_kernel_ref){ bundle(&ref_bundle), "increment", { 0, 0 } };
  uint32_t *counter = t->memory;
  return rill_stream_launch_ref(t->stream, &t->ref, &shape, RILL_ARGS(counter));
}

STEP(preload_kernels) {
  (void)t;
  return rill_bundle_preload(vendor.device, bundle(&preload_bundle));
}

STEP(unload_kernels) {
  (void)t;
  return rill_bundle_unload(bundle(&preload_bundle));
}

STEP(launch_of_image) { return launch(t->stream, t->image_kernel, t->memory, 0); }
STEP(host_call) { return rill_stream_host_call(t->stream, note_call, t); }

/* ---- use: order ---- */

STEP(record) { return rill_stream_record_event(t->stream, t->event, 0); }
STEP(record_before_work) { return rill_stream_record_event(t->stream, t->before_work, 0); }
STEP(record_external) { return rill_stream_record_event(t->stream, t->event, RILL_EVENT_EXTERNAL); }
STEP(record_start) { return rill_stream_record_event(t->stream, t->start, 0); }
STEP(record_end) { return rill_stream_record_event(t->stream, t->end, 0); }
STEP(record_shared) { return rill_stream_record_event(t->other, t->shared, 0); }
STEP(record_on_null) { return rill_stream_record_event(t->null_stream, t->event, 0); }
STEP(wait_event) { return rill_stream_wait_event(t->other, t->event, 0); }
STEP(wait_imported) { return rill_stream_wait_event(t->other, t->from_vendor, 0); }
STEP(wait_external) { return rill_stream_wait_event(t->other, t->event, RILL_EVENT_EXTERNAL); }
STEP(wait_across) { return rill_stream_wait_event(t->second_stream, t->event, 0); }
STEP(wait_stream) { return rill_stream_wait_stream(t->other, t->stream); }
STEP(wait_device) { return rill_stream_wait_device(t->other, vendor.device); }
STEP(wait_on_null) { return rill_stream_wait_stream(t->null_stream, t->other); }

/* ---- use: questions and host waits ---- */

GETTING(is_complete, bool, rill_stream_is_complete(t->stream, &out))
GETTING(null_is_complete, bool, rill_stream_is_complete(t->null_stream, &out))
GETTING(imported_is_complete, bool, rill_stream_is_complete(t->imported, &out))
GETTING(is_capturing, bool, rill_stream_is_capturing(t->stream, &out))
GETTING(is_ready, bool, rill_event_is_ready(t->event, &out))
GETTING(imported_is_ready, bool, rill_event_is_ready(t->from_vendor, &out))
GETTING(before_work_is_ready, bool, rill_event_is_ready(t->before_work, &out))

enum { LONG_NS = 1000000000 };

STEP(synchronize) { return rill_stream_synchronize(t->stream); }
STEP(synchronize_other) { return rill_stream_synchronize(t->other); }
STEP(synchronize_null) { return rill_stream_synchronize(t->null_stream); }
STEP(synchronize_per_thread) { return rill_stream_synchronize(t->per_thread); }
STEP(synchronize_second) { return rill_stream_synchronize(t->second_stream); }
STEP(synchronize_imported_for) { return rill_stream_synchronize_for(t->imported, LONG_NS * UINT64_C(60)); }
STEP(event_synchronize) { return rill_event_synchronize(t->event); }
STEP(before_work_synchronize) { return rill_event_synchronize(t->before_work); }
STEP(event_synchronize_for) { return rill_event_synchronize_for(t->from_vendor, LONG_NS * UINT64_C(60)); }
STEP(device_synchronize) {
  (void)t;
  return rill_device_synchronize(vendor.device);
}

STEP(elapsed) {
  POISON(t->ms);
  const rill_status status = rill_event_elapsed_time(t->start, t->end, &t->ms);
  return CHECKED(t, status, t->ms);
}

/* ---- use: a held stream.  What goes wrong when it is handed over is reported by its next synchronize ---- */

STEP(hold) { return rill_stream_wait_event(t->stream, t->first, 0); }
STEP(held_fill) { return fill(t->stream, t->memory, 4); }
STEP(held_pageable_up) { return rill_copy_async(t->stream, t->more, t->pageable, bytes); }
STEP(held_pageable_down) { return rill_copy_async(t->stream, t->pageable, t->more, bytes); }
STEP(held_fill_2d) { return fill_2d(t->stream, t->memory, 16); }
STEP(held_copy_2d) { return copy_2d(t->stream, t->memory, t->pageable); }
STEP(held_copy_3d) { return copy_3d(t->stream, t->more, t->memory, 60); }
STEP(held_prefetch) { return t->managed == NULL ? RILL_OK : rill_memory_prefetch_async(t->stream, t->managed, bytes); }
STEP(held_launch) { return launch(t->stream, t->kernel, t->memory, 0); }
STEP(held_record) { return rill_stream_record_event(t->stream, t->event, 0); }
STEP(held_host_call) { return rill_stream_host_call(t->stream, note_call, t); }
STEP(held_wait) { return rill_stream_wait_event(t->stream, t->shared, 0); }
GETTING(held_is_complete, bool, rill_stream_is_complete(t->stream, &out))
STEP(end_hold) { return rill_stream_record_event(t->other, t->first, 0); }
STEP(synchronize_held) { return rill_stream_synchronize(t->stream); }

/* ---- release ---- */

#define RELEASING(kind, member)                                  \
  STEP(release_##member) {                                       \
    const rill_status status = rill_##kind##_release(t->member); \
    t->member.id = 0;                                            \
    return status;                                               \
  }

RELEASING(stream, stream)
RELEASING(stream, high)
RELEASING(stream, other)
RELEASING(stream, imported)
RELEASING(stream, null_stream)
RELEASING(stream, legacy)
RELEASING(stream, per_thread)
RELEASING(stream, second_stream)
RELEASING(event, event)
RELEASING(event, start)
RELEASING(event, end)
RELEASING(event, shared)
RELEASING(event, from_vendor)
RELEASING(event, fresh)
RELEASING(event, first)
RELEASING(event, before_work)
RELEASING(kernel, kernel)
RELEASING(kernel, second_kernel)
RELEASING(module, module)
RELEASING(kernel, image_kernel)
RELEASING(module, image_module)

#define FREEING(member)                              \
  STEP(free_##member) {                              \
    const rill_status status = rill_free(t->member); \
    if (status == RILL_OK) t->member = NULL;         \
    return status;                                   \
  }

FREEING(memory)
FREEING(more)
FREEING(pinned)
FREEING(managed)
FREEING(second_memory)
FREEING(scratch)

/* What constants have used goes back to the driver with it. */
STEP(free_something) {
  const rill_status status = RILL_NEW(vendor.device, RILL_MEMORY_DEVICE, TOUR_WORDS, &t->scratch);
  return status == RILL_OK ? step_free_scratch(t) : status;
}

#define M(name, api, lost) \
  { #name, #api, step_##name, MAKE, lost }
#define U(name, api, lost) \
  { #name, #api, step_##name, USE, lost }
#define R(name, api, lost) \
  { #name, #api, step_##name, RELEASE, lost }
const struct step steps[] = {
  M(make_default_stream, rill_device_default_stream, LOST),
  M(make_stream, rill_stream_create, LOST),
  M(make_high, rill_stream_create, LOST),
  M(make_other, rill_stream_create, LOST),
  M(make_second_stream, rill_stream_create, WORKS),
  M(import_stream, rill_stream_import, LOST),
  M(import_null, rill_stream_import, LOST),
  M(import_legacy, rill_stream_import, LOST),
  M(import_per_thread, rill_stream_import, LOST),
  M(make_event, rill_event_create, LOST),
  M(make_start, rill_event_create, LOST),
  M(make_end, rill_event_create, LOST),
  M(make_shared, rill_event_create, LOST),
  M(make_first, rill_event_create, LOST),
  M(make_before_work, rill_event_create, LOST),
  M(import_event, rill_event_import, LOST),
  M(alloc_device, rill_alloc, LOST),
  M(alloc_more, rill_alloc, LOST),
  M(alloc_pinned, rill_alloc, LOST),
  M(alloc_managed, rill_alloc, LOST),
  M(alloc_second, rill_alloc, WORKS),
  M(load_module, rill_module_load, LOST),
  M(get_kernel, rill_module_get_kernel, WORKS),
  { "load_second", "", step_load_second, MAKE, WORKS }, /* two functions */
  M(load_image_module, rill_module_load_image, LOST),
  M(get_image_kernel, rill_module_get_kernel, WORKS),

  U(cached_event, rill_stream_cached_event, WORKS), /* made before the device was lost */
  U(record_before_work, rill_stream_record_event, LOST),
  U(synchronize, rill_stream_synchronize, LOST),
  U(before_work_is_ready, rill_event_is_ready, LOST),
  U(before_work_synchronize, rill_event_synchronize, LOST),

  U(count_devices, rill_device_count, WORKS),
  U(get_device, rill_device_get, WORKS),
  U(open_device, rill_device_open, WORKS),
  U(get_info, rill_device_get_info, WORKS),
  U(ask_features, rill_device_supports, WORKS),
  U(get_memory, rill_device_get_memory, LOST),
  U(stream_native, rill_stream_native, WORKS),
  U(stream_context, rill_stream_context, WORKS),
  U(stream_device, rill_stream_device, WORKS),
  U(stream_priority, rill_stream_priority, WORKS),
  U(stream_is_blocking, rill_stream_is_blocking, WORKS),
  U(stream_label, rill_stream_label, WORKS),
  U(stream_id, rill_stream_id, WORKS),
  U(event_native, rill_event_native, WORKS),
  U(event_device, rill_event_device, WORKS),
  U(event_is_recorded, rill_event_is_recorded, WORKS),
  U(kernel_arg_size, rill_kernel_arg_size, WORKS),
  U(kernel_get_info, rill_kernel_get_info, WORKS),
  U(module_get_global, rill_module_get_global, LOST),
  U(module_native, rill_module_native, WORKS),
  U(kernel_native, rill_kernel_native, WORKS),
  U(kernel_arg_offset, rill_kernel_arg_offset, WORKS),
  U(kernel_occupancy, rill_kernel_occupancy, LOST),
  U(kernel_suggest_block, rill_kernel_suggest_block, LOST),
  U(kernel_available_shared, rill_kernel_available_shared, LOST),
  U(kernel_cooperative_blocks, rill_kernel_cooperative_blocks, LOST),
  U(kernel_active_clusters, rill_kernel_active_clusters, LOST),
  U(retain_stream, rill_stream_retain, WORKS),
  U(unretain_stream, rill_stream_release, WORKS),
  U(retain_event, rill_event_retain, WORKS),
  U(unretain_event, rill_event_release, WORKS),
  U(retain_module, rill_module_retain, WORKS),
  U(unretain_module, rill_module_release, WORKS),
  U(retain_kernel, rill_kernel_retain, WORKS),
  U(unretain_kernel, rill_kernel_release, WORKS),

  U(record_start, rill_stream_record_event, LOST),
  U(fill_1, rill_fill_async, LOST),
  U(fill_2, rill_fill_async, LOST),
  U(fill_4, rill_fill_async, LOST),
  U(fill_8, rill_fill_async, LOST),
  U(fill_16, rill_fill_async, LOST),
  U(copy_up, rill_copy_async, LOST),
  U(copy_across, rill_copy_async, LOST),
  U(copy_down, rill_copy_async, LOST),
  U(copy_pageable_up, rill_copy_async, LOST),
  U(copy_pageable_down, rill_copy_async, LOST),
  U(fill_2d_1, rill_fill_2d_async, LOST),
  U(fill_2d_2, rill_fill_2d_async, LOST),
  U(fill_2d_4, rill_fill_2d_async, LOST),
  U(fill_2d_8, rill_fill_2d_async, LOST),
  U(fill_2d_16, rill_fill_2d_async, LOST),
  U(fill_2d_pinned, rill_fill_2d_async, LOST),
  U(copy_2d_up, rill_copy_2d_async, LOST),
  U(copy_2d_across, rill_copy_2d_async, LOST),
  U(copy_2d_pinned, rill_copy_2d_async, LOST),
  U(copy_2d_pageable, rill_copy_2d_async, LOST),
  U(copy_3d_down, rill_copy_3d_async, LOST),
  U(copy_3d_uneven, rill_copy_3d_async, LOST),
  U(enable_peer, rill_device_enable_peer, LOST),
  U(is_peer_enabled, rill_device_is_peer_enabled, WORKS),
  U(copy_peer, rill_copy_async, LOST),
  U(disable_peer, rill_device_disable_peer, LOST),
  U(prefetch, rill_memory_prefetch_async, LOST),
  U(advise, rill_memory_advise, LOST),
  U(advise_host, rill_memory_advise, LOST),
  U(memory_get_info, rill_memory_get_info, WORKS),
  { "register_host", "", step_register_host, USE, LOST }, /* two functions and a copy */
  U(launch_plain, rill_stream_launch, LOST),
  U(launch_with_shared, rill_stream_launch, LOST),
  U(launch_cooperative, rill_stream_launch, LOST),
  U(launch_cluster_attributes, rill_stream_launch, LOST),
  U(launch_large_cluster, rill_stream_launch, LOST),
  U(launch_constants, rill_stream_launch, LOST),
  U(launch_ref, rill_stream_launch_ref, LOST),
  U(launch_of_image, rill_stream_launch, LOST),
  U(host_call, rill_stream_host_call, LOST),
  U(record_end, rill_stream_record_event, LOST),
  U(record_new_event, rill_stream_record_new_event, LOST),
  U(record, rill_stream_record_event, LOST),
  U(record_external, rill_stream_record_event, LOST),
  U(record_shared, rill_stream_record_event, LOST),
  U(wait_event, rill_stream_wait_event, LOST),
  U(wait_imported, rill_stream_wait_event, LOST),
  U(wait_external, rill_stream_wait_event, LOST),
  U(wait_across, rill_stream_wait_event, LOST),
  U(wait_stream, rill_stream_wait_stream, LOST),
  U(wait_device, rill_stream_wait_device, LOST),
  U(fill_on_imported, rill_fill_async, LOST),
  U(fill_on_null, rill_fill_async, LOST),
  U(fill_on_per_thread, rill_fill_async, LOST),
  U(fill_2d_on_null, rill_fill_2d_async, LOST),
  U(copy_2d_on_null, rill_copy_2d_async, LOST),
  U(launch_on_null, rill_stream_launch, LOST),
  U(record_on_null, rill_stream_record_event, LOST),
  U(wait_on_null, rill_stream_wait_stream, LOST),
  U(fill_on_second, rill_fill_async, WORKS),
  U(launch_on_second, rill_stream_launch, WORKS),
  U(is_complete, rill_stream_is_complete, LOST),
  U(null_is_complete, rill_stream_is_complete, LOST),
  U(imported_is_complete, rill_stream_is_complete, LOST),
  U(is_capturing, rill_stream_is_capturing, LOST),
  U(is_ready, rill_event_is_ready, LOST),
  U(imported_is_ready, rill_event_is_ready, LOST),
  U(event_synchronize, rill_event_synchronize, LOST),
  U(event_synchronize_for, rill_event_synchronize_for, LOST),
  U(synchronize, rill_stream_synchronize, LOST),
  U(elapsed, rill_event_elapsed_time, LOST),
  U(synchronize_other, rill_stream_synchronize, LOST),
  U(synchronize_null, rill_stream_synchronize, LOST),
  U(synchronize_per_thread, rill_stream_synchronize, LOST),
  U(synchronize_imported_for, rill_stream_synchronize_for, LOST),
  U(synchronize_second, rill_stream_synchronize, WORKS),
  { "free_something", "", step_free_something, USE, LOST }, /* two functions */
  U(device_synchronize, rill_device_synchronize, LOST),

  U(hold, rill_stream_wait_event, LOST),
  U(held_fill, rill_fill_async, LOST),
  U(held_pageable_up, rill_copy_async, LOST),
  U(held_pageable_down, rill_copy_async, LOST),
  U(held_fill_2d, rill_fill_2d_async, LOST),
  U(held_copy_2d, rill_copy_2d_async, LOST),
  U(held_copy_3d, rill_copy_3d_async, LOST),
  U(held_prefetch, rill_memory_prefetch_async, LOST),
  U(held_launch, rill_stream_launch, LOST),
  U(held_launch_constants, rill_stream_launch, LOST),
  U(held_wait, rill_stream_wait_event, LOST),
  U(held_record, rill_stream_record_event, LOST),
  U(held_host_call, rill_stream_host_call, LOST),
  U(held_is_complete, rill_stream_is_complete, LOST),
  U(end_hold, rill_stream_record_event, LOST),
  U(synchronize_held, rill_stream_synchronize, LOST),
  U(synchronize_other, rill_stream_synchronize, LOST),

  U(preload_kernels, rill_bundle_preload, LOST),

  R(unload_kernels, rill_bundle_unload, WORKS),
  R(release_event, rill_event_release, WORKS),
  R(release_start, rill_event_release, WORKS),
  R(release_end, rill_event_release, WORKS),
  R(release_shared, rill_event_release, WORKS),
  R(release_from_vendor, rill_event_release, WORKS),
  R(release_fresh, rill_event_release, WORKS),
  R(release_before_work, rill_event_release, WORKS),
  R(release_first, rill_event_release, WORKS),
  R(release_kernel, rill_kernel_release, WORKS),
  R(release_second_kernel, rill_kernel_release, WORKS),
  R(release_module, rill_module_release, WORKS),
  R(release_image_kernel, rill_kernel_release, WORKS),
  R(release_image_module, rill_module_release, WORKS),
  R(release_stream, rill_stream_release, WORKS),
  R(release_high, rill_stream_release, WORKS),
  R(release_other, rill_stream_release, WORKS),
  R(release_imported, rill_stream_release, WORKS),
  R(release_null_stream, rill_stream_release, WORKS),
  R(release_legacy, rill_stream_release, WORKS),
  R(release_per_thread, rill_stream_release, WORKS),
  R(release_second_stream, rill_stream_release, WORKS),
  R(free_memory, rill_free, LOST),
  R(free_more, rill_free, LOST),
  R(free_pinned, rill_free, LOST),
  R(free_managed, rill_free, LOST),
  R(free_scratch, rill_free, WORKS), /* nothing, unless free_something failed */
  R(free_second_memory, rill_free, WORKS),
};
const size_t step_count = sizeof steps / sizeof *steps;

bool step_applies(const struct step *step) {
  static const char *const of_kernels[] = { "launch", "module", "kernel", "load_second", "get_kernel" };
  for (size_t i = 0; i < sizeof of_kernels / sizeof *of_kernels && !vendor.has_kernels; i++) {
    if (strstr(step->name, of_kernels[i]) != NULL) return false;
  }
  return vendor.cuda || strstr(step->name, "cluster") == NULL; /* the other has none */
}

const struct step *tour_walk(struct tour *tour, enum part first, enum part last) {
  for (size_t i = 0; i < step_count; i++) {
    const struct step *step = &steps[i];
    if (step->part < first || step->part > last || !step_applies(step)) continue;
    tour->status = step->run(tour);
    if (tour->status != RILL_OK) return step;
  }
  return NULL;
}

void tour_runs_clean(void) {
  struct tour tour = { .ms = -1 };
  const struct step *failed = tour_walk(&tour, MAKE, USE);
  if (failed != NULL) fail_msg("%s: %s", failed->name, rill_last_error_text());
  if (tour.spoiled != NULL) fail_msg("%s gave something wrong", tour.spoiled);
  assert_int_equal(atomic_load(&tour.called), 2);
  assert_int_equal(atomic_load(&tour.reported), RILL_OK);
  assert_true(tour.ms >= 0);
  failed = tour_walk(&tour, RELEASE, RELEASE);
  if (failed != NULL) fail_msg("%s: %s", failed->name, rill_last_error_text());
}

/* Released streams and events are kept for the next ones, up to a limit: with all kinds there, what else is alive
 * shows. */
static void fill_pools(rill_device device) {
  enum { MORE_THAN_KEPT = 300, MORE_STREAMS_THAN_KEPT = 70 };
  static rill_stream streams[MORE_STREAMS_THAN_KEPT];
  static rill_event events[MORE_THAN_KEPT];
  for (int kind = 0; kind < 3; kind++) {
    for (int i = 0; i < MORE_STREAMS_THAN_KEPT; i++) {
      const rill_stream_options options = { .struct_size = sizeof options,
                                            .priority = kind == 1 ? RILL_PRIORITY_HIGH : 0,
                                            .blocking = kind == 2 };
      streams[i] = RILL_NULL_STREAM;
      ignore(rill_stream_create(device, &options, &streams[i]));
    }
    for (int i = 0; i < MORE_STREAMS_THAN_KEPT; i++) ignore(rill_stream_release(streams[i]));
  }
  for (int kind = 0; kind < 4; kind++) {
    for (int i = 0; i < MORE_THAN_KEPT; i++) {
      const rill_event_options options = { .struct_size = sizeof options,
                                           .timing = kind & 1,
                                           .blocking_sync = kind & 2 };
      events[i] = RILL_NULL_EVENT;
      ignore(rill_event_create(device, &options, &events[i]));
    }
    for (int i = 0; i < MORE_THAN_KEPT; i++) ignore(rill_event_release(events[i]));
  }
}

size_t settle(size_t most) {
  enum { ROUNDS = 200 }; /* all that is complete is gone by then */
  const uint64_t end = now_ns() + TIMEOUT_NS / 60;
  size_t live = SIZE_MAX;
  fill_pools(vendor.device);
  fill_pools(vendor.second);
  for (int round = 0; round < ROUNDS || (live > most && now_ns() < end); round++) {
    const rill_device devices[] = { vendor.device, vendor.second };
    for (int i = 0; i < 2; i++) {
      rill_stream stream;
      rill_pool pool;
      if (rill_stream_create(devices[i], NULL, &stream) == RILL_OK) ignore(rill_stream_release(stream));
      if (rill_pool_create(devices[i], NULL, &pool) == RILL_OK) ignore(rill_pool_release(pool)); /* goes at once */
    }
    live = vendor.fake->live("*");
    if (live > most) (void)sched_yield();
  }
  return live;
}
