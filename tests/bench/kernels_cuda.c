/* Peers on an NVIDIA GPU: plain_stream.cu through the driver's own functions, and cuBLAS where it is installed. */
#include "kernels.h"

#include "backends/gpu/gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static gpu_module_handle module;

static bool fails(gpu_result result) { return result != GPU_SUCCESS; }
#define FAILS(call) fails((gpu_result)gpu_api.call)

/* Makes the primary context of the device, which is rill's too, this thread's own. */
static const char *enter(int32_t ordinal) {
  static char why[512];
  static const char *library; /* opened once */
  gpu_device_handle device;
  gpu_context context = NULL;
  struct gpu_scope scope;
  if (library == NULL) library = gpu_load(why, sizeof why);
  if (library == NULL) return why;
  if (FAILS(init(0)) || FAILS(device_get(&device, ordinal)) || fails(gpu_vendor_open(device, &context)) ||
      fails(gpu_vendor_enter(&scope, device, context))) {
    return "the driver does not open the device";
  }
  return NULL;
}

/* ---- plain CUDA ---- */

#ifdef BENCH_PLAIN
extern const unsigned char plain_image[];

static const char *load_plain(int32_t ordinal) {
  char log[512] = "";
  const char *why = enter(ordinal);
  if (why != NULL) return why;
  return fails(gpu_vendor_module_load(&module, plain_image, log, sizeof log)) ? "the driver does not take its image"
                                                                              : NULL;
}
#else
static const char *load_plain(int32_t ordinal) {
  (void)ordinal;
  return "there was no nvcc when this was built";
}
#endif

static const char *open_plain(const struct scene *scene) { return load_plain(scene->info.ordinal); }

struct form {
  const char *prefix, *name;
  unsigned block, bytes; /* of a thread; 0: an element */
  unsigned per_unit;     /* blocks for each multiprocessor; 0: as many as cover all */
};

static const struct form forms[] = {
  { "one", "an element, 256", 256, 0, 0 },       { "one", "an element, 1024", 1024, 0, 0 },
  { "wide", "16 bytes, 256", 256, 16, 0 },       { "wide", "16 bytes, 512", 512, 16, 0 },
  { "wide", "16 bytes, 1024", 1024, 16, 0 },     { "stride", "loop, 8 x 256", 256, 16, 8 },
  { "stride", "loop, 2 x 1024", 1024, 16, 2 },   { "stride", "loop, 32 x 256", 256, 16, 32 },
  { "stride", "loop, 16 x 1024", 1024, 16, 16 }, { "stride", "loop, 128 x 256", 256, 16, 128 },
};

enum { FIRST_LOOP = 5 };

/* A dot product is a loop; and of what is not STREAM there is nothing here. */
static bool run_plain(const struct scene *scene, const char *kernel, unsigned index, const char **form_name) {
  const size_t size = strstr(kernel, "f64") != NULL ? 8 : 4;
  long long n = (long long)(scene->bytes / size);
  const float half = 0.5f;
  const double half_double = 0.5;
  gpu_pointer a = GPU_POINTER(scene->a), b = GPU_POINTER(scene->b), c = GPU_POINTER(scene->c);
  const void *const s = size == 4 ? (const void *)&half : &half_double;
  void *arguments[] = { &n, (void *)(uintptr_t)s, &a, &b, &c };
  char name[64];
  gpu_function function;
  if (strncmp(kernel, "dot", 3) == 0) index += FIRST_LOOP;
  if (index >= sizeof forms / sizeof *forms) return false;
  const struct form *form = &forms[index];
  (void)snprintf(name, sizeof name, "%s_%s", form->prefix, kernel);
  if (FAILS(module_function(&function, module, name))) return false;
  *form_name = form->name;
  const uint64_t threads = scene->bytes / (form->bytes != 0 ? form->bytes : size);
  const uint64_t cover = (threads + form->block - 1) / form->block;
  const unsigned blocks = form->per_unit != 0 ? form->per_unit * scene->info.compute_units : (unsigned)cover;
  if (FAILS(launch(function, blocks, 1, 1, form->block, 1, 1, 0, (gpu_stream_handle)scene->native, arguments, NULL))) {
    rill__cuda_bench_plain.failed = true;
  }
  return true;
}

struct peer rill__cuda_bench_plain = { .name = "plain CUDA", .open = open_plain, .run = run_plain };

bool rill__cuda_bench_first_kernel(int32_t ordinal) {
  gpu_function function;
  gpu_stream_handle stream;
  gpu_pointer x;
  void *arguments[] = { &x };
  return load_plain(ordinal) == NULL && !FAILS(module_function(&function, module, "set_one")) &&
         !FAILS(stream_create(&stream, GPU_STREAM_NON_BLOCKING, 0)) && !FAILS(memory_alloc(&x, 256)) &&
         !FAILS(launch(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL)) && !FAILS(stream_synchronize(stream));
}

/* ---- cuBLAS ---- */

static struct {
  void *handle;
  int (*sgemm)(void *handle, int transpose_a, int transpose_b, int m, int n, int k, const float *alpha, const float *a,
               int lda, const float *b, int ldb, const float *beta, float *c, int ldc);
} cublas;

static const char *open_cublas(const struct scene *scene) {
  static const char *const names[] = { "libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so",
                                       "/usr/local/cuda/lib64/libcublas.so" };
  void *library = NULL;
  int (*create)(void **), (*set_stream)(void *, void *);
  const char *why = enter(scene->info.ordinal);
  if (why != NULL) return why;
  for (size_t i = 0; i < sizeof names / sizeof *names && library == NULL; i++) library = dlopen(names[i], RTLD_NOW);
  if (library == NULL) return "there is no libcublas";
  *(void **)&create = dlsym(library, "cublasCreate_v2");
  *(void **)&set_stream = dlsym(library, "cublasSetStream_v2");
  *(void **)&cublas.sgemm = dlsym(library, "cublasSgemm_v2");
  if (create == NULL || set_stream == NULL || cublas.sgemm == NULL) return "libcublas lacks its functions";
  if (create(&cublas.handle) != 0 || set_stream(cublas.handle, (void *)scene->native) != 0) {
    return "libcublas does not start";
  }
  return NULL;
}

/* Its matrices lie in columns, so it computes the transpose of b' a'. */
static bool run_cublas(const struct scene *scene, const char *kernel, unsigned form, const char **form_name) {
  const int n = (int)scene->order;
  const float alpha = 1, beta = 0;
  if (form > 0 || strncmp(kernel, "sgemm", 5) != 0) return false;
  *form_name = "cublasSgemm";
  if (cublas.sgemm(cublas.handle, 0, 0, n, n, n, &alpha, scene->b, n, scene->a, n, &beta, scene->c, n) != 0) {
    rill__cuda_bench_cublas.failed = true;
  }
  return true;
}

struct peer rill__cuda_bench_cublas = { .name = "cuBLAS", .open = open_cublas, .run = run_cublas };
