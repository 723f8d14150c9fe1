#!/usr/bin/env python3
"""Layouts of public structs, public functions and constants, beside those recorded in abi.txt.

usage: check_abi.py INCLUDE COMPILER ... [-- C++ COMPILER ...]
       check_abi.py --record INCLUDE COMPILER ...      adds what is new to abi.txt

Recorded entries stay unchanged, and new ones have to be recorded.  A struct keeps all sizes that it ever had.  A new field
begins after the last of them: what is before it may be padding, which programs of the older header fill with anything.
"""

import pathlib
import re
import sys

import interface

RECORD = pathlib.Path(__file__).resolve().parent / "abi.txt"


class Abi:
    def __init__(self):
        self.sizes, self.fields, self.functions, self.constants = {}, {}, {}, {}


def read_record():
    abi = Abi()
    for line in RECORD.read_text(encoding="utf-8").splitlines() if RECORD.exists() else []:
        words = line.split()
        if line.startswith("struct "):
            struct = words[1]
            abi.sizes[struct], abi.fields[struct] = [int(word) for word in words[2:]], {}
        elif line.startswith("  "):
            abi.fields[struct][words[2]] = (int(words[0]), int(words[1]), " ".join(words[3:]))
        elif line.startswith("function "):
            abi.functions[words[1]] = line.split(None, 2)[2]
        elif line.startswith("constant "):
            abi.constants[words[1]] = int(words[2])
    return abi


def write_record(abi):
    lines = ["# The interface that programs were compiled with: sizes of structs, old ones first, with offset, size, name and type of",
             "# fields.  tests/headers/check_abi.py --record adds what is new."]
    for struct, sizes in abi.sizes.items():
        lines += ["", "struct %s %s" % (struct, " ".join(map(str, sizes)))]
        lines += ["  %d %d %s %s" % (offset, size, name, kind) for name, (offset, size, kind) in abi.fields[struct].items()]
    lines += [""] + ["function %s %s" % item for item in sorted(abi.functions.items())]
    lines += [""] + ["constant %s %d" % item for item in sorted(abi.constants.items())]
    RECORD.write_text("\n".join(lines) + "\n", encoding="utf-8")


def today(include, compiler):
    abi = Abi()
    text = interface.preprocess(compiler, include)
    found = interface.structs(text)
    layouts, abi.constants = interface.measure(compiler, "c", include, found, interface.constants(compiler, include, text))
    abi.sizes = {struct: [layout.size] for struct, layout in layouts.items()}
    abi.fields = {struct: layout.fields for struct, layout in layouts.items()}
    abi.functions = interface.functions(text)
    return abi, found


def changes(old, new):
    """What breaks programs; and what is new."""
    broken, added = [], []
    for what in ("functions", "constants", "fields"):
        before, after = getattr(old, what), getattr(new, what)
        broken += [f"{name} is gone" for name in before if name not in after]
        added += [name for name in after if name not in before]
        if what != "fields":
            broken += [f"{name} was {value}, is {after[name]}" for name, value in before.items() if after.get(name, value) != value]
    for struct in filter(new.fields.__contains__, old.fields):
        before, after, size = old.fields[struct], new.fields[struct], new.sizes[struct][0]
        for name, (offset, length, kind) in before.items():
            if after.get(name) != (offset, length, kind):
                broken.append(f"{struct}.{name} was at {offset}, {length} bytes of {kind}; is {after.get(name, 'gone')}")
        last = old.sizes[struct][-1]
        grows = "struct_size" in before
        for name in filter(lambda name: name not in before, after):
            added.append(f"{struct}.{name}")
            if grows and after[name][0] < last:
                broken.append(f"{struct}.{name} is at {after[name][0]}, inside of the {last} bytes that older programs have")
        if size != last and not (grows and size > last):
            broken.append(f"{struct} had {last} bytes, has {size}")
        elif size != last:
            added.append(f"{struct} of {size} bytes")
    return broken, added


def record(old, new):
    for struct, sizes in new.sizes.items():
        known = old.sizes.setdefault(struct, [])
        known += [size for size in sizes if size not in known]
    for what in ("fields", "functions", "constants"):
        getattr(old, what).update(getattr(new, what))
    write_record(old)


def check_itself(old):
    """Checks that each kind of break would be found."""
    struct = "rill_stream_options"
    last = old.sizes[struct][-1]
    breaks = {
        "label was at": lambda abi: abi.fields[struct].update(label=(16, 8, "const char*")),
        "padded is at": lambda abi: abi.fields[struct].update(padded=(20, 4, "uint32_t")),
        "rill_arg had 16 bytes": lambda abi: abi.sizes.update(rill_arg=[24]),
        f"{struct} had {last} bytes": lambda abi: abi.sizes.update({struct: [last - 8]}),
        "rill_free is gone": lambda abi: abi.functions.pop("rill_free"),
        "rill_alloc was": lambda abi: abi.functions.update(rill_alloc="void(void)"),
        "RILL_OK was 0, is 1": lambda abi: abi.constants.update(RILL_OK=1),
    }
    problems = []
    for text, change in breaks.items():
        abi = read_record()
        abi.sizes = {name: sizes[-1:] for name, sizes in abi.sizes.items()}
        change(abi)
        if not any(text in said for said in changes(old, abi)[0]):
            problems.append(f"not found when broken: {text}")
    return problems


def main(arguments):
    recording = arguments[0] == "--record"
    include, *compilers = arguments[recording:]
    compiler, plus = compilers, []
    if "--" in compilers:
        compiler, plus = compilers[: compilers.index("--")], compilers[compilers.index("--") + 1 :]
    new, found = today(include, compiler)
    old = read_record()
    problems, added = changes(old, new)
    if not recording:
        problems += [f"not recorded: {name}" for name in added] + check_itself(old)
    if plus:
        names = [name for name in new.constants if not re.search("BUNDLE", name)]
        layouts, values = interface.measure([*plus, "-std=c++17"], "c++", include, found, names)
        problems += [f"{name} is other in C++" for name in names if values[name] != new.constants[name]]
        for struct, layout in layouts.items():
            if (layout.size, layout.fields) != (new.sizes[struct][0], new.fields[struct]):
                problems.append(f"{struct} is other in C++")
    if problems:
        print("\n".join(problems))
        sys.exit("abi.txt says otherwise; for what is new: tests/headers/check_abi.py --record INCLUDE CC")
    if recording:
        record(old, new)
    grow = sum("struct_size" in fields for fields in new.fields.values())
    print(f"{len(new.fields)} structs ({grow} that may grow), {len(new.functions)} functions, {len(new.constants)} constants")


main(sys.argv[1:])
