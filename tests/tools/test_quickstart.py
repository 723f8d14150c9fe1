"""tools/quickstart, with stand-ins for the programs that it calls; each notes how it was called."""
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "quickstart")
BASICS = ("bash", "sh", "env", "dirname", "id", "mktemp", "cat", "mkdir", "rm", "sed", "grep", "tail", "head", "chmod")

NOTE = '#!/bin/sh\necho "${0##*/} $*" >>"$CALLS"\n'
STAND_INS = {
    "cc": "#!/bin/sh\n",
    "c++": "#!/bin/sh\n",
    "python3": '#!/bin/sh\nexec "%s" "$@"\n' % sys.executable,
    "cmake": "#!/bin/sh\n",
    "clang++-19": "#!/bin/sh\n",
    "apt-cache": '#!/bin/sh\ncase " ${HAS:-clang-19 lld-19 libclc-19} " in *" $2 "*) ;; *) exit 100 ;; esac\n',
    "make": "#!/bin/sh\n",
    "pkg-config": "#!/bin/sh\n",
    "meson": NOTE
    + """[ "$1" = --version ] && echo "${MESON_VERSION:-1.3.0}"
case "$1 $2" in
  "introspect --tests") sed "s:BUILD:$3:" <<EOF
[{"suite": ["rill:unit"], "name": "quick", "cmd": ["BUILD/quick"], "depends": ["library"]},
 {"suite": ["rill:stress", "rill:long"], "name": "slow", "cmd": ["BUILD/slow"], "depends": []}]
EOF
  ;;
  "introspect --targets") sed "s:BUILD:$3:" <<EOF
[{"id": "library", "filename": ["BUILD/library.so"], "build_by_default": false},
 {"id": "quick", "filename": ["BUILD/quick"], "build_by_default": false},
 {"id": "slow", "filename": ["BUILD/slow"], "build_by_default": false},
 {"id": "tool", "filename": ["BUILD/tool"], "build_by_default": true}]
EOF
  ;;
esac
[ "$1" = setup ] || exit 0
[ -z "${SETUP_FAILS:-}" ] || { echo 'meson.build:1:0: ERROR: no such thing'; exit 1; }
shift; [ "$1" = --reconfigure ] && shift
mkdir -p "$1"; : >"$1/build.ninja"
""",
    "ninja": NOTE
    + """i=0; while [ $i -lt "${STEPS:-0}" ]; do i=$((i + 1)); echo "[$i/$STEPS] Compiling"; done
[ -z "${BUILD_FAILS:-}" ] || { echo 'FAILED: x.o'; echo 'x.c:1: error: y'; exit 1; }
mkdir -p "$2/tools/rill"; printf '#!/bin/sh\\necho "rill $*" >>"$CALLS"\\n' >"$2/tools/rill/rill"; chmod +x "$2/tools/rill/rill"
""",
    "sudo": '#!/bin/sh\nexec "$@"\n',
    "apt-get": NOTE
    + """[ "$1" = update ] && exit 0
[ -z "${APT_FAILS:-}" ] || { echo 'E: no such package'; exit 100; }
echo '1 upgraded, 1 newly installed, 0 to remove and 7 not upgraded.'
for package in a b; do echo "Unpacking $package (1) ..."; done
for package in a b; do echo "Setting up $package (1) ..."; done
mv "$LATER"/* "$BIN"/
""",
    "mv": None,
}


