// A typical CUDA program. Its array is larger than its device buffers, so it processes the array in pieces, on two
// streams with one buffer each. Each piece is scaled and added up. pipeline.c is the same program on rill.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call)                                                                         \
  do {                                                                                      \
    cudaError_t error = (call);                                                             \
    if (error != cudaSuccess) {                                                             \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error));        \
      exit(1);                                                                              \
    }                                                                                       \
  } while (0)

__global__ void scale_and_sum(int n, float a, float *x, float *sums) {
  __shared__ float part[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float value = 0;
  if (i < n) value = x[i] *= a;
  part[threadIdx.x] = value;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(sums, part[0]);
}

enum { PIECES = 16, PIECE = 1 << 16 };

int main() {
  float *host, *sum_host, *device[2], *sum;
  cudaStream_t stream[2];
  cudaEvent_t start, end;
  CHECK(cudaMallocHost(&host, sizeof(float) * PIECES * PIECE));
  CHECK(cudaMallocHost(&sum_host, sizeof(float)));
  CHECK(cudaMalloc(&sum, sizeof(float)));
  for (int i = 0; i < PIECES * PIECE; i++) host[i] = 1;
  for (int s = 0; s < 2; s++) {
    CHECK(cudaStreamCreateWithFlags(&stream[s], cudaStreamNonBlocking));
    CHECK(cudaMalloc(&device[s], sizeof(float) * PIECE));
  }
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&end));

  CHECK(cudaEventRecord(start, stream[0]));
  CHECK(cudaMemsetAsync(sum, 0, sizeof(float), stream[0]));
  CHECK(cudaEventRecord(end, stream[0]));
  CHECK(cudaStreamWaitEvent(stream[1], end, 0));
  for (int p = 0; p < PIECES; p++) {
    cudaStream_t s = stream[p % 2];
    float *x = device[p % 2], *h = host + (size_t)p * PIECE;
    CHECK(cudaMemcpyAsync(x, h, sizeof(float) * PIECE, cudaMemcpyHostToDevice, s));
    scale_and_sum<<<(PIECE + 255) / 256, 256, 0, s>>>(PIECE, 2.0f, x, sum);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyAsync(h, x, sizeof(float) * PIECE, cudaMemcpyDeviceToHost, s));
  }
  CHECK(cudaEventRecord(end, stream[1]));
  CHECK(cudaStreamWaitEvent(stream[0], end, 0));
  CHECK(cudaMemcpyAsync(sum_host, sum, sizeof(float), cudaMemcpyDeviceToHost, stream[0]));
  CHECK(cudaEventRecord(end, stream[0]));
  CHECK(cudaEventSynchronize(end));
  float ms;
  CHECK(cudaEventElapsedTime(&ms, start, end));
  printf("sum %.0f, %s\n", *sum_host, ms >= 0 ? "timed" : "not timed");

  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(end));
  for (int s = 0; s < 2; s++) {
    CHECK(cudaFree(device[s]));
    CHECK(cudaStreamDestroy(stream[s]));
  }
  CHECK(cudaFree(sum));
  CHECK(cudaFreeHost(host));
  CHECK(cudaFreeHost(sum_host));
  return 0;
}
