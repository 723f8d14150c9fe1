/* image.kernel.cu: filters for images with 8 bits per channel.
 *
 * A pixel is a uint32_t with the bytes red, green, blue and alpha in memory order (red is the lowest byte). A pitch
 * is the number of bytes from one row to the next, a multiple of 4. All arithmetic is in integers, so every device
 * and a plain C program compute the same bytes. `>>` of a negative number rounds down.
 *
 * The filters with a radius read a source of src_width x src_height pixels. They write to dst the window of
 * width x height pixels that begins at (x, y) in the source. Outside the source they use its nearest edge pixel.
 * An image can therefore be filtered in tiles: pass the tile plus a border (halo) as wide as the radius, on each side
 * where the image continues, as the source, and the tile as the window. For a sequence of filters, make the border as
 * wide as the sum of the radii: filter the complete source each time, and pass the window only to the last filter. dst
 * and src must not overlap.
 *
 *   image_blur     Radius 2. Binomial 5 x 5 filter with weights 1 4 6 4 1 in both directions, on all four
 *                  channels: (sum + 128) >> 8
 *   image_sharpen  Radius 1. v = c + (((4 c - left - right - up - down) * amount + 128) >> 8), clamped to
 *                  0..255. Alpha is unchanged. amount: 256 means 1; at most 65536.
 *   image_edges    Radius 1. Sobel filter of the luma: |gx| + |gy|, clamped to 255, as grey. Alpha is unchanged.
 *   image_tone     No radius; dst may be src. Saturation, contrast and brightness, in this order, clamped at the
 *                  end. Alpha is unchanged. For saturation and contrast 256 means 1; brightness is -255..255:
 *                  v = luma + (((c - luma) * saturation + 128) >> 8)
 *                  v = 128 + (((v - 128) * contrast + 128) >> 8) + brightness
 *
 * The luma of a pixel is (77 r + 150 g + 29 b + 128) >> 8.
 *
 * Launch: image_blur needs a grid of ceil(width / 32) x ceil(height / 8) blocks of any size, each of which computes
 * 32 x 8 pixels; on a GPU use 256 threads. The other filters need one thread per pixel, in two dimensions, with
 * blocks of any size, for instance 32 x 8.
 */
#include <rill/device/kernel.h>

enum { BLUR_WIDTH = 32, BLUR_HEIGHT = 8, BLUR_RADIUS = 2 };
enum { BORDERED_WIDTH = BLUR_WIDTH + 2 * BLUR_RADIUS, BORDERED_HEIGHT = BLUR_HEIGHT + 2 * BLUR_RADIUS };

static __device__ __forceinline__ const uint32_t *row(const uint32_t *image, size_t pitch, int y) {
  return reinterpret_cast<const uint32_t *>(reinterpret_cast<const unsigned char *>(image) + pitch * y);
}
static __device__ __forceinline__ uint32_t *row(uint32_t *image, size_t pitch, int y) {
  return reinterpret_cast<uint32_t *>(reinterpret_cast<unsigned char *>(image) + pitch * y);
}

static __device__ __forceinline__ int clamp(int v, int low, int high) { return min(max(v, low), high); }

static __device__ __forceinline__ int channel(uint32_t pixel, int i) { return pixel >> (8 * i) & 255; }

static __device__ __forceinline__ int luma(uint32_t pixel) {
  return (77 * channel(pixel, 0) + 150 * channel(pixel, 1) + 29 * channel(pixel, 2) + 128) >> 8;
}

/* Two channels of a pixel are processed in one number, with 16 bits each. The weighted sums stay below 65536. */
static __device__ __forceinline__ uint32_t even_channels(uint32_t pixel) { return pixel & 0x00ff00ffu; }
static __device__ __forceinline__ uint32_t odd_channels(uint32_t pixel) { return pixel >> 8 & 0x00ff00ffu; }
static __device__ __forceinline__ uint32_t binomial(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t e) {
  return a + e + 4 * (b + d) + 6 * c;
}

