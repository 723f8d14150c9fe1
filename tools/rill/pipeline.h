/* The demo's job: filter a picture tile by tile, on several streams that are ordered only by events. */
#ifndef RILL_TOOL_PIPELINE_H
#define RILL_TOOL_PIPELINE_H

#include "picture.h"
#include "timeline.h"

#include <rill/rill.h>

enum { STAGE_UPLOAD, STAGE_BLUR, STAGE_SHARPEN, STAGE_TONE, STAGE_DOWNLOAD, STAGES };
extern const char *const pipeline_stages[STAGES];

enum { PIPELINE_MAX_STREAMS = 16, PIPELINE_MIN_TILE = 16, PIPELINE_MAX_TILE = 4096, PIPELINE_MAX_TILES = 16384 };

struct pipeline_options {
  rill_device device;
  uint32_t streams;  /* 1: one for all; 2: copies, kernels; 3 and more: upload, download, the rest for kernels */
  uint32_t tile;     /* edge in pixels */
  bool lone_threads; /* one thread per block of the blur instead of 256 with barriers; faster on a CPU */
  bool graph;        /* also capture the job as a graph and replay it */
};

/* The times at which the work was submitted and ran, in milliseconds. */
struct pipeline_times {
  struct timeline_bar *bars; /* STAGES for each tile; times count from the first upload's start */
  size_t bar_count;
  double span;   /* on the device, from the first start to the last end */
  double submit; /* time of the host to submit everything */
  double host;   /* from the first submission until the host saw the end */
};

struct pipeline_result {
  uint32_t tiles, slots;
  uint32_t tracks; /* streams */
  const char *track_names[PIPELINE_MAX_STREAMS];
  struct pipeline_times on_streams, replay; /* replay: if there is a graph */
  size_t nodes;                             /* number of nodes of the graph; 0 if there is no graph */
  double capture, instantiate;              /* milliseconds, once for all replays */
};

/* Returns the number of tiles of a picture. */
uint64_t pipeline_tile_count(const struct picture *picture, uint32_t tile);

/* Filters `in` into `out`, which has its size and memory.  Prints an error on failure. */
bool pipeline_run(const struct pipeline_options *options, const struct picture *in, struct picture *out,
                  struct pipeline_result *result);
void pipeline_result_free(struct pipeline_result *result);

#endif
