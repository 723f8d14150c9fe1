/* Native streams and events, created as in a program that uses rill beside CUDA or HIP.
 *
 * The functions come from the vendor's library that rill has opened already, so tests need no vendor header and the
 * library may be a fake. The CPU has no native objects: native_available is false. */
#ifndef RILL_TESTS_SUPPORT_NATIVE_H
#define RILL_TESTS_SUPPORT_NATIVE_H

#include "testing.h"

/* Opens the vendor's library for dut.device; false where the device has no native objects. */
bool native_available(void);

/* Each fails the test if the vendor refuses. */
uintptr_t native_stream_create(rill_device device);
void native_stream_destroy(uintptr_t stream);
bool native_stream_is_alive(uintptr_t stream); /* the vendor takes a query of it */
/* Captures of the stream's owner, in global or in relaxed mode.  The beginning gives the vendor's code; the end, on the
 * same thread, whether the capture was valid. */
int native_capture_begin(uintptr_t stream, bool global);
bool native_capture_end(uintptr_t stream);

/* Fills `n` bytes of the device's memory, as work of the stream. */
void native_fill(uintptr_t stream, void *p, unsigned char value, size_t n);

uintptr_t native_event_create(rill_device device);
void native_event_record(uintptr_t event, uintptr_t stream);
void native_event_destroy(uintptr_t event);

/* Memory of the vendor's, of the device or pinned. */
void *native_memory_alloc(rill_device device, size_t size, bool pinned);
void native_memory_free(rill_device device, void *p, bool pinned);

/* The calling thread's current context (CUDA) or device (HIP), as a number to compare. */
uintptr_t native_current(void);

#endif
