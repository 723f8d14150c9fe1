/* Helpers for the examples that use vendor libraries. Each example opens its library at run time, so that it builds on
 * any machine, and prints a message if there is none. A program that is built with the vendor's headers would call the
 * functions directly. */
#ifndef VENDOR_LIBRARY_H
#define VENDOR_LIBRARY_H

#include <dlfcn.h>
#include <rill/rill.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                          \
  do {                                                       \
    if ((call) != RILL_OK) {                                 \
      (void)fprintf(stderr, "%s\n", rill_last_error_text()); \
      exit(1);                                               \
    }                                                        \
  } while (0)

/* Checks a vendor's call, which returns 0 on success. */
#define CHECK_VENDOR(call)                                                            \
  do {                                                                                \
    const int code_ = (call);                                                         \
    if (code_ != 0) {                                                                 \
      (void)fprintf(stderr, "%s:%d: %s gave %d\n", __FILE__, __LINE__, #call, code_); \
      exit(1);                                                                        \
    }                                                                                 \
  } while (0)

/* Opens the first library that exists, of a list that ends with NULL. Returns NULL if there is none. */
static inline void *open_one(const char *const *names) {
  void *library = NULL;
  for (; *names != NULL && library == NULL; names++) library = dlopen(*names, RTLD_NOW);
  return library;
}

/* Sets a function pointer. Returns 0 if the library has no function of that name. */
static inline int find(void *library, const char *name, void *function) {
  void *symbol = dlsym(library, name);
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
}

/* Makes the device of a stream current in the calling thread, because vendor libraries use the current device when they
 * are initialized. For CUDA this is the primary context, as with cudaSetDevice; for HIP it is the device. */
static inline int make_current(rill_stream stream, const rill_device_info *info) {
  static const char *const cuda[] = { "libcuda.so.1", NULL };
  static const char *const hip[] = { "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", NULL };
  uintptr_t context = 0;
  int (*set_context)(void *);
  int (*set_device)(int);
  CHECK(rill_stream_context(stream, &context));
  if (info->backend == RILL_BACKEND_CUDA) {
    return find(open_one(cuda), "cuCtxSetCurrent", &set_context) && set_context((void *)context) == 0;
  }
  return find(open_one(hip), "hipSetDevice", &set_device) && set_device(info->ordinal) == 0;
}

#endif
