/* RILL_CHECK=order: tells the engine what rill's objects do, and writes what it finds. */
#ifndef RILL_CORE_ORDER_WATCH_H
#define RILL_CORE_ORDER_WATCH_H

#include "core/diagnose/observe.h"
#include "core/order/journal.h"

/* Begins to watch if RILL_CHECK asks for that; once. */
void rill__order_start(void);

/* What the user declares; nothing if nobody watches.  `access`: RILL_ORDER_*. */
void rill__order_declare(struct rill__stream *stream, const void *p, size_t size, uint32_t access, const char *label);

/* For fork. */
void rill__order_lock(void);
void rill__order_unlock(void);
void rill__order_after_fork(void); /* in the child, instead: the parent's work is not there */

/* ---- core/order/operations.c; inside an epoch, under the lock ---- */

/* Tells of an operation that is submitted. */
void rill__order_tell(struct rill__journal *journal, const struct rill__observed *what);

/* The group of a device, and a number for a stream or event that no object of rill's has. */
uint32_t rill__order_group_of(const struct rill__device *device);
uint64_t rill__order_number(void);

/* Other code may order work of the device, NULL: of any, without rill's knowledge. */
bool rill__order_is_shared(const struct rill__device *device);

/* An operation of a stream, NULL: of the host; NULL without host memory. */
struct rill__order_op *rill__order_op_of(const struct rill__stream *stream, const char *what, const char *name,
                                         size_t size);

/* Memory that an operation of the stream accesses.  False: of nobody that is looked at. */
bool rill__order_find(const struct rill__stream *stream, const void *p, size_t size, bool write,
                      struct rill__order_range *out);

#endif
