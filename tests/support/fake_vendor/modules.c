/* Modules: the list of kernels is read from the image; kernels run as host code from the image's bundle or, for another
 * image, from a bundle that has all of its kernels. */
#include "bundles.h"
#include "engine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- host code ---- */

static bool has_kernel(const rill_bundle *bundle, const char *name) {
  for (size_t i = 0; i < bundle->kernel_count; i++)
    if (strcmp(bundle->kernels[i].name, name) == 0) return true;
  return false;
}

static bool has_all_kernels(const rill_bundle *bundle, void *data) {
  const struct fake_image *image = data;
  for (size_t i = 0; i < image->kernel_count; i++)
    if (!has_kernel(bundle, image->kernels[i].name)) return false;
  return image->kernel_count != 0;
}

/* "sm_90" or "ptx_80" give 90 and 80; anything else 0. */
static int compute_capability(const char *target) {
  const char *number = strpbrk(target, "0123456789");
  return number == NULL ? 0 : atoi(number);
}

/* Does an image for `target` run on the fake's devices? */
static bool fits(const char *target) {
  const char *device = fake_options()->target;
  if (strncmp(target, "ptx", 3) == 0) return compute_capability(target) <= compute_capability(device);
  if (strncmp(target, "sm_", 3) != 0) return strcmp(target, device) == 0;
  const int image = compute_capability(target), own = compute_capability(device);
  return image / 10 == own / 10 && image <= own;
}

/* The first one for the cpu: rillcc puts what runs everywhere there. */
static const rill_bundle_image *host_image(const rill_bundle *bundle) {
  for (size_t i = 0; bundle != NULL && i < bundle->image_count; i++)
    if (strcmp(bundle->images[i].backend, "cpu") == 0) return &bundle->images[i];
  return NULL;
}

static void load_host_code(struct fake_module *module, const rill_bundle_image *image) {
  char path[64];
  module->host_file = memfd_create("host code", MFD_CLOEXEC);
  if (module->host_file < 0 || write(module->host_file, image->data, image->size) != (ssize_t)image->size)
    fake_die("cannot write a kernel image to memory");
  /* The loader knows a library by its path: the file stays open, so that no other gets this one, and the path
   * is spelled as nobody else does. */
  (void)snprintf(path, sizeof path, "/proc/self/./fd/./%d", module->host_file);
  module->host_library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (module->host_library == NULL) fake_die("cannot load a kernel image: %s", dlerror());
  module->host = dlsym(module->host_library, RILL_CPU_IMAGE_SYMBOL);
  if (module->host == NULL || module->host->magic != RILL_CPU_IMAGE_MAGIC ||
      module->host->version > RILL_CPU_IMAGE_VERSION)
    fake_die("a cpu kernel image is not one");
  for (uint32_t i = 0; i < module->host->variable_count; i++)
    if (fake_memory_add(module->context, module->host->variables[i].address, module->host->variables[i].size) !=
        FAKE_OK)
      fake_die("no memory for a kernel image's variables");
}

/* ---- modules ---- */

int fake_module_load(const void *data, void **out) {
  struct fake_context *context;
  int code = fake_current_context(&context);
  if (code == FAKE_OK) code = fake_context_check(context);
  if (code != FAKE_OK) return code;
  if (data == NULL || out == NULL) return FAKE_INVALID_VALUE;
  struct fake_module *module = calloc(1, sizeof *module);
  if (module == NULL) return FAKE_OUT_OF_MEMORY;
  module->context = context;
  module->host_file = -1;
  code = fake_image_read(data, fake_vendor.backend, fake_options()->target, &module->image);
  const rill_bundle_image *image = NULL;
  const rill_bundle *bundle = NULL;
  if (code == FAKE_OK) {
    bundle = fake_bundle_of_image(fake_vendor.backend, module->image.data, module->image.size, &image);
    if (image != NULL && !fits(image->target)) code = FAKE_NO_BINARY;
    if (bundle == NULL) bundle = fake_bundle_find(has_all_kernels, &module->image);
  }
  if (code == FAKE_OK && (module->handle = fake_handle_new(FAKE_MODULE, module)) == NULL) code = FAKE_OUT_OF_MEMORY;
  if (code != FAKE_OK) {
    fake_image_free(&module->image);
    free(module);
    return code;
  }
  image = host_image(bundle);
  if (image != NULL) load_host_code(module, image);
  module->next = context->modules;
  context->modules = module;
  *out = module->handle;
  return FAKE_OK;
}

