#!/usr/bin/env python3
"""Random kernels: both forms give the same bits, on blocks of many shapes."""

import ctypes
import os
import random

import differential
import random_kernels
import support
from support import Runner, pointer_to


class Random(differential.Differential):
    def test_warps(self):
        """Functions of a warp one after another, which all lanes or some of them come to.  RILL_TEST_SEED and
        RILL_TEST_ROUNDS run others, and more."""
        runner, first = Runner(self), int(os.environ.get("RILL_TEST_SEED", "1"))
        for seed in range(first, first + int(os.environ.get("RILL_TEST_ROUNDS", "1"))):
            with self.subTest(seed=seed):
                text = random_kernels.warps(random.Random(seed), 40 if support.LONG else 25)
                kernels = self.open_all(self.write("warps%d.kernel.cu" % seed, text), "--cpu-option=-w")
                for forms in kernels.values():
                    for block in ((32, 1, 1), (33, 1, 1), (40, 2, 1), (64, 2, 3), (96, 1, 1), (16, 4, 1), (256, 1, 1)):
                        self.check_warps(runner, forms, block)

    def check_warps(self, runner, forms, block):
        threads = block[0] * block[1] * block[2]
        for n in (3 * threads, 2 * threads - 5, 2 * threads + 32, threads + 1, 7 * threads + 32):
            self.compare(runner, forms, n, (3, 1, 1), block, 8 * threads, 3 * threads)

    def test_random_kernels(self):
        """A few that the compiler optimizes, and many in one source that it does not.  RILL_TEST_SEED and
        RILL_TEST_ROUNDS run others, and more."""
        first = int(os.environ.get("RILL_TEST_SEED", "1"))
        for seed in range(first, first + int(os.environ.get("RILL_TEST_ROUNDS", "1"))):
            self.check_source(seed, 12)
            self.check_source(-seed, 150 if support.LONG else 30, "--cpu-option=-O0")

    def check_source(self, seed, count, *options):
        runner = Runner(self)
        text = random_kernels.source(random.Random(seed), count)
        with self.subTest(seed=seed):
            # GCC has opinions about conditions that are never true.
            kernels = self.open_all(self.write("random%d.kernel.cu" % abs(seed), text), "--cpu-option=-w", *options)
            for forms in kernels.values():
                for block in ((1, 1, 1), (67, 1, 1), (8, 4, 1), (3, 5, 3), (32, 3, 1), (48, 2, 1), (64, 2, 1)):
                    self.check_random(runner, "seed %d" % seed, forms, block)

    def check_random(self, runner, what, forms, block):
        threads = block[0] * block[1] * block[2]
        count = 3 * threads
        x = (ctypes.c_float * count)(*[(7 * i) % 97 for i in range(count)])
        results = []
        for kernel, as_loops in zip(forms, (1, 0)):
            y = (ctypes.c_uint * count)(*[123] * count)
            values = ctypes.c_uint(5), ctypes.c_uint(count), pointer_to(x), pointer_to(y)
            self.assertEqual(runner.run(kernel, as_loops, (3, 1, 1), block, 8 * threads, *values), 0, kernel.name)
            results.append(list(y))
        different = [i for i in range(count) if len({result[i] for result in results}) != 1]
        self.assertEqual(different, [], "%s, %s, block %s" % (what, forms[0].name.decode(), block))


if __name__ == "__main__":
    support.main()
