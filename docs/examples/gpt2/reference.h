/* reference.h: GPT-2 in plain C and double precision, the reference with which the tests compare the device. */
#ifndef GPT2_REFERENCE_H
#define GPT2_REFERENCE_H

#include "model.h"

/* Returns the mean loss of batch * length + 1 tokens. Writes `gradients`, in the layout of the parameters, unless
 * NULL. */
double reference_loss(const gpt2_config *config, int batch, int length, const int *tokens, const double *parameters,
                      double *gradients);

/* Applies AdamW like gpt2_update. `moments` are two arrays of the size of the parameters, initially 0. */
void reference_update(const gpt2_config *config, const gpt2_options *options, int step, const double *gradients,
                      double *parameters, double *moments);

#endif
