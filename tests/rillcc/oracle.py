#!/usr/bin/env python3
"""Compares random kernels on the cpu with a naive execution of the same source, to the last bit.

    oracle.py --kernels 10000 --seed 1 --jobs 2    # prints what differs, and how many kernels it checks a minute
    oracle.py --kernels 100 --seed 7 --shrink      # and a small kernel that still differs
    oracle.py --systematic                         # every pair of synchronizing functions, every kind of division
"""

import argparse
import concurrent.futures
import itertools
import sys
import time

import oracle_kernels
import oracle_pairs
import oracle_shrink
from oracle_run import PER_SOURCE, Source, random_source, summary


def sources(options):
    if options.systematic:
        every = oracle_pairs.kernels()
        for first in range(0, len(every), PER_SOURCE):
            kernels = every[first : first + PER_SOURCE]
            yield Source("systematic %d" % first, first // PER_SOURCE, kernels, options.one_level)
        return
    for k in range(0, options.kernels, PER_SOURCE):
        count = min(PER_SOURCE, options.kernels - k)
        yield random_source(options.seed + k // PER_SOURCE, count, options.without, options.one_level)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--kernels", type=int, default=PER_SOURCE)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--systematic", action="store_true", help="every pair and division instead of random kernels")
    parser.add_argument("--one-level", action="store_true", help="the levels in turn: less than half the time")
    parser.add_argument("--without", action="append", default=[], choices=oracle_kernels.FEATURES)
    parser.add_argument("--shrink", action="store_true", help="print a small kernel for the first failure of each source")
    options = parser.parse_args()
    start, done, failed = time.monotonic(), 0, 0
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        first, second = itertools.tee(sources(options))
        for source, failures in zip(first, pool.map(Source.check, second)):
            for line in summary(failures):
                print("%s, %s" % (source.name, line), flush=True)
            if failures and options.shrink:
                print(oracle_shrink.shrink(failures[0], source.fill()).text(), flush=True)
            done += len(source.kernels)
            failed += len({failure.kernel.name for failure in failures})
            elapsed = time.monotonic() - start
            speed = 60 * done / elapsed
            print("%d kernels in %.0f s, %.0f a minute; %d failed" % (done, elapsed, speed, failed), flush=True)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
