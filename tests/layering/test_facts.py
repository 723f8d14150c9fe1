#!/usr/bin/env python3
"""check_facts.py finds contradictions: each of these changes one statement, and has to be reported, by its rule alone."""

import re
import sys

import check_facts

# The rule, the file, what is there (a pattern), what stands there instead, and what is reported.
PLANTED = [
    ("durations", "CONTRIBUTING.md", r"half(\s)an(\s)hour", r"an\1hour", r"\.ci/run.* takes: an hour \(CONTRIBUTING\.md\), half an hour"),
    ("durations", ".ci/run", r"[Aa]bout half an hour", "About 40 minutes", r"\.ci/run.* takes: 40 minutes \(\.ci/run\)"),
    ("durations", ".ci/full", r"take hours", "take 90 minutes", r"\.ci/full.* takes: 90 minutes"),
    ("environment", "core/device.c", r'getenv\("RILL_DEVICE"\)', 'getenv("RILL_DEFAULT")', "has no RILL_DEFAULT, which core/device.c reads"),
    ("environment", "core/device.c", r'getenv\("RILL_DEVICE"\)', 'getenv("HOME")', None),  # tools/rill reads it also
    ("environment", check_facts.ENVIRONMENT, r"\| `RILL_TRACE=1`", "| `RILL_TRACES=1`", "has no RILL_TRACE, .*\n.*nothing reads RILL_TRACES$"),
    ("environment", "tools/rillcc", r'\("hipcc", "the compiler for hip"\)', '("amdcc", "the compiler for hip")', "has no RILL_AMDCC, .*\n.*nothing reads RILL_HIPCC$"),
    ("names", "docs/guides/TOOLS.md", r"`RILL_FEATURE_\*`", "`RILL_FEATURES_*`", "TOOLS.md:\\d+: there is no RILL_FEATURES_$"),
    ("names", "docs/guides/THREADS.md", r"rill_fill_async", "rill_fill_later", "THREADS.md:\\d+: there is no rill_fill_later$"),
    ("names", "include/rill/event.h", r"rill_event_then", "rill_event_after", None),  # other files still have the word
    ("functions", "docs/guides/PORTING.md", r"rill_stream_create\(", "rill_stream_open(", "no header declares rill_stream_open$"),
    ("options_of_build", "meson_options.txt", r"'rill_mpi'", "'rill_mpis'", "has no rill_mpi$"),
    ("options_of_build", "meson_options.txt", r"'mpich', 'mpicc'", "'mpich', 'intel', 'mpicc'", "the row of rill_mpi does not name intel$"),
    ("options_of_build", "meson_options.txt", r"('rill_comm', type: 'boolean', value:) true", r"\1 false", "rill_comm is false by default, not true$"),
    ("options_of_build", "docs/guides/EMBEDDING.md", r"-Drill_tests=disabled", "-Drill_tests=no", "rill_tests cannot be no$"),
    ("options_of_programs", "tools/rill/main.c", r"--topology", "--links", "rill info has no option --topology$"),
    ("options_of_programs", "tools/rillcc", r'"--header"', '"--heading"', "rillcc has no option --header$"),
    ("options_of_programs", "docs/guides/TOOLS.md", r"`rill doctor`", "`rill repair`", "rill has no command repair$"),
    ("figures", "README.md", r"\| record event \| (\d+) \|", r"| record event | 1\1 |", 'no row "record event" with 1\\d+'),
    ("figures", "docs/PERFORMANCE.md", r"\| 215\.9 \| 270\.7 \|", "| 215.9 | 280.7 |", 'no row "wait for event" with 216, 271'),
    ("figures", "README.md", r"(Some operations are slower)", r"A call takes 987654 ns. \1", "987654 ns is not in docs/PERFORMANCE.md"),
    ("counts", "docs/results/LOOP_SHAPES.md", r"runs \d+ loop shapes", "runs 80 loop shapes", "says 80, and tests/bench/shapes.def has \\d+$"),
    ("counts", "docs/guides/FIRST_RUN_ON_AMD.md", r"(?m)^## 10\. ", "## ", "says ten, and .* has 9$"),
    ("versions", "meson.build", r"  version: '0\.1\.0'", "  version: '0.1.1'", "base.h is of 0.1.0, meson.build of 0.1.1\nCHANGELOG.md begins with 0.1.0"),
    ("versions", "docs/guides/EMBEDDING.md", r"`\.so\.0\.1\.0`", "`.so.0.0.9`", "so.0.0.9, and meson.build is of 0.1.0$"),
    ("versions", "README.md", r"CUDA (\d+\.\d+) or later", "CUDA 10.0 or later", "the oldest CUDA: "),
    ("versions", "README.md", r"Meson 1\.0", "Meson 0.61", "README.md: Meson 0.61, and meson.build needs 1.0$"),
]

failed = []
tree = check_facts.Tree(sys.argv[1])
counts, problems = check_facts.check(tree)
for rule in check_facts.RULES:
    if counts[rule.__name__] == 0 or not any(rule.__name__ == planted[0] and planted[4] for planted in PLANTED):
        failed.append(f"{rule.__name__}: reads nothing, or no contradiction is planted for it")
if problems:
    failed.append("the tree has contradictions without any planted: " + "; ".join(problems))
for name, file, pattern, replacement, expected in PLANTED:
    text = tree.read(file)
    changed = re.sub(pattern, replacement, text)
    if changed == text:
        failed.append(f"{file} has no {pattern}")
        continue
    copy = check_facts.Tree(tree.root, {file: changed})
    copy.kept = tree.kept
    reported = {rule.__name__: rule(copy)[1] for rule in check_facts.RULES if rule.__name__ == name}[name]
    if not reported if expected is None else re.search(expected, "\n".join(reported), re.M):
        continue
    failed.append(f"{file} with {replacement!r} for {pattern!r}: {name} reports {reported}")
print("\n".join(failed) or f"{len(PLANTED)} changes, each reported as it should be")
sys.exit(bool(failed))
