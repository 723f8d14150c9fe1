#!/usr/bin/env python3
"""Calls through rill.hpp have the machine code of calls of the C interface.

usage: check_machine_code.py INCLUDE_DIRECTORY COMPILER ...

Instructions are compared one by one, as the compiler writes them at -O2, with exceptions and without.  Labels are counted
in the order in which they occur.
"""

import pathlib
import re
import subprocess
import sys

include, *compiler = sys.argv[1:]
source = pathlib.Path(__file__).resolve().parent / "machine_code.cpp"


def assembly(mode):
    flags = ["-std=c++17", "-O2", "-S", "-o", "-", "-fno-asynchronous-unwind-tables", "-fno-stack-protector", "-fcf-protection=none"]
    command = [*compiler, *flags, *mode, "-I", include, str(source)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def functions(text):
    """Name -> instructions, those in a cold part included."""
    found, name = {}, None
    for line in text.splitlines():
        label = re.match(r"^(twin_\w+?)(\.cold)?:", line)
        if label:
            name = label.group(1)
            found.setdefault(name, [])
            continue
        if re.match(r"^[\w$.]+:", line) and not line.startswith("."):
            name = None
        if name is None:
            continue
        local = re.match(r"^(\.L\w+):", line)
        instruction = line.split("#")[0].strip()
        if local:
            found[name].append(local.group(1) + ":")
        elif instruction and not instruction.startswith("."):
            found[name].append(" ".join(instruction.split()))
    return {name: numbered(name, lines) for name, lines in found.items()}


def numbered(name, lines):
    used = {label for line in lines if not line.endswith(":") for label in re.findall(r"\.L\w+", line)}
    lines = [line for line in lines if not line.endswith(":") or line[:-1] in used]
    order = {}
    for line in lines:
        for label in re.findall(r"\.L\w+", line):
            order.setdefault(label, f".L{len(order)}")
    lines = [re.sub(r"\.L\w+", lambda match: order[match.group()], line) for line in lines]
    return [line.replace(name + ".cold", "cold") for line in lines]


problems, compared = [], 0
MODES: list[list[str]] = [[], ["-fno-exceptions", "-fno-rtti"]]
for mode in MODES:
    code = functions(assembly(mode))
    for name in sorted(name[len("twin_c_"):] for name in code if name.startswith("twin_c_")):
        c, cpp = code[f"twin_c_{name}"], code.get(f"twin_cpp_{name}", [])
        if not c or not any("rill_" in line or "step_" in line for line in c):
            problems.append(f"{name} {mode}: no call was found in {c}")
        if (c == cpp) == (name == "unlike"):
            problems.append("\n  ".join([f"{name} {' '.join(mode)}: C", *c, "C++", *cpp]))
        compared += 1
if compared < 15:
    problems.append(f"only {compared} pairs were found")
print("\n".join(problems) or f"{compared} pairs compared")
sys.exit(bool(problems))
