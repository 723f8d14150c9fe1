"""What the tests of rillcc share: running it, reading the bundles that it makes, running host images."""

import collections
import ctypes
import importlib.machinery
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import traceback
import types
import unittest
from typing import ClassVar

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
RILLCC = os.path.join(ROOT, "tools", "rillcc")
INCLUDE = os.path.join(ROOT, "include")
KERNELS = os.path.join(ROOT, "kernels")
CC = os.environ.get("CC", "cc").split()
CXX = os.environ.get("CXX", "c++").split()
STRICT = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -fPIC".split()
STRICT_C = STRICT + ["-std=c11", "-Wmissing-prototypes"]
STRICT_CXX = STRICT + ["-std=c++17"]

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tools"))

from rillcc_lib import compilers, host, listing  # noqa: E402

SOURCES = {name: os.path.join(KERNELS, name + ".kernel.cu") for name in ("basic", "gate", "image")}
SOURCES["dialect"] = os.path.join(HERE, "dialect.kernel.cu")

NVCC = compilers.find_nvcc(os.environ.get("RILL_NVCC"))
PTXAS = compilers.find_program(None, "ptxas", ("CUDA_HOME", "CUDA_PATH"), ["/usr/local/cuda/bin"])
HIPCC = compilers.find_hipcc(os.environ.get("RILL_HIPCC"))
CLANG = compilers.find_clang(os.environ.get("RILL_CLANG"))
CUDA_CLANG = compilers.find_clang(os.environ.get("RILL_CLANG"), linker=False)
# Whether the compiler for the cpu makes loops of kernels with barriers.
LOOPS = host.find_clang(types.SimpleNamespace(fibers=False, cxx=None, clang=os.environ.get("RILL_CLANG")))[0]
X86 = os.uname().machine == "x86_64"
HOST = "cpu:x86-64" if X86 else "cpu:" + os.uname().machine
# Arguments for a target of each kind of compiler that is here, where the others would show nothing more.
ONE_OF_EACH = ["--target", HOST]
if NVCC or CUDA_CLANG:
    ONE_OF_EACH += ["--target", "cuda:sm_90"]
if HIPCC or CLANG:
    ONE_OF_EACH += ["--target", "hip:gfx90a"]
ONE = "#include <rill/device/kernel.h>\nRILL_KERNEL(one, int n, float *x) { if (n) x[0] = 1; }\n"


# What takes longest runs with `meson test --setup long`.
LONG = int(os.environ.get("RILL_STRESS", "100")) >= 1000
long = unittest.skipUnless(LONG, "meson test --setup long has it")


def some(items):
    """Returns all items in the long set, where each takes the same path through rillcc; otherwise the last one."""
    return items if LONG else items[-1:]