static void free_host_code(struct fake_module *module) {
  for (uint32_t i = 0; module->host != NULL && i < module->host->variable_count; i++)
    fake_memory_forget(module->host->variables[i].address);
  if (module->host_library != NULL) (void)dlclose(module->host_library);
  if (module->host_file >= 0) (void)close(module->host_file);
}

void fake_module_end(struct fake_module *module) {
  struct fake_module **at = &module->context->modules;
  while (*at != module) at = &(*at)->next;
  *at = module->next;
  while (module->functions != NULL) {
    struct fake_function *function = module->functions;
    module->functions = function->next;
    fake_handle_end(function->handle);
    free(function);
  }
  free_host_code(module);
  fake_image_free(&module->image);
  fake_handle_end(module->handle);
  free(module);
}

static int get_module(const void *handle, struct fake_module **out) {
  *out = fake_handle_get(FAKE_MODULE, handle);
  return *out == NULL ? FAKE_INVALID_HANDLE : fake_context_check((*out)->context);
}

int fake_module_unload(void *handle) {
  struct fake_module *module;
  int code = get_module(handle, &module);
  if (code == FAKE_OK) code = fake_context_synchronize(module->context); /* its kernels may run */
  if (code == FAKE_OK) code = get_module(handle, &module);
  if (code == FAKE_OK) fake_module_end(module);
  return code;
}

static const struct fake_symbol *find_symbol(const struct fake_image *image, const char *name) {
  for (size_t i = 0; i < image->kernel_count; i++)
    if (strcmp(image->kernels[i].name, name) == 0) return &image->kernels[i];
  return NULL;
}

static const rill_cpu_kernel *find_host_kernel(const rill_cpu_image_table *host, const char *name) {
  for (uint32_t i = 0; host != NULL && i < host->kernel_count; i++)
    if (strcmp(host->kernels[i].name, name) == 0) return &host->kernels[i];
  return NULL;
}

/* The kernel that rill's own image for CUDA has: its host code is here. */
static void fill_block(const rill_cpu_block *block) {
  enum { WORDS = 4 };
  const rill_cpu_grid *launch = block->grid;
  uint64_t values[6]; /* dst, pitch, width, height, even, odd */
  for (int i = 0; i < 6; i++) memcpy(&values[i], launch->args[i], sizeof values[i]);
  const uint64_t first = (uint64_t)block->index[0] * launch->block[0] * WORDS;
  for (uint64_t y = block->index[1]; y < values[3] && !fake_memory_weightless; y += launch->grid[1]) {
    uint64_t *row = (uint64_t *)(uintptr_t)(values[0] + y * values[1]);
    for (uint64_t x = first; x < values[2] && x < first + launch->block[0] * WORDS; x++) row[x] = values[4 + x % 2];
  }
}

static const uint32_t fill_sizes[6] = { 8, 8, 8, 8, 8, 8 };
static const rill_cpu_kernel fill_kernel = { "rill_fill", fill_block, NULL, fill_sizes, 6 };

int fake_module_function(const void *handle, const char *name, void **out) {
  struct fake_module *module;
  const int code = get_module(handle, &module);
  if (code != FAKE_OK) return code;
  if (name == NULL || out == NULL) return FAKE_INVALID_VALUE;
  for (const struct fake_function *f = module->functions; f != NULL; f = f->next)
    if (strcmp(f->name, name) == 0) {
      *out = f->handle;
      return FAKE_OK;
    }
  const struct fake_symbol *symbol = find_symbol(&module->image, name);
  if (symbol == NULL) return FAKE_NOT_FOUND;
  struct fake_function *function = calloc(1, sizeof *function);
  if (function == NULL || (function->handle = fake_handle_new(FAKE_FUNCTION, function)) == NULL) {
    free(function);
    return FAKE_OUT_OF_MEMORY;
  }
  function->module = module;
  function->name = symbol->name;
  function->host = strcmp(name, fill_kernel.name) == 0 ? &fill_kernel : find_host_kernel(module->host, name);
  function->static_shared = symbol->shared;
  function->dynamic_limit =
      fake_vendor.shared_default - (symbol->shared < fake_vendor.shared_default ? symbol->shared : 0);
  function->next = module->functions;
  module->functions = function;
  *out = function->handle;
  return FAKE_OK;
}

