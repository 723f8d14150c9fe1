#!/usr/bin/env python3
"""Of which kernels rillcc says that their blocks never wait for others, and that the blocks may have any shape."""

import os
import unittest

import support
from support import HOST, Bundle, HostImage

HEAD = """#include <rill/device/kernel.h>
#include <assert.h>
static __device__ __attribute__((noinline)) int plain(const int *x, int i) { return x[i] + x[i + 1]; }
static __device__ __attribute__((noinline)) int counted(int *x) { return atomicAdd(x, 1); }
typedef int function(int);
#define i ((int)threadIdx.x)
#define INDEX(AXIS) ((int)(blockIdx.AXIS * blockDim.AXIS + threadIdx.AXIS))
"""

NEVER_WAIT = {
    "adds": "y[i] = x[i] + n;",
    "calls": "y[i] = plain(x, i);",
    "copies": "struct { int a[300]; } all; memcpy(&all, x, sizeof all); memcpy(y, &all, sizeof all);",
    "loops": "int s = 0; for (int k = 0; k < n; k++) s += x[k] * k; y[i] = s;",
    "computes": "y[i] = (int)(expf((float)x[i]) + tanhf((float)n) + fmodf((float)x[i], 3.0f));",
    "shares": "__shared__ int s[32]; s[i % 32] = x[i]; __syncthreads(); y[i] = s[31 - i % 32];",
    "counts": "y[i] = __syncthreads_count(x[i]);",
    "shuffles": "y[i] = rill_shuffle_down(x[i], 1);",
    "reduces": "const int s = rill_block_sum(x[i]); if (i == 0) y[0] = s;",
    "asserts": "assert(n > 0); y[i] = x[i];",
    "dynamic": "RILL_DYNAMIC_SHARED(int, s); s[i] = x[i]; __syncthreads(); y[i] = s[n - 1 - i];",
    "adds_at_once": "atomicAdd(&y[0], x[i]);",
    "adds_floats": "atomicAdd((float *)y, 1.0f);",
    "adds_in_a_loop": "for (int k = i; k < n; k += 32) if (x[k] > 3) atomicAdd(&y[x[k] & 7], 1);",
    "adds_in_an_inner_loop": "for (int k = 0; k < n; k++) for (int j = 0; j < 9; j++) { atomicMax(&y[j], x[k]); y[9] = y[j]; }",
    "ands_after_a_search": "int k = 0; while (x[k] != n) k++; atomicAnd(&y[k], 1);",
    "adds_floats_in_a_loop": "for (int k = i; k < n; k += 32) atomicAdd((double *)y + (x[k] & 7), x[k] + .5);",
    "finds_the_largest": "atomicMax(&y[0], x[i]); atomicInc((unsigned *)&y[1], 9u);",
    "updates": "int old = y[0], seen; do { seen = old; old = atomicCAS(y, seen, seen * x[i]); } while (old != seen);",
}
MAY_WAIT = {
    "adds_a_float_and_uses_it": "if (atomicAdd((float *)y, 1.0f) > 3.0f) y[1] = 1;",
    "adds_floats_until_one_is_found": "for (int k = 0; x[k] != n; k++) atomicAdd((float *)y, 1.0f);",
    "locks": "while (atomicCAS(&y[0], 0, 1) != 0) { } y[1] += x[i]; atomicExch(&y[0], 0);",
    "takes_turns": "int old = i; while ((old = atomicCAS(&y[0], i, i + 1)) != i) { }",
    "takes_what_it_waits_for": "int old = n; do { old = atomicCAS(y, old & 1, 3); } while ((old & 1) == 0);",
    "adds_until_one_is_found": "for (int k = i; k < n; k += 32) { if (x[k] == 3) break; atomicAdd(&y[0], 1); }",
    "adds_until_another_is_done": "for (bool done = false; !done;) { atomicOr(&y[1], 1); if (x[0] != 0) done = true; }",
    "adds_as_often_as_it_reads": "for (int k = 0; k < x[1]; k++) atomicAdd(&y[0], 1);",
    "counts_down": "int k = n; while (k > 0) { atomicAdd(&y[0], 1); k = x[0] ? k - 1 : k; }",
    "is_the_last": "if (atomicAdd(&y[0], 1) == n) y[1] = 1;",
    "exchanges": "y[1 + i] = atomicCAS(&y[0], 0, i);",
    "counts_in_a_function": "y[1 + i] = counted(y);",
    "reads_again": "while (*(volatile const int *)x == 0) { } y[i] = 1;",
    "writes_volatile": "*(volatile int *)y = x[i];",
    "loads_at_once": "while (__atomic_load_n(x, __ATOMIC_ACQUIRE) == 0) { } y[i] = 1;",
    "stores_at_once": "__atomic_store_n(y, 1, __ATOMIC_RELEASE);",
    "fences": "y[i] = x[i]; __threadfence(); y[i + 1] = x[i + 1];",
    "assembles": 'asm volatile("" : : : "memory"); y[i] = x[i];',
    "calls_a_pointer": "y[i] = (*(function *const *)x)(n);",
}

