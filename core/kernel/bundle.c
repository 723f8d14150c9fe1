/* Bundles: the output of rillcc that is linked into a program.  A bundle has one module per device, however it was
 * loaded, and the kernels that references have found there.
 *
 * A bundle is memory of a program or library that may be unloaded.  A call that receives the bundle, to load it or to
 * look up a reference to it, reads it only until the call returns.  All other code uses the bundle's address only to
 * identify modules.
 *
 * Invariants, under the lock
 * - A module in the list has a bundle.
 * - A module with kernels of references is in the list and has one reference for them; each of these kernels has one
 *   reference.  rill_bundle_unload removes all of this at once. */
#include "core/device/life.h"
#include "core/kernel/module.h"

#include <stdio.h>
#include <string.h>

/* Not held across a call of a backend. */
static pthread_mutex_t loaded_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rill__module *loaded; /* linked by next_loaded */

void rill__modules_lock(void) { pthread_mutex_lock(&loaded_lock); }
void rill__modules_unlock(void) { pthread_mutex_unlock(&loaded_lock); }

/* ---- loading ---- */

/* Returns a live module of this bundle on this device, with a reference, or NULL.  Call it under the lock. */
static struct rill__module *find_loaded(const struct rill__device *device, const rill_bundle *bundle) {
  for (struct rill__module *module = loaded; module != NULL; module = rill__core(module)->next_loaded) {
    if (rill__core(module)->bundle == bundle && module->base.device == device && rill__object_try_ref(&module->base))
      return module;
  }
  return NULL;
}

void rill__bundle_forget(struct rill__module *module) {
  pthread_mutex_lock(&loaded_lock);
  struct rill__module **link = &loaded;
  while (*link != NULL && *link != module) link = &rill__core(*link)->next_loaded;
  if (*link != NULL) *link = rill__core(module)->next_loaded;
  pthread_mutex_unlock(&loaded_lock);
}

static rill_status check_bundle(const rill_bundle *bundle) {
  RILL_REQUIRE(bundle != NULL, RILL_ERROR_INVALID_ARGUMENT, "bundle is NULL");
  RILL_REQUIRE(bundle->magic == RILL_BUNDLE_MAGIC, RILL_ERROR_INVALID_ARGUMENT,
               "the bundle begins with 0x%08x instead of 0x%08x: rillcc did not make it", bundle->magic,
               RILL_BUNDLE_MAGIC);
  RILL_REQUIRE(bundle->version == RILL_BUNDLE_VERSION, RILL_ERROR_INVALID_ARGUMENT,
               "bundle \"%s\" has layout %u, but this library reads layout %u" RILL_HINT
               "compile the kernels with the rillcc of this library",
               bundle->name, bundle->version, RILL_BUNDLE_VERSION);
  return RILL_OK;
}

/* Checks that the bundle and the image itself agree about a kernel; the image may not describe its kernels. */
static rill_status check_kernel(const rill_bundle_kernel *kernel, const rill_bundle_kernel *listed) {
  if (listed->arg_count == RILL__ARGS_UNKNOWN) return RILL_OK;
  RILL_REQUIRE(kernel->arg_count == listed->arg_count, RILL_ERROR_BACKEND,
               "kernel \"%s\": the bundle lists %u arguments, but its image has %u", kernel->name, kernel->arg_count,
               listed->arg_count);
  for (uint32_t i = 0; i < listed->arg_count; i++) {
    RILL_REQUIRE(kernel->args[i].size == listed->args[i].size, RILL_ERROR_BACKEND,
                 "kernel \"%s\": argument %u (\"%s\") has %u bytes in the bundle, but %u in its image", kernel->name,
                 i + 1, kernel->args[i].name, kernel->args[i].size, listed->args[i].size);
  }
  return RILL_OK;
}

/* Copies the kernels as the bundle describes them, and their requirements as the image describes them, if it does. */
static rill_status copy_kernels(const rill_bundle *bundle, const rill_bundle_image *part, struct rill__device *device,
                                struct rill__image *out) {
  struct rill__image listed = { .parts = NULL };
  rill_status status = RILL_OK;
  if (RILL_ASK(device, module, read_kernels, part, &listed) != NULL) rill__image_free(&listed);
  for (size_t i = 0; i < bundle->kernel_count && status == RILL_OK; i++) {
    const rill_bundle_kernel *kernel = &bundle->kernels[i];
    const size_t k = rill__image_find(&listed, kernel->name);
    if (k < listed.kernel_count) status = check_kernel(kernel, &listed.kernels[k]);
    if (!rill__image_copy_kernel(out, kernel, k < listed.kernel_count ? &listed.needs[k] : NULL)) {
      status = rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory for the kernels of bundle \"%s\"", bundle->name);
    }
  }
  rill__image_free(&listed);
  return status;
}

