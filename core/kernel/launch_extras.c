#include "core/kernel/launch_extras.h"

#include "core/device/life.h"
#include "core/held/held.h"
#include "core/kernel/global.h"
#include "core/kernel/launch.h"
#include "core/memory/memory.h"
#include "core/pool/pool.h"
#include "core/pool/staging.h"

#include <stdlib.h>
#include <string.h>

/* ---- attributes ---- */

static const char *const names[] = {
  [RILL_ATTR_COOPERATIVE] = "RILL_ATTR_COOPERATIVE",
  [RILL_ATTR_PRIORITY] = "RILL_ATTR_PRIORITY",
  [RILL_ATTR_PROGRAMMATIC_SERIALIZATION] = "RILL_ATTR_PROGRAMMATIC_SERIALIZATION",
  [RILL_ATTR_PROGRAMMATIC_EVENT] = "RILL_ATTR_PROGRAMMATIC_EVENT",
  [RILL_ATTR_ACCESS_POLICY] = "RILL_ATTR_ACCESS_POLICY",
  [RILL_ATTR_MEMORY_SYNC_DOMAIN] = "RILL_ATTR_MEMORY_SYNC_DOMAIN",
  [RILL_ATTR_CARVEOUT] = "RILL_ATTR_CARVEOUT",
};
_Static_assert(sizeof names / sizeof *names == RILL_ATTR_END_, "a name for each attribute");

/* The launch that is being read. */
struct reading {
  struct rill__stream *stream;
  const struct rill__launch *launch;
  struct rill__launch_extras *out;
};

static rill_status check_supported(const struct reading *reading, uint32_t kind) {
  struct rill__device *device = reading->stream->base.device;
  const char *why = "";
  RILL_REQUIRE(RILL_ASK(device, kernel, has_attribute, device, kind, &why), RILL_ERROR_UNSUPPORTED,
               "rill_launch.attributes: %s on %s: %s", names[kind], device->name, why);
  reading->out->set |= 1u << kind;
  return RILL_OK;
}

/* Reads a switch; 0 requests nothing. */
static rill_status read_switch(const struct reading *reading, const rill_launch_attribute *attribute, bool *on) {
  const int32_t value = attribute->value.i32;
  RILL_REQUIRE(value == 0 || value == 1, RILL_ERROR_INVALID_ARGUMENT,
               "rill_launch.attributes: %s is %d, neither 0 nor 1", names[attribute->kind], value);
  *on = value == 1;
  return *on ? check_supported(reading, attribute->kind) : RILL_OK;
}

/* Checks that all blocks of a cooperative grid can run at the same time, because the grid synchronizes all of them. */
static rill_status check_cooperative(const struct reading *reading) {
  const struct rill__launch *l = reading->launch;
  struct rill__kernel *kernel = l->kernel;
  const uint64_t blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
  uint64_t most = 0;
  RILL_TRY(rill__cooperative_blocks(kernel, l->block[0] * l->block[1] * l->block[2], l->shared_mem_bytes, &most));
  if (l->clustered && kernel->base.device->backend->kernel->active_clusters != NULL) {
    uint32_t clusters = 0;
    RILL_TRY(RILL_DISPATCH(kernel, kernel, active_clusters, kernel, l, &clusters));
    const uint64_t in_clusters = (uint64_t)clusters * l->cluster[0] * l->cluster[1] * l->cluster[2];
    if (in_clusters < most) most = in_clusters;
  }
  RILL_REQUIRE(blocks <= most, RILL_ERROR_OUT_OF_RANGE,
               "kernel \"%s\": a cooperative grid of %llu blocks, but %s runs at most %llu of them at a time",
               kernel->name, (unsigned long long)blocks, kernel->base.device->name, (unsigned long long)most);
  return RILL_OK;
}

