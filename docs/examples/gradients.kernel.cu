/* gradients computes the gradient of a linear model's squared error, with one thread per weight. descend takes one step
 * of gradient descent. */
#include <rill/device/kernel.h>

RILL_KERNEL(gradients, int samples, int weights, int first, int last, const float *x, const float *y, const float *w,
            float *gradient) {
  const int i = first + blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= last) return;
  float sum = 0;
  for (int s = 0; s < samples; s++) {
    float error = -y[s];
    for (int k = 0; k < weights; k++) error += w[k] * x[s * weights + k];
    sum += 2.0f * error * x[s * weights + i];
  }
  gradient[i] = sum / (float)samples;
}

RILL_KERNEL(descend, int weights, float rate, const float *gradient, float *w) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < weights) w[i] -= rate * gradient[i];
}
