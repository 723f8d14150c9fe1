#!/usr/bin/env python3
"""The folders of core are layers: what is in one uses its own folder and those before it, by the symbols that its
objects refer to and by the headers that it includes.  Core's own files, the public functions, come last, and nothing in
core calls one of those functions.

usage: check_order.py NM LIBRARY ROOT"""

import pathlib
import re
import subprocess
import sys

LAYERS = ["object", "device", "sync", "held", "memory", "pool", "kernel", ""]

# A file, and what it may use of a later layer.  One that is no longer needed is a fault, too.
SYMBOLS = {
    # When a device is lost, what is held for it fails in the same call.
    ("device/life.c", "rill__held_device_lost"),
    # An event that goes, or is to be used again, leaves the fence that it stands for.
    ("sync/events.c", "rill__event_reset"),
    ("sync/event_pool.c", "rill__event_reset"),
}
INCLUDES = {
    ("device/life.c", "held/held.h"),
    ("sync/events.c", "held/held.h"),
    ("sync/event_pool.c", "held/held.h"),
    # Whether a held record marks a use of a registered range stands in the range.
    ("held/host.c", "memory/last_use.h"),
    ("held/host.c", "memory/ranges.h"),
}
# The contract with backends names the parts of every object.
EVERYWHERE = "backend.h"

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


def check_exceptions(found, allowed, what):
    for name, other in sorted(found - allowed):
        problems.append(f"core/{name} {what} {other}, of a later layer")
    for name, other in sorted(allowed - found):
        problems.append(f"core/{name} {what} {other} no longer: take that out of the exceptions")


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
    upward = {(name, symbol) for name, symbol in references if layer(defined[symbol]) > layer(name)}
    check_exceptions(upward, SYMBOLS, "refers to")
    for name, symbol in sorted(references):
        if re.match(r"rill_(?!_)", symbol):
            problems.append(f"core/{name} calls {symbol}, a public function")

    included = set()
    for name in sources:
        for header in re.findall(r'^\s*#\s*include\s*"core/([^"]+)"', (core / name).read_text(encoding="utf-8"), re.M):
            if header != EVERYWHERE and layer(header) > layer(name):
                included.add((name, header))
    included = {pair for pair in included if pair[0] != EVERYWHERE}
    check_exceptions(included, INCLUDES, "includes")

print("\n".join(problems) or f"{len(references)} references between {len(used)} files, {len(upward)} of them to a later layer")
sys.exit(bool(problems))
