#!/usr/bin/env python3
"""Of which kernels rillcc says that their blocks never wait for others."""

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
}
MAY_WAIT = {
    "adds_at_once": "atomicAdd(&y[0], x[i]);",
    "adds_floats": "atomicAdd((float *)y, 1.0f);",
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
        self.assertEqual(facts, {**dict.fromkeys(NEVER_WAIT, 1), **dict.fromkeys(MAY_WAIT, 0)})

    def test_images_without_facts_keep_the_old_version(self):
        """Images of which nothing is known are of a version that older libraries read."""
        self.assertEqual(self.facts(MAY_WAIT), (4, None))

    def test_kernels_on_fibers(self):
        """A kernel that cannot be cut is still known; where all run on fibers, nothing is looked at."""
        recursive = "if (n > 100) { __syncthreads(); } y[i] = x[i];"
        self.assertEqual(self.facts({"k": recursive})[1], {"k": 1})
        self.assertIsNone(self.facts({"k": recursive}, "--debug")[1])


support.main()
