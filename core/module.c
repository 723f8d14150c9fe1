#include "core/module.h"
#include "core/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Modules that are loaded, linked by next_loaded, and their kernels of references: a bundle has one module a device,
 * however it was loaded.  The lock is not held across a call into a backend. */
static pthread_mutex_t loaded_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rill__module *loaded;

void rill__modules_lock(void) { pthread_mutex_lock(&loaded_lock); }
void rill__modules_unlock(void) { pthread_mutex_unlock(&loaded_lock); }

/* ---- unloading ----
 *
 * Drivers wait for running kernels when they unload a module, some with all other calls locked out.  So a module that
 * is not needed any more first marks each stream of its device behind the work there, and is unloaded by a later call
 * that finds all marks complete. */

struct rill__stream **rill__device_keep_streams(struct rill__device *device, size_t *count) {
  size_t most = 1;
  pthread_mutex_lock(&device->lock);
  for (const struct rill__stream *stream = device->streams; stream != NULL; stream = stream->next) most++;
  struct rill__stream **streams = malloc(most * sizeof *streams);
  *count = 0;
  for (struct rill__stream *stream = device->streams; stream != NULL && streams != NULL; stream = stream->next) {
    if (rill__keep_if_kept(&stream->base)) streams[(*count)++] = stream;
  }
  pthread_mutex_unlock(&device->lock);
  return streams;
}

/* Marks one stream; false if it cannot be marked now. */
static bool mark_stream(struct rill__module *module, struct rill__stream *stream) {
  if (rill__known_idle(stream)) return true;
  bool capturing = false;
  struct rill__event *mark = NULL;
  if (RILL_DOOR(stream, stream, is_capturing, stream, &capturing) != RILL_OK || capturing) return false;
  if (rill__event_create(module->base.device, NULL, &mark) != RILL_OK) return false;
  if (RILL_DOOR(stream, stream, record, stream, mark, 0) != RILL_OK) {
    rill__object_retire(&mark->base);
    return false;
  }
  module->marks[module->mark_count++] = mark;
  return true;
}

static void remove_marks(struct rill__module *module) {
  for (size_t i = 0; i < module->mark_count; i++) rill__object_retire(&module->marks[i]->base);
  free(module->marks);
  module->marks = NULL;
  module->mark_count = 0;
}

static bool mark_streams(struct rill__module *module) {
  size_t count = 0;
  struct rill__stream **streams = rill__device_keep_streams(module->base.device, &count);
  if (streams == NULL) return false;
  module->marks = malloc((count + 1) * sizeof *module->marks);
  bool marked = module->marks != NULL;
  for (size_t i = 0; i < count; i++) {
    marked = marked && mark_stream(module, streams[i]);
    rill__drop(&streams[i]->base);
  }
  free(streams);
  if (!marked) remove_marks(module);
  return marked;
}

/* Whether no submitted work uses the module.  A lost device has no work, and answers nothing. */
static bool is_unused(struct rill__module *module) {
  if (atomic_load(&module->base.device->lost) == RILL_OK) {
    if (!module->marked) module->marked = mark_streams(module);
    if (!module->marked) return false;
    for (size_t i = 0; i < module->mark_count; i++) {
      bool complete = false;
      const rill_status status = RILL_DOOR(module->marks[i], event, is_ready, module->marks[i], &complete);
      if (status == RILL_OK && !complete) return false;
    }
  }
  remove_marks(module);
  return true;
}

static void destroy_module(struct rill__object *object) {
  struct rill__module *module = (struct rill__module *)object;
  if (module->image != NULL) {
    if (!is_unused(module)) {
      rill__object_postpone(object);
      return;
    }
    RILL_DOOR(module, module, unload, module);
  }
  rill__object_free(object);
}

/* ---- loading ---- */

/* A living module of this bundle on this device, with a reference added, or NULL.  Under loaded_lock. */
static struct rill__module *find_loaded(const struct rill__device *device, const rill_bundle *bundle) {
  for (struct rill__module *module = loaded; module != NULL; module = module->next_loaded) {
    if (module->bundle == bundle && module->base.device == device && rill__object_revive(&module->base)) return module;
  }
  return NULL;
}

static rill_status check_bundle(const rill_bundle *bundle) {
  RILL_REQUIRE(bundle != NULL, RILL_ERROR_INVALID_ARGUMENT, "bundle is NULL");
  RILL_REQUIRE(bundle->magic == RILL_BUNDLE_MAGIC, RILL_ERROR_INVALID_ARGUMENT, "bundle begins with 0x%08x, not 0x%08x",
               bundle->magic, RILL_BUNDLE_MAGIC);
  RILL_REQUIRE(bundle->version == RILL_BUNDLE_VERSION, RILL_ERROR_INVALID_ARGUMENT,
               "bundle \"%s\" has layout %u, this library reads layout %u" RILL_HINT
               "compile the kernels with the rillcc "
               "of this library",
               bundle->name, bundle->version, RILL_BUNDLE_VERSION);
  return RILL_OK;
}

