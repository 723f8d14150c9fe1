/* ranks.h: training by several processes, each with a part of the batch.  Gradients are averaged in buckets, one for
 * each layer, on a stream of their own: while a bucket travels, the backward pass computes the next one. */
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

/* Joins the processes that mpirun started, and makes a model of these options call it.  The model must be opened next.
 */
void ranks_open(ranks *r, rill_device device, const gpt2 *model, gpt2_options *options);
void ranks_close(ranks *r);

#endif
