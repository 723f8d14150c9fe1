/* bench.h: the operations of the overhead benchmark, the sides that do them, and how they are timed.
 *
 * A side is one way to the device: the vendor's driver, the vendor's runtime, or rill.  Each side has, for every
 * operation, a function that does it n times in a row, so that nothing but the calls themselves is timed.  Batches of
 * all sides alternate, and what counts is the difference: the machine's noise then hits all of them alike.
 */
#ifndef RILL_TESTS_BENCH_BENCH_H
#define RILL_TESTS_BENCH_BENCH_H

#include <rill/rill.h>

/* X(name, text).  The last one gives native handles out, after which rill may ask the driver more. */
#define BENCH_OPERATIONS(X)                                   \
  X(launch, "launch, no arguments")                           \
  X(launch_5, "launch, 5 arguments")                          \
  X(launch_ref, "launch by reference, 5 arguments")           \
  X(record, "record event")                                   \
  X(record_timing, "record timing event")                     \
  X(wait, "wait for event")                                   \
  X(wait_known, "wait for event, seen complete")              \
  X(wait_stream, "wait for stream")                           \
  X(query_known, "query event, seen complete")                \
  X(query_stream, "query stream, seen idle")                  \
  X(synchronize_event, "synchronize event, seen complete")    \
  X(synchronize_stream, "synchronize stream, seen idle")      \
  X(copy, "copy 4 KiB, pinned to device")                     \
  X(fill, "fill 4 KiB")                                       \
  X(host_call, "host call (stream callback)")                 \
  X(host_function, "host call (host function)")               \
  X(event_life, "create + release event")                     \
  X(stream_life, "create + release stream")                   \
  X(memory_life, "allocate + free 1 MiB")                     \
  X(pool_life, "allocate + free 1 MiB, in stream order")      \
  X(round_trip, "launch + synchronize")                       \
  X(idle_round_trip, "launch + synchronize, after 1 ms idle") \
  X(hundred, "100 launches + synchronize, per launch")        \
  X(query_pending, "query event, not seen complete")

enum bench_operation {
#define BENCH_ENUM(name, text) BENCH_##name,
  BENCH_OPERATIONS(BENCH_ENUM)
#undef BENCH_ENUM
      BENCH_COUNT
};

/* Does an operation n times; false if it failed.  Calls of one worker come from one thread at a time. */
typedef bool bench_batch(void *worker, size_t n);

/* Objects shared by all sides. */
struct bench_target {
  rill_device device;
  rill_device_info info;
  const rill_bundle *bundle; /* with the kernels "empty" and "five" */
  bool launches;             /* it has an image for this device */
};

enum { BENCH_BLOCK_BYTES = 4096, BENCH_ALLOCATION_BYTES = 1 << 20 };

struct bench_side {
  const char *name;
  /* Prepares the side, and writes into `text` what it uses, or why it is unavailable. */
  bool (*open)(const struct bench_target *target, char *text, size_t size);
  bool (*enter)(void);       /* on every thread but the one that opened it */
  void *(*new_worker)(void); /* a stream and what the operations need beside it; NULL on failure; lives forever */
  /* Puts the worker's event for query_pending after an event, given as rill's and as the vendor's. */
  bool (*make_pending)(void *worker, rill_event gate, uintptr_t native_gate);
  void (*explain)(char *text, size_t size);      /* why the last call failed */
  bool (*lacks)(enum bench_operation operation); /* NULL, or: what this version of the side does not have */
  bench_batch *batches[BENCH_COUNT];
};

extern const struct bench_side bench_rill;
/* Built with the backends. */
extern const struct bench_side rill__cuda_bench_driver, rill__cuda_bench_runtime, rill__hip_bench_driver;

/* Defines a batch of the side whose worker is a `struct worker`; `call` is true if it failed. */
#define BENCH_BATCH(name, call)               \
  static bool name(void *worker_, size_t n) { \
    struct worker *worker = worker_;          \
    for (; n > 0; n--) {                      \
      if (call) return false;                 \
    }                                         \
    return true;                              \
  }

/* The batches of a side, of the operations' names. */
#define BENCH_TABLE_ENTRY(name, text) [BENCH_##name] = name,
#define BENCH_TABLE() \
  { BENCH_OPERATIONS(BENCH_TABLE_ENTRY) }

/* ---- timing ---- */

/* ns per call; negative: not measured. */
struct bench_time {
  double minimum, median;
};

enum { BENCH_SIDES = 3 };

/* Times one operation on several sides, whose batches alternate; `drain` runs after each batch, untimed.  A side that
 * is NULL is left out.  If one fails, false, and `failed` is that side. */
bool bench_measure(const struct bench_side *const sides[BENCH_SIDES], void *const workers[BENCH_SIDES],
                   enum bench_operation operation, bool (*drain)(void), struct bench_time times[BENCH_SIDES],
                   size_t *failed);

enum { BENCH_THREADS = 8 };

/* Runs an operation on one thread per worker for a moment; returns the total calls per second. */
bool bench_threads(const struct bench_side *side, void *const workers[BENCH_THREADS], enum bench_operation operation,
                   double *per_second);

#endif
