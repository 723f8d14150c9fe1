/* Steps of the tour that make, ask and release. */
#include "tour_steps.h"

static rill_bundle own_bundle;

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
MAKING(load_module, t->module, rill_module_load(vendor.device, tour_bundle(&own_bundle), &t->module))
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
  rill_status status = rill_module_load(vendor.second, tour_bundle(&own_bundle), &module);
  if (CHECKED(t, status, module) != RILL_OK) return status;
  POISON(t->second_kernel);
  status = rill_module_get_kernel(module, "increment", &t->second_kernel);
  ignore(rill_module_release(module));
  return CHECKED(t, status, t->second_kernel);
}

/* ---- use: getters ---- */

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

/* Not answered from an earlier query. */
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

/* It returns staging memory of constants to the driver. */
STEP(free_something) {
  const rill_status status = RILL_NEW(vendor.device, RILL_MEMORY_DEVICE, TOUR_WORDS, &t->scratch);
  return status == RILL_OK ? step_free_scratch(t) : status;
}
