"""Compiles kernels for the CPU. With clang and its LLVM, every kernel becomes loops over the threads of a block. With
any other C++ compiler, kernels with barriers run on fibers."""

import os
import platform
import re
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from typing import Optional

from . import instances, known_answer, llvm, messages, notes, shown, sites, spmd, stacks, templates, zones
from .errors import RillccError

# Linux's names for the features of each level.
V2 = set("cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3".split())
V3 = V2 | set("abm avx avx2 bmi1 bmi2 f16c fma movbe".split())
V4 = V3 | set("avx512f avx512bw avx512cd avx512dq avx512vl".split())
NEEDED: dict = {"x86-64": set(), "x86-64-v3": V3, "x86-64-v4": V4}
X86_TARGETS = tuple(NEEDED)
OLDEST, NEWEST = 15, 40  # versions of clang with a supported LLVM

# Results on the CPU do not depend on which image runs: no fused products, no reordering. -fno-math-errno and
# -fno-trapping-math only mean that no code reads errno and the exception flags, which allows vectorization. Kernels may
# access the same bytes as several types, as with nvcc.
FLAGS = """-O3 -ffp-contract=off -fno-math-errno -fno-trapping-math -fno-strict-aliasing -fPIC -fvisibility=hidden
    -fno-exceptions -fno-rtti""".split()
# With -fstack-clash-protection, a function whose frame is larger than the guard of a stack touches every page of the
# frame, so that it cannot skip the guard. The sizes of frames are reported in files beside the output.
STACK_FLAGS = "-fstack-clash-protection -fno-lto".split()
# With --check each access to memory calls a function (rill/device/host_check.h), which finds the line of the source
# from the frames of its callers.
CHECK_FLAGS = """-DRILL_CHECK=1 -fsanitize=thread -O1 -g1 -fno-inline -fno-omit-frame-pointer
    -fno-optimize-sibling-calls""".split()
# gcc does not instrument functions that copy and fill memory, so they stay calls, which sites.py replaces. Red zones
# change the distances between variables, so section anchors are off.
GCC_CHECK_FLAGS = "--param=tsan-distinguish-volatile=1 -fno-builtin-memcpy -fno-builtin-memmove -fno-builtin-memset -fno-section-anchors".split()
CLANG_CHECK_FLAGS = "-mllvm -tsan-distinguish-volatile".split()
ASAN_FLAGS = "-fsanitize-address-use-after-return=never -mllvm -asan-stack-dynamic-alloca=0".split()
# With --debug a kernel's variables stay in memory, and threads run one by one.
DEBUG_FLAGS = "-O0 -g -fno-omit-frame-pointer".split()
# A loop over threads that copies memory is not replaced by memcpy, which accesses a row from both ends, in an order in
# which processors do not read ahead. Kernels are so long that LLVM would not emit the second loop of
# rillcc_lib/all_below.py with its usual threshold.
LOOP_FLAGS = "-mllvm -disable-loop-idiom-memcpy -mllvm -unswitch-threshold=200".split()
# For indices that wrap (wraps.py).
NO_GROUPS = "-mllvm -enable-interleaved-mem-accesses=false".split()
# An undefined symbol is an error now, not only when the image is loaded. The C++ library is linked only if kernels use
# it. The host finds the variables of a source by their symbols, so symbols are not stripped.
LINK_FLAGS = (
    "-Wa,--no-warn -shared -static-libgcc -Wl,--as-needed -Wl,-z,defs -Wl,-z,noseparate-code -Wl,--build-id=none"
).split()
# If a source has none of these words, only its kernels read an index.
HELPER = re.compile(r"__device__|__global__|\bassert\b|##|\bcuda_names\b|\brill_(warp|block)_(sum|min|max)\b")
# If a source has none of these words, it calls no function of rill/device/host_math.h.
MATHEMATICS = re.compile(r"\b(h2?|__)?(a?(sin|cos|tan)h?|(sin|cos|sincos)(pi)?|exp\w*|log\w*|pow|erfc?|cbrt|hypot|normcdf)f?\b|##")
GLOBAL = re.compile(r"\b__global__\b")
TEMPLATE = re.compile(r"\btemplate\s*<")
DYNAMIC_SHARED = re.compile(r"\bextern\s+__shared__")
# An attribute that compiles one function for a different target.
OWN_TARGET = re.compile(r"\b(__)?target(__|_clones|_version)?\s*\(")