int fake_module_global(const void *handle, const char *name, void **p, size_t *size) {
  struct fake_module *module;
  const int code = get_module(handle, &module);
  if (code != FAKE_OK) return code;
  if (name == NULL) return FAKE_INVALID_VALUE;
  for (uint32_t i = 0; module->host != NULL && i < module->host->variable_count; i++) {
    const rill_cpu_variable *variable = &module->host->variables[i];
    if (strcmp(variable->name, name) != 0) continue;
    if (p != NULL) *p = variable->address;
    if (size != NULL) *size = variable->size;
    return FAKE_OK;
  }
  return FAKE_NOT_FOUND;
}

int fake_function_get(const void *handle, struct fake_function **out) {
  *out = fake_handle_get(FAKE_FUNCTION, handle);
  return *out == NULL ? FAKE_INVALID_HANDLE : fake_context_check((*out)->module->context);
}

/* ---- occupancy ---- */

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* A driver answers 0 for what a block cannot have. */
static uint32_t resident(const struct fake_function *function, uint32_t threads, size_t shared) {
  if (threads > FAKE_MAX_THREADS_PER_BLOCK || shared > function->dynamic_limit) return 0;
  const uint32_t bytes = function->static_shared + (uint32_t)shared + fake_vendor.shared_reserved;
  uint32_t blocks = least(FAKE_BLOCKS_PER_UNIT, FAKE_THREADS_PER_UNIT / threads);
  blocks = least(blocks, FAKE_REGISTERS_PER_UNIT / (FAKE_REGISTERS * threads));
  return bytes == 0 ? blocks : least(blocks, fake_vendor.shared_per_unit / bytes);
}

int fake_occupancy(const void *handle, int threads, size_t shared, int *blocks) {
  struct fake_function *function;
  const int code = fake_function_get(handle, &function);
  if (code != FAKE_OK) return code;
  if (blocks == NULL || threads <= 0) return FAKE_INVALID_VALUE;
  *blocks = (int)resident(function, (uint32_t)threads, shared);
  return FAKE_OK;
}

int fake_suggest_block(const void *handle, size_t shared, int limit, int *threads, int *blocks) {
  enum { STEP = 32 };
  struct fake_function *function;
  const int code = fake_function_get(handle, &function);
  if (code != FAKE_OK) return code;
  if (threads == NULL || blocks == NULL || limit < 0) return FAKE_INVALID_VALUE;
  const uint32_t most = limit == 0 ? FAKE_MAX_THREADS_PER_BLOCK : least((uint32_t)limit, FAKE_MAX_THREADS_PER_BLOCK);
  uint32_t best = 0, best_size = 0;
  for (uint32_t size = most < STEP ? most : most / STEP * STEP; size > 0; size -= least(size, STEP)) {
    const uint32_t running = resident(function, size, shared) * size;
    if (running <= best) continue;
    best = running;
    best_size = size;
  }
  *threads = (int)best_size;
  *blocks = best_size == 0 ? 0 : (int)(best / best_size * FAKE_COMPUTE_UNITS);
  return FAKE_OK;
}

/* ---- launches ---- */

/* The greatest power of two up to 16 that divides the size: true of all but odd structs. */
static size_t alignment_of(size_t size) {
  size_t alignment = 16;
  while (size % alignment != 0) alignment /= 2;
  return alignment;
}

static size_t packed_offset(const rill_cpu_kernel *kernel, size_t index) {
  size_t at = 0;
  for (size_t i = 0;; i++) {
    const size_t alignment = alignment_of(kernel->arg_sizes[i]);
    at = (at + alignment - 1) / alignment * alignment;
    if (i == index) return at;
    at += kernel->arg_sizes[i];
  }
}

