#include "core/kernel/launch.h"

#include "core/device/life.h"
#include "core/held/held.h"
#include "core/held/record.h"
#include "core/kernel/launch_extras.h"
#include "core/kernel/module.h"
#include "core/object/options.h"
#include "core/sync/submit.h"
#include "core/tracking/frees.h"
#include "core/tracking/ranges.h"

#include <string.h>
#if defined(__has_include)
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#endif
#endif
#ifndef VALGRIND_MAKE_MEM_DEFINED
#define VALGRIND_MAKE_MEM_DEFINED(address, size) (void)0
#endif

static const char axes[] = { 'x', 'y', 'z' };

enum { MAX_ARGS = 1024 }; /* rill's own limit; drivers limit the bytes: older ones to 4 KiB, newer ones to 32764 */
enum { FEW_ARGS = 15 };   /* room that every launch has for arguments */

static __attribute__((noinline)) rill_status fail_dimensions(const struct rill__kernel *kernel, const char *what,
                                                             const uint32_t size[3], const uint32_t limit[3]) {
  RILL_REQUIRE(size[0] != 0, RILL_ERROR_INVALID_ARGUMENT, "kernel \"%s\": %s.x is 0", kernel->name, what);
  for (int i = 0; i < 3; i++) {
    RILL_REQUIRE(size[i] <= limit[i], RILL_ERROR_OUT_OF_RANGE, "kernel \"%s\": %s.%c is %u, but the limit of %s is %u",
                 kernel->name, what, axes[i], size[i], kernel->base.device->name, limit[i]);
  }
  return RILL_OK;
}

/* Checks a grid or block.  `size` was read by read_dim3. */
static inline rill_status check_dimensions(const struct rill__kernel *kernel, const char *what, const uint32_t size[3],
                                           const uint32_t limit[3]) {
  if (RILL__LIKELY(size[0] - 1 < limit[0]) && RILL__LIKELY(size[1] <= limit[1]) && RILL__LIKELY(size[2] <= limit[2]))
    return RILL_OK;
  return fail_dimensions(kernel, what, size, limit); /* which also checks that size[0] is not 0 */
}

static void read_dim3(uint32_t into[3], rill_dim3 from) {
  into[0] = from.x;
  into[1] = from.y + (from.y == 0);
  into[2] = from.z + (from.z == 0);
}

/* Allows the kernel more dynamic shared memory than it may use so far. */
static __attribute__((noinline)) rill_status opt_in_to_shared(struct rill__kernel *kernel, uint64_t bytes) {
  const struct rill__device *device = kernel->base.device;
  const uint64_t limit = device->info.shared_per_block_optin, fixed = kernel->static_shared;
  RILL_REQUIRE(fixed <= limit && bytes <= limit - fixed, RILL_ERROR_OUT_OF_RANGE,
               "kernel \"%s\": %llu bytes of dynamic shared memory and %llu of static, but the limit of %s is %llu",
               kernel->name, (unsigned long long)bytes, (unsigned long long)fixed, device->name,
               (unsigned long long)limit);
  if (device->backend->kernel->allow_shared == NULL) return RILL_OK;
  RILL_TRY(RILL_DISPATCH(kernel, kernel, allow_shared, kernel, bytes));
  uint64_t allowed = atomic_load(&kernel->shared_allowed);
  while (allowed < bytes && !atomic_compare_exchange_weak(&kernel->shared_allowed, &allowed, bytes)) {
  }
  return RILL_OK;
}

static inline rill_status check_shared(struct rill__kernel *kernel, uint64_t bytes) {
  if (RILL__LIKELY(bytes <= atomic_load_explicit(&kernel->shared_allowed, memory_order_relaxed))) return RILL_OK;
  return opt_in_to_shared(kernel, bytes);
}

rill_status rill__launch_check_shared(struct rill__kernel *kernel, uint64_t bytes) {
  return check_shared(kernel, bytes);
}

/* Checks a cluster with more blocks than every device with clusters can run, by asking the driver for the limit of this
 * launch. */