static rill_status read_priority(const struct reading *reading, int32_t requested) {
  const rill_device_info *info = &reading->stream->base.device->info;
  const int32_t least = info->priority_least, greatest = info->priority_greatest;
  if (requested == RILL_PRIORITY_HIGH) requested = greatest;
  if (requested == RILL_PRIORITY_LOW) requested = least;
  reading->out->priority = requested < greatest ? greatest : requested > least ? least : requested;
  return check_supported(reading, RILL_ATTR_PRIORITY);
}

static rill_status read_event(const struct reading *reading, const rill_launch_attribute *attribute) {
  struct rill__thread *self = rill__self;
  struct rill__event *event;
  RILL_RESOLVE(RILL__EVENT, attribute->value.event, "rill_launch.attributes: value.event", &event);
  RILL_TRY(rill__check_same_device(&reading->stream->base, &event->base));
  const char *fault = rill__core(event)->cached ? "is the cached event of a stream"
                      : event->timing           ? "was created with timing"
                      : event->interprocess     ? "is shared with other processes"
                                                : NULL;
  RILL_REQUIRE(fault == NULL, RILL_ERROR_INVALID_ARGUMENT,
               "rill_launch.attributes: RILL_ATTR_PROGRAMMATIC_EVENT: %s %s" RILL_HINT
               "use a separate event, created with the default options",
               rill__name_of(&event->base).text, fault);
  reading->out->event = event;
  reading->out->trigger_at_start = (attribute->flags & RILL_ATTR_TRIGGER_AT_BLOCK_START) != 0;
  return check_supported(reading, RILL_ATTR_PROGRAMMATIC_EVENT);
}

static rill_status read_access(const struct reading *reading, const rill_launch_attribute *attribute) {
  const float ratio = attribute->value.access.hit_ratio;
  const uint32_t hit = attribute->value.access.hit, miss = attribute->value.access.miss;
  void *const base = attribute->value.access.base;
  const size_t size = attribute->value.access.size;
  const struct rill__device *device = reading->stream->base.device;
  RILL_REQUIRE(ratio >= 0 && ratio <= 1, RILL_ERROR_OUT_OF_RANGE,
               "rill_launch.attributes: RILL_ATTR_ACCESS_POLICY: hit_ratio is %g, not from 0 to 1", (double)ratio);
  RILL_REQUIRE(hit <= RILL_ACCESS_PERSISTING && miss < RILL_ACCESS_PERSISTING, RILL_ERROR_INVALID_ARGUMENT,
               "rill_launch.attributes: RILL_ATTR_ACCESS_POLICY: hit is %u and miss is %u: both must be RILL_ACCESS_*, "
               "and miss cannot be RILL_ACCESS_PERSISTING",
               hit, miss);
  RILL_REQUIRE(base != NULL || size == 0, RILL_ERROR_INVALID_ARGUMENT,
               "rill_launch.attributes: RILL_ATTR_ACCESS_POLICY: base is NULL, but size is %zu", size);
  RILL_TRY(check_supported(reading, RILL_ATTR_ACCESS_POLICY));
  RILL_REQUIRE(size <= device->max_access_window, RILL_ERROR_OUT_OF_RANGE,
               "rill_launch.attributes: RILL_ATTR_ACCESS_POLICY: size is %zu, but the limit of %s is %llu", size,
               device->name, (unsigned long long)device->max_access_window);
  uint32_t kind;
  if (size > 0) RILL_TRY(rill__memory_check(reading->stream, base, size, "value.access", &kind));
  reading->out->access.base = base;
  reading->out->access.size = size;
  reading->out->access.hit_ratio = ratio;
  reading->out->access.hit = hit;
  reading->out->access.miss = miss;
  return RILL_OK;
}

static rill_status read_number(const struct reading *reading, const rill_launch_attribute *attribute, int32_t least,
                               int32_t most, int32_t *out) {
  *out = attribute->value.i32;
  RILL_REQUIRE(*out >= least && *out <= most, RILL_ERROR_OUT_OF_RANGE,
               "rill_launch.attributes: %s is %d, not from %d to %d", names[attribute->kind], *out, least, most);
  return check_supported(reading, attribute->kind);
}

