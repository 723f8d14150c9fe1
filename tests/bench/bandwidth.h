/* bandwidth.h: the transfers of the bandwidth benchmark, and the sides that make them: rill, and the vendor's driver or
 * plain C.  Both work on the same memory, of one process, in batches that alternate. */
#ifndef RILL_TESTS_BENCH_BANDWIDTH_H
#define RILL_TESTS_BENCH_BANDWIDTH_H

#include <rill/rill.h>

/* X(name, text) */
#define TRANSFERS(X)                              \
  X(TO_DEVICE, "pinned to device")                \
  X(TO_HOST, "device to pinned")                  \
  X(BOTH, "pinned, both ways at once")            \
  X(FROM_PAGEABLE, "pageable to device")          \
  X(TO_PAGEABLE, "device to pageable")            \
  X(ACROSS, "device to device")                   \
  X(FILL_1, "fill, 1 byte")                       \
  X(FILL_2, "fill, 2 bytes")                      \
  X(FILL_4, "fill, 4 bytes")                      \
  X(FILL_8, "fill, 8 bytes (driver: 4)")          \
  X(FILL_16, "fill, 16 bytes (driver: 4)")        \
  X(COPY_2D, "copy of rows, device to device")    \
  X(FILL_2D, "fill of rows, 4 bytes")             \
  X(PEER, "to the other device, peer access off") \
  X(PEER_ON, "to the other device, peer access on")

enum transfer {
#define TRANSFER_ENUM(name, text) name,
  TRANSFERS(TRANSFER_ENUM)
#undef TRANSFER_ENUM
      TRANSFER_COUNT
};

enum { ROW_BYTES = 960, ROW_PITCH = 1024 }; /* of rows: 15 of 16 bytes are moved */

struct transfer_memory {
  size_t size;
  unsigned char *device, *other, *pinned, *pinned_other, *pageable, *far; /* far: of another device, or NULL */
};

/* A side: each function is false if a call failed.  `run` submits one transfer, on stream 0, and what goes the other
 * way at once on stream 1; `wait` ends all. */
struct transfer_side {
  bool (*run)(enum transfer transfer, const struct transfer_memory *memory);
  bool (*wait)(void);
};

/* Opens the driver's side on streams that rill made; `far`: the other device's number, or -1. */
typedef bool open_raw(int ordinal, int far, const uintptr_t natives[2], struct transfer_side *out);
open_raw rill__cuda_open_raw, rill__hip_open_raw;

#endif
