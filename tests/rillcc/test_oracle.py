#!/usr/bin/env python3
"""Random kernels on the cpu against a naive execution of the same source, to the last bit."""

import random
import unittest

import oracle_random
import oracle_run
import support


@unittest.skipUnless(support.LOOPS, "no clang 15 or later whose LLVM can be loaded")
class Oracle(unittest.TestCase):
    def test_random_kernels(self):
        failures = oracle_run.check(oracle_random.kernels(random.Random(1), 100), oracle_run.all_forms(1))
        self.assertEqual([str(failure) for failure in failures], [])


if __name__ == "__main__":
    support.main()