static rill_status check_large_cluster(struct rill__kernel *kernel, const struct rill__launch *launch,
                                       uint64_t blocks) {
  uint32_t limit = RILL__PORTABLE_CLUSTER;
  if (kernel->base.device->backend->kernel->cluster_limit != NULL) {
    RILL_TRY(RILL_DISPATCH(kernel, kernel, cluster_limit, kernel, launch, &limit));
  }
  RILL_REQUIRE(blocks <= limit, RILL_ERROR_OUT_OF_RANGE,
               "kernel \"%s\": a cluster of %u x %u x %u blocks, but the limit of %s is %u blocks", kernel->name,
               launch->cluster[0], launch->cluster[1], launch->cluster[2], kernel->base.device->name, limit);
  return RILL_OK;
}

static rill_status check_cluster(struct rill__kernel *kernel, const rill_launch *shape, struct rill__launch *out) {
  struct rill__device *device = kernel->base.device;
  const char *why = "";
  read_dim3(out->cluster, shape->cluster);
  RILL_REQUIRE(out->cluster[0] != 0, RILL_ERROR_INVALID_ARGUMENT, "rill_launch.cluster.x is 0, y is %u and z is %u",
               shape->cluster.y, shape->cluster.z);
  uint64_t blocks = out->cluster[0];
  /* stops early, because a larger number is refused in any case */
  for (int i = 1; i < 3 && blocks <= UINT32_MAX; i++) blocks *= out->cluster[i];
  if (blocks == 1) return RILL_OK; /* the default */
  RILL_REQUIRE(RILL_ASK(device, device, supports, device, RILL_FEATURE_CLUSTER, &why), RILL_ERROR_UNSUPPORTED,
               "rill_launch.cluster on %s: %s", device->name, why);
  for (int i = 0; i < 3; i++) {
    RILL_REQUIRE(out->grid[i] % out->cluster[i] == 0, RILL_ERROR_INVALID_ARGUMENT,
                 "grid.%c is %u blocks, not a multiple of the cluster's %u", axes[i], out->grid[i], out->cluster[i]);
  }
  out->clustered = true;
  return blocks <= RILL__PORTABLE_CLUSTER ? RILL_OK : check_large_cluster(kernel, out, blocks);
}

/* Checks a launch of a kernel that was compiled for one cluster shape. */
static rill_status check_required_cluster(const struct rill__kernel *kernel, const struct rill__launch *launch) {
  const uint32_t *cluster = kernel->required_cluster;
  RILL_REQUIRE(!launch->clustered || memcmp(cluster, launch->cluster, sizeof launch->cluster) == 0,
               RILL_ERROR_INVALID_ARGUMENT,
               "kernel \"%s\": it was compiled for clusters of %u x %u x %u blocks, not of %u x %u x %u", kernel->name,
               cluster[0], cluster[1], cluster[2], launch->cluster[0], launch->cluster[1], launch->cluster[2]);
  for (int i = 0; i < 3; i++) {
    RILL_REQUIRE(launch->grid[i] % cluster[i] == 0, RILL_ERROR_INVALID_ARGUMENT,
                 "grid.%c is %u blocks, not a multiple of the %u of the cluster that kernel \"%s\" requires", axes[i],
                 launch->grid[i], cluster[i], kernel->name);
  }
  return RILL_OK;
}

static rill_status fail_block(const struct rill__kernel *kernel, const uint32_t block[3]) {
  return rill__fail(RILL_ERROR_INVALID_ARGUMENT,
                    "kernel \"%s\": it was compiled for blocks of %u x %u x %u threads, not of %u x %u x %u",
                    kernel->name, kernel->block[0], kernel->block[1], kernel->block[2], block[0], block[1], block[2]);
}

/* Checks the number of threads in each dimension, for a device that limits it. */
static __attribute__((noinline)) rill_status check_threads_per_dim(const struct rill__kernel *kernel,
                                                                   const struct rill__launch *launch, uint64_t limit) {
  for (int i = 0; i < 3; i++) {
    RILL_REQUIRE((uint64_t)launch->grid[i] * launch->block[i] <= limit, RILL_ERROR_OUT_OF_RANGE,
                 "kernel \"%s\": %u blocks of %u threads in %c, but the limit of %s is %llu threads", kernel->name,
                 launch->grid[i], launch->block[i], axes[i], kernel->base.device->name, (unsigned long long)limit);
  }
  return RILL_OK;
}

