/* How fast memory moves: GB/s through rill, and of the driver's own calls on the same memory, in batches that
 * alternate; on the CPU of plain memcpy and memset, by as many threads.
 *
 *     bandwidth [--most BYTES] [DEVICE]     of each size up to BYTES; the default device
 *
 * Nothing is judged: the exit status is 1 if a call failed, else 0. */
#include "bandwidth.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const names[TRANSFER_COUNT] = {
#define NAME(name, text) [name] = text,
  TRANSFERS(NAME)
#undef NAME
};

static double now(void) { /* seconds */
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- through rill ---- */

static rill_stream streams[2], native_streams[2];

static bool fills(const struct transfer_memory *m, size_t size) {
  static const uint32_t pattern[4] = { 0x01020304, 0x05060708, 0x090a0b0c, 0x0d0e0f10 };
  return rill_fill_async(streams[0], m->device, pattern, size, m->size / size) == RILL_OK;
}

static bool copies(void *dst, const void *src, size_t n, int which) {
  return rill_copy_async(streams[which], dst, src, n) == RILL_OK;
}

static bool run_rill(enum transfer transfer, const struct transfer_memory *m) {
  switch (transfer) {
    case TO_DEVICE: return copies(m->device, m->pinned, m->size, 0);
    case TO_HOST: return copies(m->pinned, m->device, m->size, 0);
    case BOTH: return copies(m->device, m->pinned, m->size, 0) && copies(m->pinned_other, m->other, m->size, 1);
    case FROM_PAGEABLE: return copies(m->device, m->pageable, m->size, 0);
    case TO_PAGEABLE: return copies(m->pageable, m->device, m->size, 0);
    case ACROSS: return copies(m->other, m->device, m->size, 0);
    case FILL_1: return fills(m, 1);
    case FILL_2: return fills(m, 2);
    case FILL_4: return fills(m, 4);
    case FILL_8: return fills(m, 8);
    case FILL_16: return fills(m, 16);
    case COPY_2D:
      return rill_copy_2d_async(streams[0], m->other, ROW_PITCH, m->device, ROW_PITCH, ROW_BYTES,
                                m->size / ROW_PITCH) == RILL_OK;
    case FILL_2D:
      return rill_fill_2d_async(streams[0], m->device, ROW_PITCH, &(uint32_t){ 7 }, 4, ROW_BYTES / 4,
                                m->size / ROW_PITCH) == RILL_OK;
    case PEER:
    case PEER_ON: return copies(m->far, m->device, m->size, 0);
    case TRANSFER_COUNT: break;
  }
  return false;
}

static bool wait_rill(void) {
  return rill_stream_synchronize(streams[0]) == RILL_OK && rill_stream_synchronize(streams[1]) == RILL_OK;
}

/* ---- plain C, for the CPU ---- */

static struct {
  enum transfer transfer;
  const struct transfer_memory *memory;
  unsigned threads;
} plain;

static void fill_words(unsigned char *dst, size_t n) {
  for (size_t i = 0; i < n / 4; i++) ((uint32_t *)(void *)dst)[i] = 0x01020304;
}

static void *do_part(void *index) {
  const struct transfer_memory *m = plain.memory;
  const size_t part = m->size / plain.threads / ROW_PITCH * ROW_PITCH, from = (size_t)(uintptr_t)index * part;
  const size_t n = (size_t)(uintptr_t)index + 1 == plain.threads ? m->size - from : part;
  switch (plain.transfer) {
    case TO_DEVICE: memcpy(m->device + from, m->pinned + from, n); break;
    case TO_HOST: memcpy(m->pinned + from, m->device + from, n); break;
    case BOTH:
      memcpy(m->device + from, m->pinned + from, n);
      memcpy(m->pinned_other + from, m->other + from, n);
      break;
    case FROM_PAGEABLE: memcpy(m->device + from, m->pageable + from, n); break;
    case TO_PAGEABLE: memcpy(m->pageable + from, m->device + from, n); break;
    case ACROSS: memcpy(m->other + from, m->device + from, n); break;
    case FILL_1: memset(m->device + from, 7, n); break;
    case COPY_2D:
      for (size_t row = from; row < from + n; row += ROW_PITCH) memcpy(m->other + row, m->device + row, ROW_BYTES);
      break;
    case FILL_2D:
      for (size_t row = from; row < from + n; row += ROW_PITCH) fill_words(m->device + row, ROW_BYTES);
      break;
    default: fill_words(m->device + from, n); break;
  }
  return NULL;
}

static bool run_plain(enum transfer transfer, const struct transfer_memory *m) {
  pthread_t threads[64];
  plain.transfer = transfer;
  plain.memory = m;
  if (m->size < (size_t)1 << 20) plain.threads = 1; /* a thread costs more than it saves */
  for (unsigned i = 1; i < plain.threads; i++) {
    if (pthread_create(&threads[i], NULL, do_part, (void *)(uintptr_t)i) != 0) return false;
  }
  (void)do_part(NULL);
  for (unsigned i = 1; i < plain.threads; i++) (void)pthread_join(threads[i], NULL);
  return true;
}

static bool wait_plain(void) { return true; }

/* ---- timing ---- */

enum { MAX_ROUNDS = 200, MIN_ROUNDS = 5 };
static const double budget = 0.4; /* seconds for a line */
static const size_t batch_bytes = (size_t)64 << 20, most_repeats = 256;

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static bool time_batch(const struct transfer_side *side, enum transfer transfer, const struct transfer_memory *memory,
                       size_t repeats, double *seconds) {
  const double start = now();
  for (size_t i = 0; i < repeats; i++) {
    if (!side->run(transfer, memory)) return false;
  }
  if (!side->wait()) return false;
  *seconds = (now() - start) / (double)repeats;
  return true;
}

static double bytes_of(enum transfer transfer, size_t size) {
  if (transfer == COPY_2D || transfer == FILL_2D) return (double)(size / ROW_PITCH * ROW_BYTES);
  return transfer == BOTH ? 2.0 * (double)size : (double)size;
}

/* The medians of both; and the median of what each round's two are to one another. */
static bool measure(const struct transfer_side sides[2], enum transfer transfer, const struct transfer_memory *memory) {
  static double samples[3][MAX_ROUNDS];
  size_t repeats = batch_bytes / memory->size, rounds = 0;
  if (repeats > most_repeats) repeats = most_repeats;
  if (repeats == 0) repeats = 1;
  double warm = 0;
  for (int i = 0; i < 2; i++) {
    if (!time_batch(&sides[i], transfer, memory, repeats, &warm)) return false;
  }
  const double start = now();
  for (; rounds < MAX_ROUNDS && (rounds < MIN_ROUNDS || now() - start < budget); rounds++) {
    for (size_t k = 0; k < 2; k++) {
      const size_t i = (k + rounds) % 2; /* none is always the first */
      if (!time_batch(&sides[i], transfer, memory, repeats, &samples[i][rounds])) return false;
    }
    samples[2][rounds] = samples[1][rounds] / samples[0][rounds];
  }
  for (int i = 0; i < 3; i++) qsort(samples[i], rounds, sizeof **samples, compare);
  const double gigabytes = bytes_of(transfer, memory->size) * 1e-9;
  (void)printf("%-38s %11zu %10.2f %10.2f %8.3f\n", names[transfer], memory->size, gigabytes / samples[0][rounds / 2],
               gigabytes / samples[1][rounds / 2], samples[2][rounds / 2]);
  (void)fflush(stdout);
  return true;
}

/* ---- devices and memory ---- */

static rill_device device, far_device;
static bool has_far;

static bool make_memory(size_t size, struct transfer_memory *m) {
  *m = (struct transfer_memory){ .size = size, .pageable = malloc(size) };
  const bool made = m->pageable != NULL && RILL_NEW(device, RILL_MEMORY_DEVICE, size, &m->device) == RILL_OK &&
                    RILL_NEW(device, RILL_MEMORY_DEVICE, size, &m->other) == RILL_OK &&
                    RILL_NEW(device, RILL_MEMORY_PINNED, size, &m->pinned) == RILL_OK &&
                    RILL_NEW(device, RILL_MEMORY_PINNED, size, &m->pinned_other) == RILL_OK &&
                    (!has_far || RILL_NEW(far_device, RILL_MEMORY_DEVICE, size, &m->far) == RILL_OK);
  if (!made) return false;
  memset(m->pageable, 1, size);
  memset(m->pinned, 2, size);
  memset(m->pinned_other, 3, size);
  return true;
}

static bool end_memory(struct transfer_memory *m) {
  free(m->pageable);
  return rill_free(m->device) == RILL_OK && rill_free(m->other) == RILL_OK && rill_free(m->pinned) == RILL_OK &&
         rill_free(m->pinned_other) == RILL_OK && rill_free(m->far) == RILL_OK;
}

/* True if the transfer is one of this machine's, made ready for. */
static bool prepare(enum transfer transfer) {
  if (transfer != PEER && transfer != PEER_ON) return true;
  if (!has_far) return false;
  if (transfer == PEER) return rill_device_disable_peer(device, far_device) == RILL_OK;
  return rill_device_can_access_peer(device, far_device, NULL) &&
         rill_device_enable_peer(device, far_device) == RILL_OK;
}

static bool open_sides(const rill_device_info *info, struct transfer_side sides[2]) {
  uintptr_t natives[2] = { 0, 0 };
  sides[0] = (struct transfer_side){ run_rill, wait_rill };
  for (int i = 0; i < 2; i++) {
    if (rill_stream_create(device, NULL, &streams[i]) != RILL_OK) return false;
    if (rill_stream_create(device, NULL, &native_streams[i]) != RILL_OK) return false;
    if (rill_stream_native(native_streams[i], &natives[i]) != RILL_OK) return false;
  }
  const int far = has_far ? info->ordinal + 1 : -1;
#ifdef BENCH_CUDA
  if (info->backend == RILL_BACKEND_CUDA) return rill__cuda_open_raw(info->ordinal, far, natives, &sides[1]);
#endif
#ifdef BENCH_HIP
  if (info->backend == RILL_BACKEND_HIP) return rill__hip_open_raw(info->ordinal, far, natives, &sides[1]);
#endif
  (void)far;
  sides[1] = (struct transfer_side){ run_plain, wait_plain };
  return true;
}

static bool run_all(const char *name, size_t most) {
  static const size_t sizes[] = { 4096, 1 << 20, 64 << 20, 1 << 30 };
  struct transfer_side sides[2];
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  if (rill_device_open(name, &device) != RILL_OK || rill_device_get_info(device, &info) != RILL_OK) return false;
  char next[32];
  (void)snprintf(next, sizeof next, "%s:%d", info.backend == RILL_BACKEND_CUDA ? "cuda" : "hip", info.ordinal + 1);
  has_far = info.backend != RILL_BACKEND_CPU && rill_device_open(next, &far_device) == RILL_OK;
  if (!open_sides(&info, sides)) return false;
  (void)printf("%s: %s\n%-38s %11s %10s %10s %8s\n", name != NULL ? name : "default", info.name, "GB/s", "bytes",
               "rill", info.backend == RILL_BACKEND_CPU ? "plain C" : "driver", "ratio");
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes && sizes[i] <= most; i++) {
    struct transfer_memory memory;
    plain.threads = info.compute_units < 64 ? info.compute_units : 64;
    if (!make_memory(sizes[i], &memory)) return false;
    for (int transfer = 0; transfer < TRANSFER_COUNT; transfer++) {
      if (prepare((enum transfer)transfer) && !measure(sides, (enum transfer)transfer, &memory)) {
        (void)fprintf(stderr, "bandwidth: %s, %zu bytes: a call failed: %s\n", names[transfer], sizes[i],
                      rill_last_error_text());
        return false;
      }
    }
    if (!end_memory(&memory)) return false;
  }
  return true;
}

int main(int argc, char **argv) {
  const char *name = NULL;
  size_t most = SIZE_MAX;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--most") == 0 && i + 1 < argc) {
      most = (size_t)strtoull(argv[++i], NULL, 10);
    } else if (argv[i][0] != '-' && name == NULL) {
      name = argv[i];
    } else {
      (void)fprintf(stderr, "usage: bandwidth [--most BYTES] [DEVICE]\n");
      return 2;
    }
  }
  if (run_all(name, most)) return 0;
  (void)fprintf(stderr, "bandwidth: %s\n", rill_last_error_text());
  return 1;
}
