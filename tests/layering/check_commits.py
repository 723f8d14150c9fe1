#!/usr/bin/env python3
"""Subjects of commits: "area: what", one thing, at most 72 characters; since these have been rules, imperative, and without
the patterns in plain_english.py."""

import pathlib
import re
import shutil
import subprocess
import sys

import plain_english

BASE = "cf80479a2e63997a1bb144eaa1e9ac926d481e0b"

IMPERATIVE = "10c2a61732dad601aeef7f15d5b704ecb3be5fde"  # the last one before the rule
PLAIN = "37ce16eb12d4a0c7a9d60935f9be57a5abf6fbe8"  # the last one before this rule
# What an imperative does not begin with: another form of a verb, or no verb.
VERBS = r"(pass|process|access|address|press|compress|express|cross|miss|guess|focus|need|feed|seed|speed|embed|exceed|bring|ring)$"
OTHER = r"(a|an|the|no|not|more|less|one|two|all|each|every|some|any|it|its|this|these|that|what|when|where|how|only|new|old|is|are)$"

root = pathlib.Path(sys.argv[1])
command = ["git", "-C", str(root), "log", "--no-merges", "--format=%h %s", f"{BASE}..HEAD"]
log = subprocess.run(command, capture_output=True, text=True, check=False) if shutil.which("git") else None
if log is None or log.returncode != 0:
    print("skipped: no history here")
    sys.exit(77)


def commits_since(last):
    command = ["git", "-C", str(root), "log", "--no-merges", "--format=%h", f"{last}..HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


imperative, plain = commits_since(IMPERATIVE), commits_since(PLAIN)


def is_imperative(subject):
    word = subject.partition(": ")[2].partition(" ")[0]
    return re.match(VERBS, word) or not (re.match(OTHER, word) or re.search(r"(s|ed|ing)$", word))


problems = []
for line in log.stdout.splitlines():
    commit, _, subject = line.partition(" ")
    if len(subject) > 72:
        problems.append(f"{commit}: {len(subject)} characters: {subject}")
    if not re.match(r"[\w.,+/ -]+: \S", subject):
        problems.append(f'{commit}: not "area: what": {subject}')
    if commit in imperative and not is_imperative(subject):
        problems.append(f"{commit}: not imperative, as in \"core: bound pool memory\": {subject}")
    if commit in plain:
        problems += [f"{commit}: {problem}: {subject}" for problem in plain_english.found_in_subject(subject)]
    if ";" in subject:
        problems.append(f"{commit}: a list of things: {subject}")
print("\n".join(problems) or f"{len(log.stdout.splitlines())} commits")
sys.exit(bool(problems))
