/* Steps of the tour that submit work, order it and wait for it. */
#include "tour_steps.h"

static rill_bundle ref_bundle, typed_bundle, preload_bundle;

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
/* Without support, another step has reported it. */
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
/* All launch attributes of the vendor's devices, except those of another step. */
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
  if (t->ref.bundle == NULL) t->ref = (rill_kernel_ref){ tour_bundle(&ref_bundle), "increment", { 0, 0 } };
  uint32_t *counter = t->memory;
  return rill_stream_launch_ref(t->stream, &t->ref, &shape, RILL_ARGS(counter));
}

/* As a function that rillcc writes does. */
STEP(launch_typed) {
  const rill_launch shape = rill_launch_1d(1, 1);
  if (t->typed_ref.bundle == NULL)
    t->typed_ref = (rill_kernel_ref){ tour_bundle(&typed_bundle), "increment", { 0, 0 } };
  uint32_t *counter = t->memory;
  return rill_stream_launch_typed(t->stream, &t->typed_ref, &shape, RILL_ARGS(counter), "increment_launch");
}

STEP(preload_kernels) {
  (void)t;
  return rill_bundle_preload(vendor.device, tour_bundle(&preload_bundle));
}

STEP(unload_kernels) {
  (void)t;
  return rill_bundle_unload(tour_bundle(&preload_bundle));
}

STEP(launch_of_image) { return launch(t->stream, t->image_kernel, t->memory, 0); }
STEP(host_call) { return rill_stream_host_call(t->stream, tour_note_call, t); }

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

/* ---- use: a held stream. Failures of its flush are reported by its next synchronize ---- */

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
STEP(held_host_call) { return rill_stream_host_call(t->stream, tour_note_call, t); }
STEP(held_wait) { return rill_stream_wait_event(t->stream, t->shared, 0); }
GETTING(held_is_complete, bool, rill_stream_is_complete(t->stream, &out))
STEP(end_hold) { return rill_stream_record_event(t->other, t->first, 0); }
STEP(synchronize_held) { return rill_stream_synchronize(t->stream); }
