/* rill/module.h: machine code that rillcc did not bundle, and control over when code is loaded.
 *
 * rill/kernel.h has what most programs need: a bundle is loaded with rill_module_load, or by the first launch that
 * goes through a reference.  Here is the rest.
 *
 *     rill_module module;                                              // from another compiler
 *     rill_module_load_image(device, cubin, cubin_size, &module);
 *     rill_module_get_kernel(module, "saxpy", &kernel);
 *     rill_stream_launch(stream, kernel, &launch, RILL_ARGS(n, 2.0f, x, y));
 *
 *     rill_bundle_preload(device, &saxpy_bundle);                      // at start: the first launch costs no more
 *     rill_bundle_unload(&saxpy_bundle);                               // before its library is closed
 *
 * The thing people get wrong: a bundle is memory of the program or library that it is linked into.  One that sits in a
 * plugin goes away with dlclose, and another one may come to lie at the same address: unload it first.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_MODULE_H
#define RILL_MODULE_H

#include <rill/kernel.h>

RILL_EXTERN_C_BEGIN

/** Loads machine code from elsewhere, in a form of the device's backend, as a module of its own.
 *
 *  cuda: a cubin, a fatbin, or PTX, with or without a zero at its end.  hip: a code object (hsaco), or a bundle of
 *  them that clang wrote without compression.  cpu: an image that rillcc made for the cpu.  Of several targets inside,
 *  the one that fits best is loaded.  The bytes are checked before a driver sees them, and are not needed after the
 *  call.  Loading the same ones again gives another module.
 *
 *  Names, arguments and the shape of a block are checked as for bundles, as far as the image or the driver tells them:
 *  RILL_FEATURE_KERNEL_ARGS.  A kernel whose arguments are not known is launched with what it is given, and not on a
 *  held stream.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT (NULL; size 0; nothing that the backend loads; damaged or cut off),
 *           NOT_FOUND (for other targets only: the text lists them and what the device needs), OUT_OF_MEMORY,
 *           DEVICE_LOST, BACKEND (the driver refuses it; with the log of its compiler).
 *  Like:    cuModuleLoadDataEx, cuLibraryLoadData, hipModuleLoadData. */
RILL_API RILL_NODISCARD rill_status rill_module_load_image(rill_device device, const void *data, size_t size,
                                                           rill_module *out);

/** Loads a bundle on a device with all its kernels, as first launches by reference do.  Afterwards these only look
 *  the kernel up, inside captures too.  Loaded already: nothing happens.
 *
 *  Errors:  those of rill_module_load and rill_module_get_kernel.
 *  Like:    cuFuncLoad, CUDA_MODULE_LOADING=EAGER. */
RILL_API RILL_NODISCARD rill_status rill_bundle_preload(rill_device device, const rill_bundle *bundle);

/** Forgets a bundle on every device: what launches by reference and rill_bundle_preload loaded is unloaded once the
 *  work that uses it is done; the call does not wait for that.  Modules and kernels that the caller has remain valid
 *  until they are released, without the bundle.  A later load or launch by reference loads anew.
 *
 *  Call it before the library that holds the bundle is closed, when no other call is using the bundle or a reference
 *  to it.  Not loaded: nothing happens.
 *
 *  Errors:  INVALID_ARGUMENT.
 *  Like:    cuLibraryUnload. */
RILL_API RILL_NODISCARD rill_status rill_bundle_unload(const rill_bundle *bundle);

/** Returns the address and size in bytes of a `__constant__` or `__device__` variable of a module.  `size` may be
 *  NULL.
 *
 *  The address is memory of the device, for copies, fills and kernels; it is valid for as long as the module is.  A
 *  variable that the compiler dropped, since no kernel uses it, is not there.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, NOT_FOUND, OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuModuleGetGlobal, hipModuleGetGlobal. */
RILL_API RILL_NODISCARD rill_status rill_module_get_global(rill_module module, const char *symbol, void **p,
                                                           size_t *size);

/** Returns the CUmodule or hipModule_t of a module; 0 on the CPU.  It stays the module's.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_module_native(rill_module module, uintptr_t *out);

RILL_EXTERN_C_END

#endif
