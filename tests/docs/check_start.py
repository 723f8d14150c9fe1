#!/usr/bin/env python3
"""The programs of docs/START.md: the page shows them as they are in their files, with their real output.

usage: check_start.py PAGE FOLDER PROGRAM ...

FOLDER has the sources; each of them is a block of the page.  A block that begins with `$ ./NAME`, or `$ VARIABLE=VALUE
./NAME`, shows what PROGRAM of that name prints.  Addresses differ from run to run and are not compared.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys

page, folder = map(pathlib.Path, sys.argv[1:3])
programs = {pathlib.Path(path).name.removeprefix("start_"): path for path in sys.argv[3:]}
blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
problems = []


def without_addresses(text):
    return re.sub(r"0x[0-9a-f]+", "ADDRESS", text)


shown = [text for language, text in blocks if language not in ("", "sh")]
for path in sorted(folder.iterdir()):
    if path.read_text(encoding="utf-8") not in shown:
        problems.append(f"{page.name} does not show {path.name} as it is in {folder}")
if len(shown) != len(list(folder.iterdir())):
    problems.append(f"{page.name} shows {len(shown)} sources, and {folder} has {len(list(folder.iterdir()))}")

ran = set()
for language, text in blocks:
    if language != "" or not text.startswith("$ "):
        continue
    command, _, printed = text.removeprefix("$ ").partition("\n")
    *variables, program = shlex.split(command)
    name = program.removeprefix("./")
    if name not in programs:
        problems.append(f"{page.name} runs {program}, and the programs are {', '.join(programs)}")
        continue
    ran.add(name)
    environment = dict(os.environ, **dict(variable.split("=", 1) for variable in variables))
    result = subprocess.run(
        [programs[name]], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=60
    )
    if result.returncode != 0 or without_addresses(result.stdout) != without_addresses(printed):
        problems.append(f"{command}: exit code {result.returncode}, printed\n{result.stdout}and the page shows\n{printed}")
problems += [f"{page.name} does not run {name}" for name in programs if name not in ran]
print("\n".join(problems) or f"{len(ran)} programs, {len(shown)} sources")
sys.exit(bool(problems))
