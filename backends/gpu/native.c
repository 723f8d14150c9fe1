/* Native streams are reused, because creating one takes microseconds.
 *
 * A native stream that rill created, and whose handle no other code has, is put into a pool of its device when its rill
 * stream is destroyed and its work is done.  The next rill stream of the same priority and kind takes it.  All other
 * streams that rill owns are destroyed.
 *
 * If GPU_EVENTS_ACCESS_STREAMS, the runtime accesses the stream on which an event was last recorded, even if that
 * stream no longer exists.  Each event therefore notes the stream, and rill itself answers queries for events of
 * streams that have ended, whose work was complete at that time.
 *
 * Invariant: `generation` belongs to the rill stream that uses the native stream now.  It is incremented when that
 * stream has ended and its work is complete, before the native stream is destroyed or reused.  A native stream is
 * destroyed only after all calls have returned that may have seen the old generation.  Such a call reads it inside an
 * epoch (core/object/thread.h) or, if it blocks, between gpu_access_begin and gpu_access_end.
 *
 * Blocking calls are counted by the turn in which they started.  The turn advances when no call of the previous turn is
 * left.  Two turns after the generation was incremented, all calls that started before have therefore returned.
 */
#include "backends/gpu/gpu.h"

#include <stdlib.h>

enum { CHUNK = 256, CHUNKS = 1 << (GPU_INDEX_BITS - 8), POOL_MAX = 64 };

/* Indexed by number; never freed or moved, because events refer to them. */
static _Atomic(struct gpu_native *) chunks[CHUNKS];
static uint32_t used;
static struct gpu_native *unused; /* linked by next */
static pthread_mutex_t natives_lock = PTHREAD_MUTEX_INITIALIZER;

static _Atomic uint32_t turn;
static _Atomic uint32_t calls_of_turn[2]; /* calls that started in even and odd turns */

static struct gpu_native *at(uint32_t index) {
  struct gpu_native *chunk = atomic_load_explicit(&chunks[index / CHUNK], memory_order_acquire);
  return &chunk[index % CHUNK];
}

/* Returns an unused native stream of the table, which grows by a chunk if necessary.  Call it under the lock. */
static struct gpu_native *make_more(void) {
  if (used == CHUNKS * CHUNK) return NULL;
  if (used % CHUNK == 0) {
    struct gpu_native *chunk = calloc(CHUNK, sizeof *chunk);
    if (chunk == NULL) return NULL;
    for (uint32_t i = 0; i < CHUNK; i++) chunk[i].index = used + i;
    atomic_store_explicit(&chunks[used / CHUNK], chunk, memory_order_release);
  }
  return at(used++);
}

struct gpu_native *gpu_native_new(gpu_stream_handle handle) {
  (void)pthread_mutex_lock(&natives_lock);
  struct gpu_native *native = unused;
  if (native != NULL) {
    unused = native->next;
  } else {
    native = make_more();
  }
  (void)pthread_mutex_unlock(&natives_lock);
  if (native == NULL) return NULL;
  native->handle = handle;
  atomic_store(&native->first, atomic_fetch_add(&native->generation, 1) + 1);
  return native;
}

void gpu_native_forget(struct gpu_native *native) {
  (void)pthread_mutex_lock(&natives_lock);
  native->next = unused;
  unused = native;
  (void)pthread_mutex_unlock(&natives_lock);
}

/* ---- the pool ---- */

/* Returns NULL if streams of this priority are not pooled. */
static struct gpu_native_pool *natives_of(struct rill__device *device, int32_t priority, bool blocking) {
  const int32_t level = device->info.priority_least - priority;
  if (level < 0 || level >= GPU_POOL_LEVELS) return NULL;
  return &gpu_device_of(device)->pools[blocking][level];
}

static struct gpu_native *take_native(struct rill__device *device, struct gpu_native_pool *pool) {
  struct gpu_device *part = gpu_device_of(device);
  (void)pthread_mutex_lock(&part->pools_lock);
  struct gpu_native *native = pool->first;
  if (native != NULL) {
    pool->first = native->next;
    pool->count--;
  }
  (void)pthread_mutex_unlock(&part->pools_lock);
  return native;
}

static bool cache_native(struct rill__device *device, struct gpu_native_pool *pool, struct gpu_native *native) {
  struct gpu_device *part = gpu_device_of(device);
  (void)pthread_mutex_lock(&part->pools_lock);
  const bool room = pool->count < POOL_MAX;
  if (room) {
    native->next = pool->first;
    pool->first = native;
    pool->count++;
  }
  (void)pthread_mutex_unlock(&part->pools_lock);
  return room;
}

