/* gpt2.kernel.cu: all kernels of GPT-2 except the matrix products, for the forward and the backward pass.
 *
 * Matrices are stored in row-major order. Each row of an activation belongs to one token; `rows` is batch * length, and
 * the rows are in the order of the tokens. `channels` is the width of the model. Launches have one of three shapes:
 *
 *   - one thread per element: gelu, heads, adamw;
 *   - one warp per row: layer normalization and softmax, which add up a row with rill_warp_sum;
 *   - one block per row: the classifier, whose rows have one element per token of the vocabulary.
 *
 * No kernel adds with atomic operations, so sums over rows are computed in the same order in every run.
 */
#include <rill/device/kernel.h>

/* ---- functions ---- */

/* Returns e^x with an error of at most 2 units in the last place for x above -87, and e^-87 for x below that. It is
 * written out so that the source compiles with GPU compilers that have no <math.h>. */
static __device__ __forceinline__ float exponential(float x) {
  const float limited = fminf(fmaxf(x, -87.0f), 88.0f);
  const float n = rintf(limited * 1.44269504f);
  const float r = limited - n * 0.693145752f - n * 1.42860677e-6f; /* minus n * ln 2; the first product is exact */
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const int bits = (static_cast<int>(n) + 127) << 23; /* 2^n */
  float scale;
  memcpy(&scale, &bits, sizeof scale);
  return p * scale;
}

/* Returns the logarithm of a positive normal number, which is split into 2^n * m with m near 1. */
static __device__ __forceinline__ float logarithm(float x) {
  int bits;
  memcpy(&bits, &x, sizeof bits);
  const int n = (bits - 0x3f3504f3) >> 23; /* m is between sqrt(1/2) and sqrt(2) */
  bits -= n * (1 << 23);
  float m;
  memcpy(&m, &bits, sizeof m);
  const float s = (m - 1.0f) / (m + 1.0f), z = s * s;
  const float series = 1.0f + z * (1.0f / 3 + z * (1.0f / 5 + z * (1.0f / 7 + z * (1.0f / 9))));
  return static_cast<float>(n) * 0.693147182f + 2.0f * s * series;
}

static __device__ __forceinline__ float hyperbolic_tangent(float x) {
  const float e = exponential(-2.0f * fabsf(x));
  return copysignf((1.0f - e) / (1.0f + e), x);
}

/* Returns the row of this thread's warp. Thread i of a warp processes the elements i, i + width, i + 2 * width ... */
static __device__ __forceinline__ int warp_row() {
  const unsigned warps = blockDim.x / rill_warp_size();
  return static_cast<int>(blockIdx.x * warps + threadIdx.x / rill_warp_size());
}

/* ---- the beginning of a step ---- */

/* Copies a batch of count + 1 tokens to inputs and targets: the target of each token is the token after it. Writes to
 * `rates` the learning rate and the factors that correct the moments of AdamW for starting at 0. Only the first two
 * arguments differ from one step to the next, so a graph of the step needs no other change. */
RILL_KERNEL(begin_step, const int *batch, int step, int count, float learning_rate, float beta1, float beta2,
            int *inputs, int *targets, float *rates) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) {
    inputs[i] = batch[i];
    targets[i] = batch[i + 1];
  }
  if (i == 0) {
    double power1 = 1, power2 = 1, square1 = beta1, square2 = beta2;
    for (unsigned left = static_cast<unsigned>(step) + 1; left > 0; left /= 2, square1 *= square1, square2 *= square2) {
      if (left % 2 == 0) continue;
      power1 *= square1;
      power2 *= square2;
    }
    rates[0] = learning_rate;
    rates[1] = static_cast<float>(1 / (1 - power1));
    rates[2] = static_cast<float>(1 / (1 - power2));
  }
}

/* ---- embedding ---- */

/* Sets x[row] to the sum of the embeddings of the row's token and of its position. One block per row. */
RILL_KERNEL(embed, int channels, int length, const int *tokens, const float *token_weights,
            const float *position_weights, float *x) {
  const size_t row = blockIdx.x, position = row % static_cast<size_t>(length);
  const float *const a = token_weights + static_cast<size_t>(tokens[row]) * static_cast<size_t>(channels);
  const float *const b = position_weights + position * static_cast<size_t>(channels);
  float *const to = x + row * static_cast<size_t>(channels);
  for (int c = static_cast<int>(threadIdx.x); c < channels; c += static_cast<int>(blockDim.x)) to[c] = a[c] + b[c];
}

/* Sets links[row] to the next row with the same token, or to `rows` if there is none. Sets links[rows + row] to 1 if
 * the row is the first with its token, else to 0. */
