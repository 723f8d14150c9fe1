#!/usr/bin/env python3
"""Loops of which the loop over the threads becomes the inner one: which loads and guards they may have."""

import ctypes
import re
import shutil
import subprocess

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
GUARD = """RILL_KERNEL(%s, int n, int k, int offset, const float *x, const float *w, float *z) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, at = i + offset;
  float s = 0.0f;
  %s
}
"""
# Guards with two sides, in front of a loop and in it. `z` has room for all threads; `x` has n elements, `w` has 2 * k + 1.
GUARDS = {
    "returns": "if (at < 0 || at >= n) return; for (int j = 0; j < k; j++) s += x[at] * w[j]; z[i] = s;",
    "returns_from_the_middle": "const int c = i - k / 2; if (c < 0 || c >= n) return; for (int j = 0; j < k; j++) s = s / 2 + x[c] * w[j]; z[i] = s;",
    "has_a_radius": "if (i < k || i >= n - k) return; for (int j = -k; j <= k; j++) s += x[i + j] * w[j + k]; z[i] = s;",
    "skips": "for (int j = -k; j <= k; j++) { const int c = i + j; if (c < 0 || c >= n) continue; s += x[c] * w[j + k]; } z[i] = s;",
    "adds_inside": "for (int j = 0; j < k; j++) { const int c = at + j; if (c >= 0 && c < n) s += x[c] * w[j]; } z[i] = s;",
    "pads": "for (int j = 0; j < k; j++) { const int c = at + j - k / 2; s += (c < 0 || c >= n ? 3.0f : x[c]) * w[j]; } z[i] = s;",
    "clamps": "for (int j = -k; j <= k; j++) s += x[min(max(i + j, 0), n - 1)] * w[j + k]; z[i] = s;",
    "clamps_unsigned": "for (unsigned j = 0; j < k; j++) s += x[min(unsigned(i) + j, unsigned(n) - 1u)] * w[j]; z[i] = s;",
}
WRAPPED = """RILL_KERNEL(%s, int n, int k, const unsigned *in, const unsigned char *bytes, unsigned *out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x %% 32;
  float s = 1.0f;
  for (int j = 0; j < k; j++) {
    s = s / 2 + %s;
    s += rill_shuffle_down(s, 1);
  }
  if (i < n) out[i] = __float_as_uint(s);
}
"""
WRAPS = {"masked": "in[lane * 3 & 63]", "narrowed": "in[static_cast<unsigned char>(lane * 11)]", "shifted": "in[2 * j + ((lane << 2) + 5 & 31)]"}


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

    def test_guards(self):
        """Threads that a guard keeps from an access are no obstacle. For blocks in which it keeps none, there is a loop of
        vectors without masks and gathers."""
        text = "".join(GUARD % guard for guard in GUARDS.items())
        forms = self.open_all(self.write("k.kernel.cu", "#include <rill/device/cuda_names.h>\n" + text))
        code = self.disassembly(self.images[0], "block.all") if support.X86 and shutil.which("objdump") else {}
        for name in GUARDS:
            for threads, n, k, offset in ((256, 1000, 5, -7), (256, 700, 9, 0), (64, 300, 3, 100), (32, 70, 1, -40), (7, 60, 9, 2), (128, 128, 0, -128)):
                room = (n // threads + 2) * threads
                x, w = (ctypes.c_float * n)(*[v % 97 - 40 for v in range(n)]), (ctypes.c_float * (2 * k + 1))(*[v % 5 - 2.5 for v in range(2 * k + 1)])
                results = []
                for kernel, as_loops in zip(forms[name], (1, 0)):
                    z = (ctypes.c_float * room)(*[7] * room)
                    arguments = *map(ctypes.c_int, (n, k, offset)), *map(pointer_to, (x, w, z))
                    self.assertEqual(Runner(self).run(kernel, as_loops, (room // threads, 1, 1), (threads, 1, 1), 0, *arguments), 0)
                    results.append(bytes(z))
                with self.subTest(kernel=name, threads=threads, n=n, k=k, offset=offset):
                    self.assertEqual(*results)
            loops = [loop for body in code.get(name, []) for loop in re.split(r"\tj[a-z]+ .*", body) if re.search(r"\bv?mulps\b", loop)]
            self.assertTrue(not code or any(not re.search("gather|unpck|insert|{%k", loop) for loop in loops), name)

    def test_indices_that_wrap(self):
        text = "".join(WRAPPED % item for item in WRAPS.items())
        for level in (level for level in ("x86-64", "x86-64-v3", "x86-64-v4") if support.X86 and support.runnable(level)):
            c_file, _ = self.compile(self.write("k.kernel.cu", "#include <rill/device/cuda_names.h>\n" + text), "--target", "cpu:" + level)
            image = support.HostImage(self, "wraps_" + level, support.host_images(c_file)["cpu:" + level])
            fibers = self.open(self.write("k.kernel.cu", "#include <rill/device/cuda_names.h>\n" + text), "--fibers")
            for name in WRAPS:
                for threads in 32, 256:
                    loops, expected = self.run_both((image.kernels[name], fibers.kernels[name]), (2, 1, 1), (threads, 1, 1), 2 * threads, 5, 16000)
                    with self.subTest(level=level, kernel=name, threads=threads):
                        self.assertEqual(loops, expected)

    def disassembly(self, image, function):
        """Returns the code of the functions of each kernel whose names begin with `function` after the kernel's."""
        shown = subprocess.run(["objdump", "-d", image.library._name], capture_output=True, text=True, check=True).stdout
        found = {}
        for name, body in re.findall(r"<_Z\d+(\w+)v\.%s[^>]*>:\n(.*?)\n\n" % function, shown + "\n", re.S):
            found.setdefault(name, []).append(body)
        return found


if __name__ == "__main__":
    support.main()
