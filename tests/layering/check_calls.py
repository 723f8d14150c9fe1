#!/usr/bin/env python3
"""Each slot of a backend that returns a status is in RILL__CALL_LIST of core/backend.h, and only those, so RILL_DISPATCH
can make each fail; the table of docs/reference/ERRORS.md has each word of the list, and no other.

usage: check_calls.py ROOT"""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
header = (root / "core/backend.h").read_text(encoding="utf-8")
tables = re.findall(r"struct rill__(\w+)_table \{(.*?)\n\};", header, re.S)
slots = {(table, slot) for table, body in tables for slot in re.findall(r"^  rill_status \(\*(\w+)\)\(", body, re.M)}
listed = re.findall(r"^  CALL\((\w+), (\w+), \"(\w+)\"\)", header, re.M)
problems = [f"{table}.{slot} is not in RILL__CALL_LIST" for table, slot in sorted(slots - {entry[:2] for entry in listed})]
problems += [f"{table}.{slot} of RILL__CALL_LIST returns no status" for table, slot, _ in listed if (table, slot) not in slots]

errors = (root / "docs/reference/ERRORS.md").read_text(encoding="utf-8")
section = re.search(r"\n## Making calls fail\n(.*?)(?=\n## |\Z)", errors, re.S)
rows = re.findall(r"^\| (`[a-z].*?) \|", section.group(1) if section else "", re.M)
words = {word for row in rows for word in re.findall(r"`(\w+)`", row)}
inject = (root / "core/diagnose/inject.h").read_text(encoding="utf-8")
known = {word for _, _, word in listed} | set(re.findall(r"FAULT\(\"(\w+)\"", inject)) | {"any"}
problems += [f"docs/reference/ERRORS.md does not have the word {word}" for word in sorted(known - words)]
problems += [f"docs/reference/ERRORS.md has {word}, which is no word of RILL_FAULT" for word in sorted(words - known)]
if not slots or not rows:
    problems.append("nothing was found to compare")

print("\n".join(problems) or f"{len(slots)} slots, {len(known)} words")
sys.exit(bool(problems))