/* Checks the shape of a launch.  Inlined, because every launch is checked. */
static inline __attribute__((always_inline)) rill_status
check_shape(struct rill__kernel *kernel, const rill_launch *shape, struct rill__launch *out) {
  struct rill__device *device = kernel->base.device;
  RILL_REQUIRE(shape->reserved == 0, RILL_ERROR_INVALID_ARGUMENT, "rill_launch.reserved is %u, not 0", shape->reserved);
  read_dim3(out->grid, shape->grid);
  read_dim3(out->block, shape->block);
  RILL_TRY(check_dimensions(kernel, "grid", out->grid, device->info.max_grid_dim));
  RILL_TRY(check_dimensions(kernel, "block", out->block, device->info.max_block_dim));
  const uint64_t threads = (uint64_t)out->block[0] * out->block[1] * out->block[2];
  if (RILL__UNLIKELY(kernel->block[0] != 0) && memcmp(kernel->block, out->block, sizeof out->block) != 0) {
    return fail_block(kernel, out->block);
  }
  RILL_REQUIRE(threads <= kernel->max_threads, RILL_ERROR_OUT_OF_RANGE,
               "kernel \"%s\": a block of %u x %u x %u is %llu threads, but the limit is %u", kernel->name,
               out->block[0], out->block[1], out->block[2], (unsigned long long)threads, kernel->max_threads);
  if (device->max_threads_per_dim != 0) RILL_TRY(check_threads_per_dim(kernel, out, device->max_threads_per_dim));
  RILL_TRY(check_shared(kernel, shape->shared_mem_bytes));
  out->shared_mem_bytes = shape->shared_mem_bytes;
  if (RILL__UNLIKELY(shape->cluster.x != 0 || shape->cluster.y != 0 || shape->cluster.z != 0)) {
    RILL_TRY(check_cluster(kernel, shape, out));
  }
  if (RILL__UNLIKELY(kernel->required_cluster[0] != 0)) RILL_TRY(check_required_cluster(kernel, out));
  return RILL_OK;
}

rill_status rill__launch_check_shape(struct rill__kernel *kernel, const rill_launch *shape, struct rill__launch *out) {
  return check_shape(kernel, shape, out);
}

rill_status rill__fail_unknown_args(const struct rill__kernel *kernel) {
  const char *why = "";
  (void)RILL_ASK(kernel, device, supports, kernel->base.device, RILL_FEATURE_KERNEL_ARGS, &why);
  return rill__fail(RILL_ERROR_UNSUPPORTED, "the arguments of kernel \"%s\" are not known on %s: %s", kernel->name,
                    kernel->base.device->name, why);
}

/* Checks the number of arguments, `count`, before the caller allocates memory for that many values. */
static rill_status check_arg_count(const struct rill__kernel *kernel, const rill_arg *args, size_t count) {
  const rill_bundle_kernel *const source = kernel->source;
  RILL_REQUIRE(count == source->arg_count || source->arg_count == RILL__ARGS_UNKNOWN, RILL_ERROR_INVALID_ARGUMENT,
               "kernel \"%s\": %zu arguments passed, %u expected", kernel->name, count, source->arg_count);
  RILL_REQUIRE(args != NULL || count == 0, RILL_ERROR_INVALID_ARGUMENT,
               "kernel \"%s\": args is NULL, but %zu arguments are expected", kernel->name, count);
  RILL_REQUIRE(count <= MAX_ARGS, RILL_ERROR_OUT_OF_RANGE, "kernel \"%s\": %zu arguments, but the limit is %d",
               kernel->name, count, MAX_ARGS);
  return RILL_OK;
}

/* Fails for an argument of the wrong size or without data.  The text includes the argument's name, if the image has it.
 */
static __attribute__((cold)) rill_status fail_arg(const struct rill__kernel *kernel, const rill_arg *arg, size_t i) {
  const rill_bundle_kernel *const source = kernel->source;
  const bool known = source->arg_count != RILL__ARGS_UNKNOWN;
  const char *name = known ? source->args[i].name : "";
  const char *open = name[0] != '\0' ? " (\"" : "", *close = name[0] != '\0' ? "\")" : "";
  RILL_REQUIRE(!known || arg->size == source->args[i].size, RILL_ERROR_INVALID_ARGUMENT,
               "kernel \"%s\": argument %zu%s%s%s: %zu bytes passed, %u expected", kernel->name, i + 1, open, name,
               close, arg->size, source->args[i].size);
  return rill__fail(RILL_ERROR_INVALID_ARGUMENT, "kernel \"%s\": argument %zu%s%s%s: data is NULL", kernel->name, i + 1,
                    open, name, close);
}