static rill_status read_attribute(const struct reading *reading, const rill_launch_attribute *attribute) {
  bool on = false;
  switch (attribute->kind) {
    case RILL_ATTR_COOPERATIVE:
      RILL_TRY(read_switch(reading, attribute, &on));
      return on ? check_cooperative(reading) : RILL_OK;
    case RILL_ATTR_PRIORITY: return read_priority(reading, attribute->value.i32);
    case RILL_ATTR_PROGRAMMATIC_SERIALIZATION: return read_switch(reading, attribute, &reading->out->serialize);
    case RILL_ATTR_PROGRAMMATIC_EVENT: return read_event(reading, attribute);
    case RILL_ATTR_ACCESS_POLICY: return read_access(reading, attribute);
    case RILL_ATTR_MEMORY_SYNC_DOMAIN: return read_number(reading, attribute, 0, 1, &reading->out->sync_domain);
    case RILL_ATTR_CARVEOUT: return read_number(reading, attribute, -1, 100, &reading->out->carveout);
    default: return RILL_ERROR_INTERNAL; /* already checked */
  }
}

rill_status rill__attributes_read(struct rill__stream *stream, const rill_launch *shape,
                                  const struct rill__launch *launch, struct rill__launch_extras *out) {
  const struct reading reading = { stream, launch, out };
  uint32_t seen = 0;
  RILL_REQUIRE(shape->attribute_count == 0 || shape->attributes != NULL, RILL_ERROR_INVALID_ARGUMENT,
               "rill_launch.attributes is NULL, but attribute_count is %zu", shape->attribute_count);
  for (size_t i = 0; i < shape->attribute_count; i++) {
    const rill_launch_attribute *attribute = &shape->attributes[i];
    const uint32_t kind = attribute->kind;
    RILL_REQUIRE(kind >= RILL_ATTR_COOPERATIVE && kind < RILL_ATTR_END_, RILL_ERROR_INVALID_ARGUMENT,
                 "rill_launch.attributes[%zu]: kind %u is not an attribute", i, kind);
    const uint32_t flags = kind == RILL_ATTR_PROGRAMMATIC_EVENT ? RILL_ATTR_TRIGGER_AT_BLOCK_START : 0;
    RILL_REQUIRE((attribute->flags & ~flags) == 0, RILL_ERROR_INVALID_ARGUMENT,
                 "rill_launch.attributes[%zu]: flags of %s are 0x%x, but only 0x%x may be set", i, names[kind],
                 attribute->flags, flags);
    RILL_REQUIRE((seen & 1u << kind) == 0, RILL_ERROR_INVALID_ARGUMENT, "rill_launch.attributes[%zu]: %s appears twice",
                 i, names[kind]);
    seen |= 1u << kind;
    RILL_TRY(read_attribute(&reading, attribute));
  }
  return RILL_OK;
}

/* ---- constants ---- */

struct constants {
  struct rill__payload payload;
  struct held_staging *staging; /* NULL if they have no bytes */
  struct rill__block *block;    /* block of the staging buffer */
  size_t count;
  struct rill__constant items[];
};

static size_t padded(size_t size) { return (size + 15) / 16 * 16; }

/* Looks up the variable and sets `to` and `size`. */
static rill_status check_constant(struct rill__kernel *kernel, const rill_constant *constant, size_t i,
                                  struct rill__constant *out) {
  size_t size = 0;
  RILL_REQUIRE(constant->symbol != NULL && (constant->data != NULL || constant->size == 0), RILL_ERROR_INVALID_ARGUMENT,
               "rill_launch.constants[%zu]: %s is NULL", i, constant->symbol == NULL ? "symbol" : "data");
  RILL_TRY(rill__global_find(kernel->module, constant->symbol, &out->to, &size));
  RILL_REQUIRE(constant->size <= size, RILL_ERROR_OUT_OF_RANGE,
               "rill_launch.constants[%zu]: %zu bytes for \"%s\", which has %zu", i, constant->size, constant->symbol,
               size);
  out->size = constant->size;
  return RILL_OK;
}

