#!/usr/bin/env python3
"""Each header compiles by itself, and twice in a row, without a warning.

usage: check_alone.py LANGUAGE INCLUDE_DIRECTORY COMPILER ...
"""

import pathlib
import subprocess
import sys
import tempfile

language, include, *compiler = sys.argv[1:]
headers = [f"rill/{path.name}" for path in sorted(pathlib.Path(include, "rill").glob("*.h"))]
flags = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror", "-fsyntax-only"]
flags += ["-std=c11", "-Wmissing-prototypes"] if language == "c" else ["-std=c++17"]
failed = []

with tempfile.TemporaryDirectory() as directory:
    for header in headers:
        source = pathlib.Path(directory) / f"alone.{language}"
        source.write_text(f"#include <{header}>\n#include <{header}>\nint main(void) {{ return 0; }}\n", encoding="utf-8")
        result = subprocess.run([*compiler, *flags, "-I", include, str(source)], capture_output=True, text=True, check=False)
        if result.returncode != 0:
            failed.append(header)
            print(f"{header}:\n{result.stderr}")

print(f"{len(headers)} headers, {len(failed)} of them not by themselves: {' '.join(failed)}")
sys.exit(bool(failed) or not headers)
