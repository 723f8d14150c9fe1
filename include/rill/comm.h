/* rill/comm.h: communication between ranks, on the devices of one machine or of many.
 *
 * A communicator joins ranks.  Each rank has one device, and each process holds the handles of its own ranks.  An
 * operation is work of a stream, like a copy: kernels and events order it, and the host does not wait.  An engine
 * moves the bytes: NCCL on NVIDIA GPUs, RCCL on AMD GPUs, MPI between processes on CPUs.  Each of these libraries is
 * loaded when a communicator first needs it. For CPU ranks of one process rill_comm moves the bytes itself ("local").
 *
 *     rill_comm_id id;                                       // created by one process and passed to the others
 *     rill_comm_id_create(device, &id);
 *     rill_comm comm;
 *     rill_comm_create(device, &id, ranks, rank, NULL, &comm); // every rank; returns when all have joined
 *     gradient_launch(stream, ...);
 *     rill_comm_all_reduce(comm, stream, sum, gradient, n, RILL_COMM_FLOAT, RILL_COMM_SUM);
 *     update_launch(stream, ...);
 *     rill_stream_synchronize(stream);
 *     rill_comm_release(comm);
 *
 * Every rank calls the same operations of a communicator in the same order, with the same count, type, operator and
 * root. The two ranks of a message must call it in the same order relative to every collective operation, unless both
 * are in one group. Operations that only make progress together, such as a send and the matching receive, belong in a
 * group (rill/comm_group.h). On the CPU either all ranks are in one process, or each rank is a process
 * (rill/comm_mpi.h).
 *
 * Deadlines. With rill_comm_options.timeout_ns, an operation that has not finished within timeout_ns of reaching the
 * front of its stream ends the communicator. A fault that the engine detects also ends the communicator. The next
 * synchronize of every stream with a pending operation fails with the cause. Every later call on the communicator also
 * fails with the cause. Release the communicator and create another one with a new id. On a GPU, later work of such a
 * stream still runs, on buffers of undefined contents. On the CPU, this work is dropped, like held work whose event is
 * released unrecorded. Without a deadline, a dead rank is noticed in a later call or never. The error text names the
 * operation, the rank, and the number of the operation on that rank (from 1). It lists the ranks that the operation
 * waits for (with NCCL, only ranks of the same process). Local ranks fail together, with the same text. If a rank of
 * MPI fails, every other rank also fails with this text, once one of its own operations has waited for 10 ms.
 *
 * Mismatches. Calls of local ranks are always compared. A call that differs in operation, count, type, operator or root
 * fails with INVALID_ARGUMENT, the text names both operations, and the communicator ends. The same happens to a message
 * whose peer calls a collective operation. With MPI the ranks compare each collective operation before it moves data,
 * and a receive with its message. After a mismatch no buffer has been written. A collective operation fails on all
 * ranks with the same report; a receive fails on the rank that receives. A collective operation on one rank and a
 * message on another fail when they have waited for 10 ms. NCCL compares nothing: ranks with different counts may
 * return OK with wrong sums, or hang until a deadline. With RILL_CHECK=comm in the environment of all ranks every
 * operation is compared before it starts, and a mismatch of two collective operations leaves the communicator intact.
 * With MPI every other failure then ends the communicator on all ranks, including those that do not wait.
 *
 * Captures. On a GPU an operation of a capturing stream becomes part of the graph, if the engine has used the stream
 * before (otherwise CAPTURE_ACTIVE). All ranks must capture it in the same place, and launch graphs and other
 * operations in the same order. The communicator must outlive the execution objects, and deadlines do not apply. On
 * the CPU the operation fails with UNSUPPORTED, and the capture continues without it.
 *
 * Pitfall: an operation uses the native handle of a GPU stream, so a held stream refuses it with NOT_READY, and the
 * stream cannot be held afterwards. On the CPU, buffers must be host-accessible. If a process uses several
 * communicators at the same time, every process must use them in the same order. If threads share a communicator, its
 * operations are ordered as the calls arrive; with RILL_CHECK=comm a call also waits for the calls of other threads.
 * NCCL's first operation of each kind may wait for all streams of a GPU, so none of these may be waiting for the host.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_COMM_H
#define RILL_COMM_H

#include <rill/base.h>
#include <rill/device.h>
#include <rill/options.h>
#include <rill/status.h>
#include <rill/stream.h>

RILL_EXTERN_C_BEGIN

/** One rank of a communicator, in the process that created it.  Reference-counted. */
typedef struct {
  uint64_t id;
} rill_comm;
static const rill_comm RILL_NULL_COMM = { 0 };
static inline bool rill_comm_equal(rill_comm a, rill_comm b) {
  (void)RILL_NULL_COMM;
  return a.id == b.id;
}