int fake_function_parameter(const void *handle, size_t index, size_t *offset, size_t *size) {
  struct fake_function *function;
  const int code = fake_function_get(handle, &function);
  if (code != FAKE_OK) return code;
  if (function->host == NULL || index >= function->host->arg_count) return FAKE_INVALID_VALUE;
  if (offset != NULL) *offset = packed_offset(function->host, index);
  if (size != NULL) *size = function->host->arg_sizes[index];
  return FAKE_OK;
}

/* What the stream's thread needs of a launch; values follow args, each aligned to 16. */
struct work {
  const rill_cpu_kernel *kernel;
  uint32_t grid[3], block[3], shared;
  struct fake_device *device;
  int fault;
  void *args[];
};

static void run_kernel(void *data, int status) {
  (void)status;
  const struct work *work = data;
  int fault = work->fault;
  if (fault == FAKE_OK) fault = fake_run_grid(work->kernel, work->grid, work->block, work->shared, work->args);
  if (fault == FAKE_OK) return;
  fake_lock();
  fake_device_fault(work->device, fault);
  fake_unlock();
}

static size_t slot_size(size_t size) { return (size + 15) / 16 * 16; }

/* With what the compiler adds. */
static size_t argument_bytes(const rill_cpu_kernel *kernel) {
  size_t bytes = 256;
  for (uint32_t i = 0; kernel != NULL && i < kernel->arg_count; i++) bytes += slot_size(kernel->arg_sizes[i]);
  return bytes;
}

/* Copies the arguments; NULL: out of memory. */
static struct work *new_work(const rill_cpu_kernel *kernel, const struct fake_launch *launch) {
  const uint32_t count = kernel == NULL ? 0 : kernel->arg_count;
  const size_t head = slot_size(sizeof(struct work) + count * sizeof(void *));
  size_t size = head;
  for (uint32_t i = 0; i < count; i++) size += slot_size(kernel->arg_sizes[i]);
  struct work *work = aligned_alloc(16, size);
  if (work == NULL) return NULL;
  *work = (struct work){ .kernel = kernel, .shared = launch->shared };
  memcpy(work->grid, launch->grid, sizeof work->grid);
  memcpy(work->block, launch->block, sizeof work->block);
  char *at = (char *)work + head;
  for (uint32_t i = 0; i < count; i++) {
    const void *value = launch->args != NULL ? launch->args[i] : launch->packed + packed_offset(kernel, i);
    memcpy(at, value, kernel->arg_sizes[i]);
    work->args[i] = at;
    at += slot_size(kernel->arg_sizes[i]);
  }
  return work;
}

static bool good_shape(const struct fake_function *function, const struct fake_launch *launch) {
  static const uint64_t grid_limit[3] = { INT32_MAX, 65535, 65535 }, block_limit[3] = { 1024, 1024, 64 };
  uint64_t threads = 1;
  for (int i = 0; i < 3; i++) {
    if (launch->grid[i] == 0 || launch->grid[i] > grid_limit[i] || launch->block[i] == 0 ||
        launch->block[i] > block_limit[i])
      return false;
    threads *= launch->block[i];
  }
  return threads <= FAKE_MAX_THREADS_PER_BLOCK && launch->shared <= function->dynamic_limit;
}

static bool good_arguments(const rill_cpu_kernel *kernel, const struct fake_launch *launch) {
  if (kernel == NULL || kernel->arg_count == 0) return true;
  if (launch->args == NULL) {
    const uint32_t last = kernel->arg_count - 1;
    return launch->packed != NULL && packed_offset(kernel, last) + kernel->arg_sizes[last] <= launch->packed_size;
  }
  for (uint32_t i = 0; i < kernel->arg_count; i++)
    if (launch->args[i] == NULL) return false;
  return true;
}

