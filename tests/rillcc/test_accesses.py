#!/usr/bin/env python3
"""rillcc --check, in a program: accesses outside of the memory that rill has are found, with line, block, thread and the
nearest allocation, and right ones are not; and the address sanitizer, in a program that is built with it."""

import os
import subprocess

import support
from support import CC, HOST, INCLUDE

# A kernel's body, and what is said: of the access at the line with a mark, by a thread, that it is a distance from something.
# The pointers `x` and `y` are to SIZE bytes; `at` is the thread's element of y; t == 5 does what is wrong.
ALLOCATED = r"4096 bytes allocated at 0x[0-9a-f]+"
WRONG = {
    "past": ("if (t == 5) y[n + 5] = 1;  // here", "writes 4 bytes", "20 bytes past the end of " + ALLOCATED),
    "past_by_nothing": ("if (t == 5) bytes[4096] = 1;  // here", "writes 1 byte", "0 bytes past the end of " + ALLOCATED),
    "past_in_zone": ("if (t == 5) bytes[4096 + 127] = 1;  // here", "writes 1 byte", "127 bytes past the end of " + ALLOCATED),
    "read": ("if (t == 5) y[0] = x[n + 5];  // here", "reads 4 bytes", "20 bytes past the end of " + ALLOCATED),
    "over_the_end": ("if (t == 5) *reinterpret_cast<double *>(bytes + 4092) = 1;  // here", "writes 8 bytes",
                     "the last 4 bytes past the end of " + ALLOCATED),
    "before": ("if (t == 5) y[-4] = 1;  // here", "writes 4 bytes", "16 bytes before " + ALLOCATED),
    "far": ("if (t == 5) y[1ull << 40] = 1;  // here", "writes 4 bytes",
            r"in memory that rill does not know \(register it with rill_host_register\), \d+ bytes past the end of " + ALLOCATED),
    "null": ("if (t == 5) z[1] = 1;  // here", "writes 4 bytes at 0x4",
             r"in memory that rill does not know \(register it with rill_host_register\), \d+ bytes before " + ALLOCATED),
    "atomic": ("if (t == 5) atomicAdd(&y[n + 5], 1.0f);  // here", "has an atomic operation on 4 bytes",
               "20 bytes past the end of " + ALLOCATED),
    "atomic_of_integers": ("if (t == 5) atomicMax(reinterpret_cast<int *>(y) + n + 5, 1);  // here",
                           "has an atomic operation on 4 bytes", "20 bytes past the end of " + ALLOCATED),
    "copy_of_struct": ("if (t == 5) reinterpret_cast<large *>(y)[16] = reinterpret_cast<const large *>(x)[1];  // here",
                       r"writes \d+ bytes", "0 bytes past the end of " + ALLOCATED),
    "memcpy": ("if (t == 5) memcpy(y + n - 1, x, n / 128);  // here", "writes 8 bytes", "the last 4 bytes past the end of " + ALLOCATED),
    "memset": ("if (t == 5) memset(y + n, 0, n);  // here", "writes 1024 bytes", "0 bytes past the end of " + ALLOCATED),
    "in_a_function": ("if (t == 5) store(y + n + 5, 1);", "writes 4 bytes", "20 bytes past the end of " + ALLOCATED),
    "shared": ("first[t] = second[t] = 0;\nif (t == 5) first[64 + n / 256 + 1] = 1;  // here\ny[t] = first[t] + second[t];", "writes 4 bytes",
               '20 bytes past the end of the 256 bytes of the shared array "first"'),
    "shared_by_pointer": ("first[t] = second[t] = 0;\nif (t == 5) store(first + 64 + n / 256, 1);", "writes 4 bytes",
                          '16 bytes past the end of the 256 bytes of the shared array "first"'),
    "shared_before": ("first[t] = second[t] = 0;\nif (t == 5) second[-1 * int(n / 512)] = 1;  // here\ny[t] = first[t] + second[t];", "writes 4 bytes",
                      '8 bytes before the 256 bytes of the shared array "second"'),
    "dynamic": ("if (t == 5) dynamic[t + 60] = 1;  // here", "writes 4 bytes",
                "4 bytes past the end of the block's 256 bytes of dynamic shared memory"),
    "variable": ("if (t == 5) table[t + 4] = 1;  // here", "writes 4 bytes",
                 '4 bytes past the end of the 32 bytes of the variable "table"'),
    "freed": ("if (t == 5) z[5] = 1;  // here", "writes 4 bytes", r"20 bytes into 4096 bytes at 0x[0-9a-f]+, which have been freed"),
    "freed_of_pool": ("if (t == 5) z[5] = 1;  // here", "writes 4 bytes", r"20 bytes into 512 bytes at 0x[0-9a-f]+, which have been freed"),
    "past_of_pool": ("if (t == 5) z[512 / 4] = 1;  // here", "writes 4 bytes", "0 bytes past the end of 512 bytes allocated at 0x"),
    "before_of_pool": ("if (t == 5) z[-1] = 1;  // here", "writes 4 bytes", "4 bytes before 512 bytes allocated at 0x"),
    "past_in_graph": ("if (t == 5) y[n + 5] = 1;  // here", "writes 4 bytes", "20 bytes past the end of " + ALLOCATED),
    "of_host": ("if (t == 5) z[5] = 1;  // here", "writes 4 bytes", "(past the end of|before) .* (allocated|registered) at 0x"),
    "past_of_registered": ("if (t == 5) z[n] = 1;  // here", "writes 4 bytes", "0 bytes past the end of 4096 bytes registered at 0x"),
}
# One that only is found where it is known what is accessed.
WRONG_WITH_LOOPS = {
    "shared_far": ("first[t] = 0;\nif (t == 5) first[64 + 20 * n] = 1;  // here", "writes 4 bytes",
                   'bytes past the end of the 256 bytes of the shared array "first"'),
}
RIGHT = {
    "to_the_end": "y[n - 1 - t] = x[n - 1 - t];\nbytes[t] = 1;",
    "structs": "if (t < 2) reinterpret_cast<large *>(y)[15 - t] = reinterpret_cast<const large *>(x)[15 - t];",
    "copies": "if (t == 0 && blockIdx.x == 0) {\nmemcpy(y, x, 4 * n);\nmemset(y + n - 4, 0, n / 64);\n}",
    "shared_to_the_end": "first[63 - t] = second[63 - t] = 1;\n__syncthreads();\ny[t] = first[t] + second[63 - t];",
    "dynamic_to_the_end": "dynamic[63 - t] = 1;\n__syncthreads();\ny[t] = dynamic[t];",
    "stacks": "float own[9];\nfor (int i = 0; i < 9; i++) own[i] = x[i];\nstore(&own[t % 9], 1);\ny[t] = own[8] + own[t % 9];",
    "variables": "if (t < 8) table[7 - t] += fixed[t] + names[t % 3][0];",
    "meetings": "y[t] = rill_warp_sum(x[t]) + rill_block_sum(x[t]) + rill_shuffle_xor(x[t], 1);",
    "atomics": "atomicAdd(&y[n - 1], 1.0f);\natomicAdd(&first[0], 1.0f);",
    "text": 'if (t == 0) printf("%s", names[1]);',
    "late": "z[t] = x[t];",
    "late_of_pool": "z[t] = x[t];",
    "registered": "z[n - 1 - t] = x[t];",
    "pinned": "z[n - 1 - t] = x[t];",
    "managed": "z[n - 1 - t] = x[t];",
    "of_pool": "z[512 / 4 - 1 - t] = x[t];",
    "by_value": "y[t] = pair.a + pair.b[3];",
    "by_value_in_graph": "y[t] = pair.a + pair.b[3];",
    "to_the_end_in_graph": "y[n - 1 - t] = x[n - 1 - t];",
    "variable_by_address": "z[7 - t % 8] = 3;",
}
HEAD = """#include <rill/device/kernel.h>
#include <stdio.h>
#include <string.h>
struct large { float values[64]; };
struct with_array { float a, b[4]; };
__device__ float table[8];
static const float fixed[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
static const char *const names[3] = { "", "b", "c" };
static __device__ void store(float *to, float v) {
  *to = v;  // in store
}
"""
KERNEL = """RILL_KERNEL(%s, unsigned n, const float *x, float *y, float *z, with_array pair) {
  __shared__ float first[64], second[64];
  RILL_DYNAMIC_SHARED(float, dynamic);
  const unsigned t = threadIdx.x;
  char *const bytes = reinterpret_cast<char *>(y);
  (void)first, (void)second, (void)dynamic, (void)bytes;
%s
}
"""
PROGRAM = """#include "k.rill.h"
#include <rill/rill.h>
#include <stdio.h>
#include <string.h>
#define TRY(call) if ((call) != RILL_OK) { fprintf(stderr, "%s\\n", rill_last_error_text()); return 1; }
enum { SIZE = 4096 };
static const char *name;
static int is(const char *other) { return strcmp(name, other) == 0; }
/* Keeps the stream until the memory has been freed: rill_free waits for the stream only then. */
static void wait_for_free(void *memory, rill_status status) {
  rill_memory_info info = RILL_MEMORY_INFO_INIT;
  (void)status;
  while (rill_memory_get_info(memory, &info) == RILL_OK) { }
}
/* The memory that a case is about, beside x and y. */
static rill_status find_memory(rill_device device, rill_stream stream, rill_module module, float **z) {
  static float host[SIZE / 2];
  void *blocks[3] = { NULL, NULL, NULL };
  size_t size = 0;
  rill_status status = RILL_OK;
  *z = NULL;
  if (is("pinned")) return rill_alloc(device, SIZE, RILL_MEMORY_PINNED, (void **)z);
  if (is("managed")) return rill_alloc(device, SIZE, RILL_MEMORY_MANAGED, (void **)z);
  if (is("freed") || is("late")) return rill_alloc(device, SIZE, RILL_MEMORY_DEVICE, (void **)z);
  if (is("variable_by_address")) return rill_module_get_global(module, "table", (void **)z, &size);
  if (strstr(name, "of_pool") != NULL) {
    for (int i = 0; i < 3 && status == RILL_OK; i++) status = rill_alloc_async(stream, 512, &blocks[i]);
    *z = (float *)blocks[1];
    return status;
  }
  if (is("of_host") || strstr(name, "registered") != NULL) *z = host;
  return *z == NULL || is("of_host") ? RILL_OK : rill_host_register(device, host, SIZE);
}
static rill_status begin(rill_stream stream) {
  return strstr(name, "in_graph") != NULL ? rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL) : RILL_OK;
}
static rill_status end(rill_stream stream) {
  rill_graph graph;
  rill_graph_exec exec;
  if (strstr(name, "in_graph") == NULL) return RILL_OK;
  if (rill_stream_capture_end(stream, &graph) != RILL_OK || rill_graph_instantiate(graph, &exec) != RILL_OK) return RILL_ERROR_BACKEND;
  return rill_graph_launch(exec, stream);
}
int main(int argc, char **argv) {
  rill_device device;
  rill_stream stream;
  rill_module module;
  rill_kernel kernel;
  float *x, *y, *z;
  const struct { float values[5]; } pair = { { 1, 2, 3, 4, 5 } };
  const unsigned n = SIZE / sizeof(float), zero = 0;
  name = argv[argc - 1];
  TRY(rill_device_open("cpu", &device));
  TRY(rill_stream_create(device, NULL, &stream));
  TRY(rill_module_load(device, &k_bundle, &module));
  TRY(rill_module_get_kernel(module, name, &kernel));
  TRY(RILL_NEW(device, RILL_MEMORY_DEVICE, n, &x));
  TRY(RILL_NEW(device, RILL_MEMORY_DEVICE, n, &y));
  TRY(rill_fill_async(stream, x, &zero, sizeof zero, n));
  TRY(rill_fill_async(stream, y, &zero, sizeof zero, n));
  TRY(find_memory(device, stream, module, &z));
  if (is("freed")) TRY(rill_free(z));
  if (is("freed_of_pool")) TRY(rill_free_async(stream, z));
  rill_launch launch = rill_launch_1d(128, 64);
  launch.shared_mem_bytes = 256;
  if (strncmp(name, "late", 4) == 0) TRY(rill_stream_host_call(stream, wait_for_free, z));
  TRY(begin(stream));
  TRY(rill_stream_launch(stream, kernel, &launch, RILL_ARGS(n, x, y, z, pair)));
  TRY(end(stream));
  if (is("late")) TRY(rill_free(z));
  if (is("late_of_pool")) TRY(rill_free_async(stream, z));
  TRY(rill_stream_synchronize(stream));
  puts("fine");
  return 0;
}
"""
CLANG = [support.LOOPS.replace("clang++", "clang")] if support.LOOPS else []
FORMS: list = [("clang", {})] if support.LOOPS else []
FORMS.append(("any compiler", {"RILL_CLANG": "none"}))