rill_status gpu_native_create(struct rill__device *device, int32_t priority, bool blocking, struct gpu_native **out) {
  struct gpu_native_pool *pool = natives_of(device, priority, blocking);
  const unsigned flags = blocking ? 0 : GPU_STREAM_NON_BLOCKING;
  gpu_result result;
  *out = pool == NULL ? NULL : take_native(device, pool);
  RILL_ASSERT(*out == NULL || (*out)->ended_at == 0, "a native stream that is destroyed is not used again");
  if (*out != NULL) return RILL_OK;
  struct gpu_native *native = gpu_native_new((gpu_stream_handle)NULL);
  RILL_REQUIRE(native != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a stream");
  GPU_RUN_INSIDE(result, device, stream_create, (&native->handle, flags, priority));
  if (result != GPU_SUCCESS) {
    gpu_native_forget(native);
    return GPU_FAIL(device, result, stream_create);
  }
  *out = native;
  return RILL_OK;
}

/* Returns true if no call is running that may have seen the generation before it was incremented. */
static bool is_out_of_use(const struct gpu_native *native) {
  if (!GPU_EVENTS_ACCESS_STREAMS) return true;
  struct rill__thread *holder = NULL;
  if (rill__oldest_epoch(&holder) <= native->ended_at) return false;
  (void)pthread_mutex_lock(&natives_lock);
  for (int i = 0; i < 2 && atomic_load(&calls_of_turn[(atomic_load(&turn) + 1) % 2]) == 0; i++)
    atomic_fetch_add(&turn, 1);
  const bool no_call = atomic_load(&turn) - native->ended_turn >= 2;
  (void)pthread_mutex_unlock(&natives_lock);
  return no_call;
}

bool gpu_native_end(struct rill__stream *stream, struct gpu_native *native, bool reuse) {
  struct rill__device *device = stream->base.device;
  struct gpu_native_pool *pool = natives_of(device, stream->priority, stream->blocking);
  const bool lost = atomic_load_explicit(&device->lost, memory_order_acquire) != RILL_OK;
  if (native->ended_at == 0) {
    (void)atomic_fetch_add(&native->generation, 1);
    if (reuse && !lost && pool != NULL && cache_native(device, pool, native)) return true;
    atomic_store(&native->first, UINT64_MAX);
    native->ended_turn = atomic_load(&turn);
    native->ended_at = atomic_fetch_add(&rill__epoch, 1);
  }
  if (!is_out_of_use(native)) return false;
  native->ended_at = 0;
  /* Errors are ignored: the driver has shut down at exit, or the device is lost. */
  if (!lost || !GPU_MAY_HANG_AFTER_FAULT) (void)GPU_CALL(stream_destroy, (native->handle));
  gpu_native_forget(native);
  return true;
}

/* ---- where events were recorded ---- */

int gpu_access_begin(void) {
  const struct rill__thread *self = rill__self;
  if (self != NULL && atomic_load_explicit(&self->epoch, memory_order_relaxed) != 0) return -1;
  const int slot = (int)(atomic_load(&turn) % 2);
  (void)atomic_fetch_add(&calls_of_turn[slot], 1);
  return slot;
}

void gpu_access_end(int slot) {
  if (slot >= 0) (void)atomic_fetch_sub(&calls_of_turn[slot], 1);
}

enum gpu_place_state gpu_read_place(uint64_t place, gpu_stream_handle *handle) {
  const uint64_t content = place >> GPU_PLACE_SHIFT;
  *handle = (gpu_stream_handle)NULL;
  if (content == 0) return GPU_PLACE_LIVES;
  if ((place & GPU_PLACE_BORROWED) != 0) {
    *handle = (gpu_stream_handle)(uintptr_t)content;
    return gpu_vendor_stream_is_alive(*handle) ? GPU_PLACE_LIVES : GPU_PLACE_DESTROYED;
  }
  const struct gpu_native *native = at((uint32_t)(content >> GPU_GENERATION_BITS));
  const uint64_t generation = content & ((UINT64_C(1) << GPU_GENERATION_BITS) - 1);
  RILL_ASSERT(generation <= (atomic_load(&native->generation) & ((UINT64_C(1) << GPU_GENERATION_BITS) - 1)),
              "the generation of a native stream goes up");
  const bool lives = GPU_PLACE_OF(native) >> GPU_PLACE_SHIFT == content;
  if (!lives && generation < atomic_load(&native->first)) return GPU_PLACE_DESTROYED;
  *handle = native->handle; /* valid inside the epoch, or until gpu_access_end */
  return lives ? GPU_PLACE_LIVES : GPU_PLACE_USED_AGAIN;
}