/** Identifies a new communicator to its ranks: plain bytes, to be sent unchanged. */
typedef struct {
  uint8_t bytes[192];
} rill_comm_id;

/** Types of elements. */
enum {
  RILL_COMM_INT8 = 1,
  RILL_COMM_UINT8 = 2,
  RILL_COMM_INT32 = 3,
  RILL_COMM_UINT32 = 4,
  RILL_COMM_INT64 = 5,
  RILL_COMM_UINT64 = 6,
  RILL_COMM_HALF = 7, /**< rill_half of rill/device/half.h */
  RILL_COMM_FLOAT = 8,
  RILL_COMM_DOUBLE = 9,
  RILL_COMM_BFLOAT16 = 10 /**< rill_bfloat16 */
};

/** Operators.  The engine chooses the order of operands, and may round HALF and BFLOAT16 at any step. */
enum {
  RILL_COMM_SUM = 1,
  RILL_COMM_PRODUCT = 2,
  RILL_COMM_MAX = 3,
  RILL_COMM_MIN = 4,
  RILL_COMM_AVERAGE = 5 /**< the sum divided by the number of ranks; rounded towards 0 for integers */
};

#define RILL_COMM_NO_COLOR UINT32_MAX /**< for rill_comm_split: this rank joins no communicator */
typedef struct rill_comm_options {
  size_t struct_size;
  uint64_t timeout_ns; /**< limit for joining and for each operation (Deadlines); 0: none */
  const char *label;   /**< copied; may be NULL */
} rill_comm_options;
#define RILL_COMM_OPTIONS_INIT \
  { sizeof(rill_comm_options), 0, NULL }
/** An options expression: rill_comm_create(d, &id, n, i, RILL_COMM_OPTIONS(.timeout_ns = 1000000000), &c). */
#define RILL_COMM_OPTIONS(...) RILL_OPTIONS_(rill_comm_options, __VA_ARGS__)
RILL_OPTIONS_FIELDS_(rill_comm_options, RILL_OPTIONS_FIELD_(timeout_ns) RILL_OPTIONS_FIELD_(label))
/** Properties of a communicator, for rill_comm_get_info. */
typedef struct rill_comm_info {
  size_t struct_size; /**< set by the caller, never changed */
  rill_device device;
  uint32_t ranks, rank;
  char engine[16];         /**< "nccl", "rccl", "mpi" or "local" */
  uint32_t engine_version; /**< 22809 is NCCL 2.28.9, 301 is MPI 3.1; for "local" rill's version */
  uint64_t timeout_ns;
} rill_comm_info;
#define RILL_COMM_INFO_INIT \
  { sizeof(rill_comm_info), { 0 }, 0, 0, "", 0, 0 }

/** Returns the calling thread's last failure of a rill_comm_ function (not in rill_last_error), without clearing it.
 *
 *  Errors:  INVALID_ARGUMENT (out is NULL or its struct_size is 0), which does not become the last error itself.
 *  Like:    rill_last_error, ncclGetLastError. */
RILL_API RILL_NODISCARD rill_status rill_comm_last_error(rill_error *out);

/** Returns the last failure as one line, or "" if there was none.  Valid until this thread's next failing call.
 *
 *  Errors:  none.
 *  Like:    rill_last_error_text. */
RILL_API RILL_NODISCARD const char *rill_comm_last_error_text(void);

/* ---- joining ---- */

/** Creates the id of a communicator for devices of the same backend. The creating process must live until all ranks
 *  have joined. On the CPU the id is for MPI processes if a launcher such as mpirun started several, and otherwise for
 *  the threads of this process. rill_comm_mpi_world returns, in every process, an id for all of them.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT, UNSUPPORTED (no engine; the text lists what was tried and the package
 *           to install), BACKEND.
 *  Like:    ncclGetUniqueId. */
RILL_API RILL_NODISCARD rill_status rill_comm_id_create(rill_device device, rill_comm_id *out);

