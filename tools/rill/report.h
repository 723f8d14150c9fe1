/* Report of a run of the demo: figures on stdout, and the drawing. */
#ifndef RILL_TOOL_REPORT_H
#define RILL_TOOL_REPORT_H

#include "pipeline.h"

struct report {
  const char *picture; /* file name */
  uint32_t width, height, tile;
  rill_device_info device;
  double reference; /* milliseconds that the plain C filter took */
  const struct pipeline_result *run;
};

/* Each prints an error if memory runs out. */
bool report_print(const struct report *report);
bool report_draw(const struct report *report, FILE *file);

#endif
