/* The works of cpu_kernels.c in OpenCL C, on the first CPU that an OpenCL library found at run time has: PoCL, say.
 * What is used of OpenCL 1.2 is declared here, since its headers need not be there. */
#include "cpu_kernels.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

static const char source[] =
    "kernel void saxpy(int n, float a, global const float *x, global float *y) {\n"
    "  size_t i = get_global_id(0);\n"
    "  if (i < n) y[i] = a * x[i] + y[i];\n"
    "}\n"
    "kernel void triad(int n, double a, global const double *x, global const double *y, global double *z) {\n"
    "  size_t i = get_global_id(0);\n"
    "  if (i < n) z[i] = x[i] + a * y[i];\n"
    "}\n"
    "kernel void reduce(int n, global const float *x, global float *sums) {\n"
    "  local float s[256];\n"
    "  const size_t t = get_local_id(0), i = get_global_id(0);\n"
    "  s[t] = i < n ? x[i] : 0.0f;\n"
    "  barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  for (size_t half_ = get_local_size(0) / 2; half_ > 0; half_ /= 2) {\n"
    "    if (t < half_) s[t] += s[t + half_];\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  }\n"
    "  if (t == 0) sums[get_group_id(0)] = s[0];\n"
    "}\n"
    "kernel void sgemm(int n, global const float *a, global const float *b, global float *c) {\n"
    "  local float tile_a[16][16], tile_b[16][16];\n"
    "  const int x = get_local_id(0), y = get_local_id(1);\n"
    "  const int row = get_group_id(1) * 16 + y, column = get_group_id(0) * 16 + x;\n"
    "  float sum = 0.0f;\n"
    "  for (int k = 0; k < n; k += 16) {\n"
    "    tile_a[y][x] = a[row * n + k + x];\n"
    "    tile_b[y][x] = b[(k + y) * n + column];\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    for (int i = 0; i < 16; i++) sum += tile_a[y][i] * tile_b[i][x];\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  }\n"
    "  c[row * n + column] = sum;\n"
    "}\n";

enum { DEVICE_TYPE_CPU = 2, DEVICE_NAME = 0x102B, MEM_READ_WRITE = 1 };

static struct {
  int (*get_platforms)(unsigned, void **, unsigned *);
  int (*get_devices)(void *, uint64_t, unsigned, void **, unsigned *);
  void *(*create_context)(const intptr_t *, unsigned, void *const *, void *, void *, int *);
  void *(*create_queue)(void *, void *, uint64_t, int *);
  void *(*create_program)(void *, unsigned, const char **, const size_t *, int *);
  int (*build_program)(void *, unsigned, void *const *, const char *, void *, void *);
  void *(*create_kernel)(void *, const char *, int *);
  void *(*create_buffer)(void *, uint64_t, size_t, void *, int *);
  int (*set_arg)(void *, unsigned, size_t, const void *);
  int (*launch)(void *, void *, unsigned, const size_t *, const size_t *, const size_t *, unsigned, void *, void *);
  int (*write)(void *, void *, unsigned, size_t, size_t, const void *, unsigned, void *, void *);
  int (*read)(void *, void *, unsigned, size_t, size_t, void *, unsigned, void *, void *);
  int (*finish)(void *);
} cl;

static struct { void *queue, *kernels[OPENCL_WORKS]; } side;

static void *x, *y, *dx, *dy, *dz, *c, *sums;

/* The names of the table's functions, in its order. */
static const char *const names[] = {
  "clGetPlatformIDs",     "clGetDeviceIDs",      "clCreateContext", "clCreateCommandQueue", "clCreateProgramWithSource",
  "clBuildProgram",       "clCreateKernel",      "clCreateBuffer",  "clSetKernelArg",       "clEnqueueNDRangeKernel",
  "clEnqueueWriteBuffer", "clEnqueueReadBuffer", "clFinish",
};

static bool load(void) {
  void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  void **place = (void **)(void *)&cl;
  if (library == NULL) return false;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    place[i] = dlsym(library, names[i]);
    if (place[i] == NULL) return false;
  }
  return true;
}

/* A buffer of `count` numbers that are floats, or doubles if `wide`, of fill_x or else fill_y; zeros for NULL. */
static void *buffer(void *context, size_t count, bool wide, float (*value)(size_t)) {
  enum { PART = 4096 };
  union {
    float narrow[PART];
    double wide[PART];
  } part;
  const size_t width = wide ? sizeof(double) : sizeof(float);
  int code = 0;
  void *memory = cl.create_buffer(context, MEM_READ_WRITE, count * width, NULL, &code);
  for (size_t i = 0; code == 0 && i < count; i += PART) {
    for (size_t k = 0; k < PART; k++) {
      const float v = value != NULL ? value(i + k) : 0.0f;
      if (wide) part.wide[k] = (double)v;
      else part.narrow[k] = v;
    }
    const size_t size = (count - i < PART ? count - i : PART) * width;
    code = cl.write(side.queue, memory, 1, i * width, size, &part, 0, NULL, NULL);
  }
  return code == 0 ? memory : NULL;
}