ANY_SHAPE = {
    "one_axis": "const int k = INDEX(x); if (k < n) y[k] += x[k];",
    "rows_of_a_picture": "y[INDEX(y) * n + INDEX(x)] = x[INDEX(y)] * x[INDEX(y) * n + INDEX(x) + 1];",
    "more_terms": "y[INDEX(x) + 3] = x[INDEX(x) - 1 + n * INDEX(z)];",
    "size_of_the_grid": "y[INDEX(x)] = (int)(gridDim.x * blockDim.x) - INDEX(x);",
    "wide": "const size_t k = (size_t)blockIdx.x * blockDim.x + threadIdx.x; y[k] = x[k + n];",
    "scattered": "atomicAdd(&y[x[INDEX(x)]], 1);",
}
ONE_SHAPE = {
    "tiles": "y[INDEX(x) * n + INDEX(y)] = x[INDEX(y) * n + INDEX(x)];",
    "thread": "y[INDEX(x)] = (int)threadIdx.x;",
    "size_of_a_block": "y[INDEX(x)] = (int)blockDim.x;",
    "first_of_a_block": "y[INDEX(x)] = (int)(blockIdx.x * blockDim.x);",
    "another_axis": "y[(int)(blockIdx.y * blockDim.x + threadIdx.x)] = x[0];",
    "twice_the_thread": "y[(int)(blockIdx.x * blockDim.x + 2 * threadIdx.x)] = x[0];",
    "position_in_a_message": "assert(INDEX(x) < n); y[INDEX(x)] = 1;",
    "shared": "__shared__ int s; if (INDEX(x) == 0) s = 1; y[INDEX(x)] = s;",
    "sums_in_registers": "int s = 0; for (int k = 0; k < n; k++) s += x[k * n + INDEX(x)]; y[INDEX(x)] = s;",
}


def kernel(name, body):
    return "RILL_KERNEL(%s, int n, const int *x, int *y) {\n%s\n}\n" % (name, body)


@unittest.skipUnless(support.LOOPS, "no clang with a libLLVM that can be loaded")
class Apart(support.TestCase):
    def facts(self, kernels, *options):
        """Returns the version of the image's table, and what it says of each kernel."""
        name = "k%d" % len(os.listdir(self.folder))
        source = self.write(name + ".kernel.cu", HEAD + "".join(kernel(*item) for item in kernels.items()))
        c_file = self.compile(source, "--target", HOST, *options)[0]
        image = HostImage(self, name, Bundle(self, c_file, name + "_bundle").images[HOST])
        names = [k.name.decode() for k in image.table.kernels[: image.table.kernel_count]]
        facts = image.table.facts
        return image.table.version, dict(zip(names, facts[: len(names)])) if facts else None

    def test_each_kernel_is_known_to_wait_or_not(self):
        version, facts = self.facts({**NEVER_WAIT, **MAY_WAIT})
        self.assertEqual(version, 8)
        never_wait = {name: fact & 1 for name, fact in facts.items()}
        self.assertEqual(never_wait, {**dict.fromkeys(NEVER_WAIT, 1), **dict.fromkeys(MAY_WAIT, 0)})

    def test_kernels_of_any_shape(self):
        facts = self.facts({**ANY_SHAPE, **ONE_SHAPE})[1]
        self.assertEqual(facts, {**dict.fromkeys(ANY_SHAPE, 3), **dict.fromkeys(ONE_SHAPE, 1)})

    def test_images_without_facts_keep_the_old_version(self):
        """Images of which nothing is known are of a version that older libraries read."""
        self.assertEqual(self.facts(MAY_WAIT), (4, None))

    def test_kernels_on_fibers(self):
        """A kernel that cannot be cut is still known; where all run on fibers, nothing is looked at."""
        recursive = "if (n > 100) { __syncthreads(); } y[i] = x[i];"
        self.assertEqual(self.facts({"k": recursive})[1], {"k": 1})
        self.assertIsNone(self.facts({"k": recursive}, "--debug")[1])


support.main()
