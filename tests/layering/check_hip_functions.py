#!/usr/bin/env python3
"""The table in docs/reference/HIP.md has every function of HIP that rill calls, once, and no other."""

import collections
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
calls = (root / "backends/gpu/gpu_api.def").read_text(encoding="utf-8")
table = (root / "docs/reference/HIP.md").read_text(encoding="utf-8").partition("## Functions that rill calls")[2]
called = set(re.findall(r"^GPU_(?:RTC_)?FN(?:_HIP)?\(.*\b(hip\w+)", calls, flags=re.MULTILINE))
rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
named = collections.Counter(re.findall(r"`(hip\w+)`", " ".join(rows)))
problems = [f"docs/reference/HIP.md: {name} is not in the table" for name in sorted(called - named.keys())]
problems += [f"docs/reference/HIP.md: rill does not call {name}" for name in sorted(named.keys() - called)]
problems += [f"docs/reference/HIP.md: {name} is in {count} rows" for name, count in named.items() if count > 1]
if len(called) < 90:
    problems.append(f"only {len(called)} functions were found")
print("\n".join(problems) or f"{len(called)} functions")
sys.exit(bool(problems))
