#!/usr/bin/env python3
"""The parts of rillcc that read: sources, and AMD's containers."""

import struct
import unittest

import support  # finds rillcc_lib

from rillcc_lib import offload, scan
from rillcc_lib.errors import RillccError


def scan_text(text):
    return scan.read_unit('# 1 "k.cu"\n' + text, "k.cu")


class Scan(unittest.TestCase):
    """Reading kernels from preprocessed text."""

    def barriers(self, text):
        return [kernel.has_barrier for kernel in scan_text(text).kernels]

    def test_barriers(self):
        quiet = "RILL_KERNEL(k, int *x) { *x = 1; }\n"
        self.assertEqual(self.barriers(quiet), [False])
        self.assertEqual(self.barriers("RILL_KERNEL(b) { if (1) { __syncthreads(); } }\n" + quiet), [True, False])
        self.assertEqual(self.barriers("static void f() { __syncthreads(); }\n" + quiet), [True])
        self.assertEqual(self.barriers(quiet + "struct s { s() { __syncthreads(); } };\n"), [True])
        self.assertEqual(self.barriers("static auto f = &rill_services;\n" + quiet), [True])
        system = '# 1 "/usr/include/s.h" 1 3 4\nvoid f() { __syncthreads(); }\n# 2 "k.cu" 2\n'
        self.assertEqual(self.barriers(system + quiet), [True])
        self.assertEqual(self.barriers('# 1 "own.h" 1\nvoid f() { __syncthreads(); }\n# 2 "k.cu" 2\n' + quiet), [True])

    def test_all_that_waits_for_other_threads(self):
        for call in (
            "__syncthreads_count(1) __syncthreads_and(1) __syncthreads_or(1) rill_warp_sync() rill_lane() "
            "rill_ballot(1) rill_vote_all(1) rill_vote_any(1) rill_shuffle(1,2) rill_shuffle_up(1,2) "
            "rill_shuffle_down(1,2) rill_shuffle_xor(1,2)"
        ).split():
            self.assertEqual(self.barriers("RILL_KERNEL(k) { %s; }" % call), [True], call)
        self.assertEqual(self.barriers("RILL_KERNEL(k) { rill_warp_size(); my_rill_lane(); }"), [False])

    def test_what_only_looks_like_a_barrier(self):
        self.assertEqual(self.barriers('RILL_KERNEL(k) { f("__syncthreads(); }"); }\n'), [False])
        self.assertEqual(self.barriers('RILL_KERNEL(k) { f(R"x(__syncthreads)" )x"); }\n'), [False])
        self.assertEqual(self.barriers("RILL_KERNEL(k) { my__syncthreads(); f('{'); }\n"), [False])

    def test_macros_of_system_headers_in_a_users_file(self):
        text = 'RILL_KERNEL(k, int *x) {\n# 2 "k.cu" 3 4\n  __syncthreads()\n# 2 "k.cu"\n;}\nRILL_KERNEL(l) {}\n'
        self.assertEqual(self.barriers(text), [True, False])

    def test_indices_in_functions(self):
        kernel = "RILL_KERNEL(k) { threadIdx.x; RILL_DYNAMIC_SHARED(int, t); }\n"
        self.assertFalse(scan_text(kernel).helpers_read_index)
        self.assertTrue(scan_text("int f() { return blockIdx.x; }\n" + kernel).helpers_read_index)
        self.assertTrue(scan_text(kernel + "void f() { RILL_DYNAMIC_SHARED(int, t); }\n").helpers_read_index)

    def test_assertions_tell_the_index(self):
        system = '# 2 "k.cu" 3 4\n(x ? void(0) : __assert_fail("x", "k.cu", 2, 0))\n# 2 "k.cu"\n'
        self.assertTrue(scan_text("RILL_KERNEL(k, int x) {\n" + system + ";}").helpers_read_index)
        self.assertFalse(scan_text("RILL_KERNEL(k, int x) { ((void)0); }").helpers_read_index)

    def test_types_of_rill(self):
        unit = scan_text("RILL_KERNEL(k, const rill_half *x, rill_bfloat16 *y) {}")
        self.assertEqual(unit.type_headers(), ["rill/device/half.h"])
        self.assertEqual([p.type for p in unit.kernels[0].parameters], ["const rill_half *", "rill_bfloat16 *"])
        self.assertEqual(scan_text("RILL_KERNEL(k, int half) {}").type_headers(), [])

    def test_parameters(self):
        text = "RILL_KERNEL(k, const unsigned char *__restrict__ a, unsigned long long const b,\n"
        text += "            _Bool c, void **d) {}\n"
        parameters = [(p.type, p.name) for p in scan_text(text).kernels[0].parameters]
        expected = [("const unsigned char *", "a"), ("unsigned long long const", "b"), ("bool", "c"), ("void **", "d")]
        self.assertEqual(parameters, expected)
        self.assertEqual(scan_text("RILL_KERNEL(k, void) {}").kernels[0].parameters, [])
        self.assertEqual(scan_text("RILL_KERNEL_BOUNDED(2 * f(1, 2), k, int n) {}").kernels[0].name, "k")

    def test_variables(self):
        text = """
          extern "C" { __constant__ int a[2][3]; }
          __device__ __align__(16) float b = 1.0f;
          alignas(8) __device__ struct { int x; } c;
          __constant__ float d[2] = { 1, 2 }, e;
        """
        with self.assertRaisesRegex(RillccError, "k.cu:5: declare one device variable at a time"):
            scan_text(text + "RILL_KERNEL(k) {}")
        text = text.replace(", e;", ";") + """
          __constant__ double f[] { 1, 2 };
          static __device__ int s1; __constant__ const int s2 = 1; extern __device__ int s3;
          __device__ int g1(int x = 3); __device__ __forceinline__ int g2() { return 1; }
          template <class T> __device__ T s4;
          namespace n { __device__ int s5; }
          struct t { __device__ int m() { int y; return y; } };
          RILL_KERNEL(k) { int local; }
          __device__ int h;
        """
        self.assertEqual(scan_text(text).variables, ["a", "b", "c", "d", "f", "h"])


