#include "core/diagnose/calls.h"

#include "core/diagnose/waits.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

struct rill__running_call {
  _Alignas(64) _Atomic uint64_t owner; /* 0 if the place is free */
  _Atomic uint64_t number;
  _Atomic uint64_t stream, fn, since;
};

static struct rill__running_call places[RILL__CALL_PLACES];

static uint64_t own_id(void) { return (uint64_t)(uintptr_t)pthread_self(); }

/* Derives a place from the address of the thread's descriptor, which lies at the end of its stack, so different threads
 * differ above the page bits. */
static size_t first_place(uint64_t id) { return (size_t)(id >> 12 ^ id >> 20) % RILL__CALL_PLACES; }

uint64_t rill__function_address(rill_host_fn fn) {
  uintptr_t address = 0;
  memcpy(&address, &fn, sizeof fn);
  return address;
}

struct rill__running_call *rill__call_begin(uint64_t stream, rill_host_fn fn) {
  const uint64_t id = own_id();
  const size_t first = first_place(id);
  for (size_t i = 0; i < RILL__CALL_PLACES; i++) {
    struct rill__running_call *const call = &places[(first + i) % RILL__CALL_PLACES];
    uint64_t none = 0;
    if (atomic_load_explicit(&call->owner, memory_order_relaxed) != 0 ||
        !atomic_compare_exchange_strong(&call->owner, &none, id)) {
      continue;
    }
    const uint64_t number = atomic_load_explicit(&call->number, memory_order_relaxed);
    RILL_ASSERT(number % 2 == 0, "a free place is never read as a running call");
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&call->stream, stream, memory_order_relaxed);
    atomic_store_explicit(&call->fn, rill__function_address(fn), memory_order_relaxed);
    atomic_store_explicit(&call->since, rill__now(), memory_order_relaxed);
    atomic_store_explicit(&call->number, number + 1, memory_order_release);
    return call;
  }
  return NULL;
}

void rill__call_end(struct rill__running_call *call) {
  if (call == NULL || atomic_load_explicit(&call->owner, memory_order_relaxed) != own_id())
    return; /* or the call forked, and this is the child */
  const uint64_t number = atomic_load_explicit(&call->number, memory_order_relaxed);
  RILL_ASSERT(number % 2 == 1, "only the thread that has the place ends the call in it");
  atomic_store_explicit(&call->number, number + 1, memory_order_relaxed);
  atomic_store_explicit(&call->owner, 0, memory_order_release);
}

/* Returns the place of the thread's innermost call, or NULL. */
static struct rill__running_call *own_call(void) {
  const uint64_t id = own_id();
  const size_t first = first_place(id);
  struct rill__running_call *innermost = NULL;
  for (size_t i = 0; i < RILL__CALL_PLACES; i++) {
    struct rill__running_call *const call = &places[(first + i) % RILL__CALL_PLACES];
    if (atomic_load_explicit(&call->owner, memory_order_relaxed) == id) innermost = call;
  }
  return innermost;
}

bool rill__call_own(struct rill__host_call_seen *out) {
  const struct rill__running_call *const call = own_call();
  return call != NULL && rill__call_at((size_t)(call - places), out);
}

/* ---- functions ---- */

struct sought_function {
  uint64_t address;
  struct rill__function_name *name;
};

static int find_function(struct dl_phdr_info *info, size_t size, void *data) {
  const struct sought_function *const sought = data;
  const uint64_t offset = sought->address - info->dlpi_addr;
  (void)size;
  for (size_t i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *const segment = &info->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD || offset - segment->p_vaddr >= segment->p_memsz) continue;
    const char *const path = info->dlpi_name[0] != '\0' ? info->dlpi_name : program_invocation_name;
    const size_t length = strlen(path), most = 120; /* the end of a long path tells more */
    (void)snprintf(sought->name->text, sizeof sought->name->text, "%s+0x%llx",
                   length > most ? path + length - most : path, (unsigned long long)offset);
    return 1;
  }
  return 0;
}

struct rill__function_name rill__function_name(uint64_t address) {
  struct rill__function_name name;
  struct sought_function sought = { address, &name };
  (void)snprintf(name.text, sizeof name.text, "0x%llx", (unsigned long long)address);
  (void)dl_iterate_phdr(find_function, &sought);
  return name;
}

struct rill__function_name rill__function_symbol(uint64_t address) {
  const void *const function = (const void *)(uintptr_t)address;
  struct rill__function_name name;
  Dl_info info;
  if (dladdr(function, &info) == 0 || info.dli_sname == NULL || info.dli_saddr != function)
    return rill__function_name(address);
  (void)snprintf(name.text, sizeof name.text, "%.80s", info.dli_sname);
  return name;
}

/* ---- calls ---- */

/* Changes only `fn`, which is a single word. */
void rill__call_is_of(rill_host_fn fn) {
  struct rill__running_call *const innermost = own_call();
  if (innermost != NULL) atomic_store_explicit(&innermost->fn, rill__function_address(fn), memory_order_relaxed);
}

bool rill__call_at(size_t place, struct rill__host_call_seen *out) {
  struct rill__running_call *const call = &places[place];
  const uint64_t number = atomic_load_explicit(&call->number, memory_order_acquire);
  *out = (struct rill__host_call_seen){ atomic_load_explicit(&call->stream, memory_order_relaxed),
                                        atomic_load_explicit(&call->fn, memory_order_relaxed),
                                        atomic_load_explicit(&call->since, memory_order_relaxed) };
  atomic_thread_fence(memory_order_acquire);
  return number % 2 == 1 && atomic_load_explicit(&call->number, memory_order_relaxed) == number;
}

/* Frees all places.  A call that forked continues in the child without a place; on the CPU its thread ends after the
 * call. */
void rill__calls_after_fork(void) {
  for (size_t i = 0; i < RILL__CALL_PLACES; i++) {
    atomic_store(&places[i].owner, 0);
    atomic_store(&places[i].number, 0);
  }
}
