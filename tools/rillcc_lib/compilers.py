"""Finds the compilers, and runs them on one source: one run for each target, as many at a time as there are CPUs."""

import concurrent.futures
import functools
import glob
import os
import platform
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from dataclasses import dataclass
from typing import Optional

from . import offload, scan, split, stacks, tree
from .errors import RillccError

DEFAULT_CUDA = ("sm_80", "sm_90", "ptx")
DEFAULT_PTX = "80"
DEFAULT_HIP = ("gfx90a", "gfx1030")
X86_TARGETS = ("x86-64", "x86-64-v3", "x86-64-v4")
OLDEST_CLANG, NEWEST_CLANG = 15, 40

# Results on the cpu do not depend on which image runs: no fused products, no reordering.  math-errno and
# trapping-math only say that nobody looks at errno and at the exception flags, which lets loops vectorize.
HOST_FLAGS = (
    "-O3 -ffp-contract=off -fno-math-errno -fno-trapping-math -fPIC -fvisibility=hidden -fno-exceptions -fno-rtti"
).split()
# A frame that is larger than a stack's guard touches every page of it, so that the guard stops it.  How large frames are
# is told in files beside the output.
STACK_FLAGS = "-fstack-clash-protection -fno-lto".split()
# Newer clangs take it that floating-point atomics are for the GPU's own memory, and make instructions that pinned
# memory drops.  With these they make loops, as earlier versions do, which do not know the options.
HIP_ATOMIC_FLAGS = ["-fatomic-fine-grained-memory", "-fatomic-remote-memory"]
# What is missing is an error now, not when the image loads; the C++ library is wanted only by kernels that use it.
HOST_LINK_FLAGS = (
    "-shared -s -static-libgcc -Wl,--as-needed -Wl,-z,defs -Wl,-z,noseparate-code -Wl,--build-id=none"
).split()


@dataclass
class Target:
    backend: str
    name: str

    @property
    def label(self):
        return "%s:%s" % (self.backend, self.name)


@dataclass
class Image:
    backend: str
    target: str
    data: bytes

    @property
    def label(self):
        return "%s:%s" % (self.backend, self.target)

    def has_kernel(self, name):
        """Looks for the name at the end of a string of the symbol table, or as an entry of the PTX."""
        if self.backend == "cuda" and self.target.startswith("ptx_"):
            return re.search(rb"\.entry\s+%s\s*\(" % name.encode(), self.data) is not None
        symbol = name + ".kd" if self.backend == "hip" else name
        return b"%s\0" % symbol.encode() in self.data


@dataclass
class Result:
    """What came of one compile; no image if it failed."""

    image: Optional[Image] = None
    messages: str = ""
    failure: str = ""
    files: frozenset = frozenset()


def find_program(given, name, variables=(), default_folder=""):
    """Gives the path of the program that the user named; or else of the one called `name` in a folder that an
    environment variable names, on the PATH, or in the default folder."""
    if given == "none":
        return None
    if given:
        found = shutil.which(given)
        if not found:
            raise RillccError("no program %s" % given)
        return found
    folders = [os.path.join(os.environ[variable], "bin") for variable in variables if os.environ.get(variable)]
    places = [os.path.join(folder, name) for folder in folders] + [name, os.path.join(default_folder, name)]
    return next(filter(None, map(shutil.which, places)), None)


def find_clang(given):
    """A clang that makes AMD code by itself: with lld beside it."""
    if given:
        return find_program(given, "clang++")
    for version in range(NEWEST_CLANG, OLDEST_CLANG - 1, -1):
        path = shutil.which("clang++-%d" % version)
        if path and glob.glob(os.path.join(os.path.dirname(os.path.realpath(path)), "*lld*")):
            return path
    return None


