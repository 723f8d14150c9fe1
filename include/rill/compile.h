/* rill/compile.h: compiles kernels at run time.
 *
 * A kernel source in the dialect of rill/device/kernel.h is compiled for one device, by the vendor's run-time
 * compiler for a GPU and by the host's C++ compiler for the CPU. The result is an ordinary module:
 *
 *     const char *source = "#include <rill/device/kernel.h>\n"
 *                          "RILL_KERNEL(scale, int n, float a, float *x) {\n"
 *                          "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
 *                          "  if (i < n) x[i] *= a;\n"
 *                          "}\n";
 *     rill_module module;
 *     if (rill_module_compile(device, source, NULL, &module) != RILL_OK) {
 *       fprintf(stderr, "%s\n%s", rill_last_error_text(), rill_compile_log());
 *     }
 *
 * Headers are passed to the call as strings; the headers of the dialect are always available.
 *
 * Compiling takes tens of milliseconds to seconds, so results are cached on disk for the current user.
 * docs/guides/COMPILING.md describes the cache and how to disable it.
 *
 * Pitfall: values that change from call to call belong in kernel arguments, not in the source or in -D options,
 * because each value needs another compilation.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_COMPILE_H
#define RILL_COMPILE_H

#include <rill/base.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

/** A header that the source includes by `name`, a relative path with '/' between its parts, none of which is "." or
 *  "..". */
typedef struct rill_compile_header {
  const char *name, *text;
} rill_compile_header;

/** Options of rill_module_compile. */
typedef struct rill_compile_options {
  size_t struct_size;
  /** Compiler options from this list, which is the same for every compiler: -DNAME -DNAME=VALUE -UNAME -std=c++17
   *  -std=c++20 -ffp-contract=fast -ffp-contract=off -g */
  const char *const *options;
  size_t option_count;
  const rill_compile_header *headers;
  size_t header_count;
  const char *label; /**< names the source in compiler messages and the module in error texts; NULL: "kernels" */
  bool no_cache;     /**< do not read or write the cache on disk */
} rill_compile_options;
#define RILL_COMPILE_OPTIONS_INIT \
  { sizeof(rill_compile_options), NULL, 0, NULL, 0, NULL, false }

/** Compiles a kernel source for a device and loads the result. Blocks until the module is loaded.
 *
 *  `source` is zero-terminated C++17 in the dialect of rill/device/kernel.h. As with rillcc, products and sums are
 *  contracted into fused operations on a GPU unless -ffp-contract=off is given, and never on the CPU. Each call
 *  creates a new module.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT (an unknown option; a bad header name; errors in the source: the text
 *           begins with the compiler's first message, and rill_compile_log returns all messages), UNSUPPORTED (no
 *           compiler was found; the text lists the candidates), OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    nvrtcCompileProgram, hiprtcCompileProgram. */
RILL_API RILL_NODISCARD rill_status rill_module_compile(rill_device device, const char *source,
                                                        const rill_compile_options *options, rill_module *out);

/** Returns all compiler messages of the calling thread's last rill_module_compile, including warnings, or "" if there
 *  were none or the result came from the cache. Never NULL.
 *
 *  Errors:  none.
 *  Threads: any; the text is valid until this thread's next rill_module_compile.
 *  Like:    nvrtcGetProgramLog, hiprtcGetProgramLog. */
RILL_API RILL_NODISCARD const char *rill_compile_log(void);

RILL_EXTERN_C_END

#endif
