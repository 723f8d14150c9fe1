#!/usr/bin/env python3
"""Runs the tests of a build, with longer time limits on a slow machine, and says which devices they exercised.

    run_tests.py BUILD [ARGUMENT OF meson test ...]

The limits in the meson.build files are for a machine whose processors, all at once, count to COUNT in SECONDS.  How
long that takes here is measured before the tests, beside whatever else runs; the limits are multiplied by the ratio,
rounded up.

Programs with tests/support print a line for each device that they opened: a real one, or which stand-in for a vendor's
library it came from.  The last line adds these up; it knows nothing of how the build was configured.
"""

import argparse
import collections
import glob
import json
import math
import os
import re
import subprocess
import sys
import time

COUNT, SECONDS = 20_000_000, 1.0
LONG = 10  # what --setup long multiplies limits by, unless the command line does (tests/meson.build)
NOTE = re.compile(r"^rill-device: (\S+) \((.*)\)$", re.MULTILINE)


def slowness():
    """Returns how many times longer than in SECONDS it takes to count."""
    processors = len(os.sched_getaffinity(0))
    start = time.monotonic()
    command = [sys.executable, "-c", "for i in range(%d): pass" % COUNT]
    for process in [subprocess.Popen(command) for _ in range(processors)]:
        process.wait()
    took = time.monotonic() - start
    times = max(1, math.ceil(took / SECONDS))
    print("time limits: times %d: counting took %d processors %.1f s, not %.1f s" % (times, processors, took, SECONDS))
    return times


def devices(logs):
    """Returns the last line, from the logs that Meson wrote."""
    names, tests = collections.defaultdict(set), collections.Counter()
    for path in logs:
        with open(path, encoding="utf-8", errors="replace") as file:
            for test in map(json.loads, filter(str.strip, file)):
                notes = NOTE.findall(test.get("stdout", ""))
                tests.update({what for _, what in notes})
                for name, what in notes:
                    names[what].add(name)
    parts = ["%s (%s; %d tests)" % (" ".join(sorted(names[what])), what, tests[what]) for what in names]
    return "devices: " + (", ".join(sorted(parts)) or "no test opened one")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build, arguments = sys.argv[1], sys.argv[2:]
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("-t", "--timeout-multiplier", type=float)
    parser.add_argument("--setup")
    known, others = parser.parse_known_args(arguments)
    others += ["--setup", known.setup] if known.setup else []
    times = slowness() * (known.timeout_multiplier or (LONG if known.setup == "long" else 1))
    sys.stdout.flush()
    start = time.time()
    meson = [os.environ.get("MESON", "meson"), "test", "-C", build, "--timeout-multiplier", str(times)]
    code = subprocess.run([*meson, *others], check=False).returncode
    logs = glob.glob(os.path.join(build, "meson-logs", "testlog*.json"))
    print(devices([path for path in logs if os.stat(path).st_mtime >= start - 1]))
    return code


if __name__ == "__main__":
    sys.exit(main())