@dataclass
class Cut:
    """The output of clang's first half and of rillcc for a source."""

    done: subprocess.CompletedProcess
    bitcode: str
    forms: dict = field(default_factory=dict)
    arrays: dict = field(default_factory=dict)
    facts: dict = field(default_factory=dict)
    index_wraps: bool = False


@dataclass
class Levels:
    """Levels of a processor for which the preprocessed source is the same, so that they share one cut."""

    names: list
    lock: threading.Lock = field(default_factory=threading.Lock)
    cut: Optional[Cut] = None


def find_clang(options):
    """Returns (path, LLVM library, "") of a clang++ whose LLVM can be loaded, or (None, None, why there is none)."""
    if options.fibers:
        return None, None, "--fibers is given"
    if options.cxx:
        candidates = options.cxx.split()
        why = "%s is not clang" % options.cxx
    elif options.clang == "none":
        return None, None, "clang is disabled"
    else:
        candidates = ["clang++-%d" % n for n in range(NEWEST, OLDEST - 1, -1)] + ["clang++"]
        candidates = [options.clang] if options.clang else candidates
        why = "there is no clang++ %d or later" % OLDEST
    for name in candidates:
        path = llvm.which_clang(name)
        if not path:
            continue
        place = llvm.find_library(path)
        if not place:
            why = "%s has no libLLVM that can be loaded" % name
            continue
        library = llvm.Library(place)
        if library.version() >= OLDEST:
            return path, library, ""
        why = "%s is older than version %d" % (name, OLDEST)
    return None, None, why


