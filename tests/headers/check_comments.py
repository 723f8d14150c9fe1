#!/usr/bin/env python3
"""Every public function's comment has the lines that a reader looks for, and each header says once what holds for all.
Options have the same fields in C and C++."""

import pathlib
import re
import sys

import interface

FUNCTION = re.compile(r"^RILL_API\b[^;{]*?\b(rill_\w+)\s*\(", re.MULTILINE)
COMMENT = re.compile(r"/\*\*(?:(?!\*/).)*\*/\s*\Z", re.DOTALL)
DEFAULTS = " * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.\n"
problems = []
count = 0
options = 0

for path in sorted(pathlib.Path(sys.argv[1], "rill").glob("*.h")):
    text = path.read_text(encoding="utf-8")
    for function in FUNCTION.finditer(text):
        count += 1
        comment = COMMENT.search(text, 0, function.start())
        if not comment:
            problems.append(f"{path.name}: {function.group(1)} has no /** comment */ right before it")
            continue
        for word in ("Errors:", "Like:"):
            if not re.search(rf"^ \*  {word} ", comment.group(), re.MULTILINE):
                problems.append(f"{path.name}: the comment of {function.group(1)} has no line {word}")
    if FUNCTION.search(text) and text.count(DEFAULTS) != 1:
        problems.append(f"{path.name}: does not say once which threads may call, and since which version")
    for line in re.findall(r"Threads: any\.$|Since: 0\.1\b", text, re.MULTILINE):
        problems.append(f"{path.name}: {line} holds for all functions unless they say otherwise")
    if not re.match(r"/\* rill/", text):
        problems.append(f"{path.name}: does not open with what it is")
    for struct, fields in re.findall(r"^RILL_OPTIONS_FIELDS_\((\w+),(.*?)\)\n(?! )", text, re.MULTILINE | re.DOTALL):
        plain = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        ((_, body),) = re.findall(rf"typedef struct( {struct})? \{{([^}}]*)\}} {struct};", plain)
        names = {field.name for field in interface.fields_of(body)} - {"struct_size", "reserved"}
        if names != set(re.findall(r"RILL_OPTIONS_FIELD_\((\w+)\)", fields)):
            problems.append(f"{path.name}: RILL_OPTIONS_FIELDS_ of {struct} does not list {sorted(names)}")
        options += 1
    if len(text.splitlines()) > 300:
        problems.append(f"{path.name}: {len(text.splitlines())} lines; a header is about 250 at most")

if options < 7:
    problems.append(f"only {options} structs of options were found")
if count == 0:
    problems.append("no public function was found")
print("\n".join(problems) or f"{count} functions, each with its comment")
sys.exit(bool(problems))