/* Loads the bundle as a new module. */
static rill_status load_new(struct rill__device *device, const rill_bundle *bundle, struct rill__module **out) {
  const rill_bundle_image *part = rill__module_best(device, bundle->images, bundle->image_count);
  if (part == NULL) {
    char what[128];
    (void)snprintf(what, sizeof what, "bundle \"%s\"", bundle->name);
    return rill__fail_no_part(device, what, bundle->images, bundle->image_count);
  }
  struct rill__image inside = { .parts = NULL };
  rill_status status = copy_kernels(bundle, part, device, &inside);
  if (status == RILL_OK) {
    const struct rill__module_source source = { bundle->name, bundle, part, &inside };
    status = rill__module_new(device, &source, out);
  }
  rill__image_free(&inside);
  return status;
}

rill_status rill__module_load(struct rill__device *device, const rill_bundle *bundle, struct rill__module **out) {
  RILL_TRY(check_bundle(bundle));
  RILL_TRY(rill__device_activate(device));
  pthread_mutex_lock(&loaded_lock);
  *out = find_loaded(device, bundle);
  pthread_mutex_unlock(&loaded_lock);
  if (*out != NULL) return RILL_OK;

  struct rill__module *module = NULL;
  RILL_TRY(load_new(device, bundle, &module));
  pthread_mutex_lock(&loaded_lock);
  *out = find_loaded(device, bundle);
  if (*out == NULL) {
    rill__core(module)->next_loaded = loaded;
    loaded = module;
    *out = module;
    module = NULL;
  }
  pthread_mutex_unlock(&loaded_lock);
  if (module != NULL) rill__object_retire(&module->base); /* another thread has loaded the bundle first */
  return RILL_OK;
}

/* ---- references ---- */

/* Drops a reference to each of these kernels, which are linked by next_ref. */
static void release_kernels(struct rill__kernel *kernels) {
  while (kernels != NULL) {
    struct rill__kernel *kernel = kernels;
    struct rill__object *last = NULL;
    kernels = rill__core(kernel)->next_ref;
    (void)rill__object_release(kernel->base.id, RILL__KERNEL, &last);
    if (last != NULL) rill__object_retire(last);
  }
}

/* Returns the kernel of a reference on one device.  Call it under the lock. */
static struct rill__kernel *find_ref(const struct rill__device *device, const rill_bundle *bundle, const char *name) {
  for (struct rill__module *module = loaded; module != NULL; module = rill__core(module)->next_loaded) {
    if (rill__core(module)->bundle != bundle || module->base.device != device) continue;
    for (struct rill__kernel *kernel = rill__core(module)->ref_kernels; kernel != NULL;
         kernel = rill__core(kernel)->next_ref) {
      if (strcmp(kernel->source->name, name) == 0) return kernel;
    }
  }
  return NULL;
}

/* Adds kernels, linked by next_ref, to the kernels that references find, and takes over the caller's references to them
 * and to the module.  Releases kernels that another thread has added before, and all of them if the bundle was unloaded
 * meanwhile; like every object that a call has found, they stay valid until the end of the call.  Returns the kernel
 * with that name, or the first one. */
static struct rill__kernel *add_for_refs(struct rill__module *module, const rill_bundle *bundle,
                                         struct rill__kernel *kernels, const char *name) {
  struct rill__kernel *left = NULL, *wanted = kernels;
  bool first = false;
  pthread_mutex_lock(&loaded_lock);
  while (kernels != NULL) {
    struct rill__kernel *kernel = kernels;
    kernels = rill__core(kernel)->next_ref;
    const bool keep =
        rill__core(module)->bundle == bundle && find_ref(module->base.device, bundle, kernel->source->name) == NULL;
    struct rill__kernel **list = keep ? &rill__core(module)->ref_kernels : &left;
    first = first || (keep && *list == NULL);
    rill__core(kernel)->next_ref = *list;
    *list = kernel;
  }
  struct rill__kernel *found = name != NULL ? find_ref(module->base.device, bundle, name) : NULL;
  pthread_mutex_unlock(&loaded_lock);
  release_kernels(left);
  if (!first) rill__module_release(module); /* otherwise the list owns the reference */
  return found != NULL ? found : wanted;
}

