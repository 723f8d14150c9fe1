/* The demo's filter in plain C, one thread, written apart from the kernels: what their result is compared with. */
#ifndef RILL_TOOL_REFERENCE_H
#define RILL_TOOL_REFERENCE_H

#include "picture.h"

/* What the demo asks of the filters; 256 is 1 for all but the brightness. */
enum { FILTER_AMOUNT = 512, FILTER_SATURATION = 352, FILTER_CONTRAST = 300, FILTER_BRIGHTNESS = 6 };

/* Blurs, sharpens and tones a picture into `out`, which has its size and memory.  Complains when it fails. */
bool reference_filter(const struct picture *in, struct picture *out);

#endif
