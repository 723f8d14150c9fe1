#!/usr/bin/env python3
"""Loops of which the loop over the threads becomes the inner one: which loads and guards they may have."""

import ctypes

import differential
import support
from support import Runner, pointer_to

KERNEL = """RILL_KERNEL(%s, int n, int k, const unsigned *in, const unsigned char *bytes, unsigned *out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned s = i;
  for (int j = 0; j < k; j++) %s;
  out[i] = s;
}
"""
# What a thread does in each iteration, and whether the loop over the threads becomes the inner loop. Without this, each
# thread reads a row, or elements far apart.
LOADS = {
    "waits_for_a_load": ("s = in[(s ^ bytes[i * k + j]) & 255] ^ s >> 8", True),
    "goes_from_one_to_the_next": ("s = in[s & 1023]", True),
    "hashes_a_row": ("s = (s ^ bytes[i * k + j]) * 16777619u", True),
    "sums_a_row": ("s += in[i * k + j]", False),
    "finds_the_largest_of_a_row": ("s = max(s, in[i * k + j])", False),
    "looks_up_a_row": ("s += in[bytes[i * k + j]]", False),
    "looks_up_a_column": ("s += in[in[j * n + i] & 1023]", True),
    "reads_pairs": ("s = s / 3 + in[2 * (j * n + i)] * in[2 * (j * n + i) + 1]", True),
    "reads_backwards": ("s += in[(j + 1) * n - 1 - i]", True),
    "jumps_by_a_uniform_number": ("s += in[i * 9 + j * n]", True),
    "goes_back_along_a_row": ("s ^= in[i * k + k - 1 - j]", False),
}


class Interchange(differential.Differential):
    def run_both(self, forms, grid, block, n, k, room):
        """Returns the results of a kernel in both forms."""
        runner, results = Runner(self), []
        numbers = (ctypes.c_uint * room)(*[(v * 2654435761 >> 7) & 0xFFFFF for v in range(room)])
        bytes_ = (ctypes.c_ubyte * room)(*[v * 37 % 251 for v in range(room)])
        for kernel, as_loops in zip(forms, (1, 0)):
            out = (ctypes.c_uint * (n + 4))(*[9] * (n + 4))
            arguments = *map(ctypes.c_int, (n, k)), *map(pointer_to, (numbers, bytes_, out))
            self.assertEqual(runner.run(kernel, as_loops, grid, block, 0, *arguments), 0)
            self.assertEqual(list(out[n:]), [9] * 4)
            results.append(list(out))
        return results

    def test_loads(self):
        text = "".join(KERNEL % (name, body) for name, (body, _) in LOADS.items())
        forms = self.open_all(self.write("k.kernel.cu", "#include <rill/device/cuda_names.h>\n" + text))
        self.open(self.write("k.kernel.cu", "#include <rill/device/cuda_names.h>\n" + text))
        for name, (_, expected) in LOADS.items():
            self.assertEqual("inside its own loops" in self.forms[name], expected, "%s: %s" % (name, self.forms[name]))
            for threads, n, k in ((256, 512, 3), (256, 500, 5), (32, 70, 1), (7, 60, 9), (128, 130, 0)):
                with self.subTest(kernel=name, threads=threads, n=n, k=k):
                    loops, fibers = self.run_both(forms[name], ((n + threads - 1) // threads, 1, 1), (threads, 1, 1), n, k, 16000)
                    self.assertEqual(loops, fibers)
                    self.assertTrue(k == 0 or any(v != i for i, v in enumerate(loops[:n])))


if __name__ == "__main__":
    support.main()
