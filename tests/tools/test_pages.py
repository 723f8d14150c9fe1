"""The manual pages and the completions of bash say what --help says."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

TOOL, RILLCC, PAGES = os.environ["RILL_TOOL"], os.environ["RILL_RILLCC"], os.environ["RILL_PAGES"]
# What bash splits a line at besides spaces.
BREAKS = re.compile(r"[:=]+|[^\s:=]+")
COMPLETE = """
source "$1"; COMP_LINE=$2 COMP_POINT=${#2}; shift 2
name=$1; COMP_WORDS=("${@:2}"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
compopt() { echo "compopt $*"; }
$(complete -p "${name##*/}" | sed 's/.*-F \\([^ ]*\\) .*/\\1/') "$name" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
((${#COMPREPLY[@]} == 0)) || printf '%s\\n' "${COMPREPLY[@]}"
"""


def output(*command, **variables):
    return subprocess.run(command, env=dict(os.environ, **variables), stdout=subprocess.PIPE, check=True).stdout.decode()


def help_of(command):
    words = (RILLCC,) if command == "rillcc" else (TOOL, *command.split("-")[1:])
    return output(*words, "--help", COLUMNS="79", NO_COLOR="1")


def commands():
    return re.findall(r"^usage: rill ([\w |]+) \| help ", help_of("rill"))[0].split(" | ")


def options_of(command):
    """Read otherwise than by the script that is tested: whatever looks like an option where a line of help starts."""
    found = set()
    for terms in re.findall(r"^  (-\S.*?)(?:  |$)", help_of(command), re.M):
        found.update(re.findall(r"(?:^|, )(--?[\w-]+)", terms))
    return found


class Pages(unittest.TestCase):
    def names(self):
        return ["rill", *("rill-" + command for command in commands()), "rillcc"]

    def test_each_command_has_a_page(self):
        written = sorted(name for name in os.listdir(PAGES) if name.endswith(".1"))
        self.assertEqual(written, sorted(name + ".1" for name in self.names()))

    def test_tools_for_pages_have_no_complaint(self):
        checked = 0
        for name in self.names():
            path = os.path.join(PAGES, name + ".1")
            for command in (["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", path], ["mandoc", "-T", "lint", "-W", "warning", path]):
                if shutil.which(command[0]) is None:
                    continue
                done = subprocess.run(command, capture_output=True, check=False)
                said = done.stderr.decode() + (done.stdout.decode() if command[0] == "mandoc" else "")
                # A page without a day is the same in each build.
                complaints = [line for line in said.splitlines() if "missing date" not in line]
                self.assertEqual(complaints, [], name)
                checked += 1
        if checked == 0:
            self.skipTest("no man and no mandoc here")

    def test_pages_are_found_and_have_each_option(self):
        if shutil.which("man") is None:
            self.skipTest("no man here")
        with tempfile.TemporaryDirectory() as root:
            os.mkdir(os.path.join(root, "man1"))
            for name in self.names():
                shutil.copy(os.path.join(PAGES, name + ".1"), os.path.join(root, "man1"))
                path = output("man", "-w", name, MANPATH=root).strip()
                self.assertEqual(path, os.path.join(root, "man1", name + ".1"))
                text = output("man", name, MANPATH=root, MANWIDTH="200", MAN_KEEP_FORMATTING="", MANPAGER="cat", LC_ALL="C.UTF-8")
                text = re.sub(r"\s+", " ", text)
                self.assertRegex(text, rf"^{name.upper()}\(1\) .* NAME {name} - [a-z].* SYNOPSIS .* DESCRIPTION .* SEE ALSO ")
                said = help_of(name)
                if name == "rill":
                    for command in commands():
                        self.assertIn(f"rill-{command}(1)", text)
                    continue
                self.assertGreater(len(options_of(name)), 0)
                for option in options_of(name):
                    self.assertIn(f" {option}", text)
                # Every word of the help is in the page.
                missing = set(re.findall(r"[a-z]{3,}", said)) - set(re.findall(r"[a-z]{3,}", text)) - {"usage", "positional", "arguments"}
                self.assertEqual(missing, set(), name)


class Completion(unittest.TestCase):
    def complete(self, line, program=None):
        name = line.split()[0]
        words = BREAKS.findall(line) + ([""] if line[-1] in " :=" else [])
        program = program or {"rill": TOOL, "rillcc": RILLCC}[name]
        script = os.path.join(PAGES, name)
        return output("bash", "--norc", "-c", COMPLETE, "bash", script, line, program, *words).split("\n")[:-1]

    def test_commands_are_completed(self):
        self.assertEqual(set(self.complete("rill ")), {*commands(), "help", "--help", "--version"})
        self.assertEqual(self.complete("rill do"), ["doctor"])
        self.assertEqual(self.complete("rill fly "), [])
        self.assertEqual(self.complete("rill help "), commands())

    def test_options_are_those_of_help(self):
        for name in ("rillcc", *("rill-" + command for command in commands())):
            self.assertEqual(set(self.complete(name.replace("-", " ") + " -")), options_of(name), name)
            self.assertGreater(len(options_of(name)), 0)

    def test_words_are_completed(self):
        self.assertEqual(self.complete("rill doctor "), "cpu cuda hip mpi system".split())
        self.assertEqual(self.complete("rill bench st"), ["stream"])
        self.assertEqual(self.complete("rillcc --fp-contract "), ["fast", "off"])
        self.assertEqual(self.complete("rillcc --target h"), ["hip"])
        self.assertEqual(self.complete("rillcc -W error="), ["fibers"])
        for section in re.findall(r"^  ([a-z]+) ", help_of("rill-bench"), re.M):
            self.assertIn(section, self.complete("rill bench "))

    def test_files_are_left_to_bash(self):
        for line in ("rill demo ", "rill demo -o ", "rillcc ", "rillcc -o x.c ", "rill trace -o t.json ./prog "):
            self.assertEqual(self.complete(line), [], line)
        self.assertEqual(self.complete("rill demo --tile "), ["compopt +o default"])

    def test_programs_to_trace_are_completed(self):
        self.assertIn("ls", self.complete("rill trace l"))
        self.assertIn("ls", self.complete("rill trace --summary -o t.json l"))

    def test_devices_are_completed(self):
        listed = [line.split()[0] for line in output(TOOL, "info").partition("\n\n")[0].split("\n")[1:]]
        for line in ("rill info ", "rill demo --device ", "rill bench --device "):
            self.assertEqual(self.complete(line), ["gpu", *listed], line)

    def test_names_of_devices_have_colons(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rill")
            with open(path, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\nprintf 'device  name\\ncuda:0  a\\ncuda:1  b c\\ncpu     d\\n\\nno hip device: ...\\n'\n")
            os.chmod(path, 0o755)
            self.assertEqual(self.complete("rill info ", path), ["gpu", "cuda:0", "cuda:1", "cpu"])
            self.assertEqual(self.complete("rill info cuda:", path), ["0", "1"])
            self.assertEqual(self.complete("rill demo --device cuda:1", path), ["1"])


if __name__ == "__main__":
    unittest.main()