static int check_together(const void *handle, const struct fake_function *function, const struct fake_launch *launch) {
  const uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
  uint32_t size = 1;
  for (int i = 0; i < 3 && launch->cluster[0] != 0; i++) {
    if (launch->cluster[i] == 0 || launch->grid[i] % launch->cluster[i] != 0) return FAKE_INVALID_VALUE;
    size *= launch->cluster[i];
  }
  if (size > (function->non_portable ? 16u : 8u)) return FAKE_INVALID_CLUSTER_SIZE;
  if (!launch->cooperative) return FAKE_OK;
  int resident_blocks = 0;
  const int threads = (int)(launch->block[0] * launch->block[1] * launch->block[2]);
  const int code = fake_occupancy(handle, threads, launch->shared, &resident_blocks);
  if (code != FAKE_OK) return code;
  return blocks <= (uint64_t)resident_blocks * FAKE_COMPUTE_UNITS ? FAKE_OK : FAKE_COOPERATIVE_TOO_LARGE;
}

uint64_t fake_launch_carried;

int fake_launch_extra(struct fake_launch *launch, void **extra, const void *end) {
  enum { BUFFER = 1, SIZE = 2 }; /* the same in both vendors' headers */
  for (; extra != NULL && *extra != end; extra += 2) {
    if ((uintptr_t)*extra == BUFFER) launch->packed = extra[1];
    else if ((uintptr_t)*extra == SIZE) launch->packed_size = *(const size_t *)extra[1];
    else return FAKE_INVALID_VALUE;
  }
  return launch->packed != NULL && launch->args != NULL ? FAKE_INVALID_VALUE : FAKE_OK;
}

int fake_launch_op(const void *function_handle, struct fake_context *context, const struct fake_launch *launch,
                   struct fake_op **out) {
  struct fake_function *function;
  int code = fake_function_get(function_handle, &function);
  if (code != FAKE_OK) return code;
  if (context != function->module->context) return FAKE_INVALID_HANDLE;
  if (!good_shape(function, launch)) return fake_vendor.bad_shape;
  if (!good_arguments(function->host, launch)) return FAKE_INVALID_VALUE;
  code = check_together(function_handle, function, launch);
  if (code != FAKE_OK) return code;
  struct fake_device *device = context->device;
  const int fault = strcmp(function->name, "fault") == 0 ? FAKE_ILLEGAL_ADDRESS : device->fault_next_launch;
  if (fault == FAKE_OK && function->host == NULL) {
    fake_say("there is no host code for the kernel %s", function->name);
    return FAKE_NOT_FOUND;
  }
  struct work *work = new_work(function->host, launch);
  if (work == NULL) return FAKE_OUT_OF_MEMORY;
  work->device = device;
  work->fault = fault;
  *out = fake_op_new(run_kernel, free, work);
  if (*out != NULL) (*out)->argument_bytes = argument_bytes(function->host);
  if (*out == NULL) free(work);
  return *out != NULL ? FAKE_OK : FAKE_OUT_OF_MEMORY;
}

int fake_launch_check(const void *handle, const struct fake_launch *launch) {
  struct fake_function *function;
  const int code = fake_function_get(handle, &function);
  return code == FAKE_OK ? check_together(handle, function, launch) : code;
}

int fake_launch_node(const void *function_handle, const struct fake_launch *launch, struct fake_op **out) {
  struct fake_context *context = NULL;
  int code = fake_current_context(&context);
  if (code == FAKE_OK && context == NULL) code = FAKE_INVALID_CONTEXT;
  if (code == FAKE_OK) code = fake_launch_op(function_handle, context, launch, out);
  if (code == FAKE_OK) context->device->fault_next_launch = FAKE_OK;
  return code;
}

int fake_launch(const void *function_handle, const void *stream_handle, const struct fake_launch *launch) {
  struct fake_stream *stream;
  struct fake_function *function;
  struct fake_op *op = NULL;
  int code = fake_function_get(function_handle, &function);
  if (code == FAKE_OK) code = fake_stream_get(stream_handle, &stream);
  if (code == FAKE_OK) code = fake_launch_op(function_handle, stream->context, launch, &op);
  if (code == FAKE_OK) code = fake_submit(stream, op);
  if (code != FAKE_OK) return code;
  stream->context->device->fault_next_launch = FAKE_OK;
  fake_launch_carried = launch->carried;
  return launch->event == NULL ? FAKE_OK : fake_event_record(launch->event, stream_handle);
}
