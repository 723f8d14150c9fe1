#!/usr/bin/env python3
"""The folders of core are layers: what is in one uses its own folder and those before it, by the symbols that its
objects refer to and by the headers that it includes.  Core's own files come last: each has the public functions of the
header of its name, and nothing in core calls one of those functions.

usage: check_order.py NM LIBRARY ROOT"""

import pathlib
import re
import subprocess
import sys

LAYERS = ["object", "diagnose", "device", "sync", "operation", "graph", "held", "stream", "timeline", "tracking", "pool", "memory", "kernel", "order", ""]

# The contract with backends names the parts of every object.
EVERYWHERE = {"backend.h", "objects.h"}
PUBLIC = re.compile(r"rill_(?!_)")

nm, library, root = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
core = root / "core"
sources = {path.relative_to(core).as_posix() for path in core.rglob("*.[ch]")}
problems = []


def layer(name):
    return LAYERS.index(name.rpartition("/")[0])


def read_objects():
    """What each source file of core defines for others, and what it refers to."""
    by_object = {"core_" + name.replace("/", "_") + ".o": name for name in sources if name.endswith(".c")}
    defined, used, name = {}, {}, None
    for line in subprocess.run([nm, library], check=True, capture_output=True, text=True).stdout.splitlines():
        member = re.fullmatch(r"(?:.*/)?([^/]+\.o):", line)
        symbol = re.fullmatch(r"[0-9a-fA-F]*\s+([A-Za-z])\s+(\S+)", line)
        if member:
            name = by_object.get(member.group(1))
            if name is not None:
                used[name] = set()
        elif symbol and name is not None:
            if symbol.group(1) == "U":
                used[name].add(symbol.group(2))
            elif symbol.group(1).isupper():
                defined[symbol.group(2)] = name
    return defined, used


for folder in sorted({name.rpartition("/")[0] for name in sources} - set(LAYERS)):
    problems.append(f"core/{folder} has no place among the layers")

if not problems:
    defined, used = read_objects()
    references = [(name, symbol) for name, symbols in used.items() for symbol in symbols if defined.get(symbol, name) != name]
    if not references:
        print("skipped: the objects tell no symbols, as with link-time optimization")
        sys.exit(77)
    missing = sorted(name for name in sources if name.endswith(".c") and name not in used)
    problems += [f"core/{name} is not in the library" for name in missing]
    for name, symbol in sorted(references):
        if layer(defined[symbol]) > layer(name):
            problems.append(f"core/{name} refers to {symbol}, of core/{defined[symbol]}, a later layer")
        if PUBLIC.match(symbol):
            problems.append(f"core/{name} calls {symbol}, a public function")

    declared = {}
    for header in sorted((root / "include/rill").glob("*.h")):
        for symbol in re.findall(r"RILL_API\b[^;{]*?\b(rill_\w+)\s*\(", header.read_text(encoding="utf-8")):
            declared[symbol] = f"{header.stem}.c"
    for symbol, name in sorted(defined.items()):
        if PUBLIC.match(symbol) and declared.get(symbol) != name:
            problems.append(f"core/{name} has {symbol}, which belongs into core/{declared.get(symbol, '?')}")

    for name in sorted(sources - EVERYWHERE):
        for header in re.findall(r'^\s*#\s*include\s*"core/([^"]+)"', (core / name).read_text(encoding="utf-8"), re.M):
            if header not in EVERYWHERE and layer(header) > layer(name):
                problems.append(f"core/{name} includes core/{header}, of a later layer")

print("\n".join(problems) or f"{len(references)} references between {len(used)} files, none to a later layer")
sys.exit(bool(problems))
