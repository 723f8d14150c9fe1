/* reference.h: GPT-2 in plain C, in double and one loop after another: what the tests compare the device with. */
#ifndef GPT2_REFERENCE_H
#define GPT2_REFERENCE_H

#include "model.h"

/* The mean loss of batch * length + 1 tokens.  `gradients`, laid out as the parameters, are written unless NULL. */
double reference_loss(const gpt2_config *config, int batch, int length, const int *tokens, const double *parameters,
                      double *gradients);

/* AdamW as gpt2_update has it, on `moments`, which are two arrays as large as the parameters, 0 at first. */
void reference_update(const gpt2_config *config, const gpt2_options *options, int step, const double *gradients,
                      double *parameters, double *moments);

#endif
