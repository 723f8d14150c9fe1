/* rill/device/cpu_image.h: the interface between the cpu backend and a kernel image that the host compiler made.
 *
 * An image is a shared object that exports one constant, `rill_cpu_image`. The backend runs each block of a grid on
 * one worker thread, so static shared memory can be thread-local. A kernel has two forms:
 *
 *   run_block   all threads of a block as loops that the compiler can vectorize, one after another for a
 *               kernel that rillcc split at its barriers; NULL for a kernel that it did not split
 *   run_thread  one thread of a block; the backend calls it on a fiber for each thread, all on the worker
 *               thread that runs the block, and `services` switches between them
 *
 * Each version of the table only adds fields, so a library runs images of its own version and of older versions.
 */
#ifndef RILL_DEVICE_CPU_IMAGE_H
#define RILL_DEVICE_CPU_IMAGE_H

#include <stdint.h>

#define RILL_CPU_IMAGE_MAGIC 0x43504c52u /* "RLPC", little endian */
#define RILL_CPU_IMAGE_VERSION 9u
#define RILL_CPU_IMAGE_SYMBOL "rill_cpu_image"
#define RILL_CPU_IMAGE_SEAL "RILLseal"
#define RILL_CPU_IMAGE_SEAL_VERSION 1u
#define RILL_CPU_IMAGE_CHECKS 1u                /* image flag: the kernels check their memory accesses */
#define RILL_CPU_BLOCKS_NEVER_WAIT 1u           /* kernel fact: no block of the kernel waits for another block */
#define RILL_CPU_ANY_SHAPE 2u                   /* kernel fact: threads only use their indices in the whole grid */
#define RILL_CPU_CHECK_STATE "rill_check_state" /* symbol of a thread-local variable in an image that checks */
/* Kinds of access. A compare-and-exchange and an atomic addition of 0 both update and poll. */
#define RILL_CPU_READS 1u
#define RILL_CPU_WRITES 2u
#define RILL_CPU_UPDATES 4u /* atomic or volatile write */
#define RILL_CPU_POLLS 8u   /* atomic or volatile read, which may wait for a value */
#define RILL_CPU_STACKS_MARK "rill stacks of:"
#define RILL_CPU_MAX_THREADS 1024u /* per block */

