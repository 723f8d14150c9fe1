/* rill demo --ranks: the picture cut into bands, one for each process that mpirun started. */
#ifndef RILL_TOOL_RANKS_H
#define RILL_TOOL_RANKS_H

#include "picture.h"

enum { RANKS_MAX_PASSES = 64 };

struct ranks_options {
  const char *picture, *output, *timeline, *device; /* timeline and device may be NULL */
  uint32_t streams, tile, passes;
};

/* Runs the demo as one of several ranks.  Prints an error on failure.  `says`: whether this process is the one that
 * prints and writes. */
bool ranks_demo(const struct ranks_options *options, const struct picture *in, bool *says);

#endif