static int set_args(enum work work) {
  void *const kernel = side.kernels[work];
  const int n = work == SGEMM ? ORDER : COUNT;
  const float a = 0.0f;
  const double wide_a = 2.0;
  int code = cl.set_arg(kernel, 0, sizeof n, &n);
  if (work == SAXPY) code |= cl.set_arg(kernel, 1, sizeof a, &a);
  if (work == TRIAD) code |= cl.set_arg(kernel, 1, sizeof wide_a, &wide_a);
  void *const arguments[OPENCL_WORKS][3] = { { x, y }, { dx, dy, dz }, { x, sums }, { x, y, c } };
  const unsigned first = work == SAXPY || work == TRIAD ? 2 : 1;
  for (unsigned i = 0; i < 3 && arguments[work][i] != NULL; i++)
    code |= cl.set_arg(kernel, first + i, sizeof(void *), &arguments[work][i]);
  return code;
}

static const char *open_side(void) {
  static const char *const kernels[OPENCL_WORKS] = { "saxpy", "triad", "reduce", "sgemm" };
  void *platforms[8] = { NULL }, *device = NULL;
  unsigned count = 0;
  int code = 0;
  if (!load()) return "no libOpenCL.so.1";
  if (cl.get_platforms(8, platforms, &count) != 0) return "no OpenCL platform";
  for (unsigned i = 0; i < count && i < 8 && device == NULL; i++) {
    unsigned devices = 0;
    if (cl.get_devices(platforms[i], DEVICE_TYPE_CPU, 1, &device, &devices) != 0) device = NULL;
  }
  if (device == NULL) return "no OpenCL device is a CPU";
  void *context = cl.create_context(NULL, 1, &device, NULL, NULL, &code);
  if (code != 0) return "clCreateContext failed";
  side.queue = cl.create_queue(context, device, 0, &code);
  if (code != 0) return "clCreateCommandQueue failed";
  const char *text = source;
  void *program = cl.create_program(context, 1, &text, NULL, &code);
  if (code != 0 || cl.build_program(program, 1, &device, "", NULL, NULL) != 0) return "the kernels do not compile";
  x = buffer(context, COUNT, false, fill_x);
  y = buffer(context, COUNT, false, fill_y);
  dx = buffer(context, COUNT, true, fill_x);
  dy = buffer(context, COUNT, true, fill_y);
  dz = buffer(context, COUNT, true, NULL);
  c = buffer(context, (size_t)ORDER * ORDER, false, NULL);
  sums = buffer(context, COUNT / THREADS, false, NULL);
  if (x == NULL || y == NULL || dx == NULL || dy == NULL || dz == NULL || c == NULL || sums == NULL) return "no memory";
  for (enum work work = 0; work < OPENCL_WORKS; work++) {
    side.kernels[work] = cl.create_kernel(program, kernels[work], &code);
    if (code != 0 || set_args(work) != 0) return "a kernel takes other arguments";
  }
  return NULL;
}

static bool run(enum work work) {
  const size_t line[2] = { COUNT, 1 }, group[2] = { THREADS, 1 };
  const size_t square[2] = { ORDER, ORDER }, tile[2] = { TILE, TILE };
  const bool flat = work != SGEMM;
  return cl.launch(side.queue, side.kernels[work], flat ? 1 : 2, NULL, flat ? line : square, flat ? group : tile, 0,
                   NULL, NULL) == 0 &&
         cl.finish(side.queue) == 0;
}

static double check(enum work work) {
  static double numbers[COUNT];
  const float *const narrow = (const float *)(const void *)numbers;
  void *const results[OPENCL_WORKS] = { y, dz, sums, c };
  const size_t counts[OPENCL_WORKS] = { COUNT, COUNT, COUNT / THREADS, (size_t)ORDER * ORDER };
  const size_t width = work == TRIAD ? sizeof(double) : sizeof(float);
  double total = 0;
  if (cl.read(side.queue, results[work], 1, 0, counts[work] * width, numbers, 0, NULL, NULL) != 0) return -1;
  for (size_t i = 0; i < counts[work]; i++) total += work == TRIAD ? numbers[i] : (double)narrow[i];
  return total;
}

const struct side opencl_side = { "OpenCL", OPENCL_WORKS, open_side, run, check };
