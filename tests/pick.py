#!/usr/bin/env python3
"""Lists tests of a build, or what ninja makes for them; each name with a zero after it.

    pick.py names BUILD PATTERN     the quick tests whose "suite / name" matches
    pick.py targets BUILD PATTERN   what ninja makes for them
    pick.py quick BUILD             what ninja makes by default and for quick tests

`ninja all` also makes what only the long tests and the benchmarks need."""

import json
import os
import re
import subprocess
import sys

what, build, pattern = (sys.argv[1:] + [""])[:3]
build = os.path.abspath(build)


def introspect(kind):
    meson = os.environ.get("MESON", "meson")
    return json.loads(subprocess.run([meson, "introspect", kind, build], capture_output=True, check=True).stdout)


tests = []
for test in introspect("--tests"):
    suites = [suite.partition(":")[2] for suite in test["suite"]]
    if "long" not in suites and any(re.search(pattern, "%s / %s" % (suite, test["name"])) for suite in suites):
        tests.append(test)
if what == "names":
    wanted = {test["name"] for test in tests}
else:
    targets = introspect("--targets")
    made = {target["id"]: target["filename"] for target in targets}
    files = {file for test in tests for file in test["cmd"]}
    files |= {file for test in tests for dependence in test["depends"] for file in made[dependence]}
    # The stand-ins for vendors are found by LD_LIBRARY_PATH.
    everything = {file for names in made.values() for file in names}
    files |= {file for file in everything if "/tests/support/fake_" in file and ".so" in file}
    if what == "quick":
        files |= {file for target in targets if target["build_by_default"] for file in target["filename"]}
    wanted = {os.path.relpath(file, build) for file in files & everything}
sys.stdout.write("".join(name + "\0" for name in sorted(wanted)))
