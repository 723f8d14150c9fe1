"""Finds the compilers and runs them on one source, once for each target, in parallel up to the number of CPUs."""

import concurrent.futures
import functools
import glob
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import zlib
from dataclasses import dataclass, field
from typing import Optional

from . import clc, cuda_headers, host, llvm, messages, offload, statics
from .errors import RillccError

DEFAULT_CUDA = ("sm_80", "sm_90", "ptx")
DEFAULT_PTX = "80"
CLANG_PTX = "70"  # the oldest GPUs that support all of the dialect
PTX_VERSIONS = ((101, 88), (100, 86), (89, 78), (87, 74), (86, 71), (80, 70), (70, 63), (0, 0))  # (GPU, version of PTX), newest first
DEFAULT_HIP = ("gfx90a", "gfx1030")
OLDEST_CLANG, NEWEST_CLANG = 15, 40
ROCM = "/opt/rocm*"  # the folders in which AMD's packages are installed; they are not on the PATH by default

# Options for AMD GPUs. Each is passed if the compiler knows it.
HIP_FLAGS = [
    # Newer clangs assume that floating-point atomics access the GPU's own memory, and emit instructions that pinned
    # memory ignores. With these options they emit loops, as earlier versions do.
    ["-fatomic-fine-grained-memory", "-fatomic-remote-memory"],
    # clang 19 merges a - b with b - a if they are instructions that select bytes or halves (SDWA, gfx8 to gfx10). Other
    # versions have other defects in these instructions, and the version of an AMD compiler does not tell which.
    ["-mllvm", "-amdgpu-sdwa-peephole=0"],
    # Compressed bundles are not supported: see offload.py.
    ["--no-offload-compress"],
]


# clang for NVIDIA GPUs. With a toolkit, clang would use the newest version of PTX that both support.
CLANG_CUDA = "-x cuda --cuda-device-only --cuda-path=/nonexistent -nocudainc -nocudalib -fuse-cuid=none".split()
CLANG_CUDA += ["-DRILL_CUDA_FREESTANDING=1", "-D__CUDACC__=1", "-Wno-pass-failed", "-Wno-unused-command-line-argument"]

CUDA_NAMES = re.compile(r"^\s*#\s*include\s*[<\"]rill/device/cuda_names\.h[>\"]", re.MULTILINE)


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
        """Returns whether the name is a complete string in the image, as in its symbol table, or an entry in the PTX."""
        if self.backend == "cuda" and self.target.startswith("ptx_"):
            return re.search(rb"\.entry\s+%s\s*\(" % name.encode(), self.data) is not None
        symbol = name + ".kd" if self.backend == "hip" else name
        return b"%s\0" % symbol.encode() in self.data


@dataclass
class Result:
    """The result of one compile; it has no image if the compile failed."""

    image: Optional[Image] = None
    messages: str = ""
    failure: str = ""
    files: frozenset = frozenset()
    forms: dict = field(default_factory=dict)  # how each kernel runs on the CPU


def find_program(given, name, variables=(), default_folders=()):
    """Returns the path of the program that the user named. Otherwise returns the path of the program called `name` in a
    folder that an environment variable names, on the PATH, or in a default folder."""
    if given == "none":
        return None
    if given:
        found = shutil.which(given)
        if not found:
            raise RillccError("program not found: %s" % given)
        return found
    folders = [os.path.join(os.environ[variable], "bin") for variable in variables if os.environ.get(variable)]
    places = [os.path.join(folder, name) for folder in folders] + [name]
    places += [os.path.join(folder, name) for folder in default_folders]
    return next(filter(None, map(shutil.which, places)), None)


def rocm_folders():
    """Returns the folders of AMD's packages, newest version first, and last the folder without a version."""
    return sorted(glob.glob(ROCM), key=lambda path: list(map(int, re.findall(r"\d+", os.path.basename(path)))), reverse=True)


def find_nvcc(given):
    return find_program(given, "nvcc", ("CUDA_HOME", "CUDA_PATH"), ["/usr/local/cuda/bin"])


def find_hipcc(given):
    return find_program(given, "hipcc", ("HIP_PATH", "ROCM_PATH"), [os.path.join(folder, "bin") for folder in rocm_folders()])


def rocm_clangs(folders):
    return [os.path.join(folder, "llvm", "bin", name) for folder in folders for name in ("amdclang++", "clang++")]