RILL_KERNEL(link_rows, int rows, const int *tokens, int *links) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= rows) return;
  const int token = tokens[row];
  int next = rows, first = row;
  for (int r = 0; r < rows; r++) {
    const int other = tokens[r] == token ? r : row;
    next = other > row ? min(next, other) : next;
    first = min(first, other);
  }
  links[row] = next;
  links[rows + row] = first == row;
}

/* Adds the gradients of the rows to the gradients of their tokens. The grid covers the rows in x and the columns in y.
 * The blocks of a token's first row add up all rows of the token in order; all others return. */
RILL_KERNEL(embed_tokens_backward, int rows, int channels, const int *tokens, const int *links, const float *dx,
            float *dweights) {
  const int c = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x), row = static_cast<int>(blockIdx.x);
  if (c >= channels || links[rows + row] == 0) return;
  float sum = 0;
  for (int r = row; r < rows; r = links[r]) sum += dx[static_cast<size_t>(r) * static_cast<size_t>(channels) + c];
  dweights[static_cast<size_t>(tokens[row]) * static_cast<size_t>(channels) + c] += sum;
}

/* Sets the gradient of each position to the sum over the batch. `size` is length * channels. */
RILL_KERNEL(embed_positions_backward, int size, int batch, const float *dx, float *dweights) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= size) return;
  float sum = 0;
  for (int b = 0; b < batch; b++) sum += dx[static_cast<size_t>(b) * static_cast<size_t>(size) + static_cast<size_t>(i)];
  dweights[i] = sum;
}

/* ---- the residual stream and layer normalization ---- */

/* Computes sum = x + add + bias and out = normalized sum * weights + shift. If add is NULL, sum is x. The means and
 * scales (1 / standard deviation) are stored for the backward pass. One warp per row. */
RILL_KERNEL_BOUNDED(256, residual_norm, int rows, int channels, const float *x, const float *add, const float *bias,
                    const float *weights, const float *shift, float *sum, float *out, float *means, float *scales) {
  const int row = warp_row(), from = static_cast<int>(rill_lane()), width = static_cast<int>(rill_warp_size());
  if (row >= rows) return;
  const size_t first = static_cast<size_t>(row) * static_cast<size_t>(channels);
  float total = 0;
  for (int c = from; c < channels; c += width) {
    float v = x[first + c];
    if (add != nullptr) v += add[first + c] + bias[c];
    sum[first + c] = v;
    total += v;
  }
  const float mean = rill_warp_sum(total) / static_cast<float>(channels);
  float squares = 0;
  for (int c = from; c < channels; c += width) {
    const float d = sum[first + c] - mean;
    squares += d * d;
  }
  const float scale = 1.0f / sqrtf(rill_warp_sum(squares) / static_cast<float>(channels) + 1e-5f);
  for (int c = from; c < channels; c += width)
    out[first + c] = (sum[first + c] - mean) * scale * weights[c] + shift[c];
  if (from == 0) {
    means[row] = mean;
    scales[row] = scale;
  }
}

/* Adds the gradient that flows back through the normalization to dx, the gradient of the residual stream. One warp per
 * row. */
RILL_KERNEL_BOUNDED(256, norm_backward, int rows, int channels, const float *dout, const float *x,
                    const float *weights, const float *means, const float *scales, float *dx) {
  const int row = warp_row(), from = static_cast<int>(rill_lane()), width = static_cast<int>(rill_warp_size());
  if (row >= rows) return;
  const size_t first = static_cast<size_t>(row) * static_cast<size_t>(channels);
  const float mean = means[row], scale = scales[row];
  float sum = 0, product = 0;
  for (int c = from; c < channels; c += width) {
    const float d = dout[first + c] * weights[c];
    sum += d;
    product += d * ((x[first + c] - mean) * scale);
  }
  sum = rill_warp_sum(sum) / static_cast<float>(channels);
  product = rill_warp_sum(product) / static_cast<float>(channels);
  for (int c = from; c < channels; c += width)
    dx[first + c] += scale * (dout[first + c] * weights[c] - sum - (x[first + c] - mean) * scale * product);
}

/* The gradient of a weight that all rows share is a sum over the rows. Each block adds up `part` rows of some columns,
 * and add_parts adds up the sums of the blocks. norm_column_sums computes the gradients of a normalization's weight and
 * bias: each part has `channels` sums for the weight, followed by `channels` sums for the bias. */
