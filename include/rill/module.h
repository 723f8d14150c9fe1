/* rill/module.h: modules from the machine code of other compilers, and control over when code is loaded.
 *
 * Most programs need only rill/kernel.h: rill_module_load, or the first launch by reference, loads a bundle.
 *
 *     rill_module module;                                              // from another compiler
 *     rill_module_load_image(device, cubin, cubin_size, &module);
 *     rill_module_get_kernel(module, "saxpy", &kernel);
 *     rill_stream_launch(stream, kernel, &launch, RILL_ARGS(n, 2.0f, x, y));
 *
 *     rill_bundle_preload(device, &saxpy_bundle);                      // at startup, to make the first launch fast
 *     rill_bundle_unload(&saxpy_bundle);                               // before its library is closed
 *
 * Pitfall: a bundle is memory of the program or library that contains it. Unload the bundle of a plugin before
 * dlclose; otherwise a library that is later mapped at the same address would be mistaken for it.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_MODULE_H
#define RILL_MODULE_H

#include <rill/kernel.h>

RILL_EXTERN_C_BEGIN

/** Loads machine code that another compiler made for the device's backend.
 *
 *  cuda: a cubin, a fatbin, or PTX, with or without a zero at its end.  hip: a code object (hsaco), or a bundle of
 *  them that clang wrote without compression.  cpu: an image that rillcc made for the CPU. If the code has several
 *  targets, the one that fits best is loaded. The bytes are validated before they reach a driver, and are not needed
 *  after the call. Loading the same bytes again creates another module.
 *
 *  Names, arguments and block shapes are checked as for bundles if the image or the driver describes them
 *  (RILL_FEATURE_KERNEL_ARGS). A kernel with unknown arguments is launched with the arguments as given, and cannot be
 *  launched on a held stream.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT (NULL; size 0; an unknown format; damaged or truncated bytes), NOT_FOUND
 *           (the code is for other targets only; the text lists them and what the device needs), OUT_OF_MEMORY,
 *           DEVICE_LOST, BACKEND (the driver refused the code; the text has the log of its compiler).
 *  Like:    cuModuleLoadDataEx, cuLibraryLoadData, hipModuleLoadData. */
RILL_API RILL_NODISCARD rill_status rill_module_load_image(rill_device device, const void *data, size_t size,
                                                           rill_module *out);

/** Loads a bundle and all its kernels on a device, as the first launches by reference would. Later launches by
 *  reference only look up the kernel, including inside captures. Has no effect if the bundle is already loaded.
 *
 *  Errors:  those of rill_module_load and rill_module_get_kernel.
 *  Like:    cuFuncLoad, CUDA_MODULE_LOADING=EAGER. */
RILL_API RILL_NODISCARD rill_status rill_bundle_preload(rill_device device, const rill_bundle *bundle);

/** Unloads a bundle from every device. The code that rill_bundle_preload or launches by reference have loaded is
 *  unloaded once the work that uses it has completed; the call does not wait. The caller's modules and kernels remain
 *  valid until they are released, and do not need the bundle. A later load or launch by reference loads the bundle
 *  again.
 *
 *  Call it before the library that contains the bundle is closed, while no other call uses the bundle or a reference
 *  to it. Has no effect if the bundle is not loaded.
 *
 *  Errors:  INVALID_ARGUMENT.
 *  Like:    cuLibraryUnload. */
RILL_API RILL_NODISCARD rill_status rill_bundle_unload(const rill_bundle *bundle);

/** Returns the address and size in bytes of a `__constant__` or `__device__` variable of a module.  `size` may be
 *  NULL.
 *
 *  The address is device memory, for copies, fills and kernels, and is valid as long as the module. The compiler may
 *  have removed a variable that no kernel uses; the call then returns NOT_FOUND.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, NOT_FOUND, OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuModuleGetGlobal, hipModuleGetGlobal. */
RILL_API RILL_NODISCARD rill_status rill_module_get_global(rill_module module, const char *symbol, void **p,
                                                           size_t *size);

/** Returns the CUmodule or hipModule_t of a module, or 0 on the CPU. The module owns it.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_module_native(rill_module module, uintptr_t *out);

RILL_EXTERN_C_END

#endif
