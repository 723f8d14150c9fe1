/* The queues of held streams, as core/held.c fills and core/held_run.c empties them. */
#ifndef RILL_CORE_HELD_QUEUE_H
#define RILL_CORE_HELD_QUEUE_H

#include "core/held.h"

/* A record that is or was in a held queue.  Waits bind to it, not to the event, which may be recorded again. */
struct rill__point {
  uint32_t users; /* guarded by the lock */
  enum { POINT_HELD, POINT_ISSUED, POINT_FAILED } state;
  struct rill__stream *stream; /* while it is held: the stream it is queued on ... */
  uint64_t position;           /* ... and where */
  bool first;                  /* the event had no record that reached the driver before it */
  struct rill__event *mark;    /* recorded at the same place: what the driver waits for */
  struct rill__name event;     /* of the event recorded, for texts */
};

enum held_kind {
  HELD_WAIT_EVENT, /* for the first record of an event */
  HELD_WAIT_POINT,
  HELD_RECORD,
  HELD_HOST_CALL,
  HELD_COPY,
  HELD_FILL,
  HELD_PREFETCH,
  HELD_LAUNCH
};

struct held_op {
  struct held_op *next;
  enum held_kind kind;
  uint64_t position; /* stream->held_pushed when it came */
  uint64_t serial;   /* rill__held_serial when it came */
  size_t bytes;      /* of this struct and what it owns */
  rill_status told;  /* of a host call: what it is told when it does not run normally; RILL_OK if it does */
  union {
    struct rill__event *event; /* kept */
    struct rill__point *point; /* used */
    struct {
      struct rill__event *event; /* kept */
      struct rill__point *point; /* used */
      uint32_t flags;
    } record;
    struct {
      rill_host_fn fn;
      void *user;
    } host_call;
    struct {
      struct rill__copy_3d ends;
      struct held_staging *staging; /* pinned memory at one of the ends, owned; or NULL */
    } copy;
    struct {
      struct rill__fill_2d rows; /* one, or several; its pattern is here: */
      uint64_t pattern[2];
    } fill;
    struct {
      const void *p;
      size_t size;
    } prefetch;
    struct {
      struct rill__launch shape;         /* its kernel is kept; its label and extras are owned */
      struct rill__constants *constants; /* owned; or NULL */
    } launch;
  };
  void *values[]; /* of a launch: pointers into the bytes behind them */
};

/* Pinned memory that stands in for pageable memory (core/held_staging.c). */
struct held_staging {
  struct held_staging *next;
  struct rill__device *device;
  void *memory;
  size_t capacity;
  bool down;                    /* what is copied to here ... */
  struct rill__copy_3d deliver; /* ... goes on so, on the host */
  enum {
    STAGING_UNUSED,
    STAGING_MARKED,  /* the driver uses it until `done` */
    STAGING_UNMARKED /* the driver may use it until the device is idle */
  } state;
  struct rill__event *done;
};

struct rill__held {
  struct rill__stream *stream;
  struct rill__held *next, **link; /* of all held streams */
  struct held_op *first, **last;
  size_t bytes;
  bool running;                  /* a thread is handing it to the driver ... */
  uint64_t giving;               /* ... the operation with this serial number; 0: none */
  struct rill__failure *failure; /* made beforehand */
};

/* What the next synchronize of a stream reports, once. */
struct rill__failure {
  rill_status status;
  int32_t native_code;
  char native_name[80], text[512];
};

enum { HELD_BYTES_MAX = 64 << 20 }; /* of one stream */

extern struct rill__held *rill__held_streams; /* guarded by the lock */
extern uint64_t rill__held_serial;            /* of the last operation that was queued; guarded by the lock */
extern uint64_t rill__held_progress;          /* changes with each rill__held_changed; guarded by the lock */

/* A point with one user, and its end by one who does not have the lock. */
rill_status rill__point_new(struct rill__device *device, struct rill__point **out);
void rill__point_free(struct rill__point *point);

/* An operation with `extra` bytes behind it. */
rill_status rill__held_op_new(enum held_kind kind, size_t extra, struct held_op **out);

/* Gives `op` to the stream's queue if it is held; frees it if not. */
rill_status rill__held_push(struct rill__stream *stream, struct held_op *op, bool *taken);

/* Under the lock. */
bool rill__held_has_room(const struct rill__held *held, const struct held_op *op);
rill_status rill__held_fail_full(const struct rill__held *held, const struct held_op *op);
void rill__held_append(struct rill__held *held, struct held_op *op);
void rill__point_use(struct rill__point *point);
void rill__point_unuse(struct rill__point *point);
void rill__held_changed(void); /* wakes who waits for a change */
void rill__held_await_change(void);

/* Fails all work behind the waits for the first record of `event`. */
void rill__held_fail_waits(struct rill__event *event, rill_status status, int32_t native_code, const char *native_name,
                           const char *text);

/* In the child of a fork: nothing is held any more, as nothing that was submitted is under way.  Under the lock. */
void rill__held_drop_all(void);

/* Hands all that can go to the driver.  Called without the lock, by whoever made something possible. */
void rill__held_run(void);

/* Memory for n bytes, and back: it is kept.  Without the lock. */
rill_status rill__staging_take(struct rill__device *device, size_t n, struct held_staging **out);
void rill__staging_keep(struct held_staging *staging);

/* Frees an operation that was taken out of its queue, or never put into one. */
void rill__held_op_free(struct held_op *op);

#endif