/** Joins as rank number `rank` of `ranks`.  Blocks the calling thread until all ranks have joined, or until the
 *  deadline.  NULL selects the default options.
 *  On GPUs ranks are processes, or threads of one process with a GPU each. On the CPU they are threads of one
 *  process, or, with an id of rill/comm_mpi.h, all processes that mpirun started.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT (an invalid or damaged id; on the CPU the id of another process; an id
 *           that this rank has used), OUT_OF_RANGE (rank), WRONG_BACKEND (the id is for another backend), UNSUPPORTED
 *           (no engine), TIMEOUT, NO_DEVICE (in a child of fork), OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    ncclCommInitRank. */
RILL_API RILL_NODISCARD rill_status rill_comm_create(rill_device device, const rill_comm_id *id, uint32_t ranks,
                                                     uint32_t rank, const rill_comm_options *options, rill_comm *out);

/** Joins `count` different GPUs of one backend in this process, rank i on devices[i], without an id. The CPU may
 *  occur several times. On failure all of `out` is null.
 *
 *  Errors:  those of rill_comm_create, OUT_OF_RANGE (count), WRONG_BACKEND (devices of different backends),
 *           INVALID_ARGUMENT (a GPU twice).
 *  Like:    ncclCommInitAll. */
RILL_API RILL_NODISCARD rill_status rill_comm_create_all(const rill_device *devices, uint32_t count,
                                                         const rill_comm_options *options, rill_comm *out);

/** Joins all ranks of `comm` with the same `color` in a new communicator, ordered by `key` and then by their rank in
 *  `comm`.  Blocks until all ranks of `comm` have made the call, or until the deadline of the options.  With
 *  RILL_COMM_NO_COLOR *out is null.  Each rank of a process must make the call on its own thread.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (a color above INT32_MAX), UNSUPPORTED (NCCL before 2.18),
 *           TIMEOUT, OUT_OF_MEMORY, BACKEND, or the failure that ended `comm`.
 *  Like:    ncclCommSplit, MPI_Comm_split. */
RILL_API RILL_NODISCARD rill_status rill_comm_split(rill_comm comm, uint32_t color, uint32_t key,
                                                    const rill_comm_options *options, rill_comm *out);

/** Adds a reference.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_comm_retain(rill_comm comm);

/** Drops a reference; the last one destroys the rank.  Never blocks; submitted operations complete.  Ignores null.  If
 *  the process uses several GPUs, memory is freed once no operation of any communicator is in flight or in a graph.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    ncclCommDestroy. */
RILL_API rill_status rill_comm_release(rill_comm comm);

/** Aborts the communicator for this rank. Pending operations end without a result, their streams fail if there is a
 *  deadline, and later calls fail. Local ranks are aborted together. Ranks of MPI that wait for each other fail soon;
 *  other ranks run into their deadlines. The communicator must still be released. MPI cannot cancel operations that
 *  have started, so their buffers must remain valid.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, BACKEND.
 *  Threads: any, including while another thread is inside a call on the communicator; on the CPU may block until the
 *           operations have ended.  On a GPU they end soon, and the call does not wait for that.
 *  Like:    ncclCommAbort. */
RILL_API RILL_NODISCARD rill_status rill_comm_abort(rill_comm comm);

/** Returns OK while the communicator works, and otherwise the failure that ended it.  Queries the engine.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, TIMEOUT, BACKEND, or another failure that ended the communicator.
 *  Like:    ncclCommGetAsyncError. */
RILL_API RILL_NODISCARD rill_status rill_comm_validate(rill_comm comm);

/** Fills in the properties of the communicator.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    ncclCommCount, ncclCommUserRank, ncclCommCuDevice. */
RILL_API RILL_NODISCARD rill_status rill_comm_get_info(rill_comm comm, rill_comm_info *info);

/* ---- operations ----
 *
 * Operations are work of `stream`, which must belong to the communicator's device. `count` is in elements of `type`;
 * with 0 nothing is moved, but CPU ranks still compare their counts. Buffers must not overlap, except in an in-place
 * form. */