RILL_KERNEL(norm_column_sums, int rows, int channels, int part, const float *dout, const float *x, const float *means,
            const float *scales, float *parts) {
  const int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), begin = static_cast<int>(blockIdx.y) * part;
  const int end = min(begin + part, rows);
  if (c >= channels) return;
  float product = 0, sum = 0;
  for (int r = begin; r < end; r++) {
    const size_t i = static_cast<size_t>(r) * static_cast<size_t>(channels) + static_cast<size_t>(c);
    product += dout[i] * ((x[i] - means[r]) * scales[r]);
    sum += dout[i];
  }
  float *const to = parts + static_cast<size_t>(blockIdx.y) * 2 * static_cast<size_t>(channels);
  to[c] = product;
  to[channels + c] = sum;
}

/* Computes the partial sums of the gradient of a bias. */
RILL_KERNEL(column_sums, int rows, int columns, int part, const float *dout, float *parts) {
  const int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), begin = static_cast<int>(blockIdx.y) * part;
  const int end = min(begin + part, rows);
  if (c >= columns) return;
  float sum = 0;
  for (int r = begin; r < end; r++) sum += dout[static_cast<size_t>(r) * static_cast<size_t>(columns) + c];
  parts[static_cast<size_t>(blockIdx.y) * static_cast<size_t>(columns) + c] = sum;
}

RILL_KERNEL(add_parts, int count, int columns, const float *parts, float *out) {
  const int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (c >= columns) return;
  float sum = 0;
  for (int i = 0; i < count; i++) sum += parts[static_cast<size_t>(i) * static_cast<size_t>(columns) + c];
  out[c] = sum;
}

/* ---- attention ---- */

/* Copies x to a matrix of length x size for each head, as the products of attention need it, and adds the bias unless
 * it is NULL. A row of x holds `parts` groups of channels (queries, keys and values), and each group holds the channels
 * of all heads, one head after another. Launch: blocks of `size` x some positions; the grid covers the positions in x,
 * the batch in y, and parts * heads in z. */
RILL_KERNEL(split_heads, int length, int size, int heads, int parts, const float *bias, const float *x, float *out) {
  const int position = static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y), b = static_cast<int>(blockIdx.y);
  const int part = static_cast<int>(blockIdx.z) / heads, head = static_cast<int>(blockIdx.z) % heads;
  const int c = static_cast<int>(threadIdx.x), batch = static_cast<int>(gridDim.y);
  if (position >= length) return;
  const size_t column = static_cast<size_t>(static_cast<int>(blockIdx.z) * size + c);
  const size_t width = static_cast<size_t>(parts * heads * size);
  const float v = x[(static_cast<size_t>(b) * length + position) * width + column];
  out[((static_cast<size_t>(part * batch + b) * heads + head) * length + position) * size + c] =
      bias != nullptr ? v + bias[column] : v;
}

/* Reverses split_heads, without a bias. */
RILL_KERNEL(merge_heads, int length, int size, int heads, int parts, const float *x, float *out) {
  const int position = static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y), b = static_cast<int>(blockIdx.y);
  const int part = static_cast<int>(blockIdx.z) / heads, head = static_cast<int>(blockIdx.z) % heads;
  const int c = static_cast<int>(threadIdx.x), batch = static_cast<int>(gridDim.y);
  if (position >= length) return;
  const size_t column = static_cast<size_t>(static_cast<int>(blockIdx.z) * size + c);
  const size_t width = static_cast<size_t>(parts * heads * size);
  out[(static_cast<size_t>(b) * length + position) * width + column] =
      x[((static_cast<size_t>(part * batch + b) * heads + head) * length + position) * size + c];
}

/* Turns scores into probabilities in place. A row uses the columns up to its own position; the others become 0. One
 * warp per row. */
RILL_KERNEL_BOUNDED(256, softmax, int rows, int length, float *scores) {
  const int row = warp_row(), from = static_cast<int>(rill_lane()), width = static_cast<int>(rill_warp_size());
  if (row >= rows) return;
  float *const x = scores + static_cast<size_t>(row) * static_cast<size_t>(length);
  const int count = row % length + 1;
  float most = -3.4e38f;
  for (int i = from; i < count; i += width) most = fmaxf(most, x[i]);
  most = rill_warp_max(most);
  float sum = 0;
  for (int i = from; i < count; i += width) {
    const float e = exponential(x[i] - most);
    x[i] = e;
    sum += e;
  }
  const float factor = 1.0f / rill_warp_sum(sum);
  for (int i = from; i < length; i += width) x[i] = i < count ? x[i] * factor : 0.0f;
}

