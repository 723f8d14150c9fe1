#!/usr/bin/env python3
"""Builds and runs the programs of docs/guides/CPP.md, each as it stands there.

usage: check_page.py SOURCE KERNELS LIBRARY COMPILER ...

KERNELS is the folder of saxpy.rill.c and its header, LIBRARY that of librill.  A program prints what its comment
`// prints:` says.  A first line `// with: FLAGS` asks for flags.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

source, kernels, library = map(pathlib.Path, sys.argv[1:4])
compiler = sys.argv[4:]
page = (source / "docs/guides/CPP.md").read_text(encoding="utf-8")
programs = re.findall(r"^```cpp\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
warnings = "-Wall -Wextra -Wpedantic -Wshadow -Wold-style-cast -Werror".split()
problems = []


def run(command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=100)


with tempfile.TemporaryDirectory(prefix="rill-page-") as directory:
    work = pathlib.Path(directory)
    built = run([*compiler, "-x", "c", "-I", source / "include", "-c", kernels / "saxpy.rill.c", "-o", work / "saxpy.o"])
    if built.returncode != 0:
        sys.exit(built.stderr)
    for number, program in enumerate(programs, 1):
        name = work / f"program{number}"
        name.with_suffix(".cpp").write_text(program, encoding="utf-8")
        flags = re.findall(r"\A// with: (.*)", program)
        wanted = re.findall(r"// prints: (.*)", program)
        if len(wanted) != 1:
            problems.append(f"program {number} does not say once what it prints")
            continue
        command = [*compiler, "-std=c++17", *(flags[0].split() if flags else []), *warnings, "-I", source / "include"]
        command += ["-I", kernels, name.with_suffix(".cpp"), work / "saxpy.o", "-L", library, "-lrill"]
        built = run([*command, f"-Wl,-rpath,{library}", "-o", name])
        if built.returncode != 0:
            problems.append(f"program {number}: {built.stderr}")
            continue
        result = run([name])
        if result.returncode != 0 or result.stdout.splitlines() != [wanted[0].strip()]:
            problems.append(f"program {number}: {result.returncode}, {result.stdout!r}, {result.stderr}")
if len(programs) < 6:
    problems.append(f"only {len(programs)} programs were found")
print("\n".join(problems) or f"{len(programs)} programs of the page")
sys.exit(bool(problems))
