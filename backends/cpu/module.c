#include "backends/cpu/cpu.h"
#include "backends/cpu/image.h"

#include <dlfcn.h>
#include <link.h>
#include <rill/device/cpu_image.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint32_t cpu_module_fit(struct rill__device *device, const rill_bundle_image *image) {
  const uint32_t level = rill__cpu_x86_level_of(image->target);
  if (level != 0) return level <= rill__cpu_x86_level() ? level : 0;
  return strcmp(image->target, device->info.arch) == 0 ? 1 : 0;
}

static void cpu_module_needs(struct rill__device *device, char *text, size_t size) {
  (void)snprintf(text, size, "%s%s", device->info.arch, rill__cpu_x86_level() > 1 ? " or a lower level" : "");
}

/* Reads the variables.  An image that lists none may still have symbols for them. */
static rill_status read_variables(struct cpu_module *part, const rill_bundle_image *image, const char *name) {
  const struct link_map *map = NULL;
  if (part->image->variable_count != 0) return RILL_OK;
  RILL_REQUIRE(dlinfo(part->library, RTLD_DI_LINKMAP, &map) == 0, RILL_ERROR_BACKEND,
               "finding where \"%s\" is loaded: %s", name, dlerror());
  RILL_REQUIRE(rill__cpu_variables_read(image->data, image->size, map->l_addr, &part->variables),
               RILL_ERROR_OUT_OF_MEMORY, "no host memory for the variables of \"%s\"", name);
  return RILL_OK;
}

static void forget_objects(struct cpu_module *part) {
  if (part->objects == NULL) return;
  rill__cpu_objects_free(part->objects);
  free(part->objects);
  part->objects = NULL;
}

/* Reads the objects of an image whose kernels check their accesses.  From the first such image on, allocations have red
 * zones. */
static rill_status read_objects(struct rill__module *module, const rill_bundle_image *image) {
  struct cpu_module *part = rill__part(module);
  const char *name = module->base.label;
  const struct link_map *map = NULL;
  if (part->image->version < 7 || (part->image->flags & RILL_CPU_IMAGE_CHECKS) == 0) return RILL_OK;
  RILL_REQUIRE(dlinfo(part->library, RTLD_DI_LINKMAP, &map) == 0, RILL_ERROR_BACKEND,
               "finding where \"%s\" is loaded: %s", name, dlerror());
  part->objects = calloc(1, sizeof *part->objects);
  const char *const why = part->objects == NULL
                              ? "no host memory"
                              : rill__cpu_objects_read(image->data, image->size, map->l_addr, part->objects);
  if (why == NULL) {
    rill__access_begin(module->base.device);
    return RILL_OK;
  }
  forget_objects(part);
  return rill__fail(RILL_ERROR_BACKEND, "image \"%s\", which was built with rillcc --check, cannot be loaded: %s", name,
                    why);
}

static void close_library(const struct cpu_module *part) {
  (void)dlclose(part->library);
  if (part->file >= 0) (void)close(part->file);
}

static rill_status cpu_module_load(struct rill__module *module, const rill_bundle_image *image) {
  struct cpu_module *part = rill__part(module);
  const char *name = module->base.label;
  void *library = NULL;
  RILL_TRY(rill__cpu_image_open(name, image->data, image->size, &library, &part->file));
  const rill_cpu_image_table *table = dlsym(library, RILL_CPU_IMAGE_SYMBOL);
  rill_status status = RILL_OK;
  if (table == NULL) {
    status = rill__fail(RILL_ERROR_BACKEND, "image \"%s\" is a shared object without \"%s\": rillcc did not make it",
                        name, RILL_CPU_IMAGE_SYMBOL);
  } else if (table->magic != RILL_CPU_IMAGE_MAGIC) {
    status = rill__fail(RILL_ERROR_BACKEND,
                        "the table of image \"%s\" begins with 0x%x instead of 0x%x: rillcc did not make it", name,
                        table->magic, RILL_CPU_IMAGE_MAGIC);
  } else if (table->version == 0 || table->version > RILL_CPU_IMAGE_VERSION) {
    status = rill__fail(RILL_ERROR_BACKEND,
                        "image \"%s\" has version %u, but this library reads up to %u" RILL_HINT
                        "use a newer rill, or the rillcc that came with this one",
                        name, table->version, RILL_CPU_IMAGE_VERSION);
  }
  part->library = library;
  part->image = table;
  if (status == RILL_OK) status = read_variables(part, image, name);
  if (status == RILL_OK) status = read_objects(module, image);
  if (status != RILL_OK) {
    free(part->variables.list);
    close_library(part);
  }
  return status;
}

/* Unloads the image, except on a lost device: kernels may still be running there, so their code and objects stay in
 * memory. */
static void cpu_module_unload(struct rill__module *module) {
  struct cpu_module *part = rill__part(module);
  if (part->objects != NULL) rill__access_end(module->base.device);
  if (!cpu_is_lost(module->base.device)) forget_objects(part);
  free(part->variables.list);
  if (!cpu_is_lost(module->base.device)) close_library(part);
}

/* The kernels of an image that is not from a bundle are known only after it was loaded. */
static const char *read_kernels(const rill_bundle_image *part, struct rill__image *out) {
  (void)part;
  out->kernels_unknown = true;
  return NULL;
}

static void list(struct rill__module *module, struct rill__image *out) {
  const struct cpu_module *part = rill__part(module);
  for (uint32_t i = 0; i < part->image->kernel_count; i++) {
    const rill_cpu_kernel *kernel = &part->image->kernels[i];
    if (!rill__image_add_kernel(out, kernel->name, strlen(kernel->name), 0)) return;
    for (uint32_t k = 0; k < kernel->arg_count; k++) {
      if (!rill__image_add_arg(out, "", 0, kernel->arg_sizes[k])) return;
    }
  }
}

static rill_status cpu_module_global(struct rill__module *module, const char *symbol, void **p, size_t *size) {
  const struct cpu_module *part = rill__part(module);
  const bool listed = part->image->variable_count != 0;
  const rill_cpu_variable *variables = listed ? part->image->variables : part->variables.list;
  const size_t count = listed ? part->image->variable_count : part->variables.count;
  *p = NULL;
  for (size_t i = 0; i < count; i++) {
    if (strcmp(variables[i].name, symbol) != 0) continue;
    *p = variables[i].address;
    *size = variables[i].size;
  }
  return RILL_OK;
}

const struct rill__module_table rill__cpu_module_table = {
  .fit = cpu_module_fit,
  .needs = cpu_module_needs,
  .load = cpu_module_load,
  .unload = cpu_module_unload,
  .takes = "an image for the cpu that rillcc made",
  .recognize = rill__cpu_recognize,
  .read_parts = rill__cpu_read_parts,
  .read_kernels = read_kernels,
  .list = list,
  .global = cpu_module_global,
  .compiler = rill__cpu_compiler,
  .compile = rill__cpu_compile,
};