def list_clangs(linker):
    """Returns the places to search for a clang, best first. AMD's own clangs are only for AMD GPUs, which need a
    linker."""
    names = ["clang++-%d" % version for version in range(NEWEST_CLANG, OLDEST_CLANG - 1, -1)] + ["clang++"]
    if not linker:
        return names
    asked = filter(None, [os.environ.get("ROCM_PATH")])
    return [*rocm_clangs(asked), *names, "amdclang++", *rocm_clangs(rocm_folders())]


def find_clang(given, linker=True):
    """Returns a clang that compiles for GPUs without a vendor's compiler. For AMD GPUs it must have lld beside it."""
    if given:
        return find_program(given, "clang++")
    for path in filter(None, map(llvm.which_clang, list_clangs(linker))):
        if linker and not glob.glob(os.path.join(os.path.dirname(os.path.realpath(path)), "*lld*")):
            continue
        if path.endswith("clang++") and clang_version(path) < OLDEST_CLANG:
            continue
        return path
    return None


def clang_version(path):
    said = subprocess.run([path, "-dumpversion"], capture_output=True, encoding="utf-8", errors="replace", check=False).stdout
    return int(said.split(".")[0]) if re.match(r"\d+\.", said) else 0


def ptx_version(name):
    """Returns the oldest version of PTX that supports ptx_NN and the dialect. Older versions run on more machines,
    because a driver refuses PTX of a version newer than its own."""
    if name.endswith("a"):
        return max(80, ptx_version(name[:-1]))
    number = int(name.partition("_")[2])
    return next(version for gpu, version in PTX_VERSIONS if number >= gpu)