def read_text(path):
    """Returns the text of a file, or "" if it does not exist."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def runs_here(target):
    """Returns whether this machine runs images for a target. backends/cpu/machine.c uses the same test."""
    needed = NEEDED.get(target)
    if needed is None or platform.machine() != "x86_64":
        return target == platform.machine()
    flags = re.search(r"^flags\s*:(.*)$", read_text("/proc/cpuinfo"), re.MULTILINE)
    return needed <= set(flags.group(1).split() if flags else ())


class Host:
    """The compiler for the CPU, and its output for a source."""

    def __init__(self, toolchain):
        self.toolchain = toolchain
        self.cxx = toolchain.cxx
        self.macros = set()
        self.files = set()
        self.main = [toolchain.source]
        self.symbols = []
        self.kernels = templates.Found()
        self.added = []  # instances
        self.levels = {}
        self.clang, self.library, self.why_not = find_clang(toolchain.options)
        if self.clang and not toolchain.options.cxx:
            self.cxx = [self.clang]

    def probe(self):
        """Finds out for which machine the compiler generates code."""
        result = self.toolchain.execute(self.cxx + ["-dM", "-E", "-x", "c++", os.devnull])
        if result.returncode != 0:
            raise RillccError("%s does not work:\n%s" % (self.cxx[0], result.stderr.rstrip()))
        self.macros = set(re.findall(r"#define (\w+)", result.stdout))

    def targets(self):
        if "__aarch64__" in self.macros:
            return ("aarch64",)  # which may differ from this machine, with a cross compiler
        return X86_TARGETS if "__x86_64__" in self.macros else (platform.machine(),)

    def native(self):
        """Returns the best target that this machine runs."""
        found = [target for target in self.targets() if runs_here(target)]
        if not found:
            text = "--target cpu:native: %s compiles for %s, but this machine is %s"
            raise RillccError(text % (self.cxx[0], self.targets()[0], platform.machine()))
        return found[-1]

    def form(self):
        """Returns how kernels with barriers run, and what is needed to make them fast."""
        if self.clang:
            return "loops, made with %s" % os.path.basename(self.library.path)
        what = "clang %d or later with its libLLVM (on Debian and Ubuntu: clang-19 libllvm19) is needed for loops" % OLDEST
        return "slow, because each thread has its own stack (%s); %s" % (self.why_not, what)

    def flags(self, target):
        flags = self.march(target)
        if "__clang__" in self.macros:
            flags.append("-fno-strict-float-cast-overflow")  # conversions to integers saturate, as on GPUs
        if self.clang:
            flags += ["-fdeclspec", "-DRILL_REGIONS=1", "-Werror=undefined-internal"]
        common = [*self.toolchain.common, *self.toolchain.instead_of_cuda(), *self.cpu_options()]
        flags += self.check_flags()
        flags += DEBUG_FLAGS if self.toolchain.options.debug else []
        return ["-x", "c++", *FLAGS, *flags, *self.symbols, *common]

    def cpu_options(self):
        """Returns the user's options. With clang's address sanitizer, adds options that give stack frames a bound."""
        options = self.toolchain.options.cpu_options
        return [*options, *(ASAN_FLAGS if "__clang__" in self.macros and "-fsanitize=address" in options else [])]

    def check_flags(self):
        if not self.toolchain.options.check:
            return []
        return CHECK_FLAGS + (CLANG_CHECK_FLAGS if "__clang__" in self.macros else GCC_CHECK_FLAGS)

    def read(self):
        """Returns the contents of the source as the compiler reports them, and the files that it consists of."""
        unit = self.read_notes()
        if self.toolchain.copy_files(self.files):
            self.main = [self.toolchain.compiled]
            unit = self.read_notes()
        self.find_kernels()
        unit, functions = instances.add_all(self, unit)
        if unit.plain:
            self.register(unit.plain)
            unit = self.read_notes()
        unit.templates, unit.functions = self.kernels.templates, functions
        instances.place_at_templates(self, unit)
        if not unit.kernels and (self.toolchain.options.output or not unit.templates):
            raise RillccError(self.why_none(), self.toolchain.source)
        flags = ["-DRILL_SYMBOL_%s=%s" % (k.name, k.symbol) for k in unit.kernels if k.symbol != k.name]
        self.symbols = flags
        return unit, self.files

    def why_none(self):
        if self.toolchain.options.instances_of and self.kernels.templates:
            return "no object refers to an instance of its kernel templates: %s" % ", ".join(sorted(self.kernels.templates))
        if self.mentions(GLOBAL):
            why = "all its kernels are templates or in an unnamed namespace: name instances with RILL_KERNEL_INSTANCE(name, "
            why += "kernel<types>); or with lines kernel<types> of --instances FILE, or use --instances-of with the objects "
            return why + "of a program"
        forms = [] if self.toolchain.cuda_names else ["RILL_KERNEL(name, parameters) { ... }"]
        return "there is no kernel in it: write " + " or ".join(forms + ["__global__ void name(parameters) { ... }"])

    def find_kernels(self):
        """Finds the kernel templates in the preprocessed source, if an option needs them."""
        toolchain, options = self.toolchain, self.toolchain.options
        needed = options.header or options.instances or options.instances_of
        if needed and self.mentions(TEMPLATE) and self.mentions(GLOBAL):
            self.kernels = templates.find(templates.tokens_of(self.preprocess_notes(), toolchain.device_headers))

    def preprocess_notes(self):
        flags = [*self.flags(self.targets()[0]), "-DRILL_NOTES=1", "-w", "-E"]
        return self.toolchain.execute([*self.cxx, *flags, *self.main]).stdout

    def add(self, chosen, text):
        """Adds instances at the end of the source. All compilers then read the extended source."""
        toolchain = self.toolchain
        toolchain.copy_files(self.files, always=True)
        toolchain.copies.append(toolchain.source, text)
        self.main = [toolchain.compiled]
        self.added += chosen
        return self.read_notes()

    def read_notes(self):
        toolchain = self.toolchain
        output, depfile = toolchain.path("notes.o"), toolchain.path("notes.d")
        command = self.cxx + self.flags(self.targets()[0]) + ["-O0", "-w", "-DRILL_NOTES=1", "-c"]
        if "__clang__" not in self.macros:
            # From version 14 on, g++ refuses to put an instance of a template into the section of other functions. Only
            # its name is needed here.
            command.append("-fno-implicit-templates")
        result = toolchain.execute(command + ["-MMD", "-MF", depfile, "-MT", "x", "-o", output] + self.main)
        if result.returncode != 0:
            instances.refuse(result.stderr, self.added, self.kernels)
            sys.stderr.write(messages.explain(result.stderr, toolchain.device_headers, toolchain.cuda_names))
            raise RillccError("%s cannot compile it" % os.path.basename(self.cxx[0]), toolchain.source)
        self.files = toolchain.read_depfile(depfile)
        named = any(path.endswith("/rill/device/cuda_vectors.h") for path in self.files)
        types = notes.CUDA_TYPES if named else notes.INDEX_TYPES
        known = notes.Known(bool(toolchain.options.type_headers), types, self.names_of, self.tag_of)
        return notes.read(output, toolchain.source, known)

    def register(self, symbols):
        """Writes a file that includes the source and registers kernels that the source only defines."""
        toolchain, lines, taken = self.toolchain, [], {}
        for symbol in symbols:
            full = stacks.readable(symbol)
            name = full.rpartition("::")[2]
            if name in taken:
                text = '%s and %s are both called "%s": give each its own name with %s'
                raise RillccError(text % (taken[name], symbol, name, messages.WHICH_KERNEL), toolchain.source)
            taken[name] = symbol
            file, line = self.find(name)
            lines.append('#line %d "%s"\nRILL_KERNEL_INSTANCE(%s, %s);\n' % (line, file, name, full))
        with open(toolchain.path("plain.cc"), "w", encoding="utf-8") as file:
            file.writelines(lines)
        self.main = ["-include", toolchain.compiled, toolchain.path("plain.cc")]

    def find(self, name):
        """Returns the file and line in which a kernel appears to be defined."""
        words = re.compile(r"__global__[^;{}()]*(?:__launch_bounds__\s*\([^()]*\))?[^;{}()]*\b%s\s*\(" % name)
        for path in [self.toolchain.source] + sorted(self.files - {self.toolchain.source}):
            found = words.search(read_text(path))
            if found:
                return path, read_text(path)[: found.end()].count("\n") + 1
        return self.toolchain.source, 1

    def names_of(self, kernel, count):
        """Returns the parameters of a plain kernel as they appear to be written; only their names are used."""
        known = self.kernels.templates.get(stacks.readable(kernel.symbol), [])
        if known:
            return notes.names_in(known[0].arguments, count)
        text = "\n".join(read_text(kernel.file).split("\n")[kernel.line - 1 :])
        found = re.search(r"\b%s\s*\(([^()]*)\)" % kernel.name, re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL))
        parts = notes.split_commas(found.group(1)) if found else []
        return notes.names_in(parts, count)

    def tag_of(self, name):
        """Returns "struct" or "union" if a type of this name appears to be declared as one, otherwise "". A type that
        is declared only by `typedef struct {...} name` does not count, because it has no other name in C."""
        words = re.compile(r"(?<!enum )\b(struct|union)\b(?:[^;{}:=]|::)*?\b%s\s*(?:final\s*)?(?::[^;{}]*)?[{;]" % name)
        for path in [self.toolchain.source] + sorted(self.files - {self.toolchain.source}):
            found = words.search(read_text(path))
            if found:
                return found.group(1)
        return ""

    def refuse_recursion(self):
        """Refuses recursive functions if no image for the CPU is made, because compilers for GPUs accept them."""
        assembly = self.toolchain.path("calls.s")
        flags = self.flags(self.targets()[0]) + ["-DRILL_LOOPS=1", "-DRILL_HELPERS_READ_INDEX=1", "-w", "-S"]
        if self.toolchain.execute(self.cxx + flags + ["-o", assembly, *self.main]).returncode != 0:
            return  # the source is only for GPUs
        symbols = stacks.read(read_text(assembly), "")
        for kernel in self.toolchain.unit.kernels:
            stacks.refuse_recursion(symbols, kernel)

    def compile(self, target, output, depfile):
        """Compiles the image for one target; returns the compiler's result, and a note on how each kernel runs."""
        if self.clang:
            return self.compile_regions(target, output, depfile)
        return self.compile_loops(target, output, depfile)

    # With clang

    def group_levels(self, names):
        """Groups the targets for which the preprocessed source is the same."""
        groups = [[name] for name in names]
        if self.clang and len(names) > 1:
            texts = [self.preprocess(name) for name in names]
            if not any(text is None or OWN_TARGET.search(text) for text in texts):
                groups = [[name for name, other in zip(names, texts) if other == text] for text in dict.fromkeys(texts)]
        self.levels = {name: group for group in map(Levels, groups) for name in group.names}

    def preprocess(self, target):
        command = [*self.cxx, *self.flags(target), *self.first_half(), "-w", "-E", "-P", *self.main]
        done = self.toolchain.execute(command)
        return done.stdout if done.returncode == 0 else None

    def first_half(self):
        """Returns the flags of clang's first half, which override the user's optimization level."""
        return STACK_FLAGS + ([] if self.thread_by_thread() else ["-O3"])

    def thread_by_thread(self):
        """Returns the reason why the threads of all kernels run one by one, or "" if only kernels that cannot become
        loops run in this way."""
        options = self.toolchain.options
        return "--check is given" if options.check else "--debug is given" if options.debug else ""

    def mathematics(self):
        """Returns the flags for rill/device/host_math.h, whose functions take time to compile."""
        return ["-DRILL_MATHEMATICS=1"] if self.mentions(MATHEMATICS) else []

    def make_cut(self, levels, output, depfile):
        source, cut = output + ".bc", output + ".cut.bc"
        flags = [*self.flags(levels[0]), *self.mathematics(), *self.first_half(), "-Xclang", "-disable-llvm-passes", "-emit-llvm", "-c"]
        done = self.toolchain.execute(self.cxx + flags + ["-MMD", "-MF", depfile, "-o", source, *self.main])
        if done.returncode != 0:
            return Cut(done, cut)
        fibers, options = self.thread_by_thread(), self.toolchain.options
        return Cut(done, cut, *spmd.rewrite(self.library, source, cut, fibers, options, len(levels) > 1))

    def compile_regions(self, target, output, depfile):
        toolchain, levels = self.toolchain, self.levels[target]
        with levels.lock:
            levels.cut = levels.cut or self.make_cut(levels.names, output, depfile)
        done, options = levels.cut.done, toolchain.options
        if done.returncode != 0:
            return done, {}
        assembly = output + ".s"
        flags = [*FLAGS, *self.march(target), *STACK_FLAGS, *(CHECK_FLAGS + CLANG_CHECK_FLAGS if options.check else LOOP_FLAGS)]
        flags += NO_GROUPS if levels.cut.index_wraps else []
        flags += [*(DEBUG_FLAGS if options.debug else []), "-fstack-usage", "-S"]
        flags += ["-o", assembly, "-x", "ir", levels.cut.bitcode]
        # Do not warn about loops over threads, which have no source line. Do not warn about a #pragma unroll without
        # effect either: nvcc does not.
        flags += ["-Wno-pass-failed", "-Wno-unused-command-line-argument", *self.cpu_options()]
        made = toolchain.execute(self.cxx + flags)
        made.stderr = done.stderr + made.stderr
        if made.returncode != 0:
            return made, {}
        return self.link(target, assembly, output, made, levels.cut), levels.cut.forms

    # Without clang

    def compile_loops(self, target, output, depfile):
        toolchain = self.toolchain
        assembly = output + ".s"
        flags = self.flags(target) + self.mathematics() + STACK_FLAGS + ["-S", "-MMD", "-MF", depfile]
        helpers = toolchain.options.cuda_names or self.mentions(HELPER)
        flags.append("-DRILL_HELPERS_READ_INDEX=%d" % helpers)
        flags += ["-fstack-usage"] if "__clang__" in self.macros else ["-fcallgraph-info=su", "-fno-gnu-unique"]
        if "__clang__" in self.macros and known_answer.divides_correctly(toolchain, self.cxx, self.march(target), "divides-" + target):
            flags.append("-DRILL_VECTORIZE=1")
        fibers = toolchain.options.fibers or self.thread_by_thread() != ""
        command = self.cxx + flags + ["-o", assembly, *self.main, "-DRILL_LOOPS=%d" % (not fibers)]
        done = toolchain.execute(command)
        synchronizing = set()
        if done.returncode == 0 and not fibers:
            synchronizing = self.find_synchronizing(assembly)
        if synchronizing:
            done = toolchain.execute(command + ["-DRILL_MEETS_%s=1" % name for name in sorted(synchronizing)])
        if done.returncode != 0:
            return done, {}
        if fibers:
            synchronizing = {kernel.name for kernel in toolchain.unit.kernels}
        forms = {kernel.name: "a loop over the threads" for kernel in toolchain.unit.kernels}
        forms.update(dict.fromkeys(synchronizing, "fibers: %s" % self.why_not))
        return self.link(target, assembly, output, done, Cut(done, "")), forms

    def find_synchronizing(self, assembly):
        """Returns the kernels whose threads may synchronize, according to the compiler's output."""
        symbols = stacks.read(read_text(assembly), "")
        synchronizing = set()
        for kernel in self.toolchain.unit.kernels:
            for form in stacks.find_forms(symbols, kernel):
                reached = (name for group in stacks.components(symbols, form) for name in group)
                if any("rill_host_meet" in name for name in reached):
                    synchronizing.add(kernel.name)
        return synchronizing

    # With every compiler

    def march(self, target):
        if target in X86_TARGETS:
            return ["-march=" + target]
        # By default AArch64 uses TLS descriptors. With these, glibc 2.36 returned a null address for a kernel's
        # thread-local variable while other threads opened and closed images. clang supports nothing else.
        return ["-mtls-dialect=trad"] if "__aarch64__" in self.macros and "__clang__" not in self.macros else []

    def link(self, target, assembly, output, done, cut):
        """Links the image, with tables of its kernels and variables."""
        sizes = "".join(read_text(assembly[:-1] + suffix) for suffix in ("ci", "su"))
        text = read_text(assembly)
        table = stacks.table(self.toolchain.unit.kernels, text, sizes, cut.arrays, cut.facts)
        text = shown.rename(text, self.toolchain.unit.kernels, forms=not self.toolchain.options.debug)
        if self.toolchain.options.check:
            text = zones.add(sites.add(text))
        with open(assembly, "w", encoding="utf-8") as file:
            file.write(text + table)
        asked = DEBUG_FLAGS if self.toolchain.options.debug else []
        asked = [option for option in [*asked, *self.toolchain.options.cpu_options] if option.startswith("-g")]
        strip = [] if asked and asked[-1] != "-g0" else ["-Wl,-S"]
        linked = self.toolchain.execute(self.cxx + self.march(target) + self.link_flags() + strip + ["-o", output, assembly])
        if linked.returncode != 0 and not self.clang and self.mentions(DYNAMIC_SHARED):
            text = "rillcc: `extern __shared__` requires clang (%s); RILL_DYNAMIC_SHARED(float, tile); works with all compilers\n"
            linked.stderr += text % self.why_not
        elif linked.returncode != 0:
            own = [self.toolchain.source] + sorted(path for path in self.files if not path.startswith("/usr/"))
            found, known = messages.linker_hints(linked.stderr, own, self.toolchain.device_headers, self.toolchain.cuda_names)
            if found and known:
                linked.stderr = messages.show(found)
        linked.stderr = done.stderr + linked.stderr
        return linked

    def link_flags(self):
        """Returns the flags for the linker. With a sanitizer, undefined symbols are allowed: the sanitizer's functions
        are in the program, which is also built with the sanitizer, and a second runtime would fail."""
        sanitized = any(option.startswith("-fsanitize=") for option in self.toolchain.options.cpu_options)
        return [flag for flag in LINK_FLAGS if not (sanitized and flag == "-Wl,-z,defs")]

    def mentions(self, words):
        """Returns whether the source, or a header that belongs neither to the system nor to the dialect, has one of
        these words."""
        for path in self.files:
            if os.sep + os.path.join("rill", "device") + os.sep in path:
                continue
            with open(path, encoding="utf-8", errors="replace") as file:
                if words.search(file.read()):
                    return True
        return False
