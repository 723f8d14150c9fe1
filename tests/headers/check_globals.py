#!/usr/bin/env python3
"""What an object or a library defines for the linker begins with rill_, so that a program may use every other name.

usage: check_globals.py NM FILE ... [--bundles FILE ...] [--none FILE ...]

FILE is a shared library, an archive or an object.  Bundles, which rillcc writes, are also named for their source:
axpy_bundle.  Objects after --none define nothing at all."""

import re
import subprocess
import sys

# Names of compilers and linkers: "__" is theirs in C, and names with a dot are in no program.
FOREIGN = re.compile(r"__|_(?:init|fini|end|edata|etext)$|.*\.|asan|tsan|ubsan")
SYMBOL = re.compile(r"[0-9a-fA-F]*\s+([A-Za-z?])\s+(\S+)")
# The switch of stacks, in assembler, which cannot be local to a file in link-time optimization.
SHARED = "rill__cpu_stack_switch"


def find_globals(nm, path):
    scope = "-D" if re.search(r"\.so(?:\.\d+)*$", path) else "-g"
    text = subprocess.run([nm, scope, "--defined-only", path], check=True, capture_output=True, text=True).stdout
    found = (SYMBOL.fullmatch(line) for line in text.splitlines())
    names = {(symbol[2].split("@")[0], symbol[1]) for symbol in found if symbol}
    return {(name, kind) for name, kind in names if not FOREIGN.match(name)}


def main():
    nm, *rest = sys.argv[1:]
    rule, count, problems = "", 0, []
    for word in rest:
        if word in ("--bundles", "--none"):
            rule = word
            continue
        names = find_globals(nm, word)
        count += len(names)
        if rule == "--none":
            problems += [f"{word}: {name} is global" for name, kind in sorted(names) if (name, kind) != (SHARED, "W")]
            continue
        if not names:
            problems.append(f"{word}: no global name was found")
        for name, _ in sorted(names):
            if not name.startswith("rill_") and not (rule == "--bundles" and name.endswith("_bundle")):
                problems.append(f"{word}: {name} is global, and does not begin with rill_")
    print("\n".join(problems) or f"{count} global names of {len(rest)} files, all of them rill's")
    return bool(problems)


sys.exit(main())
