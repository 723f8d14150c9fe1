#!/usr/bin/env python3
"""Checks that tests notice when rill stops keeping a promise of docs/reference/CONTRACT.md.

    run.py BUILD [--jobs N] [--only NAME ...] [-- MESON OPTION ...]
    run.py --check

Copies the source tree into BUILD/source, which is configured in BUILD/build, and makes one change of mutants.py there after
the other.  The tests that the change names have to pass without it and to fail with it; no others are built.  Hangs and
compile errors count as follows: a test that does not end in time has failed; a change that does not compile is a mistake of
the list.  The last line says how many changes were noticed.

--check only tests whether each change still applies.
"""

import argparse
import json
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True

from mutants import MUTANTS  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIMIT = 60  # seconds that a test may take
SHOWN = 3000  # characters of what a failed command wrote
OPTIONS = ["-Dbuildtype=debug", "-Drill_checks=disabled", "-Drill_tests=enabled", "-Drill_mpi=none"]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def problems(mutant, root=ROOT):
    """Returns why a change cannot be made, if it cannot."""
    path = os.path.join(root, mutant.file)
    if not os.path.exists(path):
        return "there is no %s" % mutant.file
    count = read(path).count(mutant.find)
    if count != 1:
        return "%s has its text %d times, not once" % (mutant.file, count)
    return "" if mutant.find != mutant.replace else "it changes nothing"


def check(mutants):
    """Prints what does not apply any more; True if all do."""
    names = [mutant.name for mutant in mutants]
    found = ["%s: %s" % (mutant.name, problems(mutant)) for mutant in mutants if problems(mutant)]
    found += ["%s stands in the list more than once" % name for name in sorted(set(names)) if names.count(name) > 1]
    contract = read(os.path.join(ROOT, "docs", "reference", "CONTRACT.md"))
    found += ["%s: no clause %s" % (m.name, m.clause) for m in mutants if "**%s**" % m.clause not in contract]
    print("\n".join(found) or "%d changes apply" % len(mutants))
    return not found


class Build:
    """A copy of the sources and its build, which may be there from the last time."""

    def __init__(self, folder, jobs, options):
        self.source, self.build = (os.path.join(os.path.abspath(folder), part) for part in ("source", "build"))
        self.jobs = jobs
        self.copy()
        if not os.path.exists(os.path.join(self.build, "build.ninja")):
            self.need(["meson", "setup", self.build, self.source, *OPTIONS, *options])
        self.tests = {test["name"]: test for test in self.ask("--tests")}
        self.made = {name for target in self.ask("--targets") for name in target["filename"]}
        # The stand-ins for vendors are found by LD_LIBRARY_PATH.
        self.stand_ins = {file for file in self.made if "/tests/support/fake_" in file and ".so" in file}

    def copy(self):
        """Only what differs, so that little is built again."""
        listed = ["git", "-c", "safe.directory=" + ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
        for name in filter(None, names):
            here, there = os.path.join(ROOT, name), os.path.join(self.source, name)
            if not os.path.isfile(here):
                continue
            with open(here, "rb") as file:
                data = file.read()
            if os.path.exists(there):
                with open(there, "rb") as file:
                    if file.read() == data:
                        continue
            os.makedirs(os.path.dirname(there), exist_ok=True)
            with open(there, "wb") as file:
                file.write(data)
            os.chmod(there, os.stat(here).st_mode)

    def need(self, command):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        if done.returncode != 0:
            sys.exit("%s\n%s fails" % (done.stdout[-SHOWN:], " ".join(command)))

    def ask(self, what):
        done = subprocess.run(["meson", "introspect", what, self.build], stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)

    def make(self, names):
        """Builds what tests need; what the compiler says if it refuses."""
        files = {file for name in names for file in self.tests[name]["cmd"] if file in self.made}
        wanted = [os.path.relpath(file, self.build) for file in sorted(files | self.stand_ins)]
        command = ["ninja", "-C", self.build, *(["-j", str(self.jobs)] if self.jobs else []), *wanted]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        return done.stdout[-SHOWN:] if done.returncode != 0 else ""

    def fails(self, name):
        """Runs a test; why it fails, "" if it passes."""
        test = self.tests[name]
        child = subprocess.Popen(
            test["cmd"],
            cwd=test["workdir"] or self.build,
            env=dict(os.environ, **test["env"]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            code = child.wait(LIMIT)
        except subprocess.TimeoutExpired:
            code = None
        try:
            os.killpg(child.pid, 9)  # children that it has left
        except ProcessLookupError:
            pass
        child.wait()
        if code is None:
            return "hangs"
        return "" if code in (0, 77) else "fails" if code > 0 else "ends by signal %d" % -code


def try_one(build, mutant):
    """Makes a change and takes it back; a word, and what there is to say."""
    unknown = [name for name in mutant.tests if name not in build.tests]
    problem = problems(mutant, build.source) or (unknown and "this build has no test %s" % ", ".join(unknown))
    if problem:
        return "FAILED", problem
    path = os.path.join(build.source, mutant.file)
    text = read(path)
    write(path, text.replace(mutant.find, mutant.replace))
    try:
        message = build.make(mutant.tests)
        if message:
            return "FAILED", "does not compile:\n" + message
        outcomes = {name: build.fails(name) for name in mutant.tests}
    finally:
        write(path, text)
    passed = [name for name, outcome in outcomes.items() if not outcome]
    if passed:
        return "FAILED", "not noticed by %s" % ", ".join(passed)
    return "caught", "; ".join("%s %s" % pair for pair in outcomes.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=[])
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options, more = parser.parse_args(sys.argv[1:at]), sys.argv[at + 1 :]
    mutants = [m for m in MUTANTS if not options.only or any(word in m.name for word in options.only)]
    if options.check:
        sys.exit(not check(mutants))
    if not options.build or not mutants:
        parser.error("no folder for the build" if mutants else "no such change")
    build = Build(options.build, options.jobs, more)
    names = sorted({name for mutant in mutants for name in mutant.tests if name in build.tests})
    message = build.make(names)
    broken = [] if message else [name for name in names if build.fails(name)]
    if message or broken:
        sys.exit(message or "without any change, these fail: %s" % ", ".join(broken))
    caught = 0
    for mutant in mutants:
        start = time.monotonic()
        word, detail = try_one(build, mutant)
        caught += word == "caught"
        print("%-7s %-5s %s (%.0f s): %s" % (word, mutant.clause, mutant.name, time.monotonic() - start, detail), flush=True)
    print("%d of %d caught" % (caught, len(mutants)))
    sys.exit(caught != len(mutants))


if __name__ == "__main__":
    main()