static rill_status fail_no_image(struct rill__device *device, const rill_bundle *bundle) {
  char inside[400] = "nothing", needs[128] = "";
  size_t used = 0;
  for (size_t i = 0; i < bundle->image_count && used < sizeof inside; i++) {
    const rill_bundle_image *image = &bundle->images[i];
    used += (size_t)snprintf(inside + used, sizeof inside - used, "%s%s:%s", i > 0 ? ", " : "", image->backend,
                             image->target);
  }
  RILL_DOOR(device, module, needs, device, needs, sizeof needs);
  return rill__fail(RILL_ERROR_NOT_FOUND,
                    "bundle \"%s\" has no image for %s: it holds %s; needed is %s:%s" RILL_HINT "add that --target to "
                    "rillcc",
                    bundle->name, device->name, inside, device->backend->name, needs);
}

static const rill_bundle_image *best_image(struct rill__device *device, const rill_bundle *bundle) {
  const rill_bundle_image *best = NULL;
  uint32_t best_fit = 0;
  for (size_t i = 0; i < bundle->image_count; i++) {
    const rill_bundle_image *image = &bundle->images[i];
    if (strcmp(image->backend, device->backend->name) != 0) continue;
    const uint32_t fit = RILL_DOOR(device, module, fit, device, image);
    if (fit > best_fit) {
      best = image;
      best_fit = fit;
    }
  }
  return best;
}

rill_status rill__module_load(struct rill__device *device, const rill_bundle *bundle, struct rill__module **out) {
  RILL_TRY(check_bundle(bundle));
  RILL_TRY(rill__device_activate(device));
  pthread_mutex_lock(&loaded_lock);
  *out = find_loaded(device, bundle);
  pthread_mutex_unlock(&loaded_lock);
  if (*out != NULL) return RILL_OK;

  const rill_bundle_image *image = best_image(device, bundle);
  if (image == NULL) return fail_no_image(device, bundle);
  struct rill__module *module = NULL;
  const size_t size = RILL__PART_OFFSET(struct rill__module) + device->backend->module_size;
  RILL_TRY(rill__object_new(size, device, bundle->name, destroy_module, &module));
  module->bundle = bundle;
  rill_status status = RILL_DOOR(device, module, load, module, image);
  if (status == RILL_OK) {
    module->image = image;
    status = rill__object_publish(&module->base, RILL__MODULE);
  }
  if (status != RILL_OK) {
    rill__drop(&module->base);
    return status;
  }
  pthread_mutex_lock(&loaded_lock);
  struct rill__module *other = find_loaded(device, bundle);
  if (other == NULL) {
    module->next_loaded = loaded;
    loaded = module;
  }
  pthread_mutex_unlock(&loaded_lock);
  if (other != NULL) { /* another thread was first */
    rill__object_retire(&module->base);
    module = other;
  }
  *out = module;
  return RILL_OK;
}

static void end_module(struct rill__module *module) {
  pthread_mutex_lock(&loaded_lock);
  struct rill__module **link = &loaded;
  while (*link != NULL && *link != module) link = &(*link)->next_loaded;
  if (*link != NULL) *link = module->next_loaded;
  pthread_mutex_unlock(&loaded_lock);
  rill__object_retire(&module->base);
}

rill_status rill_module_load(rill_device device, const rill_bundle *bundle, rill_module *out) {
  rill__reclaim();
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_MODULE;
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  struct rill__module *module = NULL;
  RILL_TRY(rill__module_load(d, bundle, &module));
  out->id = module->base.id;
  return RILL_OK;
}

rill_status rill_module_retain(rill_module module) {
  RILL_ENTER();
  return rill__object_retain(module.id, RILL__MODULE);
}

rill_status rill_module_release(rill_module module) {
  RILL_ENTER();
  struct rill__object *last = NULL;
  const rill_status status = rill__object_release(module.id, RILL__MODULE, &last);
  if (last != NULL) end_module((struct rill__module *)last);
  rill__leave(&self);
  rill__reclaim();
  return status;
}

/* ---- kernels ---- */