class Offload(unittest.TestCase):
    """The reader of AMD's containers refuses every broken one."""

    ELF = b"\x7fELF" + bytes(60)

    def container(self, *names):
        table = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(names))
        start = 4096
        for i, name in enumerate(names):
            table += struct.pack("<QQQ", start + 100 * i, len(self.ELF), len(name)) + name
        body = table.ljust(start, b"\0")
        for _ in names:
            body += self.ELF.ljust(100, b"\0")
        return body

    def test_reads(self):
        name = b"hipv4-amdgcn-amd-amdhsa--gfx90a"
        self.assertEqual(offload.extract(self.ELF, "gfx90a"), self.ELF)
        data = self.container(b"host-x86_64-unknown-linux--", name, b"hipv4-amdgcn-amd-amdhsa--gfx90")
        self.assertEqual(offload.extract(data, "gfx90a"), self.ELF)
        for other in (name + b":xnack+", name.replace(b"--", b"-unknown-"), name.replace(b"v4", b"")):
            self.assertEqual(offload.extract(self.container(other), "gfx90a"), self.ELF)
        both = self.container(name + b":xnack+", name + b":sramecc+:xnack-")
        self.assertEqual(offload.extract(both, "gfx90a:xnack+"), self.ELF)
        self.assertEqual(offload.extract(both, "gfx90a:sramecc+"), self.ELF)
        with self.assertRaises(ValueError):
            offload.extract(both, "gfx90a:sramecc-")
        generic = b"hipv4-amdgcn-amd-amdhsa--gfx9-generic"
        self.assertEqual(offload.extract(self.container(generic), "gfx9-generic"), self.ELF)

    def test_refuses(self):
        name = b"hipv4-amdgcn-amd-amdhsa--gfx90a"
        good = self.container(name)
        for size in range(24, 4096 + len(self.ELF)):
            with self.assertRaises(ValueError):
                offload.extract(good[:size], "gfx90a")
        bad = [b"", b"CCOB" + bytes(60), self.container(), self.container(name, name)]
        bad.append(good.replace(b"\x7fELF", b"\0ELF"))
        for at in (24, 32, 40, 48):
            for value in (2**64 - 1, 2**63, len(good), len(good) + 1):
                bad.append(good[:at] + struct.pack("<Q", value) + good[at + 8 :])
        for data in bad:
            with self.assertRaises(ValueError):
                offload.extract(data, "gfx90a")


if __name__ == "__main__":
    support.main()
