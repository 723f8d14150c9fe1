/* comm_control.h: control of a loaded fake NCCL or RCCL by tests.
 *
 *     const struct rill_fake_comm *engine = rill_fake_comm_find("libnccl.so.2");
 *     engine->fail_call("ncclAllReduce", 2, 3);     the second call from now gives 3
 *
 * Its communicators join threads and devices of one process, over the fake driver of that vendor. Operations run in
 * the order of their streams, and wait for the other ranks as the vendor's kernels do: forever if these never arrive
 * or pass another count; an abort ends them. Every function may be called from any thread. One call can be made to
 * fail at a time. */
#ifndef COMM_CONTROL_H
#define COMM_CONTROL_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

struct rill_fake_comm {
  /* Makes the nth call from now fail with `code`; replaces an earlier request. */
  void (*fail_call)(const char *function, unsigned nth, int code);
  /* Makes calls that submit block until their communicator is aborted or revoked. */
  void (*block_submissions)(int on);
  void (*clear)(void);
  /* Calls made so far. */
  uint64_t (*calls)(const char *function);
  /* Communicators that were neither destroyed nor aborted. */
  size_t (*live)(void);
  /* The process of this rank dies, in all communicators: its operations never complete for the others, and what it
   * calls from now on, but to destroy its communicators, has no effect on them.  `error`: the asynchronous error with
   * which the others learn of it, as over a network; 0: they do not, as between the GPUs of one machine. */
  void (*kill)(int rank, int error);
};

#define RILL_FAKE_COMM_SYMBOL "rill_fake_comm_control"

/** The one that is loaded under this name; NULL if it is not loaded or is none. */
static inline const struct rill_fake_comm *rill_fake_comm_find(const char *soname) {
  void *library = dlopen(soname, RTLD_NOW | RTLD_NOLOAD);
  if (library == NULL) return NULL;
  void *symbol = dlsym(library, RILL_FAKE_COMM_SYMBOL);
  (void)dlclose(library);
  const struct rill_fake_comm *(*control)(void);
  *(void **)&control = symbol;
  return symbol == NULL ? NULL : control();
}

#endif
