/* The demo's filter in plain C on one thread.  It is written independently of the kernels, so that their result can be
 * compared with its result. */
#ifndef RILL_TOOL_REFERENCE_H
#define RILL_TOOL_REFERENCE_H

#include "picture.h"

/* The parameters that the demo passes to the filters. For all except the brightness, 256 means 1. */
enum { FILTER_AMOUNT = 512, FILTER_SATURATION = 352, FILTER_CONTRAST = 300, FILTER_BRIGHTNESS = 6 };

/* Blurs, sharpens and tones a picture into `out`, which has its size and memory.  Prints an error on failure. */
bool reference_filter(const struct picture *in, struct picture *out);

#endif
