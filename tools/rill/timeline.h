/* A drawing of what ran when: one track per stream, one bar per piece of work. */
#ifndef RILL_TOOL_TIMELINE_H
#define RILL_TOOL_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { TIMELINE_MAX_STAGES = 8 };

struct timeline_bar {
  uint32_t track, stage, tile;
  uint32_t slice;    /* part of the track, from the top; 0 if tracks have one part */
  double start, end; /* milliseconds from the left edge */
};

struct timeline {
  const char *title, *subtitle;
  const char *const *tracks;
  uint32_t track_count;
  uint32_t slices; /* parts per track; 0 means 1 */
  const char *const *stages;
  uint32_t stage_count;
  const struct timeline_bar *bars;
  size_t bar_count;
  double span; /* milliseconds; > 0 */
};

/* Writes the drawing as SVG. Write errors are reported when the file is closed. */
void timeline_write(const struct timeline *timeline, FILE *file);

#endif
