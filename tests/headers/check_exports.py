#!/usr/bin/env python3
"""A library exports what its headers declare, and nothing else."""

import pathlib
import re
import subprocess
import sys

nm, library, include, *names = sys.argv[1:]  # names: the library's headers
symbols = subprocess.run([nm, "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
# Names that a sanitizer or the linker adds are not the library's own.
exported = {line.split()[-1].split("@")[0] for line in symbols.splitlines() if line.strip()}
exported = {name for name in exported if not re.match(r"_|\.", name) and not name.startswith(("asan", "tsan", "ubsan"))}
headers = [path for path in pathlib.Path(include, "rill").glob("*.h") if path.name in names]
text = "\n".join(path.read_text(encoding="utf-8") for path in headers)
declared = set(re.findall(r"RILL_API\b[^;{]*?\b(rill_\w+)\s*\(", text))

problems = [f"{name} is exported, and no header declares it" for name in sorted(exported - declared)]
problems += [f"{name} is declared and not exported" for name in sorted(declared - exported)]
problems += [] if declared else ["no public function was found"]
print("\n".join(problems) or f"{len(exported)} names, as declared")
sys.exit(bool(problems))