class Toolchain:
    def __init__(self, options, include_dirs):
        self.options = options
        self.source = options.source
        self.common = ["-std=c++17"]
        self.common += [flag for folder in include_dirs for flag in ("-I", os.path.normpath(folder))]
        self.common += ["-D" + define for define in options.defines]
        self.cxx = self.find_cxx(options.cxx)
        self.nvcc = find_program(options.nvcc, "nvcc", ("CUDA_HOME", "CUDA_PATH"), "/usr/local/cuda/bin")
        self.hipcc = find_program(options.hipcc, "hipcc", ("HIP_PATH", "ROCM_PATH"), "/opt/rocm/bin")
        self.clang = None if self.hipcc else find_clang(options.clang)
        self.folder = tempfile.mkdtemp(prefix="rillcc-")
        self.macros = set()

    @staticmethod
    def find_cxx(given):
        """The host compiler, with its own options if it was given some: "ccache g++"."""
        for words in [shlex.split(given)] if given else [["c++"], ["g++"], ["clang++"]]:
            path = shutil.which(words[0])
            if path:
                return [path] + words[1:]
        why = "no program %s" % given if given else "no C++ compiler found"
        raise RillccError("%s; rillcc reads every source with one: --cxx or RILL_CXX" % why)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    # Running things

    def execute(self, command, **extra):
        if self.options.verbose:
            print(shlex.join(command), file=sys.stderr)
        # Some leave things in the folder for temporary files; this one goes at the end.
        environment = dict(os.environ, LC_ALL="C.UTF-8", TMPDIR=self.folder)
        # hipcc looks for a GPU, and complains at length, when it is not told of one.
        environment.setdefault("HCC_AMDGPU_TARGET", "gfx90a")
        try:
            return subprocess.run(
                command, capture_output=True, encoding="utf-8", errors="replace", env=environment, check=False, **extra
            )
        except OSError as error:
            raise RillccError("cannot run %s: %s" % (command[0], error.strerror)) from error

    def ask_host(self):
        """Learns what compiler the host's is, and for what machine."""
        result = self.execute(self.cxx + ["-dM", "-E", "-x", "c++", os.devnull])
        if result.returncode != 0:
            raise RillccError("%s does not work:\n%s" % (self.cxx[0], result.stderr.rstrip()))
        self.macros = set(re.findall(r"#define (\w+)", result.stdout))

    # Targets

    def host_targets(self):
        return X86_TARGETS if "__x86_64__" in self.macros else (platform.machine(),)

    def choose_targets(self, wanted):
        """Gives the targets for the --target options; for none of them, every one whose compiler is there."""
        if not wanted:
            wanted = ["cpu"]
            if self.hipcc or self.clang:
                wanted.insert(0, "hip")
            if self.nvcc:
                wanted.insert(0, "cuda")
        targets = []
        for text in wanted:
            backend, colon, names = text.partition(":")
            archs = names.split(",") if colon else None
            if backend == "cuda":
                if not self.nvcc:
                    raise RillccError("--target %s: no nvcc found; name it with --nvcc or RILL_NVCC" % text)
                archs = [self.cuda_arch(name, text) for name in archs or DEFAULT_CUDA]
            elif backend == "hip":
                if not self.hipcc and not self.clang:
                    raise RillccError(
                        "--target %s: no hipcc found, and no clang %d or later with lld; name one with --hipcc or "
                        "--clang, RILL_HIPCC or RILL_CLANG" % (text, OLDEST_CLANG)
                    )
                archs = [self.hip_arch(name, text) for name in archs or DEFAULT_HIP]
            elif backend == "cpu":
                archs = list(archs or self.host_targets())
                for name in archs:
                    if name not in self.host_targets():
                        known = ", ".join(self.host_targets())
                        raise RillccError('--target %s: "%s" is none of %s' % (text, name, known))
            else:
                raise RillccError("--target %s: the backends are cuda, hip and cpu" % text)
            targets += [Target(backend, name) for name in archs]
        return list({target.label: target for target in targets}.values())

    def compiler_of(self, target):
        """Its path."""
        return {"cuda": self.nvcc, "hip": self.hipcc or self.clang, "cpu": self.cxx[0]}[target.backend]

    @staticmethod
    def cuda_arch(name, text):
        if name == "ptx":
            return "ptx_" + DEFAULT_PTX
        if not re.fullmatch(r"(sm|ptx)_[0-9]+[af]?", name):
            raise RillccError('--target %s: "%s" is none of sm_NN, ptx and ptx_NN' % (text, name))
        return name

    @staticmethod
    def hip_arch(name, text):
        arch = offload.canonical(name)
        if not arch:
            raise RillccError('--target %s: "%s" is not gfxNNN, alone or with :xnack and :sramecc, + or -' % (text, name))
        return arch

    # Compiling

    def host_flags(self, name):
        flags = ["-march=" + name] if name in X86_TARGETS else []
        return ["-x", "c++", *HOST_FLAGS, *flags, *self.common]

    def read_source(self, name=None):
        """Reads the source as the compiler sees it for that host target: its #if may ask for instructions."""
        depfile = os.path.join(self.folder, "scan.d")
        flags = self.host_flags(name or self.host_targets()[0])
        command = self.cxx + ["-E", "-dD", "-DRILL_SCAN=1", *flags]
        if name is None:
            command += ["-MMD", "-MF", depfile, "-MT", "x"]
        result = self.execute(command + [self.source])
        if result.returncode != 0:
            raise RillccError("the preprocessor failed:\n%s" % result.stderr.rstrip(), self.source)
        unit = scan.read_unit(result.stdout, self.source, extra_types=bool(self.options.type_headers))
        return unit, read_depfile(depfile)

    def cuda_command(self, target, output):
        kind = "-ptx" if target.name.startswith("ptx_") else "-cubin"
        arch = target.name.replace("ptx_", "compute_")
        contract = "-fmad=%s" % ("false" if self.options.fp_contract == "off" else "true")
        command = [self.nvcc, kind, "-arch=" + arch, "-x", "cu", "-O3", contract, "-Wno-deprecated-gpu-targets"]
        return command + self.common + ["-o", output, self.source]

    @functools.cached_property
    def hip_atomic_flags(self):
        """HIP_ATOMIC_FLAGS if the compiler knows them."""
        command = [self.hipcc or self.clang, "-x", "hip", "--cuda-device-only", "--offload-arch=gfx90a", "-nogpulib"]
        known = self.execute(command + ["-nogpuinc", "-fsyntax-only", *HIP_ATOMIC_FLAGS, os.devnull]).returncode == 0
        return HIP_ATOMIC_FLAGS if known else []

    def hip_command(self, target, output):
        # Newer compilers make version 5 or 6 unasked, which older runtimes refuse; generic code has no older one.
        version = 6 if target.name.endswith("-generic") else 4
        flags = ["--offload-arch=" + target.name, "-mcode-object-version=%d" % version, "-O3", *self.common]
        flags += self.hip_atomic_flags
        if self.options.fp_contract == "off":
            flags.append("-ffp-contract=off")
        if self.hipcc:
            command = [self.hipcc, "--genco", "-x", "hip"]
        else:
            command = [self.clang, "-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output"]
            flags += ["-DRILL_HIP_FREESTANDING=1", "-nogpulib", "-nogpuinc"]
            # Some versions have no use for this one, and say so.
            flags += ["-nohipwrapperinc", "-Wno-unused-command-line-argument"]
        return command + flags + ["-o", output, self.source]

    def host_command(self, target, output):
        unit, _ = self.read_source(target.name)
        flags = self.host_flags(target.name) + STACK_FLAGS
        if "__clang__" in self.macros:
            flags.append("-fstack-usage")
        else:
            flags += ["-fcallgraph-info=su", "-fno-gnu-unique"]
        flags.append("-DRILL_HELPERS_READ_INDEX=%d" % unit.helpers_read_index)
        return self.cxx + flags + ["-S", "-o", output, "-"], unit

    def link_host(self, target, unit, assembly, output):
        """Makes the image of what was compiled, with a table of the stacks that its kernels need."""
        sizes = "".join(read_text(assembly[:-1] + suffix) for suffix in ("ci", "su"))
        table = stacks.table(unit.kernels, read_text(assembly), sizes)
        with open(assembly, "a", encoding="utf-8") as file:
            file.write(table)
        march = [flag for flag in self.host_flags(target.name) if flag.startswith("-march=")]
        return self.execute(self.cxx + march + HOST_LINK_FLAGS + ["-o", output, assembly])

    def compile_host(self, target, output, depfile):
        """Compiles with the kernels split that can be; should the compiler refuse what came of one, without it."""
        assembly = output + ".s"
        command, unit = self.host_command(target, assembly)
        command += ["-MMD", "-MF", depfile]
        forms = Forms(unit, not self.options.no_split)
        while True:
            done = self.execute(command, input=host_source(self.source, unit, forms.texts))
            if done.returncode == 0 or not forms.drop(done.stderr):
                break
        if self.options.verbose:
            notes = ["%s: kernel \"%s\": %s\n" % (target.label, *note) for note in forms.notes.items()]
            sys.stderr.write("".join(notes))
        if done.returncode == 0:
            linked = self.link_host(target, unit, assembly, output)
            done.returncode = linked.returncode
            done.stderr += linked.stderr
        return done, os.path.basename(command[0])

    def compile_one(self, number, target):
        output = os.path.join(self.folder, "%d.out" % number)
        depfile = os.path.join(self.folder, "%d.d" % number)
        if target.backend == "cpu":
            done, name = self.compile_host(target, output, depfile)
        else:
            make = self.cuda_command if target.backend == "cuda" else self.hip_command
            command = make(target, output) + ["-MMD", "-MF", depfile]
            done, name = self.execute(command), os.path.basename(command[0])
        if done.returncode != 0:
            failure = "%s failed with exit status %d" % (name, done.returncode)
            return Result(messages=(done.stderr + done.stdout).rstrip() + "\n", failure=failure)
        with open(output, "rb") as file:
            data = file.read()
        if target.backend == "hip":
            try:
                data = offload.extract(data, target.name)
            except ValueError as error:
                return Result(failure="what %s wrote cannot be read: %s" % (name, error))
        if target.name.startswith("ptx_"):
            data += b"\0"
        if target.backend == "cpu":
            data += seal(data, target.name)
        return Result(Image(target.backend, target.name, data), done.stderr, files=read_depfile(depfile))

    def compile_all(self, targets, dependencies):
        """Gives the images in the order of `targets`; adds the files that went into them to `dependencies`."""
        with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            jobs = [pool.submit(self.compile_one, i, target) for i, target in enumerate(targets)]
            results = [job.result() for job in jobs]
        shown = set()  # one mistake is reported by the compiler of every target: once is enough
        for target, result in zip(targets, results):
            key = result.messages if result.image else target.backend
            if key not in shown:
                sys.stderr.write(result.messages)
            shown.add(key)
        failed = ["for %s %s" % (t.label, result.failure) for t, result in zip(targets, results) if not result.image]
        if failed:
            raise RillccError("; ".join(failed), self.source)
        for result in results:
            dependencies |= without_cuda_headers(result.files)
        return [result.image for result in results]