#ifdef __cplusplus
extern "C" {
#endif

/** The values that the lanes of a warp passed to one exchange. Bit i of a mask is lane i. */
typedef struct rill_cpu_warp {
  uint64_t values[64];
  uint64_t live;    /**< the lanes that took part: all that had not exited */
  uint64_t nonzero; /**< the lanes of `live` whose value is not 0 */
} rill_cpu_warp;

/** Functions of the backend for a running thread of a block. rill/device/warp.h defines warps and lanes. All
 *  functions but assert_failed are for threads that run on fibers. */
typedef struct rill_cpu_services {
  /** Returns when every thread of the block that has not exited has called barrier or barrier_count. */
  void (*barrier)(void);

  /* from image version 2 on */

  /** Number of lanes of a warp, 32 or 64. */
  uint32_t warp_size;
  /** Waits like barrier, and returns the number of threads that passed a value other than 0. */
  uint32_t (*barrier_count)(uint32_t predicate);
  /** Returns the values of all lanes, once every thread of the warp that has not exited has called it. The result is
   *  valid until the thread's next call. */
  const rill_cpu_warp *(*exchange)(uint64_t value);
  /** Returns the caller's lane. */
  uint32_t (*lane)(void);
  /** Reports a failed assertion; the device is lost. Does not return. The indices may be NULL if unknown. */
  void (*assert_failed)(const char *expression, const char *file, uint32_t line, const uint32_t block_index[3],
                        const uint32_t thread_index[3]);

  /* from image version 4 on */

  /** Reports a deadlock in a block that runs as loops: `at_barrier` threads wait at a barrier of the block, and
   *  `in_warp` threads in a function of their warp. The device is lost. Does not return. */
  void (*waits_for_ever)(uint32_t at_barrier, uint32_t in_warp);

  /* from image version 5 on: images that check themselves, for threads that run on fibers */

  /** Reports a race, a barrier that not all threads reach, or an access outside of memory, at this line. The device
   *  is lost. Does not return. */
  void (*check_failed)(const char *file, uint32_t line, const uint32_t block_index[3], const char *text);

  /* from image version 6 on: for threads that run on fibers */

  /** Exchanges values among the lanes of `mask`, which includes the caller. Returns when each of these lanes that has
   *  not exited has called it with the same mask. Other lanes of the warp may be elsewhere. */
  const rill_cpu_warp *(*exchange_among)(uint64_t value, uint64_t mask);
  /** Returns the lanes of the warp that call this function at the same place as the caller. Lanes can arrive until
   *  all threads of the block wait. */
  uint64_t (*active)(const void *place);

  /* from image version 7 on: images that check themselves */

  /** Returns a description of the error in a thread's access to `size` bytes at `at`, or NULL if the access is valid.
   *  The text is valid until the worker's next call. `of` is an address in the variable of the image that is
   *  accessed, or NULL if it is not known. `state` is the address of the variable RILL_CPU_CHECK_STATE on this
   *  worker. */
  const char *(*find_fault)(const void *at, uint64_t size, const void *of, const void *state);

  /* from image version 9 on: images that check themselves */

  /** Works like find_fault, and notes a valid access. `how` is RILL_CPU_READS and so on, or 0 if the access is not to
   *  be noted. */
  const char *(*access)(const void *at, uint64_t size, const void *of, const void *state, uint32_t how);
} rill_cpu_services;

/** One launch, shared by all its blocks. */
typedef struct rill_cpu_grid {
  void *const *args;          /**< one pointer to a value for each kernel argument */
  uint32_t grid[3], block[3]; /**< blocks, threads; never 0 */
  uint32_t shared_mem_bytes;  /**< dynamic shared memory */
  const rill_cpu_services *services;
} rill_cpu_grid;

/** One block of a launch. */
typedef struct rill_cpu_block {
  const rill_cpu_grid *grid;
  uint32_t index[3];
  void *shared; /**< dynamic shared memory of this block, aligned to 64; NULL if there is none */
} rill_cpu_block;

typedef struct rill_cpu_kernel {
  const char *name;
  void (*run_block)(const rill_cpu_block *block);
  void (*run_thread)(const rill_cpu_block *block, const uint32_t thread_index[3]);
  const uint32_t *arg_sizes; /**< bytes */
  uint32_t arg_count;
} rill_cpu_kernel;

/** A `__constant__` or `__device__` variable. */
typedef struct rill_cpu_variable {
  const char *name;
  void *address;
  uint64_t size; /**< bytes */
} rill_cpu_variable;

typedef struct rill_cpu_image_table {
  uint32_t magic, version;
  const rill_cpu_kernel *kernels;
  const rill_cpu_variable *variables;
  uint32_t kernel_count, variable_count;

  /* from image version 3 on */

  /** Stack sizes in bytes that a thread of each kernel needs. The first element is the number of sizes that follow;
   *  the last size applies to all further kernels. NULL if they are unknown. */
  const uint64_t *stacks;

  /* from image version 7 on */

  uint64_t flags; /**< RILL_CPU_IMAGE_CHECKS */

  /* from image version 8 on */

  /** RILL_CPU_BLOCKS_NEVER_WAIT, RILL_CPU_ANY_SHAPE or 0 for each kernel. NULL if nothing is known. */
  const uint8_t *facts;
} rill_cpu_image_table;

/** Trailer of 64 bytes that rillcc appends to the shared object. The system's loader does not validate files; with
 *  the trailer, rill_module_load_image detects a truncated or damaged image. */
typedef struct rill_cpu_image_seal {
  char target[40]; /**< "x86-64-v3" */
  uint64_t size;   /**< bytes of the shared object */
  uint32_t version;
  uint32_t check; /**< CRC-32 (as in zlib and PNG) of all bytes before this field, including the shared object */
  char magic[8];  /**< RILL_CPU_IMAGE_SEAL, without the final zero */
} rill_cpu_image_seal;

#ifdef __cplusplus
}
#endif

#endif
