#!/usr/bin/env python3
"""Subjects of commits: "area: what", one thing, at most 72 characters.  Those after the first that was checked."""

import pathlib
import re
import shutil
import subprocess
import sys

BASE = "cf80479a2e63997a1bb144eaa1e9ac926d481e0b"

root = pathlib.Path(sys.argv[1])
command = ["git", "-C", root, "log", "--no-merges", "--format=%h %s", f"{BASE}..HEAD"]
log = subprocess.run(command, capture_output=True, text=True, check=False) if shutil.which("git") else None
if log is None or log.returncode != 0:
    print("skipped: no history here")
    sys.exit(77)
problems = []
for line in log.stdout.splitlines():
    commit, _, subject = line.partition(" ")
    if len(subject) > 72:
        problems.append(f"{commit}: {len(subject)} characters: {subject}")
    if not re.match(r"[\w.,+ -]+: \S", subject):
        problems.append(f'{commit}: not "area: what": {subject}')
    if ";" in subject:
        problems.append(f"{commit}: a list of things: {subject}")
print("\n".join(problems) or f"{len(log.stdout.splitlines())} commits")
sys.exit(bool(problems))