def kernels(cases):
    return "".join(KERNEL % (name, case if isinstance(case, str) else case[0]) for name, case in cases.items())


class Programs(support.TestCase):
    def build(self, text, *options, sanitizers=(), compiler=CC, **environment):
        library = os.environ["RILL_LIBRARY"]
        self.write("k.kernel.cu", text)
        result = self.rillcc("-Wno-fibers", "--target", HOST, "-o", "k.rill.c", "--header", "k.rill.h", *options, "k.kernel.cu",
                             **environment)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.write("program.c", PROGRAM)
        command = [*compiler, *sanitizers, "-I", INCLUDE, "-I", ".", "-o", "program", "program.c", "k.rill.c", library]
        self.assertEqual(self.run_compiler([*command, "-Wl,-rpath," + os.path.dirname(library)]), (0, ""))

    def run_case(self, name, **environment):
        done = subprocess.run([self.path("program"), name], capture_output=True, text=True, check=False, timeout=100,
                              env={**os.environ, **environment})
        return done.returncode, done.stdout, done.stderr


class Accesses(Programs):
    def test_wrong_accesses_are_found(self):
        for form, environment in FORMS:
            cases = {**WRONG, **(WRONG_WITH_LOOPS if form == "clang" else {})}
            text = HEAD + kernels(cases)
            self.build(text, "--check", **environment)
            lines = text.split("\n")
            for name, (_, does, said) in cases.items():
                with self.subTest(form=form, case=name):
                    code, _, error = self.run_case(name)
                    first = next(i for i, line in enumerate(lines) if line.startswith("RILL_KERNEL(%s," % name))
                    ends = next(i for i in range(first, len(lines)) if lines[i] == "}")
                    marked = [i + 1 for i in range(first, ends) if lines[i].endswith("// here")]
                    (line,) = marked or [lines.index("  *to = v;  // in store") + 1]
                    where = r'cpu is lost: (.*/)?k\.kernel\.cu:%d: kernel "%s", block \([01], 0, 0\): thread \(5, 0, 0\) ' % (line, name)
                    self.assertRegex(error, where + does + ".*: .*" + said)
                    self.assertEqual(code, 1)

    def test_right_accesses_are_not_reported(self):
        for form, environment in FORMS:
            self.build(HEAD + kernels(RIGHT), "--check", **environment)
            for name in RIGHT:
                with self.subTest(form=form, case=name):
                    code, output, error = self.run_case(name)
                    self.assertEqual((code, error), (0, ""))
                    self.assertTrue(output.endswith("fine\n"))

    def test_nothing_is_reported_without_checks(self):
        self.build(HEAD + kernels({"past_in_zone": WRONG["past_in_zone"]}))
        self.assertEqual(self.run_case("past_in_zone"), (0, "fine\n", ""))


