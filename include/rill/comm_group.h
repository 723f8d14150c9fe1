/* rill/comm_group.h: groups of operations that make progress together. Included by rill/comm.h.
 *
 * In a group, a send and the matching receive cannot deadlock, whichever streams they use:
 *
 *     rill_comm_group_begin();
 *     rill_comm_send(comm, stream, right, n, RILL_COMM_FLOAT, next);
 *     rill_comm_receive(comm, stream, left, n, RILL_COMM_FLOAT, last);
 *     rill_comm_group_end();
 *
 * Pitfall: nothing is submitted before rill_comm_group_end, so a synchronize inside a group does not wait for its
 * operations.
 *
 * Each thread has groups of its own.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_COMM_GROUP_H
#define RILL_COMM_GROUP_H

#include <rill/comm.h>

RILL_EXTERN_C_BEGIN

/** Begins a group on this thread: operations are checked and kept until rill_comm_group_end. In nested groups only
 *  the outermost one counts. A group can contain operations of several communicators of one backend.
 *
 *  Errors:  OUT_OF_MEMORY.
 *  Like:    ncclGroupStart. */
RILL_API RILL_NODISCARD rill_status rill_comm_group_begin(void);

/** Submits the operations of the group, which make progress together.  If an operation was refused, nothing is
 *  submitted and its failure is returned again.  The handles of the operations must remain valid until this call.
 *
 *  Errors:  INVALID_ARGUMENT (no group), those of the operations.
 *  Like:    ncclGroupEnd. */
RILL_API RILL_NODISCARD rill_status rill_comm_group_end(void);

RILL_EXTERN_C_END

#endif
