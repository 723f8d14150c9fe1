#include "core/kernel/module.h"
#include "core/device/life.h"
#include "core/kernel/global.h"
#include "core/sync/events.h"
#include "core/sync/streams.h"
#include "core/sync/submit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- unloading ----
 *
 * Drivers wait for running kernels when they unload a module, and some block all other calls meanwhile.  So a module
 * that is no longer needed first records an event on each stream of its device, after the work there.  It is unloaded
 * by a later call that finds all these events complete.  A GPU's driver also waits for newer work, so a module of a GPU
 * is unloaded only while the device has no work.
 */

/* Records an event on one stream; returns false if that is not possible now. */
static bool mark_stream(struct rill__module *module, struct rill__stream *stream) {
  if (rill__known_idle(stream)) return true;
  bool capturing = false, complete = false;
  struct rill__event *mark = NULL;
  if (RILL_DISPATCH(stream, stream, is_capturing, stream, &capturing) != RILL_OK || capturing) return false;
  if (RILL_DISPATCH(stream, stream, is_complete, stream, &complete) == RILL_OK && complete) return true;
  if (rill__event_create(module->base.device, NULL, &mark) != RILL_OK) return false;
  if (RILL_DISPATCH(stream, stream, record, stream, mark, 0) != RILL_OK) {
    rill__object_retire(&mark->base);
    return false;
  }
  rill__core(module)->marks[rill__core(module)->mark_count++] = mark;
  return true;
}

static void remove_marks(struct rill__module *module) {
  for (size_t i = 0; i < rill__core(module)->mark_count; i++) rill__object_retire(&rill__core(module)->marks[i]->base);
  free(rill__core(module)->marks);
  rill__core(module)->marks = NULL;
  rill__core(module)->mark_count = 0;
}

static bool mark_streams(struct rill__module *module) {
  size_t count = 0;
  struct rill__stream **streams = rill__device_visit_streams(module->base.device, &count);
  if (streams == NULL) return false;
  rill__core(module)->marks = malloc((count + 1) * sizeof *rill__core(module)->marks);
  bool marked = rill__core(module)->marks != NULL;
  for (size_t i = 0; i < count; i++) {
    marked = marked && mark_stream(module, streams[i]);
    rill__stream_leave(streams[i]);
  }
  free(streams);
  if (!marked) remove_marks(module);
  return marked;
}

/* Returns true if no submitted work uses the module.  A lost device has no work and answers no query. */
static bool is_unused(struct rill__module *module) {
  if (atomic_load(&module->base.device->lost) == RILL_OK) {
    if (!rill__core(module)->marked) rill__core(module)->marked = mark_streams(module);
    if (!rill__core(module)->marked) return false;
    for (size_t i = 0; i < rill__core(module)->mark_count; i++) {
      bool complete = false;
      const rill_status status =
          RILL_DISPATCH(rill__core(module)->marks[i], event, is_ready, rill__core(module)->marks[i], &complete);
      if (status == RILL_OK && !complete) return false;
    }
  }
  remove_marks(module);
  return true;
}

static void destroy_module(struct rill__object *object) {
  struct rill__module *module = (struct rill__module *)object;
  if (rill__core(module)->loaded) {
    struct rill__device *const device = module->base.device;
    if (!is_unused(module) || (device->backend->gpu && !rill__device_is_idle(device))) {
      rill__object_postpone(object);
      return;
    }
    rill__globals_forget(module);
    RILL_ASK(module, module, unload, module);
  }
  rill__image_free(&rill__core(module)->inside);
  rill__object_free(object);
}

/* ---- loading ---- */

/* room for the list of kernels in an error text */
enum { LIST_SIZE = 600 };

