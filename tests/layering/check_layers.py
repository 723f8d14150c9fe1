#!/usr/bin/env python3
"""Checks the allowed dependencies: core knows no vendor and no backend, backends know core through core/backend.h alone,
the shared GPU source names a vendor in gpu_api.def and gpu_enums.def only, rill_comm stands on the public headers alone,
and those are the same whatever was built in."""

import pathlib
import re
import sys

VENDOR = re.compile(r"(?<![a-z])(cuda|hip|nvidia|amd|rocm)", re.IGNORECASE)
VENDORS_HEADER = re.compile(r'^\s*#\s*include\s*[<"](cuda|nv|hip|nccl|rccl|cublas|driver_types)[^>"]*\.h[>"]')
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
CONDITION = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif)\b")

root = pathlib.Path(sys.argv[1])
problems = []


def lines(folder, *patterns):
    """Path, number and text of each line of the files of a folder."""
    for path in sorted(file for pattern in patterns for file in (root / folder).rglob(pattern) if file.is_file()):
        for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            yield path.relative_to(root), number, text


def problem(path, number, what):
    problems.append(f"{path}:{number}: {what}")


def check_words(folder, exceptions=()):
    for path, number, text in lines(folder, "*"):
        word = VENDOR.search(text)
        if word and path.name not in exceptions:
            problem(path, number, f'names a vendor: "{word.group()}"')


def check_includes(folder, may_include, rule):
    for path, number, text in lines(folder, "*.[ch]"):
        include = INCLUDE.match(text)
        if include and include.group(1).startswith(("core/", "backends/", "tests/", "tools/")):
            if not may_include(include.group(1)):
                problem(path, number, f"includes {include.group(1)}: {rule}")


vendors = sorted(path.parent.name for path in root.glob("backends/*/vendor.h"))
backends = sorted({path.parent.name for path in root.glob("backends/*/meson.build")} - {"comm"} | {"gpu"})

check_words("core")
check_words("backends/gpu", exceptions=("gpu_api.def", "gpu_enums.def"))
check_includes("core", lambda name: name.startswith("core/"), "core knows no backend")
for backend in backends:
    own = (f"backends/{backend}/",) + (("backends/gpu/",) if backend in vendors else ())
    check_includes(
        f"backends/{backend}",
        lambda name, own=own: name == "core/backend.h" or name.startswith(own),
        "a backend knows core/backend.h and itself",
    )
check_includes("backends/comm", lambda name: name.startswith("backends/comm/"), "rill_comm is a user of the public headers")
for folder in ["core"] + [f"backends/{backend}" for backend in backends]:
    for path, number, text in lines(folder, "*"):
        if "rill_comm" in text or "rill/comm" in text:
            problem(path, number, "names rill_comm, which stands beside the library")
for folder in ("core", "backends", "tools"):
    for path, number, text in lines(folder, "*.[ch]"):
        if VENDORS_HEADER.match(text):
            problem(path, number, "needs a vendor's header: backends/*/*_api.h declare what is used")
check_includes("tools", lambda name: False, "tools are users of the public headers")
check_includes("include", lambda name: False, "public headers know their siblings alone")

for path, number, text in lines("include/rill", "*.h"):
    if "device" not in path.parts and CONDITION.match(text) and VENDOR.search(text):
        problem(path, number, "depends on what was built in")

print("\n".join(problems) or "every layer knows what it may")
sys.exit(bool(problems))
