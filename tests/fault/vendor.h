/* The fake vendor library that a program of this folder runs over, and the vendor's functions as a test names them.
 *
 * RILL_TEST_VENDOR says which one it is: "cuda" or "hip".  No vendor header is needed: functions are found by name.
 */
#ifndef RILL_TESTS_FAULT_VENDOR_H
#define RILL_TESTS_FAULT_VENDOR_H

#include "fake_control.h"
#include "support/testing.h"

/* One function of backends/gpu/gpu_api.def. */
struct vendor_function {
  const char *field; /* as the backends call it: "event_record" */
  const char *name;  /* as this vendor does, without a version suffix; NULL: this vendor has none */
  bool required;
};
extern struct vendor_function vendor_functions[];
extern const size_t vendor_function_count;

struct vendor {
  bool cuda;
  const char *backend; /* "cuda" or "hip" */
  const char *unknown; /* the name of error 999 */
  const struct rill_fake *fake;
  rill_device device, second, cpu; /* the fake's devices 0 and 1 */
  rill_device_info info;
  bool has_kernels;                      /* the build had a compiler for this vendor */
  uintptr_t native_stream, native_event; /* made by vendor_begin, with vendor.device */
};
extern struct vendor vendor;

/* The functions' names; nothing of the vendor is loaded. */
void vendor_names(void);
/* Finds devices and native objects; fails the test if they are not there. */
void vendor_begin(void);
/* The name of a field's function; fails the test if there is no such field for this vendor. */
const char *vendor_name(const char *field);
/* Does the library that was loaded have it? */
bool vendor_has(const char *field);
/* Calls of it so far; 0 if this vendor has none. */
uint64_t vendor_calls(const char *field);

/* The native state of the calling thread that belongs to its owner (C1.7). */
struct native_state {
  uintptr_t current; /* context of CUDA, device of HIP */
  int last_error;    /* HIP's; 0 for CUDA */
  int capture_mode;
};
struct native_state native_state(void);

/* Make something else current: nothing, the second device (with a context of its own), a foreign context. */
void native_set_nothing(void);
void native_set_second(void);
void native_set_foreign(void);
/* Restores what was current before, and its capture mode. */
void native_put_back(struct native_state state);
/* Leaves an error of the owner as the thread's last error, if the vendor keeps one. */
void native_leave_error(void);
/* A stream of the vendor's on vendor.device, and what it says of one. */
uintptr_t native_new_stream(void);
void native_destroy_stream(uintptr_t stream);
int native_priority(uintptr_t stream);
bool native_is_blocking(uintptr_t stream);
bool native_event_is_ready(uintptr_t event);
void native_record_event(uintptr_t event, uintptr_t stream);
/* Resets the device, as other code of the process may. */
void native_reset(void);

/* Begins and ends a capture on a stream of rill's, as its owner does; false if this vendor's library cannot. */
bool native_begin_capture(rill_stream stream);
void native_end_capture(rill_stream stream);

/* Destroys what was made beside rill. */
void vendor_end(void);

#endif
