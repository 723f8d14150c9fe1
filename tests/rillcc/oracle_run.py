"""Compiles and runs kernels in all their forms on the cpu, and compares every bit with a naive execution.

Kernels are compiled by rillcc for each level of x86-64 that this machine runs, as loops and as fibers, and by a C++ compiler
with naive_cuda.h. RILL_CLANG names another clang++, CXX another C++ compiler."""

import ctypes
import mmap
import os
import random
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass

import oracle_kernels
import oracle_random
import support

LEVELS = ["x86-64", "x86-64-v3", "x86-64-v4"] if support.X86 else [os.uname().machine]
LEVELS = [level for level in LEVELS if support.runnable(level)]
PER_SOURCE = 100
BLOCKS = 3
SECONDS = 30  # that an image may spend in one kernel
COMPILE_SECONDS = 3600
SHAPES = {
    1: ((64, 1, 1), (1, 1, 1), (5, 1, 1), (32, 1, 1), (256, 1, 1), (38, 1, 1), (149, 1, 1)),
    3: ((64, 1, 1), (1, 1, 1), (5, 1, 1), (8, 4, 2), (7, 5, 3), (16, 16, 1), (3, 1, 13), (32, 3, 2), (128, 2, 1)),
}  # fmt: skip
SUMS = 4
# longjmp from stack to stack is what _FORTIFY_SOURCE takes for an attack.
# Without -frounding-math gcc 12 makes -x of 0.0 - x, which is -0.0 where x is 0.0.
NAIVE = "-std=c++17 -O1 -U_FORTIFY_SOURCE -fwrapv -ffp-contract=off -frounding-math -fno-strict-aliasing -fPIC -shared".split()
NAIVE += ["-Winit-self", "-Werror=uninitialized"]  # no kernel may read such a variable
SHARED_WORDS = 4  # of dynamic shared memory, for each thread
RESULTS = {1: "the image lacks this form", 2: "out of memory", 3: "threads wait for each other forever"}
REFUSED = "does not compile"
NAIVE_RESULTS = {1: "threads wait for each other forever", 2: "a lane is not in its mask"}


class Pack(ctypes.Structure):
    """The struct of oracle_kernels.HEAD."""

    _fields_ = [
        ("u", ctypes.c_uint), ("i", ctypes.c_int), ("g", ctypes.c_ushort), ("h", ctypes.c_short), ("k", ctypes.c_ubyte),
        ("j", ctypes.c_byte), ("q", ctypes.c_ulonglong), ("r", ctypes.c_longlong), ("low", ctypes.c_uint, 5),
        ("middle", ctypes.c_uint, 9), ("high", ctypes.c_int, 7), ("f", ctypes.c_float), ("d", ctypes.c_double),
    ]  # fmt: skip


def make_pack(numbers):
    divisor = lambda: numbers.choice((-1, 1)) * numbers.randrange(2, 100)
    return Pack(
        numbers.randrange(1, 600), divisor(), numbers.randrange(1, 600), divisor(), numbers.randrange(1, 256), divisor(),
        numbers.randrange(1, 600), divisor(), numbers.randrange(32), numbers.randrange(512), numbers.randrange(-64, 64),
        numbers.uniform(-9, 9), numbers.uniform(-9, 9),
    )  # fmt: skip


