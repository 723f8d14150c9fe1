#!/usr/bin/env python3
"""CONTRIBUTING.md names the files that a task touches, and the word for one that was done.  All files that a row names
have its word, and of core, the backends, the headers, the tools and the stand-ins the row names all that have it: other
tests, documents and examples may only use it."""

import pathlib
import re
import sys

PATH = re.compile(r"`((?:[\w.-]+/)*[\w.-]+\.(?:c|h|def|py|txt|build|md|cu)|(?:[\w.-]+/)+)`")
FOLDERS = ("core", "backends", "include", "tools", "tests/support", "tests/headers")

root = pathlib.Path(sys.argv[1])
texts = {}
for folder in FOLDERS:
    for path in sorted((root / folder).rglob("*")):
        if path.is_file() and path.suffix not in (".png", ".pyc"):
            texts[path.relative_to(root).as_posix()] = path.read_text(encoding="utf-8").lower()


def has(name, words):
    path = root / name
    if path.is_dir():
        return any(has(inner.relative_to(root).as_posix(), words) for inner in path.iterdir())
    return path.is_file() and any(word in path.read_text(encoding="utf-8").lower() for word in words)


problems, rows = [], 0
for line in (root / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines():
    row = re.fullmatch(r"\| (.+?) \| (.+) \| ((?:`\w+` ?)+) \|", line)
    if not row:
        continue
    task, files, words = row.group(1), row.group(2), [word.lower() for word in re.findall(r"`(\w+)`", row.group(3))]
    rows += 1
    named, folder = [], ""
    for name in PATH.findall(files):
        folder = name.rpartition("/")[0] if "/" in name else folder
        named.append(name if "/" in name else f"{folder}/{name}")
    for name in named:
        if not has(name, words):
            problems.append(f"CONTRIBUTING.md, {task}: {name} does not have {' or '.join(words)}")
    for name, text in texts.items():
        covered = any(name == path or (path.endswith("/") and name.startswith(path)) for path in named)
        if not covered and any(word in text for word in words):
            problems.append(f"CONTRIBUTING.md, {task}: {name}, which has {' or '.join(words)}, is not named")
if rows < 7:
    problems.append(f"only {rows} rows with a word were found")
print("\n".join(problems) or f"{rows} rows, each with the files of its task")
sys.exit(bool(problems))
