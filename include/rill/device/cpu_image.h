/* rill/device/cpu_image.h: how the cpu backend and a kernel image compiled by the host compiler meet.
 *
 * An image is a shared object that exports one constant, `rill_cpu_image`.  The backend runs each block of a
 * grid on one worker thread, so static shared memory can be thread-local.  A kernel is there in two forms:
 *
 *   run_block   all threads of a block as loops that the compiler can vectorize, one after another for a
 *               kernel that rillcc split at its barriers; NULL for a kernel that it did not split
 *   run_thread  one thread of a block; the backend calls it on a fiber for each thread, all on the worker
 *               thread that runs the block, and `services` switches between them
 *
 * A version of the table adds to what the one before has: a library runs images of its own version and older.
 */
#ifndef RILL_DEVICE_CPU_IMAGE_H
#define RILL_DEVICE_CPU_IMAGE_H

#include <stdint.h>

#define RILL_CPU_IMAGE_MAGIC 0x43504c52u /* "RLPC", little endian */
#define RILL_CPU_IMAGE_VERSION 9u
#define RILL_CPU_IMAGE_SYMBOL "rill_cpu_image"
#define RILL_CPU_IMAGE_SEAL "RILLseal"
#define RILL_CPU_IMAGE_SEAL_VERSION 1u
#define RILL_CPU_IMAGE_CHECKS 1u                /* a flag: the kernels check what they access */
#define RILL_CPU_BLOCKS_NEVER_WAIT 1u           /* a fact of a kernel: no block of it waits for another one */
#define RILL_CPU_CHECK_STATE "rill_check_state" /* the symbol of a thread-local variable of such an image */
/* How a kernel accesses bytes; a compare-and-exchange updates and polls, and so does an atomic addition of 0. */
#define RILL_CPU_READS 1u
#define RILL_CPU_WRITES 2u
#define RILL_CPU_UPDATES 4u /* atomic, or volatile: it writes */
#define RILL_CPU_POLLS 8u   /* atomic, or volatile: it reads, and may wait for a value */
#define RILL_CPU_STACKS_MARK "rill stacks of:"
#define RILL_CPU_MAX_THREADS 1024u /* of a block */

#ifdef __cplusplus
extern "C" {
#endif

/** What the lanes of a warp gave to one exchange; bit i of the masks is lane i. */
typedef struct rill_cpu_warp {
  uint64_t values[64];
  uint64_t live;    /**< the lanes that took part: all that had not ended */
  uint64_t nonzero; /**< those of them whose value is not 0 */
} rill_cpu_warp;

/** What the backend does for a running thread of a block.  Threads of a warp, and a thread's lane:
 *  rill/device/warp.h.  All but assert_failed are for threads that run on fibers. */
typedef struct rill_cpu_services {
  /** Returns when every thread of the block that has not ended has called it, or barrier_count. */
  void (*barrier)(void);

  /* from image version 2 on */

  /** Lanes of a warp, 32 or 64. */
  uint32_t warp_size;
  /** A barrier that gives how many threads called it with another value than 0. */
  uint32_t (*barrier_count)(uint32_t predicate);
  /** Returns when every thread of the warp that has not ended has called it, and gives what all gave.  The result
   *  stays until the thread's next call. */
  const rill_cpu_warp *(*exchange)(uint64_t value);
  /** The caller's place in its warp. */
  uint32_t (*lane)(void);
  /** An assertion is false: the device is lost.  Does not return.  The indices may be NULL: unknown. */
  void (*assert_failed)(const char *expression, const char *file, uint32_t line, const uint32_t block_index[3],
                        const uint32_t thread_index[3]);

  /* from image version 4 on */

  /** The threads of a block that runs as loops wait for each other for ever, so many at a barrier of the block, the
   *  others in a function of their warp: the device is lost.  Does not return. */
  void (*waits_for_ever)(uint32_t at_barrier, uint32_t in_warp);

  /* from image version 5 on: images that check themselves, for threads that run on fibers */

  /** A race, a barrier that not all reach, or an access outside of memory was found at this line: the device is lost.
   *  Does not return. */
  void (*check_failed)(const char *file, uint32_t line, const uint32_t block_index[3], const char *text);

  /* from image version 6 on: for threads that run on fibers */

  /** An exchange among the lanes of `mask`, of which the caller is one: returns when each of them that has not ended
   * has called it with the same mask.  Other lanes of the warp may be anywhere. */
  const rill_cpu_warp *(*exchange_among)(uint64_t value, uint64_t mask);
  /** Returns the lanes of the warp that call it at the same place as the caller: those that come there before every
   *  thread of the block waits for something. */
  uint64_t (*active)(const void *place);

  /* from image version 7 on: images that check themselves */

  /** What is wrong with an access of a thread to `size` bytes at `at`, in words that stay until the worker's next call;
   *  NULL: nothing.  `of`: an address in the variable of the image that the access is to; NULL if that is not known.
   *  `state`: where the variable RILL_CPU_CHECK_STATE is on this worker. */
  const char *(*find_fault)(const void *at, uint64_t size, const void *of, const void *state);

  /* from image version 9 on: images that check themselves */

  /** find_fault, and notes the access if it is right.  `how`: RILL_CPU_READS and so on, 0: it is not to be noted. */
  const char *(*access)(const void *at, uint64_t size, const void *of, const void *state, uint32_t how);
} rill_cpu_services;

/** One launch: the same for all its blocks. */
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

  /** The bytes of stack that a thread of each kernel needs: how many numbers there are, then these, of which the last
   *  stands for all further kernels.  NULL: they are not known. */
  const uint64_t *stacks;

  /* from image version 7 on */

  uint64_t flags; /**< RILL_CPU_IMAGE_CHECKS */

  /* from image version 8 on */

  /** RILL_CPU_BLOCKS_NEVER_WAIT or 0 for each kernel.  NULL: nothing is known. */
  const uint8_t *facts;
} rill_cpu_image_table;

/** What rillcc puts after the shared object, in 64 bytes.  A loader of the system trusts what it loads; by this,
 *  rill_module_load_image knows an image that was cut off or damaged. */
typedef struct rill_cpu_image_seal {
  char target[40]; /**< "x86-64-v3" */
  uint64_t size;   /**< bytes of the shared object */
  uint32_t version;
  uint32_t check; /**< CRC-32, as of zlib and PNG, of all bytes before it, those of the shared object too */
  char magic[8];  /**< RILL_CPU_IMAGE_SEAL, without its zero */
} rill_cpu_image_seal;

#ifdef __cplusplus
}
#endif

#endif