class Toolchain:
    def __init__(self, options, include_dirs, kept_folder=None):
        self.options = options
        self.source = options.source
        self.device_headers = os.path.join(include_dirs[-1], "rill", "device") if include_dirs else ""
        self.toolkits = [path for path in include_dirs if cuda_headers.is_toolkit(path)]
        self.common = ["-std=c++17"]
        for path in include_dirs:
            self.common += [] if path in self.toolkits else ["-I", os.path.normpath(path)]
        self.cxx = self.find_cxx(options.cxx)
        self.nvcc = find_nvcc(options.nvcc)
        self.hipcc = find_hipcc(options.hipcc)
        self.clang = None if self.hipcc else find_clang(options.clang)
        self.cuda_clang = None if self.nvcc else find_clang(options.clang, linker=False)
        self.keeps_folder = bool(kept_folder)
        self.folder = kept_folder or tempfile.mkdtemp(prefix="rillcc-")
        self.cuda_names = bool(options.cuda_names or CUDA_NAMES.search(host.read_text(self.source or "")))
        cuda_headers.write_all(self.path(cuda_headers.FOLDER), self.cuda_names)
        self.common += self.included_first()
        self.compiled = self.source  # the source, or a copy of it
        # The same output always has the same folder, because nvcc derives names from the paths of its files.
        self.copies = statics.Copies(os.path.abspath("%s.copies" % options.output) if options.output else self.path("copies"))
        self.clc, self.clc_lock = {}, threading.Lock()  # libclc's bitcode, by "cuda" or the version of AMD's code objects
        self.host = host.Host(self)

    def included_first(self):
        """Returns the flags that include the dialect before the source, and before the user's macros, which might be
        names in the dialect."""
        lines = [define.partition("=") for define in self.options.defines]
        with open(self.path("defines.h"), "w", encoding="utf-8") as file:
            file.writelines("#define %s %s\n" % (name, value if equals else "1") for name, equals, value in lines)
        names = ["-include", "rill/device/cuda_names.h"] if self.cuda_names else []
        return ["-include", "rill/device/kernel.h", *names, "-include", self.path("defines.h")]

    def instead_of_cuda(self, hip=False):
        """Returns the flags with which compilers other than nvcc find rillcc's replacements before CUDA's own headers.
        With `hip`, this also applies to HIP's headers."""
        folders = [self.path(cuda_headers.FOLDER)] + [self.path(cuda_headers.FOLDER + "-hip")] * hip + self.toolkits
        return [flag for folder in folders for flag in ("-I", folder)]

    @staticmethod
    def find_cxx(given):
        """Returns the host compiler as a list of words, because it may have options of its own: "ccache g++"."""
        for words in [shlex.split(given)] if given else [["c++"], ["g++"], ["clang++"]]:
            path = shutil.which(words[0])
            if path:
                return [path] + words[1:]
        why = "program not found: %s" % given if given else "no C++ compiler found"
        raise RillccError("%s; rillcc needs a C++ compiler to read the source: name one with --cxx or RILL_CXX" % why)

    def close(self):
        if not self.keeps_folder:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.copies.remove()

    # Commands

    def execute(self, command, **extra):
        if self.options.verbose:
            print(shlex.join(command), file=sys.stderr)
        # Some compilers leave files in the temporary folder; this folder is removed at the end.
        environment = dict(os.environ, LC_ALL="C.UTF-8", TMPDIR=self.folder)
        # Without this variable hipcc looks for a GPU, and prints many messages if there is none.
        environment.setdefault("HCC_AMDGPU_TARGET", "gfx90a")
        try:
            return subprocess.run(
                command, capture_output=True, encoding="utf-8", errors="replace", env=environment, check=False, **extra
            )
        except OSError as error:
            raise RillccError("cannot run %s: %s" % (command[0], error.strerror)) from error

    def path(self, name):
        return os.path.join(self.folder, name)

    # Targets

    def why_not(self, backend):
        """Returns why nothing on this machine compiles for the GPUs of a backend, and what to install. Returns "" if
        something does."""
        if backend == "cuda":
            vendor, found, asked, linker = "nvcc", self.nvcc or self.cuda_clang, self.options.nvcc, ""
        else:
            vendor, found, asked, linker = "hipcc", self.hipcc or self.clang, self.options.hipcc, " with lld"
        if found:
            return ""
        why = "%s is disabled" % vendor if asked == "none" else "no %s found" % vendor
        if self.options.clang == "none":
            return why + ", and clang is disabled"
        packages = "clang-19 lld-19 libclc-19" if linker else "clang-19 libclc-19"
        return "%s, and no clang %d or later%s (on Debian and Ubuntu: %s)" % (why, OLDEST_CLANG, linker, packages)

    def choose_targets(self, wanted):
        """Returns the targets of the --target options. Without such options, returns every target for which a compiler
        was found."""
        if not wanted:
            wanted = ["cpu"]
            if self.hipcc or self.clang:
                wanted.insert(0, "hip")
            if self.nvcc or self.cuda_clang:
                wanted.insert(0, "cuda")
        targets = []
        for text in wanted:
            backend, colon, names = text.partition(":")
            archs = names.split(",") if colon else None
            if backend == "cuda":
                self.require("cuda", text, "--nvcc or --clang, RILL_NVCC or RILL_CLANG")
                archs = [self.cuda_arch(name, text) for name in archs or (DEFAULT_CUDA if self.nvcc else ["ptx"])]
            elif backend == "hip":
                self.require("hip", text, "--hipcc or --clang, RILL_HIPCC or RILL_CLANG")
                archs = [self.hip_arch(name, text) for name in archs or DEFAULT_HIP]
            elif backend == "cpu":
                archs = [self.host.native() if name == "native" else name for name in archs or self.host.targets()]
                for name in archs:
                    if name not in self.host.targets():
                        known = ", ".join([*self.host.targets(), "native"])
                        raise RillccError('--target %s: "%s" is not one of %s' % (text, name, known))
            else:
                raise RillccError("--target %s: the backends are cuda, hip and cpu" % text)
            targets += [Target(backend, name) for name in archs]
        return list({target.label: target for target in targets}.values())

    def require(self, backend, text, names):
        why = self.why_not(backend)
        if why:
            raise RillccError("--target %s: %s; name one with %s" % (text, why, names))

    def compiler_of(self, target):
        """Returns the path of the compiler."""
        found = {"cuda": self.nvcc or self.cuda_clang, "hip": self.hipcc or self.clang, "cpu": self.host.cxx[0]}
        return found[target.backend]

    def cuda_arch(self, name, text):
        """Returns the name of the target in the bundle. clang has no assembler for NVIDIA GPUs, so its targets are
        always PTX."""
        if name == "ptx":
            return "ptx_" + (DEFAULT_PTX if self.nvcc else CLANG_PTX)
        if not re.fullmatch(r"(sm|ptx)_[0-9]+[af]?", name):
            raise RillccError('--target %s: "%s" is not sm_NN, ptx or ptx_NN' % (text, name))
        if self.nvcc:
            return name
        name = name.replace("sm_", "ptx_")
        if not ptx_version(name):
            raise RillccError("--target %s: clang compiles only for sm_%s and later GPUs" % (text, CLANG_PTX))
        return name

    @staticmethod
    def hip_arch(name, text):
        arch = offload.canonical(name)
        if not arch:
            why = '--target %s: "%s" is not gfxNNN, optionally followed by :sramecc+ or :sramecc- and by :xnack+ or :xnack-'
            raise RillccError(why % (text, name))
        return arch

    # Compilation

    def read_source(self):
        """Returns the contents of the source, and the files that it consists of."""
        self.unit, files = self.host.read()
        return self.unit, {file for file in files if not file.startswith(self.folder + os.sep)}

    def read_depfile(self, path):
        return {self.copies.original(file) for file in read_depfile(path)}

    def copy_files(self, files, always=False):
        """Returns whether the compilers read copies of the files from now on. They do so if the host looks up something
        static by name, or if lines are added to the source."""
        if self.copies.made:
            return True
        own = (self.folder + os.sep, os.path.abspath(self.device_headers) + os.sep)
        files = {file for file in files if not os.path.abspath(file).startswith(own)}
        try:
            if not self.copies.make(files, host.read_text, always):
                return False
        except OSError as error:
            raise RillccError("cannot write %s: %s" % (error.filename, error.strerror)) from error
        self.common = self.copies.include_flags(self.common)
        self.compiled = self.copies.of(self.source)
        return True

    def cuda_command(self, target, output):
        contract = self.options.fp_contract != "off"
        if self.nvcc:
            kind = "-ptx" if target.name.startswith("ptx_") else "-cubin"
            arch = target.name.replace("ptx_", "compute_")
            command = [self.nvcc, kind, "-arch=" + arch, "-x", "cu", "-O3", "-fmad=%s" % ("true" if contract else "false")]
            command += ["-Wno-deprecated-gpu-targets", *self.common, *(f"-I{folder}" for folder in self.toolkits)]
        else:
            command = [self.cuda_clang, *CLANG_CUDA, "--cuda-gpu-arch=" + target.name.replace("ptx_", "sm_"), "-S", "-O3"]
            command += ["--cuda-feature=+ptx%d" % ptx_version(target.name), *self.common, *self.clc_flags("cuda")]
            command += ["-ffp-contract=%s" % ("fast" if contract else "off"), "-fno-strict-aliasing"]
            command += self.instead_of_cuda()
        return command + self.options.cuda_options + ["-o", output, self.compiled]

    @functools.cached_property
    def hip_flags(self):
        """Returns the options of HIP_FLAGS that the compiler knows."""
        command = [self.hipcc or self.clang, "-x", "hip", "--cuda-device-only", "--offload-arch=gfx90a", "-nogpulib"]
        command += ["-nogpuinc", "-fsyntax-only", os.devnull]
        known = list(HIP_FLAGS)
        while known:
            done = self.execute(command + [flag for flags in known for flag in flags])
            if done.returncode == 0:
                break
            # The driver names every option that it does not know; one run for each option would take longer.
            named = [flags for flags in known if flags[-1].partition("=")[0] in done.stderr]
            if not named:
                known = [flags for flags in known if self.execute(command + flags).returncode == 0]
                break
            known = [flags for flags in known if flags not in named]
        return [flag for flags in known for flag in flags]

    def clc_flags(self, version):
        """Returns the flags that link libclc, if the source needs it, it is installed, and clang compiles without a
        vendor's compiler."""
        if not self.options.cuda_names and not self.host.mentions(clc.WORDS):
            return []
        with self.clc_lock:  # one compile for each target at a time
            if version not in self.clc:
                self.clc[version] = self.find_clc(version)
        if not self.clc[version]:
            return []
        return ["-DRILL_CLC_MATH=1", "-Wno-linker-warnings", *clc.link_flags(self.clc[version])]

    def find_clc(self, version):
        if version == "cuda":
            bitcode = clc.find(self.cuda_clang, "cuda")
            command = [self.cuda_clang, *CLANG_CUDA, "--cuda-gpu-arch=sm_" + CLANG_PTX]
            return bitcode if bitcode and clc.can_link(self, command, bitcode) else None
        path = self.path("clc%d.bc" % version)
        return path if clc.prepare(self, version, path) else None

    def hip_command(self, target, output):
        # Newer compilers emit version 5 or 6 by default, which older runtimes refuse; generic code requires version 6.
        version = 6 if target.name.endswith("-generic") else 4
        flags = ["--offload-arch=" + target.name, "-mcode-object-version=%d" % version, "-O3", "-fno-strict-aliasing"]
        # Newer compilers would otherwise derive an identifier (cuid) from paths, and name a variable after it.
        flags += [*self.common, "-Wno-pass-failed", "-fuse-cuid=none"]
        flags += self.hip_flags
        if self.options.fp_contract == "off":
            flags.append("-ffp-contract=off")
        if self.hipcc:
            command = [self.hipcc, "--genco", "-x", "hip"]
        else:
            command = [self.clang, "-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output"]
            flags += ["-DRILL_HIP_FREESTANDING=1", "-nogpulib", "-nogpuinc"]
            # Some versions do not use this option, and warn about it.
            flags += ["-nohipwrapperinc", "-Wno-unused-command-line-argument", *self.clc_flags(version)]
        flags += self.instead_of_cuda(hip=not self.hipcc)
        return command + flags + self.options.hip_options + ["-o", output, self.compiled]

    def compile_host(self, target, output, depfile):
        done, forms = self.host.compile(target.name, output, depfile)
        if self.options.verbose:
            notes = ["%s: kernel \"%s\": %s\n" % (target.label, *form) for form in forms.items()]
            sys.stderr.write("".join(notes))
        return done, forms

    def warn_of_fibers(self, results):
        """Warns about kernels that would run much faster if they could become loops."""
        if self.options.fibers or self.options.debug or "no-fibers" in self.options.warnings:
            return
        slow = {name: note for result in results for name, note in result.forms.items() if note.startswith("fibers")}
        for kernel in self.unit.kernels:
            if kernel.name in slow:
                why = slow[kernel.name].partition(": ")[2]
                text = 'kernel "%s" is slow on the cpu: each of its threads has its own stack, because %s' % (kernel.name, why)
                if "error=fibers" in self.options.warnings:
                    raise RillccError("error: " + text, kernel.file, kernel.line)
                print("%s:%d: warning: %s" % (kernel.file, kernel.line, text), file=sys.stderr)

    def compile_one(self, number, target):
        output = os.path.join(self.folder, "%d.out" % number)
        depfile = os.path.join(self.folder, "%d.d" % number)
        forms = {}
        if target.backend == "cpu":
            done, forms = self.compile_host(target, output, depfile)
            name = os.path.basename(self.host.cxx[0])
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
                return Result(failure="the output of %s cannot be read: %s" % (name, error))
        if target.name.startswith("ptx_"):
            data += b"\0"
        if target.backend == "cpu":
            data += seal(data, target.name)
        return Result(Image(target.backend, target.name, data), done.stderr, files=self.read_depfile(depfile), forms=forms)

    def compile_all(self, targets, dependencies):
        """Returns the images in the order of `targets`; adds the files from which they were made to `dependencies`."""
        self.host.group_levels([target.name for target in targets if target.backend == "cpu"])
        with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            jobs = [pool.submit(self.compile_one, i, target) for i, target in enumerate(targets)]
            if not any(target.backend == "cpu" for target in targets):
                jobs.append(pool.submit(self.host.refuse_recursion))
            results = [job.result() for job in jobs][: len(targets)]
        # The compilers of all targets report the same mistake, so each warning, and the errors of each backend, are
        # printed once.
        shown, failed = set(), {}
        for target, result in zip(targets, results):
            key = result.messages if result.image else target.backend
            if key not in shown:
                said = result.messages
                if not result.image:
                    said = messages.explain(said, self.device_headers, self.cuda_names)
                sys.stderr.write(said)
            shown.add(key)
            if not result.image:
                failed.setdefault((target.backend, result.failure), []).append(target.name)
        if failed:
            texts = ["for %s:%s %s" % (backend, ",".join(names), why) for (backend, why), names in failed.items()]
            raise RillccError("; ".join(texts), self.source)
        self.warn_of_fibers(results)
        for result in results:
            dependencies |= without_cuda_headers(result.files)
        dependencies -= {file for file in dependencies if file.startswith(self.folder + os.sep)}
        return [result.image for result in results]


def seal(data, target):
    """Returns the bytes after an image for the CPU: rill_cpu_image_seal of rill/device/cpu_image.h."""
    text = struct.pack("<40sQI", target.encode(), len(data), 1)
    return text + struct.pack("<I8s", zlib.crc32(data + text), b"RILLseal")


def without_cuda_headers(files):
    """Returns the files without nvcc's own headers, which nvcc does not treat as system headers."""
    folders = {os.path.dirname(file) + os.sep for file in files if os.path.basename(file) == "cuda_runtime.h"}
    return {file for file in files if not file.startswith(tuple(folders))}


def read_depfile(path):
    """Returns the files that a compiler's makefile rule names; the result is empty if there is no rule."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read()
    except FileNotFoundError:
        return set()
    _, _, text = text.replace("\\\n", " ").partition(": ")
    words = re.findall(r"(?:\\[ #\\]|[^\s])+", text)
    return {re.sub(r"\\([ #\\])", r"\1", word).replace("$$", "$") for word in words} - {"-", "\\"}