class TapResult(unittest.TestResult):
    """One line a test, as Meson reads them."""

    def __init__(self, count):
        super().__init__()
        print("TAP version 13\n1..%d" % count)

    def line(self, test, outcome, note="", details=""):
        print("%s %d - %s%s" % (outcome, self.testsRun, test.id().split(".", 1)[-1], note), flush=True)
        for text in details.splitlines():
            print("#", text, flush=True)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.line(test, "not ok", " " + subtest._subDescription(), self.failures[-1][1] if self.failures else "")

    def addSuccess(self, test):
        super().addSuccess(test)
        self.line(test, "ok")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.line(test, "ok", " # SKIP " + reason)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.line(test, "not ok", "", self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self.line(test, "not ok", "", self.errors[-1][1])


def main():
    tests = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    result = TapResult(tests.countTestCases())
    tests.run(result)
    sys.exit(not result.wasSuccessful())


def load_rillcc():
    """Returns tools/rillcc as a module."""
    module = types.ModuleType("rillcc")
    module.__file__ = RILLCC
    importlib.machinery.SourceFileLoader("rillcc", RILLCC).exec_module(module)
    return module


MODULE = load_rillcc()


def run_in_child(folder, arguments):
    """Runs rillcc in a child process of this one, which has already imported rillcc's modules and loaded LLVM.  Otherwise
    Python would compile them again for each run, since rillcc writes no bytecode."""
    command = [RILLCC, *arguments]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                os.chdir(folder)
                code = MODULE.main(arguments)
            except SystemExit as error:
                code = int(error.code or 0)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
    return subprocess.CompletedProcess(command, code, *texts)


class TestCase(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rillcc-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def rillcc(self, *arguments, **environment):
        """Runs rillcc.  With an environment of its own it is a new process: the parent has already read variables."""
        if not environment:
            return run_in_child(self.folder, list(arguments))
        command = [sys.executable, RILLCC, *arguments]
        return subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, check=False, env=dict(os.environ, **environment)
        )

    compiled: ClassVar[dict] = {}  # what came of the sources in SOURCES, by source and arguments: the same every time

    def compile(self, source, *arguments, **environment):
        """Runs rillcc on a source; returns the paths of the C file and the header."""
        out, header = self.path("out.rill.c"), self.path("out.rill.h")
        key = (source, *arguments) if source in SOURCES.values() and not environment else None
        if key not in self.compiled:
            result = self.rillcc("-Wno-fibers", "-o", out, "--header", header, *arguments, source, **environment)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            if key:
                self.compiled[key] = (self.read(out), self.read(header))
        else:
            for path, text in zip((out, header), self.compiled[key]):
                self.write(path, text)
        return out, header

    def check_ptx(self, bundle, data, gpu, version=r"\d\.\d"):
        """That there is every kernel with its arguments, and that nothing else than the driver's functions is missing."""
        self.assertEqual((data[-1:], data.count(b"\0")), (b"\0", 1))
        text = data[:-1].decode("ascii")
        self.assertRegex(text, r"(?m)^\.version %s$" % version)
        self.assertRegex(text, r"(?m)^\.target sm_%s(,|$)" % gpu)
        bits = {"8": 1, "16": 2, "32": 4, "64": 8}
        entries = dict(re.findall(r"\.entry\s+(\w+)\s*\(([^)]*)\)", text))
        self.assertEqual(set(entries), set(bundle.kernels))
        for name, parameters in entries.items():
            sizes = [
                int(count or bits[size]) for size, count in re.findall(r"\.[usbf](\d+)\s+\w+(?:\[(\d+)\])?", parameters)
            ]
            self.assertEqual(sizes, [size for _, size in bundle.kernels[name]], name)
        missing = re.findall(r"\.extern\s+\.func\s+(?:\([^)]*\)\s*)?(\w+)", text)
        self.assertEqual(set(missing) - {"vprintf", "__assertfail"}, set())

    def assemble(self, data, *gpus):
        """That NVIDIA's assembler takes the PTX, where it is there."""
        path = self.path("k.ptx")
        with open(path, "wb") as file:
            file.write(data.rstrip(b"\0"))
        for gpu in gpus if PTXAS else ():
            self.assertEqual(self.run_compiler([PTXAS, "-arch=sm_" + gpu, "-o", self.path("k.cubin"), path]), (0, ""))

    def run_compiler(self, command):
        result = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        return result.returncode, result.stderr


# The layout of rill/bundle.h and rill/device/cpu_image.h.


class BundleImage(ctypes.Structure):
    _fields_ = [
        ("backend", ctypes.c_char_p),
        ("target", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
    ]


class BundleArg(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("size", ctypes.c_uint32)]


class BundleKernel(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("args", ctypes.POINTER(BundleArg)), ("arg_count", ctypes.c_uint32)]


class BundleData(ctypes.Structure):
    _fields_ = [
        ("magic", ctypes.c_uint32),
        ("version", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("images", ctypes.POINTER(BundleImage)),
        ("image_count", ctypes.c_size_t),
        ("kernels", ctypes.POINTER(BundleKernel)),
        ("kernel_count", ctypes.c_size_t),
    ]


class Warp(ctypes.Structure):
    _fields_ = [("values", ctypes.c_uint64 * 64), ("live", ctypes.c_uint64), ("nonzero", ctypes.c_uint64)]


class Services(ctypes.Structure):
    _fields_ = [
        ("barrier", ctypes.CFUNCTYPE(None)),
        ("warp_size", ctypes.c_uint32),
        ("barrier_count", ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32)),
        ("exchange", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint64)),
        ("lane", ctypes.CFUNCTYPE(ctypes.c_uint32)),
        ("assert_failed", ctypes.c_void_p),
    ]


class Grid(ctypes.Structure):
    _fields_ = [
        ("args", ctypes.POINTER(ctypes.c_void_p)),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared_mem_bytes", ctypes.c_uint32),
        ("services", ctypes.POINTER(Services)),
    ]


class Block(ctypes.Structure):
    _fields_ = [("grid", ctypes.POINTER(Grid)), ("index", ctypes.c_uint32 * 3), ("shared", ctypes.c_void_p)]


RUN_BLOCK = ctypes.CFUNCTYPE(None, ctypes.POINTER(Block))
RUN_THREAD = ctypes.CFUNCTYPE(None, ctypes.POINTER(Block), ctypes.POINTER(ctypes.c_uint32))


class HostKernel(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("run_block", RUN_BLOCK),
        ("run_thread", RUN_THREAD),
        ("arg_sizes", ctypes.POINTER(ctypes.c_uint32)),
        ("arg_count", ctypes.c_uint32),
    ]


class HostVariable(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("address", ctypes.c_void_p), ("size", ctypes.c_uint64)]


class HostTable(ctypes.Structure):
    _fields_ = [
        ("magic", ctypes.c_uint32),
        ("version", ctypes.c_uint32),
        ("kernels", ctypes.POINTER(HostKernel)),
        ("variables", ctypes.POINTER(HostVariable)),
        ("kernel_count", ctypes.c_uint32),
        ("variable_count", ctypes.c_uint32),
        ("stacks", ctypes.POINTER(ctypes.c_uint64)),
        ("flags", ctypes.c_uint64),
        ("facts", ctypes.POINTER(ctypes.c_uint8)),
    ]


class Bundle:
    """What the C file holds, read back from an object that the C compiler made of it."""

    def __init__(self, test, c_file, name, library=None):
        library = test.path(library or name + ".so")
        stub = test.write(
            "stub.c",
            "#include <rill/kernel.h>\n"
            "rill_status rill_stream_launch_typed(rill_stream s, rill_kernel_ref *r, const rill_launch *l,\n"
            "                                     const rill_arg *a, size_t n, const char *f) {\n"
            "  (void)s, (void)r, (void)l, (void)a, (void)n, (void)f;\n  return RILL_OK;\n}\n",
        )
        command = CC + STRICT_C + ["-I", INCLUDE, "-shared", "-o", library, c_file, stub]
        test.assertEqual(test.run_compiler(command), (0, ""))
        self.library = ctypes.CDLL(library)
        self.data = BundleData.in_dll(self.library, name)
        self.images = {}
        for image in self.data.images[: self.data.image_count]:
            test.assertEqual(image.data % 16, 0)
            key = "%s:%s" % (image.backend.decode(), image.target.decode())
            self.images[key] = ctypes.string_at(image.data, image.size)
        self.kernels = {}
        for kernel in self.data.kernels[: self.data.kernel_count]:
            args = kernel.args[: kernel.arg_count] if kernel.arg_count else []
            self.kernels[kernel.name.decode()] = [(arg.name.decode(), arg.size) for arg in args]


def host_images(c_file):
    """Returns the bytes of each image for the cpu in a C file of rillcc, by target, without compiling the file."""
    with open(c_file, encoding="utf-8") as file:
        found = re.findall(r"/\* (cpu:\S+), (\d+) bytes \*/\n.*\{\n([^}]*)\n\};", file.read())
    images = {}
    for target, size, words in found:
        numbers = [int(word, 16) for word in words.replace("\n", "").split(",")]
        images[target] = struct.pack("<%dQ" % len(numbers), *numbers)[: int(size)]
    return images


Variable = collections.namedtuple("Variable", "address size")


class HostImage:
    """A host image, loaded, and its kernels run as the cpu backend would."""

    def __init__(self, test, name, data):
        path = test.path(name + ".image.so")
        with open(path, "wb") as file:
            file.write(data)
        self.library = ctypes.CDLL(path)
        self.table = HostTable.in_dll(self.library, "rill_cpu_image")
        self.kernels = {k.name.decode(): k for k in self.table.kernels[: self.table.kernel_count]}
        self.variables = self.find_variables(data)

    def find_variables(self, data):
        """Returns the address and size of each variable that the host may ask for, as the backend finds them."""
        elf = listing.Elf(data)
        found, place = {}, 0
        for section in elf.sections:
            if section[1] != listing.SHT_SYMTAB:
                continue
            for name, info, _, index, value, size in elf.sized_symbols(section):
                if name == "rill_cpu_image":
                    place = ctypes.addressof(self.table) - value
                elif info & 15 == 1 and name.isidentifier() and not name.startswith("_") and elf.is_writable(index):
                    found[name] = (value, size)
        return {name: Variable(place + value, size) for name, (value, size) in found.items()}

    def run(self, name, grid, block, *values, shared=0):
        """Runs all blocks: as loops if the kernel has that form, else each thread by itself.

        Then a thread that reaches a barrier runs the next one before it goes on.  That is right for kernels
        that have one barrier, and for any kernel in blocks of one thread, which is a warp of one lane."""
        kernel = self.kernels[name]
        pointers = (ctypes.c_void_p * max(len(values), 1))(*[ctypes.addressof(value) for value in values])
        threads = [(x, y, z) for z in range(block[2]) for y in range(block[1]) for x in range(block[0])]
        remaining = []

        def run_next():
            if remaining:
                thread = (ctypes.c_uint32 * 3)(*remaining.pop(0))
                kernel.run_thread(ctypes.byref(state), thread)

        def exchange(value):
            self.warp = Warp((value,), 1, value != 0)
            return ctypes.addressof(self.warp)

        types: dict = {name: kind for name, kind, *_ in Services._fields_}
        services = Services(
            types["barrier"](run_next),
            32,
            types["barrier_count"](lambda predicate: int(predicate != 0)),
            types["exchange"](exchange),
            types["lane"](lambda: 0),
            None,
        )
        launch = Grid(pointers, grid, block, shared, ctypes.pointer(services))
        memory = (ctypes.c_ulonglong * (shared // 8 + 1))()
        for z in range(grid[2]):
            for y in range(grid[1]):
                for x in range(grid[0]):
                    address = ctypes.addressof(memory) if shared else None
                    state = Block(ctypes.pointer(launch), (x, y, z), address)
                    if kernel.run_block:
                        kernel.run_block(ctypes.byref(state))
                        continue
                    remaining[:] = threads
                    while remaining:
                        run_next()


class Runner:
    """Runs the kernels of a host image in both forms."""

    library: ClassVar = None  # runner.c, compiled once for all tests of a process

    def __init__(self, test):
        if not Runner.library:
            path = test.path("runner.so")
            command = CC + STRICT_C + ["-D_GNU_SOURCE", "-O1", "-shared", "-I", INCLUDE, "-o", path]
            test.assertEqual(test.run_compiler(command + [os.path.join(HERE, "runner.c")]), (0, ""))
            Runner.library = ctypes.CDLL(path)

    def run(self, kernel, as_loops, grid, block, shared, *values):
        pointers = (ctypes.c_void_p * max(len(values), 1))(*[ctypes.addressof(value) for value in values])
        launch = Grid(pointers, grid, block, shared, None)
        return self.library.run_grid(ctypes.byref(kernel), ctypes.byref(launch), as_loops)


def pointer_to(array):
    return ctypes.c_void_p(ctypes.addressof(array))


def runnable(target):
    """Returns whether this machine can run a host image."""
    return host.runs_here(target)