def sanitized(compiler):
    """Returns whether a compiler makes programs with the address sanitizer here that run."""
    if not compiler:
        return False
    command = [*compiler, "-fsanitize=address", "-x", "c", "-", "-o", "/dev/null"]
    return subprocess.run(command, input="int main(void) { return 0; }", text=True, capture_output=True, check=False).returncode == 0


class AddressSanitizer(Programs):
    """--cpu-option=-fsanitize=address, in a program that is built with it."""

    def check(self, compiler, **environment):
        flag = "-fsanitize=address"
        cases = {name: WRONG[name][0] for name in ("past", "past_in_zone", "in_a_function")}
        cases["on_the_stack"] = "float own[8] = {};\nif (t == 5) store(own + n / 128, 1);\ny[t] = own[t % 8];"
        right = {name: RIGHT[name] for name in ("to_the_end", "stacks", "shared_to_the_end", "meetings")}
        cases.update(right)
        text = HEAD + kernels(cases)
        lines = text.split("\n")
        self.build(text, "--cpu-option=" + flag, "--cpu-option=-g", sanitizers=[flag, "-g"], compiler=compiler, **environment)
        for name in cases:
            with self.subTest(compiler=compiler, environment=environment, case=name):
                code, output, error = self.run_case(name, ASAN_OPTIONS="detect_leaks=0")
                if name in right:
                    self.assertEqual((code, output), (0, "fine\n"), error)
                    continue
                self.assertNotEqual(code, 0)
                self.assertRegex(error, r"AddressSanitizer: (use-after-poison|heap-buffer-overflow|(dynamic-)?stack-buffer-overflow)")
                line = lines.index("  *to = v;  // in store" if "store" in cases[name] else cases[name]) + 1
                self.assertRegex(error, r"#0 .*k\.kernel\.cu:%d\b" % line)

    def test_a_program_without_the_sanitizer_gets_an_error(self):
        self.build(HEAD + kernels({"past": WRONG["past"]}), "--cpu-option=-fsanitize=address")
        self.assertRegex(self.run_case("past")[2], r'image "k" cannot be loaded: .*undefined symbol: \w*asan')

    def test_overflows_are_reported(self):
        compilers = [c for c in (CC, CLANG) if sanitized(c)]
        if not compilers:
            self.skipTest("no compiler makes programs with the address sanitizer here")
        pairs = [(environment, compiler) for _, environment in FORMS for compiler in compilers]
        for environment, compiler in pairs if support.LONG or len(pairs) < 3 else (pairs[0], pairs[-1]):  # each form, each compiler
            self.check(compiler, **environment)


if __name__ == "__main__":
    support.main()
