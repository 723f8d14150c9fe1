#!/usr/bin/env python3
"""Finds the few operations of a failing round of stress/mix that are enough to make it fail.

    mix_shrink.py [--tries N] [--out FILE] PROGRAM --seed N [OPTION ...]

The options are those that the round failed with ("again: mix ..." says them). With one thread the same operations do
the same again; with several, a set of operations counts as good only if it has not failed in N tries (20). What is
left is printed, and written to FILE (mix.keep), for `mix --keep FILE`. RILL_TEST_DEVICE and LD_LIBRARY_PATH choose the
device as in any test. Operations are left out in halves, quarters and so on down to single ones.
"""

import argparse
import os
import re
import subprocess
import sys

TIMEOUT = "10"  # seconds without an end after which a round counts as stuck


def run(command, keep, operations, print_only=False):
    """Returns (did it fail, what it said)."""
    with open(keep, "w", encoding="ascii") as file:
        file.writelines(f"{thread} {index}\n" for thread, index in operations)
    command = command + ["--keep", keep] + (["--print"] if print_only else [])
    environment = dict(os.environ, RILL_TEST_DEVICE=os.environ.get("RILL_TEST_DEVICE", "cpu"))
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment, check=False)
    return done.returncode != 0, done.stdout + done.stderr


class Shrinker:
    def __init__(self, command, keep, tries):
        self.command, self.keep, self.tries = command, keep, tries
        self.runs, self.said = 0, ""

    def fails(self, operations):
        for _ in range(self.tries):
            self.runs += 1
            failed, said = run(self.command, self.keep, operations)
            if failed:
                self.said = said
                return True
        return False

    def shrink(self, operations):
        parts = 2
        while len(operations) > 1:
            size = max(1, len(operations) // parts)
            for start in range(0, len(operations), size):
                rest = operations[:start] + operations[start + size :]
                if rest and self.fails(rest):
                    print(f"{len(rest)} operations after {self.runs} runs", file=sys.stderr)
                    operations, parts = rest, max(2, parts - 1)
                    break
            else:
                if size == 1:
                    break
                parts *= 2
        return operations


def main():
    parser = argparse.ArgumentParser(description="see the head of this file")
    parser.add_argument("--tries", type=int, default=0)
    parser.add_argument("--out", default="mix.keep")
    parser.add_argument("program")
    options, rest = parser.parse_known_args()
    command = [options.program] + rest + ["--rounds", "1"]
    if "--timeout" not in rest:
        command += ["--timeout", TIMEOUT]
    printed = subprocess.run(command + ["--print"], capture_output=True, text=True, check=True).stdout
    operations = [(int(t), int(i)) for t, i in re.findall(r"^thread (\d+), operation (\d+):", printed, re.M)]
    alone = len({thread for thread, _ in operations}) == 1
    shrinker = Shrinker(command, options.out, options.tries or (1 if alone else 20))
    if not shrinker.fails(operations):
        sys.exit(f"{len(operations)} operations do not fail in {shrinker.tries} tries")
    operations = shrinker.shrink(operations)
    print(run(command, options.out, operations, print_only=True)[1], end="")
    print(f"\n{len(operations)} operations; the last failure of them:\n{shrinker.said}", end="")


if __name__ == "__main__":
    main()
