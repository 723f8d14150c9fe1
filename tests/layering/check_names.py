#!/usr/bin/env python3
"""A file-local name of core and of the backends is used in one file alone, so that a name in a backtrace or a profile
tells where it is.  The folders that have a vendor.h are forms of one thing: what several have counts once."""

import collections
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
ATTRIBUTE = re.compile(r"__attribute__\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)")
ATOMIC = re.compile(r"_Atomic\(([^()]*)\)")
STATIC = re.compile(r"^static\s+([^;={(\[]*?)\s*(?:\(|\[|=|;)", re.MULTILINE)


def names_of(path):
    text = ATOMIC.sub(r"\1", ATTRIBUTE.sub("", COMMENT.sub("", path.read_text(encoding="utf-8"))))
    return {re.findall(r"\w+", match.group(1))[-1] for match in STATIC.finditer(text)}


places = collections.defaultdict(dict)
for folder in [root / "core"] + sorted(set(root.glob("backends/*")) - {root / "backends/comm"}):
    for path in sorted(folder.rglob("*.[ch]")):
        vendor = (folder / "vendor.h").exists()
        for name in names_of(path):
            places[name].setdefault("vendor" if vendor else path, path.relative_to(root))

# The vendors' answer to a function that backends/gpu/api.h declares.
places.pop("gpu_vendor_result")
problems = [f"{name}: {', '.join(map(str, found.values()))}" for name, found in sorted(places.items()) if len(found) > 1]
if len(places) < 500:
    problems.append(f"only {len(places)} names were found")
print("\n".join(problems) or f"{len(places)} file-local names, each of one file")
sys.exit(bool(problems))