/* Turns gradients of probabilities into gradients of scores, in place. One warp per row. */
RILL_KERNEL_BOUNDED(256, softmax_backward, int rows, int length, const float *probabilities, float *gradients) {
  const int row = warp_row(), from = static_cast<int>(rill_lane()), width = static_cast<int>(rill_warp_size());
  if (row >= rows) return;
  const float *const p = probabilities + static_cast<size_t>(row) * static_cast<size_t>(length);
  float *const d = gradients + static_cast<size_t>(row) * static_cast<size_t>(length);
  const int count = row % length + 1;
  float sum = 0;
  for (int i = from; i < count; i += width) sum += p[i] * d[i];
  sum = rill_warp_sum(sum);
  for (int i = from; i < length; i += width) d[i] = i < count ? p[i] * (d[i] - sum) : 0.0f;
}

/* ---- gelu ---- */

/* Returns the hyperbolic tangent in the approximation of gelu with which GPT-2 was trained: gelu(x) =
 * x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))). */
static __device__ __forceinline__ float gelu_tangent(float x) {
  return hyperbolic_tangent(0.797884561f * (x + 0.044715f * x * x * x));
}

enum { GELU_ROWS = 4 }; /* per thread, so that it reads the bias once for all of them */

/* Adds the bias to x, and sets out to gelu(x). The grid covers groups of GELU_ROWS rows in x, and the columns in y. */
RILL_KERNEL(gelu, int rows, int columns, const float *bias, float *x, float *out) {
  const int c = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x);
  const int begin = static_cast<int>(blockIdx.x) * GELU_ROWS, end = min(begin + GELU_ROWS, rows);
  if (c >= columns) return;
  for (int r = begin; r < end; r++) {
    const size_t i = static_cast<size_t>(r) * static_cast<size_t>(columns) + static_cast<size_t>(c);
    const float v = x[i] + bias[c];
    x[i] = v;
    out[i] = 0.5f * v * (1.0f + gelu_tangent(v));
  }
}

/* Turns the gradient of `out` into the gradient of x, in place. */
RILL_KERNEL(gelu_backward, int64_t n, const float *x, float *gradients) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float v = x[i], t = gelu_tangent(v);
  const float inner = 0.797884561f * (1.0f + 3 * 0.044715f * v * v);
  gradients[i] *= 0.5f * (1.0f + t) + 0.5f * v * (1.0f - t * t) * inner;
}

/* ---- the classifier ---- */

/* Computes softmax, cross-entropy and its gradient in one pass. losses[row] is -log(probability of the target). The
 * logits are replaced by the gradient of the mean loss: (probability - t) / rows, where t is 1 for the target and 0 for
 * other tokens. Columns after the vocabulary are padding; they get gradient 0. One block per row. */
RILL_KERNEL_BOUNDED(256, classify, int vocabulary, int padded, float factor, const int *targets, float *logits,
                    float *losses) {
  const int row = static_cast<int>(blockIdx.x), target = targets[row];
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  float *const x = logits + static_cast<size_t>(row) * static_cast<size_t>(padded);
  float most = -3.4e38f;
  for (int i = thread; i < vocabulary; i += threads) most = fmaxf(most, x[i]);
  most = rill_block_max(most);
  float sum = 0;
  for (int i = thread; i < vocabulary; i += threads) sum += exponential(x[i] - most);
  sum = rill_block_sum(sum);
  if (thread == 0) losses[row] = logarithm(sum) + most - x[target];
  __syncthreads(); /* before x[target] is overwritten */
  const float scale = factor / sum;
  for (int i = thread; i < padded; i += threads) {
    const float p = i < vocabulary ? exponential(x[i] - most) * scale : 0.0f;
    x[i] = i == target ? p - factor : p;
  }
}

/* Computes the mean of the losses. Launch: one block. */
RILL_KERNEL_BOUNDED(256, mean_loss, int rows, const float *losses, float *out) {
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < rows; i += static_cast<int>(blockDim.x)) sum += losses[i];
  sum = rill_block_sum(sum);
  if (threadIdx.x == 0) *out = sum / static_cast<float>(rows);
}

/* ---- the update ---- */

/* Updates moments and weights by AdamW. The moments are moving averages of the gradient and of its square. begin_step
 * sets `rates`. */
RILL_KERNEL(adamw, int64_t n, float decay, float beta1, float beta2, const float *rates, const float *gradients,
            float *weights, float *first, float *second) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float g = gradients[i], w = weights[i];
  const float m = beta1 * first[i] + (1.0f - beta1) * g, v = beta2 * second[i] + (1.0f - beta2) * g * g;
  first[i] = m;
  second[i] = v;
  weights[i] = w - rates[0] * (m * rates[1] / (sqrtf(v * rates[2]) + 1e-8f) + decay * w);
}