def seal(data, target):
    """What goes behind a host image: rill_cpu_image_seal of rill/device/cpu_image.h."""
    text = struct.pack("<40sQI", target.encode(), len(data), 1)
    return text + struct.pack("<I8s", zlib.crc32(data + text), b"RILLseal")


class Forms:
    """How each kernel of a source runs on the cpu: `texts` has those that are split, `notes` says it in words."""

    def __init__(self, unit, may_split):
        self.texts = {}
        self.notes = {}
        self.with_barrier = {kernel.name for kernel in unit.kernels if kernel.has_barrier}
        for kernel in unit.kernels:
            if not kernel.has_barrier:
                self.notes[kernel.name] = "a loop over the threads"
                text = split.guard(kernel, unit.constants) if may_split else None
                if text:
                    self.texts[kernel.name] = text
                    self.notes[kernel.name] = "a loop over the threads, without a check in whole blocks"
                continue
            try:
                if not may_split:
                    raise tree.Refused("not to be split", None)
                if unit.helpers_have_barrier:
                    raise tree.Refused("a barrier in a function", None)
                self.texts[kernel.name] = split.split(kernel, unit.constants)
                self.notes[kernel.name] = "loops between barriers"
            except tree.Refused as refused:
                self.notes[kernel.name] = "fibers: %s" % refused

    def drop(self, messages):
        """Gives up those splits that the compiler complains about, or all if it does not say which; false if none
        is left: then it is the source that is wrong."""
        if not self.texts:
            return False
        named = [name for name in self.texts if re.search(r"\brill_split_(types_)?%s\b" % name, messages)]
        for name in named or list(self.texts):
            why = re.search(r"rill_split_%s: ([\w ]+)" % name, messages)
            self.notes[name] = "fibers: %s" % (why.group(1) if why else "its split form does not compile")
            if name not in self.with_barrier:
                self.notes[name] = "a loop over the threads"
            del self.texts[name]
        return True


