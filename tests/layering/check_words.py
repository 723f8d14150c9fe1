#!/usr/bin/env python3
"""Names, comments and texts use the field's words (the glossary in docs/reference/ARCHITECTURE.md), not private ones; and
plain English instead of the patterns in plain_english.py."""

import pathlib
import re
import sys

import plain_english

BANNED = {
    r"memo": "completion cache",
    r"told": "reported, notified",
    r"behind": "after",
    r"patience": "timeout, backoff",
    r"witness": "what it is",
    r"aside": "suspended, apart",
    r"wish(es|ed)?": "request",
    r"strange(r|rs)?": "foreign",
    r"put(s|ting)? off": "defer",
    r"doors?": "RILL_DISPATCH",
    r"in any version": "nothing: it says nothing",
    r"let reach": "access",
    # "whole" is an adjective before its noun ("the whole device", whole_pages), never a name or a predicate.
    r"(?<!as a )(?<!link_)whole(?![ _][a-zA-Z])(?!$)": "complete, all, total, intact",
    # Work starts.  "begin" is the first of a pair with "end" (ranges, captures), and what contents begin with.
    r"(kernel|work|operation|record|wait|launch|call|copy)(e?s)?( that| has| have| had| may| will| not)* "
    r"(begins?|began|begun)(?! with)": "start",
    # The last use of memory is a last use.
    r"(note|records|by)_uses?|struct rill__last_use \*+uses?": "last_use",
    # Directions of copies are to the device and to the host; "down" is of space, of numbers and of machines.
    r"up,( and)? down(?=,| and)": "to the device and to the host",
}
LANE = {r"lanes?": "stream, worker, track; a warp has lanes"}
WARPS = re.compile(
    r"warp|dialect|KERNELS|COMPILING|FROM_CUDA|CHANGELOG|EDGE_CASES|rillcc|include/rill/device|kernels/|gpt2"
    r"|cpu/(fiber|kernel|device|compile)|fake_vendor|dlpack|vendor_compiler|topology"
)
# Words of licences and of other people's formats.
ELSEWHERE = re.compile(r"LICENSE|\.(png|svg)$|(check_words|plain_english)\.py$")
FOLDERS = ("core", "backends", "include", "tools", "kernels", "tests", "docs", "README.md", "CONTRIBUTING.md", ".ci")

root = pathlib.Path(sys.argv[1])
names = []
problems = list(plain_english.blind())
for folder in FOLDERS:
    paths = (root / folder).rglob("*") if (root / folder).is_dir() else [root / folder]
    names += sorted(str(path.relative_to(root)) for path in paths if path.is_file() and "__pycache__" not in path.parts)


def compiled(words):
    # Of a name in snake case, each part is a word.
    return [
        (re.compile(rf"(?<![a-zA-Z0-9]){word}(?![a-zA-Z0-9])", re.IGNORECASE), instead) for word, instead in words.items()
    ]


banned, lane = compiled(BANNED), compiled(LANE)
count = 0
for name in names:
    path = root / name
    if ELSEWHERE.search(name):
        continue
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        continue
    count += 1
    problems += plain_english.found_in(name, text)
    for number, line in enumerate(text.splitlines(), 1):
        for word, instead in banned + ([] if WARPS.search(name) or "warp" in line or "type_lanes" in line else lane):
            found = word.search(line)
            if found:
                problems.append(f'{name}:{number}: "{found.group()}": write {instead}')
if count < 300:
    problems.append(f"only {count} files were read")
print("\n".join(problems) or f"{count} files, no private word")
sys.exit(bool(problems))