/* There are two loops, so that neither has to check for each argument whether the sizes are known. */
static inline rill_status read_args(const struct rill__kernel *kernel, const rill_arg *args, size_t count,
                                    void **values) {
  const rill_bundle_arg *const expected = kernel->source->args;
  size_t i = 0;
  if (RILL__LIKELY(kernel->source->arg_count != RILL__ARGS_UNKNOWN)) {
    for (; i < count && args[i].size == expected[i].size && args[i].data != NULL; i++)
      values[i] = (void *)(uintptr_t)args[i].data;
  } else {
    for (; i < count && args[i].data != NULL; i++) values[i] = (void *)(uintptr_t)args[i].data;
  }
  if (RILL__UNLIKELY(i != count)) return fail_arg(kernel, &args[i], i);
  values[count] = NULL;
  return RILL_OK;
}

/* Returns true if one of the arguments, or a member of one, may point to memory that rill does not know.  The memory
 * that an argument points to is not searched for pointers. */
static __attribute__((noinline)) bool has_unknown_address(const struct rill__device *device, const rill_arg *args,
                                                          size_t count) {
  for (size_t i = 0; i < count; i++) {
    for (size_t at = 0; at + sizeof(uint64_t) <= args[i].size; at += sizeof(uint64_t)) {
      uint64_t word = 0;
      memcpy(&word, (const char *)args[i].data + at, sizeof word);
      (void)VALGRIND_MAKE_MEM_DEFINED(&word, sizeof word); /* a struct may have padding */
      if (device->backend->memory->may_be_address(word) && rill__ranges_find((void *)(uintptr_t)word) == NULL)
        return true;
    }
  }
  return false;
}

__attribute__((noinline)) rill_status rill__launch_read(rill_launch *into, const rill_launch *from) {
  *into = (rill_launch)RILL_LAUNCH_INIT;
  return rill__options_read(into, sizeof *into, from, "rill_launch");
}

/* Submits to a stream that is held, or was held until just now. */
static __attribute__((noinline)) rill_status submit_held(struct rill__stream *stream, const struct rill__launch *launch,
                                                         struct rill__payload **payload, bool *taken) {
  if (launch->kernel->source->arg_count == RILL__ARGS_UNKNOWN)
    return rill__fail_unknown_args(launch->kernel); /* without them the arguments cannot be copied */
  RILL_REQUIRE(launch->extras == NULL || launch->extras->event == NULL, RILL_ERROR_UNSUPPORTED,
               "rill_launch.attributes: RILL_ATTR_PROGRAMMATIC_EVENT on %s: %s is held, and a held stream cannot "
               "launch a kernel that records an event, as of version %d.%d" RILL_HINT
               "record the event after the launch",
               stream->base.device->name, rill__name_of(&stream->base).text, RILL_VERSION_MAJOR, RILL_VERSION_MINOR);
  return rill__held_launch(stream, launch, payload, taken);
}

/* Submits to the driver or to the stream's queue. */
static inline __attribute__((always_inline)) rill_status
submit_launch(struct rill__stream *stream, const struct rill__launch *launch, struct rill__payload **payload) {
  RILL_DIVERT(stream, submit_held, launch, payload);
  return rill__submit_launch(stream, launch);
}

/* Submits a launch that records an event. */
static rill_status submit_recording(struct rill__stream *stream, const struct rill__launch *launch,
                                    struct rill__launch_extras *extras, struct rill__payload **payload) {
  struct rill__thread *const self = rill__self;
  struct rill__recording recording;
  RILL_TRY(rill__recording_begin(&recording, stream, extras->event));
  if (recording.held) {
    bool taken = false;
    return submit_held(stream, launch, payload, &taken); /* the capture refuses the launch */
  }
  extras->event = recording.target;
  rill__submission_begin(&rill__core(recording.target)->work, self);
  const rill_status status = submit_launch(stream, launch, payload);
  rill__submission_end(&rill__core(recording.target)->work, self);
  rill__recording_end(&recording, status);
  return status;
}

/* Submits a launch that records an event to a capturing stream.  In a graph the event is recorded after the entire
 * kernel, which is not earlier than the trigger of its blocks. */
