#!/usr/bin/env python3
"""What rill.hpp must refuse to compile, each with its own message; and the rest compiles.

usage: check_refused.py INCLUDE_DIRECTORY COMPILER ...
"""

import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

include, *compiler = sys.argv[1:]
source = pathlib.Path(__file__).resolve().parent / "refused.cpp"
cases = re.findall(r"^#(?:el)?if REFUSED == (\d+)\s+/\* refused: (.*?) \*/$", source.read_text(encoding="utf-8"), re.MULTILINE)
problems = []

# What all cases include is compiled once.
folder = tempfile.TemporaryDirectory(prefix="rill-refused-")
included = pathlib.Path(folder.name, "included.hpp")
included.write_text("".join(re.findall(r"^#include .*\n", source.read_text(encoding="utf-8"), re.MULTILINE)), encoding="utf-8")
command = [*compiler, "-std=c++17", "-Wall", "-Werror=unused-result", "-I", include]
subprocess.run([*command, "-x", "c++-header", "-o", f"{included}.gch", str(included)], check=True)


def compile_with(case):
    one = [*command, "-fsyntax-only", "-include", str(included), f"-DREFUSED={case}", str(source)]
    return subprocess.run(one, capture_output=True, text=True, check=False)


if compile_with(0).returncode != 0:
    problems.append(f"without a case it does not compile: {compile_with(0).stderr}")
if [int(number) for number, _ in cases] != list(range(1, len(cases) + 1)) or len(cases) < 20:
    problems.append(f"cases are counted from 1: {cases}")
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    results = list(pool.map(compile_with, (number for number, _ in cases)))
for (number, wanted), result in zip(cases, results):
    if result.returncode == 0:
        problems.append(f"case {number} compiles")
    elif not re.search(wanted, " ".join(line for line in result.stderr.splitlines() if "error:" in line)):
        problems.append(f"case {number} has no error with {wanted!r}: {result.stderr}")
print("\n".join(problems) or f"{len(cases)} cases refused")
sys.exit(bool(problems))