static void destroy_kernel(struct rill__object *object) {
  struct rill__kernel *kernel = (struct rill__kernel *)object;
  if (kernel->found && object->device->backend->kernel->forget != NULL) RILL_DOOR(kernel, kernel, forget, kernel);
  rill__drop(&kernel->module->base);
  rill__object_free(object);
}

static rill_status fail_no_kernel(const rill_bundle *bundle, const char *name) {
  char inside[600] = "none";
  size_t used = 0;
  for (size_t i = 0; i < bundle->kernel_count && used < sizeof inside; i++) {
    used += (size_t)snprintf(inside + used, sizeof inside - used, "%s%s", i > 0 ? ", " : "", bundle->kernels[i].name);
  }
  return rill__fail(RILL_ERROR_NOT_FOUND, "there is no kernel \"%s\"; the kernels are: %s", name, inside);
}

rill_status rill__module_kernel(struct rill__module *module, const char *name, struct rill__kernel **out) {
  const rill_bundle_kernel *source = NULL;
  for (size_t i = 0; i < module->bundle->kernel_count && source == NULL; i++) {
    if (strcmp(module->bundle->kernels[i].name, name) == 0) source = &module->bundle->kernels[i];
  }
  if (source == NULL) return fail_no_kernel(module->bundle, name);
  struct rill__device *device = module->base.device;
  struct rill__kernel *kernel = NULL;
  const size_t size = RILL__PART_OFFSET(struct rill__kernel) + device->backend->kernel_size;
  RILL_TRY(rill__object_new(size, device, name, destroy_kernel, &kernel));
  rill__keep(&module->base);
  kernel->module = module;
  kernel->source = source;
  rill_status status = RILL_DOOR(kernel, kernel, find, kernel);
  if (status == RILL_OK) {
    kernel->found = true;
    status = rill__object_publish(&kernel->base, RILL__KERNEL);
  }
  if (status != RILL_OK) {
    rill__drop(&kernel->base);
    return status;
  }
  *out = kernel;
  return RILL_OK;
}

rill_status rill_module_get_kernel(rill_module module, const char *name, rill_kernel *out) {
  rill__reclaim();
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_KERNEL;
  struct rill__module *m;
  RILL_RESOLVE(RILL__MODULE, module, "module", &m);
  RILL_REQUIRE(name != NULL && out != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL", name == NULL ? "name" : "out");
  RILL_TRY(rill__check_usable(m->base.device));
  struct rill__kernel *kernel = NULL;
  RILL_TRY(rill__module_kernel(m, name, &kernel));
  out->id = kernel->base.id;
  return RILL_OK;
}

/* The kernel of a reference on one device.  It and its module hold one reference each for as long as the process runs.
 */
static struct rill__kernel *find_ref(const struct rill__device *device, const rill_kernel_ref *ref) {
  for (struct rill__module *module = loaded; module != NULL; module = module->next_loaded) {
    if (module->bundle != ref->bundle || module->base.device != device) continue;
    for (struct rill__kernel *kernel = module->ref_kernels; kernel != NULL; kernel = kernel->next_ref) {
      if (strcmp(kernel->source->name, ref->name) == 0) return kernel;
    }
  }
  return NULL;
}

rill_status rill__ref_resolve(struct rill__device *device, const rill_kernel_ref *ref, struct rill__kernel **out) {
  RILL_REQUIRE(ref->bundle != NULL && ref->name != NULL, RILL_ERROR_INVALID_ARGUMENT, "ref->%s is NULL",
               ref->bundle == NULL ? "bundle" : "name");
  pthread_mutex_lock(&loaded_lock);
  *out = find_ref(device, ref);
  pthread_mutex_unlock(&loaded_lock);
  if (*out != NULL) return RILL_OK;

  struct rill__module *module = NULL;
  struct rill__kernel *kernel = NULL;
  RILL_TRY(rill__module_load(device, ref->bundle, &module));
  rill_status status = rill__module_kernel(module, ref->name, &kernel);
  if (status == RILL_OK) {
    pthread_mutex_lock(&loaded_lock);
    *out = find_ref(device, ref);
    if (*out == NULL) {
      const bool first = module->ref_kernels == NULL;
      kernel->next_ref = module->ref_kernels;
      module->ref_kernels = kernel;
      *out = kernel;
      kernel = NULL;
      if (first) module = NULL; /* the list keeps this reference */
    }
    pthread_mutex_unlock(&loaded_lock);
  }
  if (kernel != NULL) rill__object_retire(&kernel->base); /* another thread was first */
  if (module != NULL) {
    struct rill__object *last = NULL;
    (void)rill__object_release(module->base.id, RILL__MODULE, &last);
    if (last != NULL) end_module((struct rill__module *)last);
  }
  return status;
}