const rill_bundle_image *rill__module_best(struct rill__device *device, const rill_bundle_image *parts, size_t count) {
  const rill_bundle_image *best = NULL;
  uint32_t best_fit = 0;
  for (size_t i = 0; i < count; i++) {
    if (strcmp(parts[i].backend, device->backend->name) != 0) continue;
    const uint32_t fit = RILL_ASK(device, module, fit, device, &parts[i]);
    if (fit > best_fit) {
      best = &parts[i];
      best_fit = fit;
    }
  }
  return best;
}

rill_status rill__fail_no_part(struct rill__device *device, const char *what, const rill_bundle_image *parts,
                               size_t count) {
  char inside[400] = "nothing", needs[128] = "";
  size_t used = 0;
  for (size_t i = 0; i < count && used < sizeof inside; i++) {
    used += (size_t)snprintf(inside + used, sizeof inside - used, "%s%s:%s", i > 0 ? ", " : "", parts[i].backend,
                             parts[i].target);
  }
  RILL_ASK(device, module, needs, device, needs, sizeof needs);
  return rill__fail(RILL_ERROR_NOT_FOUND,
                    "%s has no image for %s: it contains %s, but %s:%s is needed" RILL_HINT
                    "compile the kernels for that "
                    "target also",
                    what, device->name, inside, device->backend->name, needs);
}

static rill_status load_module(struct rill__module *module, const rill_bundle_image *part) {
  RILL_WITHOUT_CANCEL();
  RILL_TRY(RILL_DISPATCH(module, module, load, module, part));
  rill__core(module)->loaded = true;
  for (size_t i = 0; i < rill__core(module)->inside.part_count; i++)
    rill__core(module)->inside.parts[i].data = NULL; /* the data is about to be freed */
  if (rill__core(module)->inside.kernels_unknown && module->base.device->backend->module->list != NULL) {
    RILL_ASK(module, module, list, module, &rill__core(module)->inside);
    rill__core(module)->inside.kernels_unknown = false;
  }
  RILL_REQUIRE(!rill__core(module)->inside.no_memory, RILL_ERROR_OUT_OF_MEMORY,
               "no host memory for the names of the kernels");
  return rill__object_publish(&module->base, RILL__MODULE);
}

rill_status rill__module_new(struct rill__device *device, const struct rill__module_source *source,
                             struct rill__module **out) {
  struct rill__module *module = NULL;
  const size_t size = RILL__PART_OFFSET(struct rill__module) + device->backend->module_size;
  RILL_TRY(rill__object_new(size, device, source->label, destroy_module, &module));
  rill__core(module)->bundle = source->bundle;
  rill__core(module)->inside = *source->inside;
  *source->inside = (struct rill__image){ .parts = NULL };
  const rill_status status = load_module(module, source->part);
  if (status != RILL_OK) {
    rill__unref(&module->base);
    return status;
  }
  *out = module;
  return RILL_OK;
}

void rill__module_end(struct rill__module *module) {
  rill__bundle_forget(module);
  rill__object_retire(&module->base);
}

void rill__module_release(struct rill__module *module) {
  struct rill__object *last = NULL;
  (void)rill__object_release(module->base.id, RILL__MODULE, &last);
  if (last != NULL) rill__module_end((struct rill__module *)last);
}

/* ---- kernels ---- */

static void destroy_kernel(struct rill__object *object) {
  struct rill__kernel *kernel = (struct rill__kernel *)object;
  if (rill__core(kernel)->found && object->device->backend->kernel->forget != NULL)
    RILL_ASK(kernel, kernel, forget, kernel);
  rill__unref(&kernel->module->base);
  rill__image_free(&kernel->own);
  rill__object_free(object);
}

/* longer names stay mangled */
enum { NAME_SIZE = 256 };

static const char *name_in_source(const char *symbol, char room[NAME_SIZE]) {
  return rill__source_name(symbol, room, NAME_SIZE) ? room : symbol;
}

