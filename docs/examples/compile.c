/* Compiles a kernel at run time: the loop of its source is written for a number that is only known at run time.
 *
 *     cc compile.c $(pkg-config --cflags --libs rill) && ./a.out 5
 */
#include <rill/rill.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 1000 };

static const char source[] = "#include <rill/device/kernel.h>\n"
                             "__constant__ float offset;\n"
                             "RILL_KERNEL(power, int n, float *x) {\n"
                             "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                             "  if (i >= n) return;\n"
                             "  float product = 1;\n"
                             "  for (int k = 0; k < EXPONENT; k++) product *= x[i];\n"
                             "  x[i] = product + offset;\n"
                             "}\n";

static void check(rill_status status) {
  if (status == RILL_OK) return;
  (void)fprintf(stderr, "%s\n%s", rill_last_error_text(), rill_compile_log());
  exit(EXIT_FAILURE);
}

int main(int argc, char **argv) {
  rill_device device;
  rill_stream stream;
  rill_module module;
  rill_kernel kernel;
  float *x = NULL;
  check(rill_device_open(NULL, &device));
  const char *why = NULL;
  if (!rill_device_supports(device, RILL_FEATURE_RTC, &why)) {
    (void)printf("nothing is compiled here: %s\n", why);
    return EXIT_SUCCESS;
  }

  /* Compiles one program per exponent; a second run finds it on disk (docs/guides/COMPILING.md). */
  const int exponent = argc > 1 ? atoi(argv[1]) : 3;
  char word[32];
  (void)snprintf(word, sizeof word, "-DEXPONENT=%d", exponent);
  const char *const words[] = { word };
  rill_compile_options options = RILL_COMPILE_OPTIONS_INIT;
  options.options = words;
  options.option_count = 1;
  options.label = "power.cu";
  check(rill_module_compile(device, source, &options, &module));
  check(rill_module_get_kernel(module, "power", &kernel));

  check(rill_stream_create(device, NULL, &stream));
  check(RILL_NEW(device, RILL_MEMORY_PINNED, N, &x));
  for (int i = 0; i < N; i++) x[i] = (float)(i % 4);

  /* Values that change from call to call are arguments, or constants of the launch. */
  const float half = 0.5f;
  const rill_constant constant = { "offset", &half, sizeof half };
  rill_launch launch = rill_launch_1d(N, 128);
  launch.constants = &constant;
  launch.constant_count = 1;
  const int n = N;
  check(rill_stream_launch(stream, kernel, &launch, RILL_ARGS(n, x)));
  check(rill_stream_synchronize(stream));

  int wrong = 0;
  for (int i = 0; i < N; i++) {
    float expected = 1;
    for (int k = 0; k < exponent; k++) expected *= (float)(i % 4);
    wrong += x[i] < expected + half || x[i] > expected + half;
  }
  (void)printf("3 to the power of %d, and a half: %.1f; %d wrong values\n", exponent, (double)x[3], wrong);

  check(rill_kernel_release(kernel));
  check(rill_module_release(module));
  check(rill_free(x));
  check(rill_stream_release(stream));
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
