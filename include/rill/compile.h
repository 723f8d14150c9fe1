/* rill/compile.h: compiling kernels while the program runs.
 *
 * A kernel source in the dialect of rill/device/kernel.h is compiled for one device: by the vendor's run-time
 * compiler on a GPU, by the host's C++ compiler for the cpu.  The result is a module like any other:
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
 * Headers come with the call, as texts; the dialect's own are always there.
 *
 * Compiling takes from tens of milliseconds to seconds, so results are cached on disk, for this user alone:
 * docs/guides/COMPILING.md says where and how, and how to turn it off.  The thing people get wrong: values that change
 * from call to call do not belong in the source or a -D, where each one is another compile; they are arguments.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_COMPILE_H
#define RILL_COMPILE_H

#include <rill/base.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

/** A header that the source includes by `name`: relative, with '/' between its parts, none of them "." or "..". */
typedef struct rill_compile_header {
  const char *name, *text;
} rill_compile_header;

typedef struct rill_compile_options {
  size_t struct_size;
  /** Words from this list, the same for every compiler: -DNAME -DNAME=VALUE -UNAME -std=c++17 -std=c++20
   *  -ffp-contract=fast -ffp-contract=off -g */
  const char *const *options;
  size_t option_count;
  const rill_compile_header *headers;
  size_t header_count;
  const char *label; /**< names the source in messages and the module in texts; NULL: "kernels" */
  bool no_cache;     /**< neither reads nor writes the cache on disk */
} rill_compile_options;
#define RILL_COMPILE_OPTIONS_INIT \
  { sizeof(rill_compile_options), NULL, 0, NULL, 0, NULL, false }

/** Compiles a kernel source for a device and loads the result.  Blocks until that is done.
 *
 *  `source` is zero-terminated C++17 in the dialect of rill/device/kernel.h.  Products and sums are fused on a
 *  GPU unless -ffp-contract=off says otherwise, and never on the cpu, as rillcc has it.  Each call makes another
 *  module.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT (an option that is not in the list, a header's name; or the source has
 *           errors: the text begins with the compiler's first message, rill_compile_log has all of them), UNSUPPORTED
 *           (there is no compiler; the text lists those looked for), OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    nvrtcCompileProgram, hiprtcCompileProgram. */
RILL_API RILL_NODISCARD rill_status rill_module_compile(rill_device device, const char *source,
                                                        const rill_compile_options *options, rill_module *out);

/** All that the compiler had to say in the calling thread's last rill_module_compile, warnings too.  "" if it had
 *  nothing to say or did not run, as when the result was on disk.  Never NULL.
 *
 *  Errors:  none.
 *  Threads: any; the text is valid until this thread's next rill_module_compile.
 *  Like:    nvrtcGetProgramLog, hiprtcGetProgramLog. */
RILL_API RILL_NODISCARD const char *rill_compile_log(void);

RILL_EXTERN_C_END

#endif
