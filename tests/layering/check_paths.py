#!/usr/bin/env python3
"""The files and folders that CONTRIBUTING.md and docs/reference/ARCHITECTURE.md name are there."""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
PATH = re.compile(r"`((?:[\w.*-]+/)*[\w*-]+\.(?:c|h|def|py|md|build|txt|cu|list)|(?:[\w.*-]+/)+)`")
problems, count = [], 0
for page in ("CONTRIBUTING.md", "docs/reference/ARCHITECTURE.md", "tests/README.md"):
    for number, line in enumerate((root / page).read_text(encoding="utf-8").splitlines(), 1):
        for name in PATH.findall(line):
            count += 1
            # A bare name is of a folder that the line has named before it; some pages speak of their own folder.
            near = [root / name, root / page.split("/")[0] / name] if "/" in page else [root / name]
            pattern = name.rstrip("/")
            if any(path.exists() for path in near) or any(root.glob(pattern)):
                continue
            folders = ("core", "backends", "include", "tools", "tests", "docs", "kernels")
            if not any(next((root / folder).rglob(pattern), None) for folder in folders):
                problems.append(f"{page}:{number}: there is no {name}")
if count < 100:
    problems.append(f"only {count} names were found")
print("\n".join(problems) or f"{count} names, all of them there")
sys.exit(bool(problems))