def host_source(source, unit, splits):
    """The program text that makes an image of a source: rill/device/host_image.h says how."""
    # As if from a system header: the compiler warns of the kernel itself, not once more of what was made of it.
    lines = ['# 1 "rillcc" 3', "#define RILL_SPLITS 1"]
    lines += ["#define RILL_SPLIT_OF_%s %s" % (k.name, splits.get(k.name, "")) for k in unit.kernels]
    lines += ['# 1 "<stdin>"', '#include "%s"' % source, "#include <rill/device/host_image.h>"]
    lines.append("static constexpr rill_cpu_kernel rill_kernels[] = {")
    for kernel in unit.kernels:
        loops = "false" if kernel.has_barrier else "true"
        loops = "rill_split_" + kernel.name if kernel.name in splits else loops
        types = ", ".join(["rill_body_" + kernel.name, loops] + [p.type for p in kernel.parameters])
        lines.append('  rill_host_kernel<%s>("%s"),' % (types, kernel.name))
    lines.append("};")
    variables = "nullptr"
    if unit.variables:
        variables = "rill_variables"
        lines.append("static const rill_cpu_variable rill_variables[] = {")
        lines.extend('  { "%s", &%s, sizeof(%s) },' % (name, name, name) for name in unit.variables)
        lines.append("};")
    lines.append("RILL_HOST_IMAGE(rill_kernels, %d, %s, %d)" % (len(unit.kernels), variables, len(unit.variables)))
    return "\n".join(lines) + "\n"


def read_text(path):
    """The text of a file, nothing if there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def without_cuda_headers(files):
    """nvcc does not take its own headers for system headers."""
    folders = {os.path.dirname(file) + os.sep for file in files if os.path.basename(file) == "cuda_runtime.h"}
    return {file for file in files if not file.startswith(tuple(folders))}


def read_depfile(path):
    """Gives the files that a makefile rule of a compiler names; none if it wrote no rule."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read()
    except FileNotFoundError:
        return set()
    _, _, text = text.replace("\\\n", " ").partition(": ")
    words = re.findall(r"(?:\\[ #\\]|[^\s])+", text)
    return {re.sub(r"\\([ #\\])", r"\1", word).replace("$$", "$") for word in words} - {"-", "\\"}
