#!/usr/bin/env python3
"""Random kernels on the cpu against a naive execution of the same source, to the last bit."""

import unittest

import oracle_run
import support


@unittest.skipUnless(support.LOOPS, "no clang 15 or later whose LLVM can be loaded")
class Oracle(unittest.TestCase):
    maxDiff = None  # all that differs

    def test_random_kernels_agree_with_the_oracle(self):
        """Three sources: each takes another level."""
        for seed in (1, 2, 3):
            source = oracle_run.random_source(seed, 34 if support.LONG else 7, one_level=True)
            self.assertEqual(list(oracle_run.summary(source.check())), [], source.name)


if __name__ == "__main__":
    support.main()
