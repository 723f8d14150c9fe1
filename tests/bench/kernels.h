/* kernels.h: shared by the benchmark of the kernels and its peers.
 *
 * A peer does the same work another way in the same run: plain CUDA and cuBLAS on rill's own stream, OpenMP on the CPU.
 */
#ifndef RILL_TESTS_BENCH_KERNELS_H
#define RILL_TESTS_BENCH_KERNELS_H

#include <rill/rill.h>

/* Objects shared by all peers. The arrays have the same size; their numbers are between 0 and 1 as floats, and near to
 * 1e-5 as doubles. */
struct scene {
  rill_device device;
  rill_device_info info;
  rill_stream stream;
  uintptr_t native; /* the stream's; 0 on the CPU */
  size_t bytes;     /* of an array */
  size_t order;     /* of the square matrices, which fit the arrays */
  void *a, *b, *c;
};

/* The columns of what is a picture. */
enum { PICTURE_COLUMNS = 8192 };

/* One way to do the work of a kernel; a peer may have several. */
struct peer {
  const char *name;
  /* Prepares the peer; returns NULL, or why it is unavailable. */
  const char *(*open)(const struct scene *scene);
  /* Enqueues on the scene's stream, or does on the spot, the work of the kernel called `kernel` in the peer's form
   * `form`, and names that form; false if there is no such form, or no such kernel. */
  bool (*run)(const struct scene *scene, const char *kernel, unsigned form, const char **form_name);
  bool failed; /* a form that is there did not work */
};

/* Built with the backend of cuda, where the compiler has OpenMP, and always. */
extern struct peer rill__cuda_bench_plain, rill__cuda_bench_cublas;
extern struct peer bench_openmp;
extern struct peer bench_openblas;

/* The time to a process's first kernel without rill: false if it cannot be done. */
bool rill__cuda_bench_first_kernel(int32_t ordinal);

#endif
