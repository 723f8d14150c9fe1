#!/usr/bin/env python3
"""Every test that EDGE_CASES.md names exists, and every clause that a test names stands in docs/reference/CONTRACT.md."""

import pathlib
import re
import sys

tests = pathlib.Path(sys.argv[1]) / "tests"
problems = []
named = 0
for row in (tests / "EDGE_CASES.md").read_text(encoding="utf-8").splitlines():
    if not row.startswith("| ") or row.startswith("| case"):
        continue
    case = row.split("|")[1].strip()
    for path, functions in re.findall(r"(\w+/\w+\.c)(?:: ((?:\w+, )*\w+))?", row):
        file = tests / path
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        if not text:
            problems.append(f"{case}: there is no tests/{path}")
        for function in filter(None, functions.split(", ")):
            named += 1
            # In a list of tests, of modes, or of names that the program is called with.
            if text and not re.search(rf"\b(TEST|MODE|MODE_WITH|EXITS)\({function}\b|{{ \"{function}\",", text):
                problems.append(f"{case}: tests/{path} has no test {function}")
contract = (tests.parent / "docs/reference/CONTRACT.md").read_text(encoding="utf-8")
clauses = set(re.findall(r"^- \*\*(C\d+\.\d+)\*\*", contract, re.MULTILINE))
for path in sorted(tests.rglob("*.[ch]")):
    for clause in sorted(set(re.findall(r"\bC\d+\.\d+\b", path.read_text(encoding="utf-8"))) - clauses):
        problems.append(f"{path.relative_to(tests.parent)} names {clause}, which is not in docs/reference/CONTRACT.md")
if named == 0:
    problems.append("no test is named")
print("\n".join(problems) or f"{named} tests, all there")
sys.exit(bool(problems))
