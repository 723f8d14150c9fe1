#!/usr/bin/env python3
"""Every public function has a file of its own in tests/conformance, which the build runs and which names it.  Those of
rill_comm, which is no part of the library, are called by the tests in tests/comm."""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])


def functions_of(headers):
    text = "\n".join(path.read_text(encoding="utf-8") for path in headers)
    return sorted(set(re.findall(r"RILL_API\b[^;{]*?\b(rill_\w+)\s*\(", text)))


headers = sorted((root / "include/rill").glob("*.h"))
of_comm = [path for path in headers if path.name.startswith("comm")]
functions = functions_of(path for path in headers if path not in of_comm)
registered = set(re.findall(r"'(\w+)'", (root / "tests/conformance/meson.build").read_text(encoding="utf-8")))
problems = [] if functions else ["no public function was found"]

for function in functions:
    name = function.removeprefix("rill_")
    path = root / "tests/conformance" / f"{name}.c"
    if not path.exists():
        problems.append(f"{function}: there is no {path.relative_to(root)}")
    elif name not in registered:
        problems.append(f"{function}: {path.relative_to(root)} is not in meson.build")
    elif f"{function}(" not in path.read_text(encoding="utf-8"):
        problems.append(f"{function}: {path.relative_to(root)} does not call it")

in_comm = "\n".join(path.read_text(encoding="utf-8") for path in sorted((root / "tests/comm").glob("*.c")))
for function in functions_of(of_comm):
    if not re.search(rf"\b{function}\(", in_comm):
        problems.append(f"{function}: nothing in tests/comm calls it")

print("\n".join(problems) or f"{len(functions)} functions, each with its file")
sys.exit(bool(problems))
