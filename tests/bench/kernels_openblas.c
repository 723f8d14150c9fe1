/* The peer for matrix products on the CPU: OpenBLAS, if it is here. */
#include "kernels.h"

#include <dlfcn.h>
#include <string.h>

static void (*sgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a,
                     int lda, const float *b, int ldb, float beta, float *c, int ldc);

static const char *open_peer(const struct scene *scene) {
  (void)scene;
  void *const library = dlopen("libopenblas.so.0", RTLD_NOW);
  if (library == NULL) return "there is no libopenblas.so.0";
  *(void **)&sgemm = dlsym(library, "cblas_sgemm");
  return sgemm != NULL ? NULL : "libopenblas.so.0 lacks cblas_sgemm";
}

static bool run(const struct scene *scene, const char *kernel, unsigned form, const char **form_name) {
  enum { ROW_MAJOR = 101, AS_IT_IS = 111 };
  const int n = (int)scene->order;
  if (form > 0 || strncmp(kernel, "sgemm", 5) != 0) return false;
  *form_name = "cblas_sgemm";
  sgemm(ROW_MAJOR, AS_IT_IS, AS_IT_IS, n, n, n, 1, scene->a, n, scene->b, n, 0, scene->c, n);
  return true;
}

struct peer bench_openblas = { .name = "OpenBLAS", .open = open_peer, .run = run };