class Quickstart(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """tests/run_tests.py measures the speed of each processor that it may use: one is enough."""
        allowed = os.sched_getaffinity(0)
        cls.addClassCleanup(os.sched_setaffinity, 0, allowed)
        os.sched_setaffinity(0, {min(allowed)})

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.bin, self.later = self.path("bin"), self.path("later")
        os.mkdir(self.bin)
        os.mkdir(self.later)
        for name in BASICS:
            os.symlink(shutil.which(name) or name, os.path.join(self.bin, name))
        for name, text in STAND_INS.items():
            place = os.path.join(self.bin, name)
            if text is None:
                os.symlink(shutil.which(name) or name, place)
                continue
            with open(place, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(place, 0o755)

    def path(self, name):
        return os.path.join(self.folder, name)

    def hide(self, *names):
        """Takes programs away; the stand-in for apt-get brings them."""
        for name in names:
            os.rename(os.path.join(self.bin, name), os.path.join(self.later, name))

    def run_it(self, *arguments, stdout=subprocess.PIPE, **variables):
        calls = self.path("calls")
        if os.path.exists(calls):
            os.remove(calls)
        environment = {"PATH": self.bin, "CALLS": calls, "BIN": self.bin, "LATER": self.later, "HOME": self.folder}
        environment.update({"RILL_BUILD_DIR": self.path("build dir"), "CC": "cc", "CXX": "c++"} | variables)
        done = subprocess.run(
            [os.path.join(self.bin, "bash"), SCRIPT, *arguments],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            check=False,
        )
        self.calls = []
        if os.path.exists(calls):
            with open(calls, encoding="utf-8") as file:
                self.calls = [line for line in file.read().splitlines() if not re.match("meson (--version|introspect)", line)]
        return done

    def called(self, start):
        return [call for call in self.calls if call.startswith(start)]

    def test_demo_builds_and_runs_the_demo(self):
        done = self.run_it("demo")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(self.calls[0], r"^meson setup .*build dir .* -Drill_backend=auto$")
        self.assertRegex(self.calls[1], r"^ninja -C .*build dir tools/rill/rill$")
        self.assertEqual(self.calls[2], "rill info")
        self.assertEqual(self.calls[3], "rill demo -o " + self.path("build dir") + "/demo.png")
        self.assertEqual(self.called("apt-get"), [])

    def test_test_builds_and_runs_the_tests(self):
        done = self.run_it("test", "--", "--suite", "unit")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(self.calls[0].endswith("-Drill_backend=auto -Drill_tests=enabled"), self.calls[0])
        self.assertRegex(self.calls[1], r"^ninja -C .*build dir library.so quick tool$")  # nothing for the long test alone
        self.assertRegex(self.calls[2], r"^meson test -C .*build dir .*--suite unit$")

    def test_slow_machines_have_more_time(self):
        for given, least in ((), 1), (("--setup", "long"), 10), (("--timeout-multiplier", "3"), 3):
            done = self.run_it("test", "--", *given)
            times = int(*re.findall("^time limits: times ([0-9]+): ", done.stdout, re.MULTILINE))
            passed_on = float(*re.findall("--timeout-multiplier ([0-9.]+)", self.calls[-1]))
            self.assertEqual((passed_on, self.calls[-1].count("multiplier")), (times * least, 1))

    def test_libraries_go_to_the_folder_of_the_system(self):
        with open(os.path.join(self.bin, "cc"), "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\n[ "$1" = -print-multiarch ] && echo x86_64-linux-gnu || true\n')
        known = os.path.isdir("/usr/lib/x86_64-linux-gnu")
        self.assertEqual(self.run_it("demo").returncode, 0)
        self.assertEqual(" -Dlibdir=lib/x86_64-linux-gnu" in self.calls[0], known)
        self.assertEqual(self.run_it("demo", "-Dlibdir=lib").returncode, 0)
        self.assertNotIn("x86_64", self.calls[0])

    def test_either_option_names_the_backend(self):
        for given in ("-Dbackend=cuda,hip", "-Drill_backend=cuda,hip"):
            shutil.rmtree(self.path("build dir"), ignore_errors=True)
            self.assertEqual(self.run_it("demo", given).returncode, 0)
            self.assertEqual(self.called("apt-get"), [])
            self.assertEqual(self.calls[0].count("backend="), 1)
            self.assertIn(" -Drill_backend=cuda,hip", self.calls[0])

    def test_other_options_and_arguments_are_passed_on(self):
        done = self.run_it("demo", "-Dbuildtype=release", "-Dbackend=cpu", "--", "a b.png", "-o", "out.png")
        self.assertEqual(done.returncode, 0)
        self.assertIn(" -Dbuildtype=release -Drill_backend=cpu", self.calls[0])
        self.assertEqual(self.calls[-1], "rill demo a b.png -o out.png")

    def test_sets_up_again_only_for_other_options(self):
        self.run_it("demo")
        self.run_it("demo")
        self.assertEqual(self.called("meson setup"), [])
        self.run_it("demo", "-Dbackend=cpu")
        self.assertEqual(len(self.called("meson setup --reconfigure")), 1)
        self.run_it("test", "-Dbackend=cpu")
        self.assertEqual(len(self.called("meson setup --reconfigure")), 1)
        self.run_it("demo", "-Dbackend=cpu")
        self.assertEqual(self.called("meson setup"), [])

    def test_missing_programs_are_installed(self):
        self.hide("ninja", "pkg-config")
        done = self.run_it("demo")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("installing ninja-build pkg-config libpng-dev", done.stdout)
        self.assertEqual(self.called("apt-get")[0], "apt-get update")
        self.assertTrue(self.called("apt-get")[1].endswith(" ninja-build pkg-config libpng-dev"))
        self.assertEqual(self.calls[-1].split(" -o ")[0], "rill demo")

    def said(self, text):
        return re.findall(r"^quickstart: ((?:installing|building): .*)$", text, re.MULTILINE)

    def test_progress_is_printed_in_lines(self):
        self.hide("ninja")
        done = self.run_it("demo", STEPS="40")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertNotIn("\r", done.stdout)
        expected = [f"installing: {percent} %" for percent in (0, 25, 50, 75, 100)]
        self.assertEqual(self.said(done.stdout), expected + [f"building: {percent} %" for percent in (2, *range(10, 101, 10))])
        steps = re.findall(r"^quickstart: ([a-z]+) (?!: )", done.stdout, re.MULTILINE)
        self.assertEqual(steps, ["looking", "updating", "installing", "setting", "building", "rill"])
        done = self.run_it("demo", STEPS="3", BUILD_FAILS="1")
        self.assertEqual(self.said(done.stdout), ["building: 33 %", "building: 66 %", "building: 100 %"])
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: y", done.stderr)
        with open(self.path("build dir") + "/quickstart-build.log", encoding="utf-8") as log:
            self.assertEqual(log.read().count("Compiling"), 3)

    def test_progress_is_one_line_on_a_terminal(self):
        try:
            ours, theirs = pty.openpty()
        except OSError as error:  # a root without /dev/pts
            self.skipTest(str(error))
        done = self.run_it("demo", stdout=theirs, STEPS="4")
        os.close(theirs)
        text = b""
        try:
            while part := os.read(ours, 4096):
                text += part
        except OSError:  # how the other end of a terminal tells that it was closed
            pass
        os.close(ours)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        bars = re.findall(rb"\r  \[(#*) *\] +([0-9]+) %", text)
        self.assertEqual(bars, [(b"#" * (10 * i), b"%d" % (25 * i)) for i in range(1, 5)])
        self.assertEqual(self.said(text.decode()), [])

    def test_clang_is_installed_where_the_system_has_it(self):
        self.hide("clang++-19")
        done = self.run_it("demo", HAS="nothing")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.called("apt-get"), ["apt-get update"])
        self.assertIn("kernels with barriers will be slow", done.stdout)
        done = self.run_it("demo")
        self.assertTrue(self.called("apt-get")[1].endswith(" install -y --no-install-recommends clang-19 lld-19 libclc-19"))
        self.assertNotIn("slow", done.stdout)
        self.hide("clang++-19", "apt-get")
        done = self.run_it("demo")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("kernels with barriers will be slow", done.stdout)

    def test_clang_is_that_of_the_system(self):
        self.hide("clang++-19")
        self.run_it("demo", HAS="clang-18 libclc-18 clang-15 lld-19")
        self.assertTrue(self.called("apt-get")[1].endswith(" install -y --no-install-recommends clang-18 libclc-18"))

    def test_tests_need_more_packages(self):
        self.hide("cmake")
        self.assertEqual(self.run_it("demo").returncode, 0)
        self.assertEqual(self.called("apt-get"), [])
        done = self.run_it("test")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("installing cmake\n", done.stdout)

    def fail_with(self, code, last_line, *arguments, **variables):
        done = self.run_it(*arguments, **variables)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertRegex(done.stderr.splitlines()[-1], last_line)
        return done

    def test_help_is_printed(self):
        for arguments in (("--help",), ("-h",), ("help",), ("demo", "--help"), ("test", "-h")):
            done = self.run_it(*arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, r"^usage: tools/quickstart demo\|test \[-Dbackend=auto\|cpu\|[a-z|]*\] ")
            self.assertNotIn("set -u", done.stdout)
        self.assertEqual(self.calls, [])

    def test_bad_use_is_refused(self):
        for arguments in ((), ("fly",), ("demo", "picture.png")):
            done = self.fail_with(2, r"^usage: tools/quickstart demo\|test", *arguments)
            self.assertEqual(done.stderr.count("\n"), 1)
        for empty in ("-Dbackend=", "-Drill_backend=", "-Dbackend=,"):
            self.fail_with(1, "-Dbackend= names no backend: choose one of auto cpu cuda hip, or leave it out", "demo", empty)
        self.fail_with(1, 'unknown backend "tpu": choose one of auto cpu cuda hip', "demo", "-Dbackend=tpu")
        self.assertEqual(self.calls, [])

    def test_a_system_without_apt_gets_the_list(self):
        self.hide("ninja", "apt-get")
        self.fail_with(1, "packages are missing, and there is no apt-get to install them: ninja-build", "demo")

    def test_a_user_without_rights_gets_the_commands(self):
        self.hide("ninja", "pkg-config", "sudo", "id")
        with open(os.path.join(self.bin, "id"), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho 1000\n")
        os.chmod(os.path.join(self.bin, "id"), 0o755)
        self.fail_with(1, "packages are missing, and installing them requires root: apt-get install ninja-build pkg-config libpng-dev$", "demo")

    def test_chosen_compiler_is_missing(self):
        self.fail_with(1, 'CC is "clang -m64", but clang is not installed: apt-get install clang,', "demo", CC="clang -m64")
        self.fail_with(1, r'"clang\+\+-99", but clang\+\+-99 is not installed: apt-get install clang-99,', "demo", CXX="clang++-99")
        self.assertEqual(self.calls, [])

    def test_a_failed_installation_is_reported(self):
        self.hide("ninja")
        self.fail_with(1, "apt-get could not install: ninja-build", "demo", APT_FAILS="1")

    def test_a_failed_setup_is_reported(self):
        done = self.fail_with(1, "meson could not set up the build", "demo", SETUP_FAILS="1")
        self.assertIn("ERROR: no such thing", done.stderr)
        self.assertEqual(self.run_it("demo").returncode, 0)

    def test_a_failed_build_is_reported(self):
        done = self.fail_with(1, "the build failed", "demo", BUILD_FAILS="1")
        self.assertIn("x.c:1: error: y", done.stderr)
        self.assertEqual(self.called("rill"), [])


if __name__ == "__main__":
    unittest.main()