/** Combines src of all ranks into dst of every rank.  In place: dst is src.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, WRONG_DEVICE (a stream of another device), INVALID_ARGUMENT, OUT_OF_RANGE
 *           (size), NOT_READY (a held stream of a GPU), UNSUPPORTED (a capture on the CPU), CAPTURE_ACTIVE (a capture
 *           of a stream that the engine has not used before), OUT_OF_MEMORY, DEVICE_LOST, BACKEND, or the failure
 *           that ended the communicator. The operations below fail in the same ways.
 *  Like:    ncclAllReduce, MPI_Iallreduce. */
RILL_API RILL_NODISCARD rill_status rill_comm_all_reduce(rill_comm comm, rill_stream stream, void *dst, const void *src,
                                                         size_t count, uint32_t type, uint32_t op);

/** Combines src of all ranks into dst of rank `root`; dst of other ranks is ignored.  In place: dst is src.
 *
 *  Errors:  those of rill_comm_all_reduce, OUT_OF_RANGE (root).
 *  Like:    ncclReduce, MPI_Ireduce. */
RILL_API RILL_NODISCARD rill_status rill_comm_reduce(rill_comm comm, rill_stream stream, void *dst, const void *src,
                                                     size_t count, uint32_t type, uint32_t op, uint32_t root);

/** Copies src of rank `root` to dst of every rank; src of other ranks is ignored.  In place: dst is src.
 *
 *  Errors:  those of rill_comm_all_reduce, OUT_OF_RANGE (root).
 *  Like:    ncclBroadcast, MPI_Ibcast. */
RILL_API RILL_NODISCARD rill_status rill_comm_broadcast(rill_comm comm, rill_stream stream, void *dst, const void *src,
                                                        size_t count, uint32_t type, uint32_t root);

/** Concatenates src of all ranks, `count` elements each, in dst of every rank. In place: src is this rank's part of
 *  dst.
 *
 *  Errors:  those of rill_comm_all_reduce.
 *  Like:    ncclAllGather, MPI_Iallgather. */
RILL_API RILL_NODISCARD rill_status rill_comm_all_gather(rill_comm comm, rill_stream stream, void *dst, const void *src,
                                                         size_t count, uint32_t type);

/** Combines part i of src of all ranks into dst of rank i. src has a part of `count` elements for each rank. In
 *  place: dst is this rank's part of src.
 *
 *  Errors:  those of rill_comm_all_reduce.
 *  Like:    ncclReduceScatter, MPI_Ireduce_scatter_block. */
RILL_API RILL_NODISCARD rill_status rill_comm_reduce_scatter(rill_comm comm, rill_stream stream, void *dst,
                                                             const void *src, size_t count, uint32_t type, uint32_t op);

/** Sends part i of src to rank i, and receives part i of dst from rank i. Both have a part of `count` elements for
 *  each rank. Has no in-place form.
 *
 *  Errors:  those of rill_comm_all_reduce.
 *  Like:    ncclAlltoAll, MPI_Ialltoall. */
RILL_API RILL_NODISCARD rill_status rill_comm_all_to_all(rill_comm comm, rill_stream stream, void *dst, const void *src,
                                                         size_t count, uint32_t type);

/** Sends `count` elements to rank `peer`, which must receive as many. The stream may block until the peer receives,
 *  so a send and a receive of one stream that depend on each other belong in a group.
 *
 *  Errors:  those of rill_comm_all_reduce, OUT_OF_RANGE (peer).
 *  Threads: any; messages to one peer are received in the order of the sends.
 *  Like:    ncclSend, MPI_Isend. */
RILL_API RILL_NODISCARD rill_status rill_comm_send(rill_comm comm, rill_stream stream, const void *src, size_t count,
                                                   uint32_t type, uint32_t peer);

/** Receives `count` elements that rank `peer` sends.
 *
 *  Errors:  those of rill_comm_send.
 *  Like:    ncclRecv, MPI_Irecv. */
RILL_API RILL_NODISCARD rill_status rill_comm_receive(rill_comm comm, rill_stream stream, void *dst, size_t count,
                                                      uint32_t type, uint32_t peer);

/** Makes later work of the stream wait until the streams of all ranks have reached the barrier.
 *
 *  Errors:  those of rill_comm_all_reduce.
 *  Like:    MPI_Ibarrier. */
RILL_API RILL_NODISCARD rill_status rill_comm_barrier(rill_comm comm, rill_stream stream);

RILL_EXTERN_C_END

#include <rill/comm_counts.h>
#include <rill/comm_group.h>

#endif
