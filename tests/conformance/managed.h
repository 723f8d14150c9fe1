/* Shared by the tests of managed memory. */
#ifndef RILL_TESTS_CONFORMANCE_MANAGED_H
#define RILL_TESTS_CONFORMANCE_MANAGED_H

#include "support/testing.h"

enum { MANAGED_BYTES = 3 * 65536 + 5 };

/* Returns managed memory filled with `byte`; skips the test if the device has none. */
static inline unsigned char *new_managed(unsigned char byte) {
  void *p = NULL;
  if (!rill_device_supports(dut.device, RILL_FEATURE_MANAGED, NULL)) skip();
  assert_ok(rill_alloc(dut.device, MANAGED_BYTES, RILL_MEMORY_MANAGED, &p));
  memset(p, byte, MANAGED_BYTES);
  return p;
}

/* Some GPUs cannot use managed memory concurrently with the host; both calls are then refused, with the reason. */
#define assert_ok_or_unsupported(call)                                                            \
  do {                                                                                            \
    const rill_status status_ = (call);                                                           \
    if (status_ == RILL_ERROR_UNSUPPORTED && dut.gpu) assert_says("managed memory concurrently"); \
    else check_ok(status_, #call, __FILE__, __LINE__);                                            \
  } while (0)

#endif
