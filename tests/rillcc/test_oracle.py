#!/usr/bin/env python3
"""Random kernels on the cpu against a naive execution of the same source, to the last bit."""

import unittest

import oracle_run
import support


@unittest.skipUnless(support.LOOPS, "no clang 15 or later whose LLVM can be loaded")
class Oracle(unittest.TestCase):
    maxDiff = None  # all that differs

    def test_random_kernels(self):
        self.assertEqual(list(oracle_run.summary(oracle_run.random_source(1).check())), [])


if __name__ == "__main__":
    support.main()
