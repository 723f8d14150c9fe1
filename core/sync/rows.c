/* Rows of copies and fills. */
#include "core/sync/submit.h"

#include <string.h>

void rill__copy_rows(const struct rill__copy_3d *copy, size_t first, size_t end) {
  for (size_t i = first; i < end; i++) {
    const size_t slice = i / copy->height, row = i % copy->height;
    memmove((char *)copy->dst + slice * copy->dst_slice_pitch + row * copy->dst_pitch,
            (const char *)copy->src + slice * copy->src_slice_pitch + row * copy->src_pitch, copy->width);
  }
}