/* Finds the only kernel with that name in the source; kernel_count if there is none. */
static rill_status find_in_source(const struct rill__image *image, const char *name, size_t *out) {
  char room[NAME_SIZE];
  *out = image->kernel_count;
  for (size_t i = 0; i < image->kernel_count; i++) {
    if (strcmp(name_in_source(image->kernels[i].name, room), name) != 0) continue;
    RILL_REQUIRE(*out == image->kernel_count, RILL_ERROR_INVALID_ARGUMENT,
                 "several kernels are called \"%s\", including \"%s\" and \"%s\"" RILL_HINT "use one of these names",
                 name, image->kernels[*out].name, image->kernels[i].name);
    *out = i;
  }
  return RILL_OK;
}

static rill_status fail_no_kernel(const struct rill__image *image, const char *name) {
  char inside[LIST_SIZE] = "none";
  size_t used = 0;
  for (size_t i = 0; i < image->kernel_count && used < sizeof inside; i++) {
    char text[NAME_SIZE];
    used += (size_t)snprintf(inside + used, sizeof inside - used, "%s%s", i > 0 ? ", " : "",
                             name_in_source(image->kernels[i].name, text));
  }
  return rill__fail(RILL_ERROR_NOT_FOUND, "there is no kernel \"%s\"; the kernels are: %s", name, inside);
}

/* Sets the properties of the kernel that the module knows. */
static rill_status describe(struct rill__kernel *kernel, size_t i, const char *name) {
  const struct rill__image *image = &rill__core(kernel->module)->inside;
  const bool made = i < image->kernel_count
                        ? rill__image_copy_kernel(&kernel->own, &image->kernels[i], &image->needs[i])
                        : rill__image_add_kernel(&kernel->own, name, strlen(name), RILL__ARGS_UNKNOWN);
  RILL_REQUIRE(made, RILL_ERROR_OUT_OF_MEMORY, "no host memory for the kernel \"%s\"", name);
  kernel->source = kernel->own.kernels;
  kernel->name = kernel->base.label != NULL ? kernel->base.label : kernel->source->name;
  kernel->lasting_name = rill__name_intern(kernel->name);
  memcpy(kernel->block, kernel->own.needs->block, sizeof kernel->block);
  return RILL_OK;
}

static rill_status find_kernel(struct rill__kernel *kernel) {
  RILL_TRY(RILL_DISPATCH(kernel, kernel, find, kernel));
  rill__core(kernel)->found = true;
  RILL_REQUIRE(!kernel->own.no_memory, RILL_ERROR_OUT_OF_MEMORY, "no host memory for the arguments of \"%s\"",
               kernel->name);
  const struct rill__kernel_needs *needs = kernel->own.needs;
  if (needs->max_threads != 0 && needs->max_threads < kernel->max_threads) kernel->max_threads = needs->max_threads;
  return rill__object_publish(&kernel->base, RILL__KERNEL);
}

rill_status rill__module_kernel(struct rill__module *module, const char *name, struct rill__kernel **out) {
  const struct rill__image *const image = &rill__core(module)->inside;
  char room[NAME_SIZE];
  size_t i = rill__image_find(image, name);
  if (i == image->kernel_count) RILL_TRY(find_in_source(image, name, &i));
  if (i == image->kernel_count && !image->kernels_unknown) return fail_no_kernel(image, name);
  const char *const symbol = i < image->kernel_count ? image->kernels[i].name : name;
  struct rill__device *device = module->base.device;
  struct rill__kernel *kernel = NULL;
  const size_t size = RILL__PART_OFFSET(struct rill__kernel) + device->backend->kernel_size;
  RILL_TRY(rill__object_new(size, device, name_in_source(symbol, room), destroy_kernel, &kernel));
  rill__ref(&module->base);
  kernel->module = module;
  rill_status status = describe(kernel, i, symbol);
  if (status == RILL_OK) status = find_kernel(kernel);
  if (status != RILL_OK) {
    rill__unref(&kernel->base);
    return status;
  }
  *out = kernel;
  return RILL_OK;
}
