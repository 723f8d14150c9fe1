/* ranks.h: training by several processes, each with a part of the batch.  Gradients are averaged in buckets, one per
 * layer, on a separate stream: while a bucket is exchanged, the backward pass computes the next. */
#ifndef GPT2_RANKS_H
#define GPT2_RANKS_H

#include "model.h"

#include <rill/comm.h>

typedef struct ranks {
  uint32_t count, rank;
  rill_comm comm;
  rill_stream stream;
  const gpt2 *model;
} ranks;

/* Connects the processes that mpirun started, and sets the callbacks in the options. Open the model next.
 */
void ranks_open(ranks *r, rill_device device, const gpt2 *model, gpt2_options *options);
void ranks_close(ranks *r);

#endif