class Inputs:
    """The arguments of a launch but for the output."""

    FLOATS = (0.0, -0.0, 1e-40, -1e-45, 3e38, -3e38, 2147483648.0, -2147483904.0, 4294967296.0, 0.5, -0.5, 1e10)

    def __init__(self, seed, threads):
        numbers = random.Random(1000 * seed + threads)
        ints = [numbers.getrandbits(32) | 1 if k % 3 else numbers.randrange(1, 50) for k in range(1024)]
        floats = [float("nan"), float("inf"), float("-inf"), *self.FLOATS]
        floats += [numbers.uniform(-1000, 1000) for _ in range(256 - len(floats))]
        self.n = ctypes.c_uint((BLOCKS * threads, BLOCKS * threads - threads // 2 - 1, 2 * threads)[seed % 3] or 1)
        self.a = ctypes.c_uint(numbers.getrandbits(32) | 1)
        self.b = ctypes.c_uint(numbers.randrange(1, 100))
        self.c = ctypes.c_int(numbers.choice((7, -3, 13, 1 << 20, -5)))
        self.f = ctypes.c_float(numbers.uniform(-50, 50))
        self.p = make_pack(numbers)
        self.packs = (Pack * 8)(*[make_pack(numbers) for _ in range(8)])
        self.ints = (ctypes.c_uint * 1024)(*ints)
        self.floats = (ctypes.c_float * 256)(*numbers.sample(floats, len(floats)))


class Case:
    """One launch: the shapes of its grid and its blocks, and its inputs."""

    def __init__(self, grid, block, seed):
        self.grid, self.block = grid, block
        self.threads = block[0] * block[1] * block[2]
        self.inputs = Inputs(seed, self.threads)

    def __str__(self):
        return "blocks of %s" % (self.block,)

    def launch(self, run):
        """Calls run(grid, block, pointers to the arguments) on new outputs; returns the status and the bytes of these."""
        given = self.inputs
        out = (ctypes.c_uint * (BLOCKS * self.threads))(*[0xDEADBEEF] * (BLOCKS * self.threads))
        sums = (ctypes.c_uint * SUMS)()
        arrays = [support.pointer_to(array) for array in (given.packs, given.ints, given.floats, out, sums)]
        values = [given.n, given.a, given.b, given.c, given.f, given.p, *arrays]
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
        status = run((ctypes.c_uint * 3)(*self.grid), (ctypes.c_uint * 3)(*self.block), pointers)
        return status, bytes(out) + bytes(sums)


GRIDS = ((BLOCKS, 1, 1), (1, BLOCKS, 1), (1, 1, BLOCKS))
CASES = {d: [Case(GRIDS[k % d], shape, k) for k, shape in enumerate(shapes)] for d, shapes in SHAPES.items()}


class Folder:
    """A folder of a source's files, which is removed at exit."""

    def __enter__(self):
        self.place = tempfile.mkdtemp(prefix="rill-oracle-")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.place)

    def path(self, name):
        return os.path.join(self.place, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def number(self):
        """Returns a number for a new file: a library that is loaded is not written over."""
        return len(os.listdir(self.place))

    def execute(self, command):
        try:
            done = subprocess.run(command, cwd=self.place, capture_output=True, text=True, check=True, timeout=COMPILE_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise CompileError(str(error)) from error
        except subprocess.CalledProcessError as error:
            raise CompileError("%s\n%s" % (error, error.stderr[-6000:])) from error
        return done.stderr


class CompileError(Exception):
    pass


@dataclass
class Failure:
    """A kernel that does not what it should; `form` is "oracle" if it is the kernel itself that is not valid."""

    kernel: oracle_kernels.Kernel
    level: str
    form: str
    text: str

    def __str__(self):
        return "%s, %s, %s: %s" % (self.kernel.name, self.level, self.form, self.text)


def compile_runner(folder):
    path = folder.path("runner.so")
    command = support.CC + ["-D_GNU_SOURCE", "-O1", "-fPIC", "-shared", "-I", support.INCLUDE, "-o", path]
    folder.execute(command + [os.path.join(support.HERE, "runner.c")])
    return ctypes.CDLL(path)


def compile_naive(folder, kernels):
    text = '#include "%s/naive_cuda.h"\n#include "kernels.kernel.cu"\n' % support.HERE
    text += "".join("NAIVE_KERNEL(%s)\n" % kernel.name for kernel in kernels)
    folder.execute(support.CXX + NAIVE + ["-o", folder.path("naive.so"), folder.write("naive.cc", text)])
    return ctypes.CDLL(folder.path("naive.so"))


def compile_images(folder, levels, form, fill):
    """Returns the bytes of each level's image, and what rillcc found wrong with itself in words."""
    command = [sys.executable, support.RILLCC, "-v", "--cuda-names", "-Wno-fibers", "--cpu-option=-w"]
    command += ["-o", folder.path("out.c")]
    command += ["--fibers", "--cxx", support.LOOPS, "--cpu-option=-O1"] if form == "fibers" else []
    for level in levels:
        command += ["--target", "cpu:" + level]
    command += ["--fill"] if fill else []
    said = folder.execute(command + [folder.path("kernels.kernel.cu")])
    images = {target[len("cpu:") :]: data for target, data in support.host_images(folder.path("out.c")).items()}
    return images, re.findall(r'cpu:(\S+): kernel "(k\d+)": (.*bug in rillcc.*)', said)


def survive(kernels, run, seconds):
    """Calls run(kernel, report) in order in a child process, for each kernel, whatever becomes of it there.

    Gives (kernel, text) of what was reported; a kernel in which the child ends or that takes too long is reported, and
    another child starts after it."""
    found, first = [], 0
    while first < len(kernels):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.close(reader)
                with os.fdopen(writer, "w", encoding="utf-8") as pipe:
                    for k in range(first, len(kernels)):
                        run(kernels[k], lambda text, k=k, pipe=pipe: print("%d %s" % (k, text), file=pipe))
                        print("%d" % k, file=pipe, flush=True)
                os._exit(0)
            finally:
                os._exit(99)
        os.close(writer)
        pending, silent = b"", False
        while not silent:
            silent = not select.select([reader], [], [], seconds)[0]
            data = b"" if silent else os.read(reader, 65536)
            if not data:
                break
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                number, _, text = line.decode().partition(" ")
                if text:
                    found.append((kernels[int(number)], text))
                else:
                    first = int(number) + 1
        if silent:
            os.kill(child, signal.SIGKILL)
        os.close(reader)
        status = os.waitpid(child, 0)[1]
        if status != 0 and first < len(kernels):
            what = "takes longer than %d s" % seconds if silent else "ends the process (status %d)" % status
            found.append((kernels[first], what))
            first += 1
    return found


class Expected:
    """The bytes that each kernel writes in each of its cases, in memory that child processes share."""

    def __init__(self, kernels):
        self.place, size = {}, 0
        for kernel in kernels:
            for k, case in enumerate(CASES[kernel.dimensions]):
                self.place[kernel.name, k] = size
                size += 4 * (BLOCKS * case.threads + SUMS)
        self.memory = mmap.mmap(-1, size)

    def slice(self, kernel, k):
        start = self.place[kernel.name, k]
        return slice(start, start + 4 * (BLOCKS * CASES[kernel.dimensions][k].threads + SUMS))

    def set(self, kernel, k, data):
        self.memory[self.slice(kernel, k)] = data

    def get(self, kernel, k):
        return self.memory[self.slice(kernel, k)]


def run_naive(library, kernels, expected, seconds=SECONDS):
    """Fills `expected`; returns a failure for each kernel that is not valid: whose threads wait forever, or whose result
    depends on their order."""

    def run(kernel, report):
        naive = getattr(library, "naive_" + kernel.name)
        for k, case in enumerate(CASES[kernel.dimensions]):
            results = []
            for order in (0, 1):
                results.append(case.launch(lambda *args, order=order: naive(*args, order)))
            for status, _ in results:
                if status != 0:
                    report("%s: %s" % (case, NAIVE_RESULTS[status]))
                    return
            if results[0] != results[1]:
                report("%s: the result depends on the order of the threads" % case)
                return
            expected.set(kernel, k, results[0][1])

    return [Failure(kernel, "", "oracle", text) for kernel, text in survive(kernels, run, seconds)]


def difference(case, data, wanted):
    """Where two outputs differ first."""
    words = list(zip(*(struct.unpack("<%dI" % (len(text) // 4), text) for text in (data, wanted))))
    wrong = [place for place, (one, two) in enumerate(words) if one != two]
    place = "thread %d of block %d" % (wrong[0] % case.threads, wrong[0] // case.threads)
    if wrong[0] >= BLOCKS * case.threads:
        place = "sums[%d]" % (wrong[0] - BLOCKS * case.threads)
    return "%s has 0x%x, expected 0x%x (%d differ)" % (place, *words[wrong[0]], len(wrong))


def run_image(runner, image, kernels, expected, level, form, seconds=SECONDS):
    """Returns a failure for each kernel of an image whose result is not the expected one."""
    entries = {re.findall(r"^_Z\d+(k\d+)", name)[0]: entry for name, entry in image.kernels.items()}

    def run(kernel, report):
        entry = entries[kernel.name]
        as_loops = 1 if entry.run_block and form == "loops" else 0
        for k, case in enumerate(CASES[kernel.dimensions]):

            def call(grid, block, pointers, case=case):
                launch = support.Grid(pointers, grid, block, SHARED_WORDS * 4 * case.threads, None)
                return runner.run_grid(ctypes.byref(entry), ctypes.byref(launch), as_loops)

            status, data = case.launch(call)
            if status != 0:
                report("%s: %s" % (case, RESULTS[status]))
                return
            if data != expected.get(kernel, k):
                report("%s: %s" % (case, difference(case, data, expected.get(kernel, k))))
                return

    return [Failure(kernel, level, form, text) for kernel, text in survive(kernels, run, seconds)]


def check_form(folder, kernels, expected, form, levels, fill, seconds):
    """Compiles and runs one form of kernels. A kernel that does not compile is found by halves."""
    folder.write("kernels.kernel.cu", oracle_kernels.source(kernels))
    try:
        images, mistakes = compile_images(folder, levels, form, fill)
    except CompileError as error:
        if len(kernels) == 1:
            return [Failure(kernels[0], "", form, "%s: %s" % (REFUSED, error))]
        halves = kernels[: len(kernels) // 2], kernels[len(kernels) // 2 :]
        return [f for half in halves for f in check_form(folder, half, expected, form, levels, fill, seconds)]
    by_name = {kernel.name: kernel for kernel in kernels}
    failures = [Failure(by_name[name], level, form, text) for level, name, text in mistakes]
    for level, data in images.items():
        image = support.HostImage(folder, "%d-%s-%s" % (folder.number(), form, level), data)
        failures += run_image(folder.runner, image, kernels, expected, level, form, seconds)
    return failures


def check(kernels, forms, fill, seconds=SECONDS):
    """Compiles kernels and runs them in these forms, each with its levels; returns what failed."""
    with Folder() as folder:
        folder.write("kernels.kernel.cu", oracle_kernels.source(kernels))
        expected = Expected(kernels)
        failures = run_naive(compile_naive(folder, kernels), kernels, expected, seconds)
        invalid = {failure.kernel.name for failure in failures}
        valid = [kernel for kernel in kernels if kernel.name not in invalid]
        folder.runner = compile_runner(folder)
        for form, levels in forms if valid else ():
            failures += check_form(folder, valid, expected, form, levels, fill, seconds)
        return failures


@dataclass
class Source:
    """Kernels that are compiled together. The number chooses the forms, so that all are compared sooner or later."""

    name: str
    number: int
    kernels: list
    one_level: bool = False

    def forms(self):
        """Each form and its levels. The fibers of all levels are the same code, so each source takes one level."""
        one = LEVELS[self.number % len(LEVELS) :][:1]
        return (("loops", one if self.one_level else LEVELS), ("fibers", one))

    def fill(self):
        return self.number % 2 == 1

    def check(self):
        return check(self.kernels, self.forms(), self.fill())


def random_source(seed, count=PER_SOURCE, without=(), one_level=False):
    return Source("seed %d" % seed, seed, oracle_random.kernels(random.Random(seed), count, without), one_level)


def summary(failures):
    """One line for each kernel: where it fails, and how it first did."""
    kernels = {}
    for failure in failures:
        kernels.setdefault(failure.kernel.name, []).append(failure)
    for name, group in kernels.items():
        forms = ", ".join(dict.fromkeys(("%s %s" % (f.form, f.level)).strip() for f in group))
        yield "%s (%s): %s" % (name, forms, group[0].text)