static rill_status submit_recorded_node(struct rill__stream *stream, struct rill__launch *launch,
                                        struct rill__launch_extras *extras, struct rill__payload **payload) {
  struct rill__event *const event = extras->event;
  RILL_REQUIRE(stream->base.id != 0, RILL_ERROR_UNSUPPORTED,
               "rill_launch.attributes: RILL_ATTR_PROGRAMMATIC_EVENT on %s: a kernel node of a graph cannot record an "
               "event, as of version %d.%d" RILL_HINT "add a node after it (rill_graph_add_event_record)",
               stream->base.device->name, RILL_VERSION_MAJOR, RILL_VERSION_MINOR);
  extras->event = NULL;
  extras->set &= ~(1u << RILL_ATTR_PROGRAMMATIC_EVENT);
  if (extras->set == 0 && extras->constant_count == 0) launch->extras = NULL;
  RILL_TRY(submit_launch(stream, launch, payload));
  return rill__record_slow(stream, event, 0);
}

/* Submits a launch with attributes and constants. */
static __attribute__((noinline)) rill_status submit_with_extras(struct rill__stream *stream, const rill_launch *shape,
                                                                struct rill__launch *launch) {
  struct rill__launch_extras extras = { .set = 0 };
  struct rill__payload *payload = NULL;
  RILL_TRY(rill__attributes_read(stream, shape, launch, &extras));
  RILL_TRY(rill__constants_take(stream, launch->kernel, shape, &extras, &payload));
  /* cppcheck-suppress autoVariables ; the caller only returns after this */
  if (extras.set != 0 || extras.constant_count != 0) launch->extras = &extras;
  rill_status status = RILL_OK;
  if (extras.event == NULL) {
    status = submit_launch(stream, launch, &payload);
  } else if (rill__is_captured(stream)) {
    status = submit_recorded_node(stream, launch, &extras, &payload);
  } else {
    status = submit_recording(stream, launch, &extras, &payload);
  }
  if (payload != NULL) payload->finish(stream, payload);
  return status;
}

static inline __attribute__((always_inline)) rill_status launch_checked(struct rill__stream *stream,
                                                                        struct rill__kernel *kernel,
                                                                        const rill_launch *shape, const rill_arg *args,
                                                                        size_t count) {
  struct rill__device *const device = kernel->base.device;
  RILL_TRY(rill__check_same_device(&stream->base, &kernel->base));
  RILL_REQUIRE(shape != NULL, RILL_ERROR_INVALID_ARGUMENT, "launch is NULL");
  rill_launch copy; /* only filled in if needed, because that costs more than the rest of the call */
  if (RILL__UNLIKELY(shape->struct_size != sizeof copy)) {
    RILL_TRY(rill__launch_read(&copy, shape));
    shape = &copy;
  }
  struct rill__launch l; /* every field is set below except the cluster, which is only valid if there is one */
  l.kernel = kernel;
  l.clustered = false;
  l.token = 0;
  l.extras = NULL;
  RILL_TRY(check_shape(kernel, shape, &l));
  l.label = shape->label;
  RILL_TRY(check_arg_count(kernel, args, count));
  void *few[FEW_ARGS + 1], **values = few;
  if (RILL__UNLIKELY(count > FEW_ARGS)) values = __builtin_alloca((count + 1) * sizeof *values);
  RILL_TRY(read_args(kernel, args, count, values));
  RILL_TRY(rill__check_usable(device));
  l.args = values;
  l.frees = RILL__UNLIKELY(rill__is_checked(device)) ? rill__frees_count() : 0;
  l.has_unknown_address = device->reads_addresses && has_unknown_address(device, args, count);
  if (RILL__UNLIKELY(shape->attribute_count != 0 || shape->constant_count != 0)) {
    return submit_with_extras(stream, shape, &l);
  }
  return submit_launch(stream, &l, NULL);
}

/* Adds the label of the launch to a failure. */
static __attribute__((cold, noinline)) rill_status fail_launch(const rill_launch *shape, rill_status status) {
  rill_launch copy;
  if (shape == NULL || shape->struct_size < sizeof shape->struct_size) return status;
  const size_t size = shape->struct_size < sizeof copy ? shape->struct_size : sizeof copy;
  memset(&copy, 0, sizeof copy);
  memcpy(&copy, shape, size);
  if (copy.label != NULL) rill__error_of_launch(copy.label);
  return status;
}

rill_status rill__launch(struct rill__stream *stream, struct rill__kernel *kernel, const rill_launch *shape,
                         const rill_arg *args, size_t count) {
  const rill_status status = launch_checked(stream, kernel, shape, args, count);
  return RILL__LIKELY(status == RILL_OK) ? RILL_OK : fail_launch(shape, status);
}
