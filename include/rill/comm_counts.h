/* rill/comm_counts.h: communication with a count for each rank.  Included by rill/comm.h.
 *
 * The operations of rill/comm.h move the same number of elements for each rank. These take a number of elements and a
 * buffer offset for each rank:
 *
 *     size_t counts[RANKS], offsets[RANKS];                         // elements
 *     rill_comm_gather_v(comm, stream, all, counts, offsets, part, counts[rank], RILL_COMM_FLOAT, 0);
 *
 * If the offsets are NULL, the parts are contiguous. Parts of dst must not overlap each other, and parts of dst and of
 * src must not overlap except in an in-place form: INVALID_ARGUMENT, and nothing is submitted. Each operation is a
 * group of sends and receives, and joins an open group of the caller. A count of 0 moves nothing. The peer must also
 * pass 0; otherwise the operation fails on the CPU, and on GPUs waits forever for a message that is not sent.
 *
 * Calls on one communicator are ordered as they arrive.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_COMM_COUNTS_H
#define RILL_COMM_COUNTS_H

#include <rill/comm.h>

RILL_EXTERN_C_BEGIN

/** Sends part i of src (`src_counts[i]` elements) to rank i, and receives part i of dst (`dst_counts[i]` elements)
 *  from rank i. All arrays have an entry for each rank and are read during the call. Has no in-place form.
 *
 *  Errors:  those of rill_comm_all_to_all (OUT_OF_RANGE: also an offset), INVALID_ARGUMENT (counts are NULL).
 *  Like:    MPI_Ialltoallv. */
RILL_API RILL_NODISCARD rill_status rill_comm_all_to_all_v(rill_comm comm, rill_stream stream, void *dst,
                                                           const size_t *dst_counts, const size_t *dst_offsets,
                                                           const void *src, const size_t *src_counts,
                                                           const size_t *src_offsets, uint32_t type);

/** Copies src of rank i (`src_count` elements) to part i of dst of rank `root` (`dst_counts[i]` elements). dst, counts
 *  and offsets of other ranks are ignored. In place: src of the root is its part of dst.
 *
 *  Errors:  those of rill_comm_all_reduce, OUT_OF_RANGE (root); INVALID_ARGUMENT (the root's counts are NULL, or its
 *           own count differs from `src_count`).
 *  Like:    ncclGather, MPI_Igatherv. */
RILL_API RILL_NODISCARD rill_status rill_comm_gather_v(rill_comm comm, rill_stream stream, void *dst,
                                                       const size_t *dst_counts, const size_t *dst_offsets,
                                                       const void *src, size_t src_count, uint32_t type, uint32_t root);

/** Copies part i of src of rank `root` (`src_counts[i]` elements) to dst of rank i (`dst_count` elements). src, counts
 *  and offsets of other ranks are ignored. In place: dst of the root is its part of src.
 *
 *  Errors:  those of rill_comm_all_reduce, OUT_OF_RANGE (root); INVALID_ARGUMENT (the root's counts are NULL, or its
 *           own count differs from `dst_count`).
 *  Like:    ncclScatter, MPI_Iscatterv. */
RILL_API RILL_NODISCARD rill_status rill_comm_scatter_v(rill_comm comm, rill_stream stream, void *dst, size_t dst_count,
                                                        const void *src, const size_t *src_counts,
                                                        const size_t *src_offsets, uint32_t type, uint32_t root);

RILL_EXTERN_C_END

#endif
