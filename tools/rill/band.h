/* One rank's part of a picture that several ranks filter: a band of rows, the exchange of their edges, and the tiles.
 */
#ifndef RILL_TOOL_BAND_H
#define RILL_TOOL_BAND_H

#include "picture.h"
#include "timeline.h"

#include <rill/comm.h>

enum { BAND_INNER, BAND_EDGE, BAND_EXCHANGE, BAND_STAGES };
extern const char *const band_stages[BAND_STAGES];

enum { BAND_HALO = 3 }; /* rows that a pass of the filters reads beyond its own; the sum of their radii */

struct band_options {
  rill_device device;
  rill_comm comm;
  uint32_t ranks, rank;
  uint32_t streams, tile, passes; /* streams: one for exchanges, the rest for tiles */
  bool lone_threads;              /* as in struct pipeline_options */
};

/* Return the first row of a rank and the number of its rows. */
uint32_t band_first(uint32_t height, uint32_t ranks, uint32_t rank);
uint32_t band_rows(uint32_t height, uint32_t ranks, uint32_t rank);

/* Returns the maximum number of bars of a rank. */
size_t band_most_bars(const struct band_options *options, const struct picture *picture);

struct band_result {
  uint32_t *pixels;          /* pixels of this rank's rows, in pinned memory; the caller frees them */
  struct timeline_bar *bars; /* provided by the caller, room for band_most_bars; track is the rank */
  size_t bar_count;
  double span; /* milliseconds on the device */
};

/* Filters this rank's rows of `in` in the given number of passes. Prints an error on failure. */
bool band_run(const struct band_options *options, const struct picture *in, struct band_result *result);

#endif
