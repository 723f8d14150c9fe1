/* Traffic of a pool's memory between streams: measures a pool's driver memory while blocks pass from one stream to
 * another in many ways.
 *
 * A run plays rounds of one pattern with a pool of its own.  A round allocates blocks, uses each on its stream and
 * perhaps on another one, and frees it in the pattern's way; then the host waits for the round, or for one a few rounds
 * earlier.  The traffic itself counts the bytes that are allocated or not known to the host to be complete: `peak` is
 * the most that any allocator needs, and is computed without the pool's numbers.
 *
 * Both a test (tests/stress/pool_growth.c) and a benchmark (tests/bench/growth_pools.c) use it, so it is written
 * against the public headers alone. */
#ifndef RILL_TESTS_SUPPORT_TRAFFIC_H
#define RILL_TESTS_SUPPORT_TRAFFIC_H

#include <rill/rill.h>

enum { TRAFFIC_EARLY = 300 }; /* rounds until `early` is taken */

struct traffic_pattern {
  const char *name;
  enum { TRAFFIC_OWN, TRAFFIC_OTHER, TRAFFIC_EITHER, TRAFFIC_RECORD_USE, TRAFFIC_SEVERAL_USES } way;
  unsigned streams;  /* each block passes from one to the next of them */
  unsigned threads;  /* each with streams of its own */
  unsigned lifetime; /* rounds after which a thread replaces its streams; 0: never */
  unsigned lag;      /* rounds that the host is ahead of the device */
  bool turns;        /* each round allocates on the next stream */
  bool grows;        /* sizes rise through a cycle of rounds, up to those of large segments */
};

extern const struct traffic_pattern traffic_patterns[];
extern const unsigned traffic_pattern_count;

struct traffic_numbers {
  uint64_t peak;            /* bytes in use or not known to be complete, at most */
  uint64_t early, reserved; /* bytes that the pool has after TRAFFIC_EARLY rounds and at the end */
  double ns;                /* of a round */
};

/* The way to allocate: rill's pools, or another allocator in stream order to compare with.  Return 0 for success. */
struct traffic_allocator {
  int (*open)(rill_device device);
  int (*alloc)(rill_stream stream, size_t size, void **out);
  int (*free)(rill_stream stream, void *p);
  uint64_t (*reserved)(void);
  void (*close)(void);
};

/* Plays at least TRAFFIC_EARLY rounds.  `fixed`: sizes are from a small set, else arbitrary.  `other`: NULL for rill.
 * Returns NULL, or what failed. */
const char *traffic_run(rill_device device, const struct traffic_pattern *pattern, unsigned rounds, bool fixed,
                        const struct traffic_allocator *other, struct traffic_numbers *numbers);

#endif
