/* null.h: handles and addresses for the null libraries: never NULL, each given once. */
#ifndef NULL_VENDOR_NULL_H
#define NULL_VENDOR_NULL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

static inline void *null_handle(void) {
  static _Atomic uintptr_t last = 0x1000;
  return (void *)(atomic_fetch_add_explicit(&last, 64, memory_order_relaxed) + 64);
}

/* Device memory that is never accessed, in pieces of 2 MiB, as drivers return it. */
static inline void *null_address(size_t size) {
  static _Atomic uintptr_t end = (uintptr_t)1 << 44;
  return (void *)atomic_fetch_add_explicit(&end, (size + ((size_t)2 << 20) - 1) >> 21 << 21, memory_order_relaxed);
}

#endif