/* Checks all constants and adds up their bytes. */
static rill_status check_constants(struct rill__kernel *kernel, const rill_launch *shape, struct constants *constants) {
  for (size_t i = 0; i < shape->constant_count; i++) {
    struct rill__constant *item = &constants->items[constants->count];
    RILL_TRY(check_constant(kernel, &shape->constants[i], i, item));
    if (item->size == 0) continue;
    item->from = shape->constants[i].data;
    constants->payload.bytes += padded(item->size); /* each constant is within a variable, so the sum cannot overflow */
    constants->count++;
  }
  return RILL_OK;
}

static rill_status refuse_in_capture_of_launch(struct rill__stream *stream) {
  bool capturing = false;
  if (rill__is_captured(stream)) return RILL_OK; /* the node of the graph keeps them */
  RILL_TRY(RILL_DISPATCH(stream, stream, is_capturing, stream, &capturing));
  RILL_REQUIRE(!capturing, RILL_ERROR_UNSUPPORTED,
               "rill_launch.constants on %s: %s is capturing, and a graph keeps no copy of constants, as of version "
               "%d.%d" RILL_HINT "copy to the variable's address (rill_module_get_global)",
               stream->base.device->name, rill__name_of(&stream->base).text, RILL_VERSION_MAJOR, RILL_VERSION_MINOR);
  return RILL_OK;
}

/* Frees the constants in the stream's order.  Called when the stream's driver has received the launch, or when the
 * constants are not used. */
static void finish_constants(struct rill__stream *stream, struct rill__payload *payload) {
  struct constants *constants = (struct constants *)payload;
  if (constants->staging != NULL) rill__staging_finish(stream, constants->staging);
  free(constants);
}

static void drop_constants(struct rill__payload *payload) {
  struct constants *constants = (struct constants *)payload;
  if (constants->block != NULL) rill__staging_cancel(constants->block);
  free(constants);
}

rill_status rill__constants_take(struct rill__stream *stream, struct rill__kernel *kernel, const rill_launch *shape,
                                 struct rill__launch_extras *extras, struct rill__payload **out) {
  *out = NULL;
  RILL_REQUIRE(shape->constant_count == 0 || shape->constants != NULL, RILL_ERROR_INVALID_ARGUMENT,
               "rill_launch.constants is NULL, but constant_count is %zu", shape->constant_count);
  if (shape->constant_count == 0) return RILL_OK;
  struct constants *constants = NULL;
  if (shape->constant_count <= (SIZE_MAX - sizeof *constants) / sizeof constants->items[0]) {
    constants = calloc(1, sizeof *constants + shape->constant_count * sizeof constants->items[0]);
  }
  RILL_REQUIRE(constants != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for %zu constants", shape->constant_count);
  constants->payload = (struct rill__payload){ finish_constants, drop_constants, 0, NULL };
  rill_status status = check_constants(kernel, shape, constants);
  if (status == RILL_OK) status = refuse_in_capture_of_launch(stream);
  if (status == RILL_OK && constants->count > 0) {
    status = rill__staging_take(stream->base.device, stream, constants->payload.bytes, &constants->staging);
  }
  if (status != RILL_OK) {
    free(constants);
    return status;
  }
  if (constants->staging != NULL) constants->block = constants->staging->block;
  size_t offset = 0;
  for (size_t i = 0; i < constants->count; i++) {
    struct rill__constant *item = &constants->items[i];
    item->from = memcpy((char *)constants->staging->memory + offset, item->from, item->size);
    offset += padded(item->size);
  }
  extras->constants = constants->items;
  extras->constant_count = constants->count;
  *out = &constants->payload;
  return RILL_OK;
}
