/* rill/comm_counts.h: communication with a count for each rank.  Included by rill/comm.h.
 *
 * Where the plain operations move as many elements to or from each rank, these take a number of elements for each, and
 * where in the buffer each part begins:
 *
 *     size_t counts[RANKS], offsets[RANKS];                         // elements
 *     rill_comm_gather_v(comm, stream, all, counts, offsets, part, counts[rank], RILL_COMM_FLOAT, 0);
 *
 * Offsets may be NULL: the parts then follow one another.  Each operation is a group of sends and receives, in the
 * order of the calls; inside a group of the caller's it joins that.  A count of 0 moves nothing, and the other side has
 * to say 0 too: the engines would wait for ever for what is not sent (local ranks are compared, and fail).
 *
 * Calls on one communicator are ordered as they arrive.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_COMM_COUNTS_H
#define RILL_COMM_COUNTS_H

#include <rill/comm.h>

RILL_EXTERN_C_BEGIN

/** Part i of src, `src_counts[i]` elements, goes to rank i; part i of dst becomes what rank i has for this one,
 *  `dst_counts[i]` elements.  All arrays have an entry for each rank, and are read at the call.  Not in place.
 *
 *  Errors:  those of rill_comm_all_to_all; INVALID_ARGUMENT (an array of counts is NULL).
 *  Like:    MPI_Ialltoallv. */
RILL_API RILL_NODISCARD rill_status rill_comm_all_to_all_v(rill_comm comm, rill_stream stream, void *dst,
                                                           const size_t *dst_counts, const size_t *dst_offsets,
                                                           const void *src, const size_t *src_counts,
                                                           const size_t *src_offsets, uint32_t type);

/** Part i of dst of rank `root`, `dst_counts[i]` elements, becomes src of rank i, `src_count` elements; the others'
 * dst, counts and offsets are not looked at.  In place: src of the root is its part of dst.
 *
 *  Errors:  those of rill_comm_all_reduce, OUT_OF_RANGE (root); INVALID_ARGUMENT (the root's counts are NULL, or its
 *           own is another than `src_count`).
 *  Like:    ncclGather, MPI_Igatherv. */
RILL_API RILL_NODISCARD rill_status rill_comm_gather_v(rill_comm comm, rill_stream stream, void *dst,
                                                       const size_t *dst_counts, const size_t *dst_offsets,
                                                       const void *src, size_t src_count, uint32_t type, uint32_t root);

/** dst of rank i, `dst_count` elements, becomes part i of src of rank `root`, `src_counts[i]` elements; the others'
 * src, counts and offsets are not looked at.  In place: dst of the root is its part of src.
 *
 *  Errors:  those of rill_comm_all_reduce, OUT_OF_RANGE (root); INVALID_ARGUMENT (the root's counts are NULL, or its
 *           own is another than `dst_count`).
 *  Like:    ncclScatter, MPI_Iscatterv. */
RILL_API RILL_NODISCARD rill_status rill_comm_scatter_v(rill_comm comm, rill_stream stream, void *dst, size_t dst_count,
                                                        const void *src, const size_t *src_counts,
                                                        const size_t *src_offsets, uint32_t type, uint32_t root);

RILL_EXTERN_C_END

#endif