RILL_KERNEL(image_blur, uint32_t *dst, size_t dst_pitch, int width, int height, const uint32_t *src, size_t src_pitch,
            int src_width, int src_height, int x, int y) {
  __shared__ uint32_t pixels[BORDERED_HEIGHT][BORDERED_WIDTH];
  __shared__ uint32_t even[BORDERED_HEIGHT][BLUR_WIDTH], odd[BORDERED_HEIGHT][BLUR_WIDTH];
  const int first = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const int step = blockDim.x * blockDim.y * blockDim.z;
  const int left = blockIdx.x * BLUR_WIDTH, top = blockIdx.y * BLUR_HEIGHT; /* in the window */

  for (int i = first; i < BORDERED_WIDTH * BORDERED_HEIGHT; i += step) {
    const int px = i % BORDERED_WIDTH, py = i / BORDERED_WIDTH;
    const int sx = clamp(x + left + px - BLUR_RADIUS, 0, src_width - 1);
    const int sy = clamp(y + top + py - BLUR_RADIUS, 0, src_height - 1);
    pixels[py][px] = row(src, src_pitch, sy)[sx];
  }
  __syncthreads();

  for (int i = first; i < BLUR_WIDTH * BORDERED_HEIGHT; i += step) {
    const int px = i % BLUR_WIDTH, py = i / BLUR_WIDTH;
    const uint32_t *p = &pixels[py][px];
    even[py][px] = binomial(even_channels(p[0]), even_channels(p[1]), even_channels(p[2]), even_channels(p[3]),
                            even_channels(p[4]));
    odd[py][px] =
        binomial(odd_channels(p[0]), odd_channels(p[1]), odd_channels(p[2]), odd_channels(p[3]), odd_channels(p[4]));
  }
  __syncthreads();

  for (int i = first; i < BLUR_WIDTH * BLUR_HEIGHT; i += step) {
    const int px = i % BLUR_WIDTH, py = i / BLUR_WIDTH;
    if (left + px >= width || top + py >= height) continue;
    const uint32_t half = 0x00800080u; /* 128 in both channels */
    const uint32_t e =
        binomial(even[py][px], even[py + 1][px], even[py + 2][px], even[py + 3][px], even[py + 4][px]) + half;
    const uint32_t o = binomial(odd[py][px], odd[py + 1][px], odd[py + 2][px], odd[py + 3][px], odd[py + 4][px]) + half;
    row(dst, dst_pitch, top + py)[left + px] = (e >> 8 & 0x00ff00ffu) | (o & 0xff00ff00u);
  }
}

RILL_KERNEL(image_sharpen, uint32_t *dst, size_t dst_pitch, int width, int height, const uint32_t *src,
            size_t src_pitch, int src_width, int src_height, int x, int y, int amount) {
  const int dx = blockIdx.x * blockDim.x + threadIdx.x, dy = blockIdx.y * blockDim.y + threadIdx.y;
  if (dx >= width || dy >= height) return;
  const int sx = x + dx, sy = y + dy;
  const uint32_t *line = row(src, src_pitch, sy);
  const uint32_t center = line[sx];
  const uint32_t left = line[max(sx - 1, 0)], right = line[min(sx + 1, src_width - 1)];
  const uint32_t up = row(src, src_pitch, max(sy - 1, 0))[sx];
  const uint32_t down = row(src, src_pitch, min(sy + 1, src_height - 1))[sx];
  uint32_t result = center & 0xff000000u;
  for (int i = 0; i < 3; i++) {
    const int c = channel(center, i);
    const int detail = 4 * c - channel(left, i) - channel(right, i) - channel(up, i) - channel(down, i);
    result |= static_cast<uint32_t>(clamp(c + ((detail * amount + 128) >> 8), 0, 255)) << (8 * i);
  }
  row(dst, dst_pitch, dy)[dx] = result;
}

RILL_KERNEL(image_edges, uint32_t *dst, size_t dst_pitch, int width, int height, const uint32_t *src, size_t src_pitch,
            int src_width, int src_height, int x, int y) {
  const int dx = blockIdx.x * blockDim.x + threadIdx.x, dy = blockIdx.y * blockDim.y + threadIdx.y;
  if (dx >= width || dy >= height) return;
  const int sx = x + dx, sy = y + dy;
  const int left = max(sx - 1, 0), right = min(sx + 1, src_width - 1);
  const uint32_t *above = row(src, src_pitch, max(sy - 1, 0));
  const uint32_t *line = row(src, src_pitch, sy);
  const uint32_t *below = row(src, src_pitch, min(sy + 1, src_height - 1));
  const int gx = luma(above[right]) + 2 * luma(line[right]) + luma(below[right]) - luma(above[left]) -
                 2 * luma(line[left]) - luma(below[left]);
  const int gy = luma(below[left]) + 2 * luma(below[sx]) + luma(below[right]) - luma(above[left]) -
                 2 * luma(above[sx]) - luma(above[right]);
  const uint32_t grey = static_cast<uint32_t>(min(abs(gx) + abs(gy), 255));
  row(dst, dst_pitch, dy)[dx] = (line[sx] & 0xff000000u) | grey << 16 | grey << 8 | grey;
}

RILL_KERNEL(image_tone, uint32_t *dst, size_t dst_pitch, int width, int height, const uint32_t *src, size_t src_pitch,
            int saturation, int contrast, int brightness) {
  const int dx = blockIdx.x * blockDim.x + threadIdx.x, dy = blockIdx.y * blockDim.y + threadIdx.y;
  if (dx >= width || dy >= height) return;
  const uint32_t pixel = row(src, src_pitch, dy)[dx];
  const int grey = luma(pixel);
  uint32_t result = pixel & 0xff000000u;
  for (int i = 0; i < 3; i++) {
    const int vivid = grey + (((channel(pixel, i) - grey) * saturation + 128) >> 8);
    const int v = 128 + (((vivid - 128) * contrast + 128) >> 8) + brightness;
    result |= static_cast<uint32_t>(clamp(v, 0, 255)) << (8 * i);
  }
  row(dst, dst_pitch, dy)[dx] = result;
}
