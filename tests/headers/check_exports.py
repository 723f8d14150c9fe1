#!/usr/bin/env python3
"""A library exports what a checked-in list has, and nothing else; the list is what its headers declare."""

import pathlib
import re
import subprocess
import sys

nm, library, listed, include, *names = sys.argv[1:]  # names: the library's headers
symbols = subprocess.run([nm, "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
# Names that a sanitizer or the linker adds are not the library's own.
exported = {line.split()[-1].split("@")[0] for line in symbols.splitlines() if line.strip()}
exported = {name for name in exported if not re.match(r"_|\.", name) and not name.startswith(("asan", "tsan", "ubsan"))}
expected = set(pathlib.Path(listed).read_text(encoding="utf-8").split())
headers = [path for path in pathlib.Path(include, "rill").glob("*.h") if path.name in names]
text = "\n".join(path.read_text(encoding="utf-8") for path in headers)
declared = set(re.findall(r"RILL_API\b[^;{]*?\b(rill_\w+)\s*\(", text))

problems = [f"{name} is exported and not listed" for name in sorted(exported - expected)]
problems += [f"{name} is listed and not exported" for name in sorted(expected - exported)]
problems += [f"{name} is listed and in no header" for name in sorted(expected - declared)]
problems += [f"{name} is declared and not listed" for name in sorted(declared - expected)]
print("\n".join(problems) or f"{len(exported)} names, as listed")
sys.exit(bool(problems))