static rill_status resolve_ref(struct rill__device *device, const rill_bundle *bundle, const char *name,
                               struct rill__kernel **out) {
  pthread_mutex_lock(&loaded_lock);
  *out = find_ref(device, bundle, name);
  pthread_mutex_unlock(&loaded_lock);
  if (*out != NULL) return RILL_OK;

  struct rill__module *module = NULL;
  struct rill__kernel *kernel = NULL;
  RILL_TRY(rill__module_load(device, bundle, &module));
  const rill_status status = rill__module_kernel(module, name, &kernel);
  if (status == RILL_OK) {
    *out = add_for_refs(module, bundle, kernel, kernel->source->name); /* `name` may be the name in the source */
  } else {
    rill__module_release(module);
  }
  return status;
}

rill_status rill__ref_resolve(struct rill__device *device, const rill_kernel_ref *ref, struct rill__kernel **out) {
  RILL_REQUIRE(ref->bundle != NULL && ref->name != NULL, RILL_ERROR_INVALID_ARGUMENT, "ref->%s is NULL",
               ref->bundle == NULL ? "bundle" : "name");
  return resolve_ref(device, ref->bundle, ref->name, out);
}

/* ---- preloading ---- */

/* Adds the kernel with that name to `kernels`, unless references find it already. */
static rill_status preload_kernel(struct rill__module *module, const rill_bundle *bundle, const char *name,
                                  struct rill__kernel **kernels) {
  struct rill__device *device = module->base.device;
  pthread_mutex_lock(&loaded_lock);
  struct rill__kernel *kernel = find_ref(device, bundle, name);
  pthread_mutex_unlock(&loaded_lock);
  if (kernel == NULL) {
    RILL_TRY(rill__module_kernel(module, name, &kernel));
    rill__core(kernel)->next_ref = *kernels;
    *kernels = kernel;
  }
  if (device->backend->kernel->preload == NULL) return RILL_OK;
  return RILL_DISPATCH(kernel, kernel, preload, kernel);
}

/* Removes the modules of a bundle from the list and returns them, linked by next_loaded. */
static struct rill__module *take_modules(const rill_bundle *bundle) {
  struct rill__module *taken = NULL;
  pthread_mutex_lock(&loaded_lock);
  for (struct rill__module **link = &loaded; *link != NULL;) {
    struct rill__module *module = *link;
    if (rill__core(module)->bundle != bundle) {
      link = &rill__core(module)->next_loaded;
      continue;
    }
    *link = rill__core(module)->next_loaded;
    rill__core(module)->bundle = NULL;
    if (rill__core(module)->ref_kernels == NULL) continue; /* other references keep the module */
    rill__core(module)->next_loaded = taken;
    taken = module;
  }
  pthread_mutex_unlock(&loaded_lock);
  return taken;
}

rill_status rill__bundle_preload(struct rill__device *device, const rill_bundle *bundle) {
  struct rill__module *module = NULL;
  struct rill__kernel *kernels = NULL;
  RILL_TRY(rill__module_load(device, bundle, &module));
  for (size_t i = 0; i < bundle->kernel_count; i++) {
    const rill_status status = preload_kernel(module, bundle, bundle->kernels[i].name, &kernels);
    if (status == RILL_OK) continue;
    release_kernels(kernels);
    rill__module_release(module);
    return status;
  }
  (void)add_for_refs(module, bundle, kernels, NULL);
  return RILL_OK;
}

rill_status rill__bundle_unload(const rill_bundle *bundle) {
  RILL_TRY(check_bundle(bundle));
  for (struct rill__module *module = take_modules(bundle); module != NULL;) {
    struct rill__module *next = rill__core(module)->next_loaded;
    release_kernels(rill__core(module)->ref_kernels);
    rill__core(module)->ref_kernels = NULL;
    rill__module_release(module);
    module = next;
  }
  return RILL_OK;
}
