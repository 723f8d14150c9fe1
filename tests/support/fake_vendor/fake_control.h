/* fake_control.h: control of a loaded fake vendor library by tests.
 *
 *     const struct rill_fake *fake = rill_fake_find("libcuda.so.1");
 *     fake->fail_call("cuEventRecord", 3, 700);      the third call from now gives 700
 *     fake->pause(0);                           nothing submitted to device 0 starts
 *
 * Functions are named as in C, without a version suffix: "cuMemAlloc", never "cuMemAlloc_v2".  "*" is any.
 * Every function may be called from any thread.  The environment does the same for whole programs:
 *
 *   RILL_FAKE_DEVICES=2          number of devices; 0: there is none
 *   RILL_FAKE_INIT=100           what cuInit or hipInit answers
 *   RILL_FAKE_VERSION=11080      the driver's version; functions that came later are missing
 *   RILL_FAKE_MISSING=a,b        these functions are missing
 *   RILL_FAKE_TARGET=sm_80       what the devices are: sm_NN or gfxNNN
 *   RILL_FAKE_MEMORY=1024        MiB of each device
 *   RILL_FAKE_FAIL=name:3:700    the third call fails; 3+ from the third on; several with commas
 *   RILL_FAKE_HANG=a,b           calls of these block until released
 *   RILL_FAKE_REUSE=1            handles of ended objects are reused at once
 *   RILL_FAKE_PEERS=0            no device reaches another one's memory
 *   RILL_FAKE_YIELD=1            other threads run after each call, before it returns
 *   RILL_FAKE_QUERY_NS=1000      processor time that a query of an event takes
 *   RILL_FAKE_SUMMARY=1          at exit, objects still alive and calls made go to stderr
 *
 * With CUDA_ or HIP_ after RILL_FAKE_ (RILL_FAKE_HIP_DEVICES) a variable is for one of the two alone.
 * A kernel runs as the host code in its bundle, which the fake finds in the program or its libraries.
 * A kernel named "fault" does not run: it makes its device fault with 700 (illegal address).
 */
#ifndef FAKE_CONTROL_H
#define FAKE_CONTROL_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rill_fake {
  /* Makes the nth call from now fail with `code`; nth 0: every call. */
  void (*fail_call)(const char *function, unsigned nth, int code);
  /* Makes calls block until `clear`. */
  void (*hang)(const char *function);
  /* Threads that hang now. */
  unsigned (*hanging)(void);
  /* Cancels every `fail_call` and `hang`, including those of the environment. */
  void (*clear)(void);
  /* Calls made so far. */
  uint64_t (*calls)(const char *function);

  /* Between the two no operation of the device starts; one that runs goes on. */
  void (*pause)(int device);
  void (*resume)(int device);
  /* The device faults now, as an illegal access would make it; sticky. */
  void (*fault)(int device, int code);
  /* The next kernel submitted to the device faults when its turn comes. */
  void (*fault_next_launch)(int device, int code);
  /* Clears a fault, which no driver does. */
  void (*revive)(int device);

  /* Objects alive: "context", "stream", "event", "module", "function", "graph", "memory"; "*": all. */
  size_t (*live)(const char *kind);
  void (*reuse_handles)(bool on);
  /* Bytes that copies and fills were asked to write so far. */
  uint64_t (*bytes)(void);
  /* Copies and fills that are submitted from now on are checked, counted and ordered, and move nothing. */
  void (*weightless)(bool on);
  void (*print_summary)(void);

  /* What the last launch carried: a bit for each of the numbers that CUDA gives to launch attributes. */
  uint64_t (*launch_attributes)(void);

  /* For libraries over the driver.  `run` runs in the stream's order, and may block as a kernel may; after a fault of
   * the device it gets the code.  The calling thread's current device, or that of a stream; -1: there is none. */
  int (*enqueue)(void *stream, void (*run)(void *data, int status), void *data);
  int (*current_device)(void);
  int (*device_of_stream)(void *stream);
  /* The same for a stream that captures: `run` runs at each launch of the graph, and `finish` when nothing has the node
   * any more.  -1: it does not capture. */
  int (*capture)(void *stream, void (*run)(void *data, int status), void (*finish)(void *data), void *data);
};

#define RILL_FAKE_CONTROL_SYMBOL "rill_fake_control"
typedef const struct rill_fake *(*rill_fake_control_fn)(void);

/** The fake that is loaded under this name; NULL if it is not loaded or is no fake. */
static inline const struct rill_fake *rill_fake_find(const char *soname) {
  void *library = dlopen(soname, RTLD_NOW | RTLD_NOLOAD);
  if (library == NULL) return NULL;
  void *symbol = dlsym(library, RILL_FAKE_CONTROL_SYMBOL);
  (void)dlclose(library);
  rill_fake_control_fn control;
  *(void **)&control = symbol;
  return symbol == NULL ? NULL : control();
}

#endif
