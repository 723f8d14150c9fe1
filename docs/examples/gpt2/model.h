/* model.h: GPT-2 on a device: its memory, and a training step of it as work of a stream or as a graph.
 *
 *     gpt2_open(&model, device, &config, parameters, &options);
 *     gpt2_step(&model, batch, step);            // a training step, launch by launch
 *     gpt2_capture(&model);                      // the same as a graph,
 *     gpt2_launch(&model, batch, step);          // of which two arguments change
 *     rill_stream_synchronize(model.stream);     // now *model.loss is the loss
 *     gpt2_close(&model);
 */
#ifndef GPT2_MODEL_H
#define GPT2_MODEL_H

#include "products.h"

#include <rill/rill.h>

typedef struct gpt2_config {
  int layers, heads, channels;
  int positions;          /* as many tokens as a sequence may have */
  int vocabulary, padded; /* tokens; rows that their embedding has */
} gpt2_config;

/* The tensors of a model, in the order of a checkpoint.  Those between POSITIONS and NORM are there for each layer. */
typedef enum gpt2_tensor {
  GPT2_TOKENS,
  GPT2_POSITIONS,
  GPT2_NORM1_WEIGHT,
  GPT2_NORM1_BIAS,
  GPT2_QKV_WEIGHT,
  GPT2_QKV_BIAS,
  GPT2_ATTENTION_WEIGHT,
  GPT2_ATTENTION_BIAS,
  GPT2_NORM2_WEIGHT,
  GPT2_NORM2_BIAS,
  GPT2_EXPAND_WEIGHT,
  GPT2_EXPAND_BIAS,
  GPT2_CONTRACT_WEIGHT,
  GPT2_CONTRACT_BIAS,
  GPT2_NORM_WEIGHT,
  GPT2_NORM_BIAS,
  GPT2_TENSORS
} gpt2_tensor;

/* Parameters, gradients and moments are arrays of this many floats, in which a tensor has its place: first the two
 * embeddings, then layer after layer, of which the matrices come first, then the last normalization.  So what of a
 * layer is the same (a bucket of gradients, weights that decay) lies together.  `layer` counts for a layer's tensors.
 */
size_t gpt2_parameters(const gpt2_config *config);
size_t gpt2_offset(const gpt2_config *config, gpt2_tensor tensor, int layer);
size_t gpt2_size(const gpt2_config *config, gpt2_tensor tensor);
const char *gpt2_name(gpt2_tensor tensor);
static inline int gpt2_copies(const gpt2_config *config, gpt2_tensor tensor) {
  return tensor > GPT2_POSITIONS && tensor < GPT2_NORM_WEIGHT ? config->layers : 1;
}

typedef struct gpt2_options {
  int batch, length; /* of a step */
  float learning_rate, beta1, beta2, decay;
  product_options products;
  /* Called once gradients, from `first` on, are submitted to the model's stream; and before the update.  May be NULL.
   */
  void (*gradients_ready)(void *user, float *first, size_t count);
  void (*before_update)(void *user);
  void *user;
} gpt2_options;

/* What the forward pass leaves for the backward pass: a layer's. */
typedef struct gpt2_layer {
  float *input, *middle;           /* the residual stream before attention, and before the feed-forward part */
  float *normal1, *mean1, *scale1; /* normalized, and what it takes to go back */
  float *normal2, *mean2, *scale2;
  float *heads;         /* queries, keys, values of each head */
  float *probabilities; /* length x length for each head */
  float *attended;      /* the heads' results, in rows again */
  float *expanded, *activated;
} gpt2_layer;

typedef struct gpt2 {
  gpt2_config config;
  gpt2_options options;
  rill_device device;
  rill_stream stream;
  rill_pool pool;
  uint32_t warp_size;
  products products;
  float *memory; /* one block of the pool, which holds all of the following */
  size_t memory_size;
  float *parameters, *gradients, *moment1, *moment2;
  int *inputs, *targets, *links; /* tokens; which rows have the same one */
  float *rates;
  gpt2_layer *layers; /* this array itself is the host's */
  float *output, *normal, *mean, *scale, *logits, *losses;
  float *wide, *narrow,
      *split; /* between kernels, in both passes: rows of 4, rows of 1, heads of 1 times the channels */
  float *d_stream, *d_heads, *d_scores,
      *parts;  /* the gradients of the residual stream, heads and scores; column sums */
  float *loss; /* pinned: the mean loss of the last step */
  rill_graph_exec graph;
  rill_graph_node begin; /* the node whose arguments differ from step to step */
} gpt2;

/* `parameters` are on the host, and copied. */
void gpt2_open(gpt2 *model, rill_device device, const gpt2_config *config, const float *parameters,
               const gpt2_options *options);
void gpt2_close(gpt2 *model);

/* The parts of a step, in this order, as work of model->stream.  `batch` is batch * length + 1 tokens that the device
 * can read, and that stay until the stream has come past.  step counts from 0. */
void gpt2_begin(gpt2 *model, const int *batch, int step);
void gpt2_forward(gpt2 *model, int batch, int length);
void gpt2_backward(gpt2 *model);
void gpt2_update(gpt2 *model);
void gpt2_step(gpt2 *model, const int *batch, int step);

void gpt2_capture(gpt2 *model);
void gpt2_launch(gpt2 *model, const int *batch, int step);

/* The logits of the token after `count` ones, on the host: model->config.vocabulary numbers. */
void gpt2_predict(gpt2 *model, const int *tokens, int count, float *logits);

#endif
