#!/usr/bin/env python3
"""The functions of the kernel dialect, which intrinsics.txt lists: every compiler has them, the headers declare no
others, and docs/reference/KERNELS.md names them."""

import argparse
import ctypes
import os
import re
import unittest
from dataclasses import dataclass

import support
from support import CLANG, CUDA_CLANG, CXX, HERE, HIPCC, INCLUDE, LOOPS, NVCC, ROOT, compilers
from rillcc_lib import llvm

LIST = "intrinsics.txt"
# What headers declare for compilers, for rillcc and for the headers of C.  __nanosleep is what nvcc calls rill_pause.
NOT_LISTED = re.compile(
    r"\w*_|operator|v?printf|__assert_?fail|__nanosleep|rill_(clc|math|ir|fiber|sched|check|host)_\w+"
    r"|rill_(thread|block)_idx|rill_(block|grid)_dim|rill_exchange|rill_shuffle_source|rill_symbol_or"
)
OF_C = {"assert", "printf"}  # in docs/reference/KERNELS.md, of the headers of C
INTEGERS = "bool,short,unsigned short,int,unsigned,long,unsigned long,long long,unsigned long long".split(",")
# Vendors' functions may give the signed integer for the unsigned one, or an int for a bool.
PREAMBLE = """#include <rill/device/kernel.h>
%s
template <class> struct integer { enum { is = 0 }; };
%s
template <class A, class B> struct fits { enum { is = integer<A>::is && integer<B>::is }; };
template <class A> struct fits<A, A> { enum { is = 1 }; };
template <class T> static __device__ void keep(char *out, T v) { memcpy(out, &v, sizeof v); }
#define FITS(TYPE, ...) static_assert(fits<decltype(__VA_ARGS__), TYPE>::is, #__VA_ARGS__ " is no " #TYPE)
#define ENTRY(NAME) \\
  RILL_KERNEL(NAME, bool b, short h, int i, unsigned u, long j, unsigned long k, long long l, unsigned long long q, \\
              float f, double d, int *pi, unsigned *pu, long *pj, unsigned long *pk, long long *pl, \\
              unsigned long long *pq, float *pf, double *pd, char *out)
"""
PREAMBLE %= ("%s", "\n".join("template <> struct integer<%s> { enum { is = 1 }; };" % name for name in INTEGERS))
CUDA_PREAMBLE = "#include <rill/device/cuda_names.h>\nnamespace cg = cooperative_groups;\n"
HALVES = "const __half x = __float2half(f), y = x; const __half2 x2 = __half2half2(x), y2 = x2; "
BFLOATS = "const __nv_bfloat16 w = __float2bfloat16(f), z = w; "
BFLOATS += "const __nv_bfloat162 w2 = __bfloat162bfloat162(w), z2 = w2; "


def expand(text):
    """Returns the words that a shell makes of braces."""
    found = re.search(r"\{([^{}]*)\}", text)
    if not found:
        return [text]
    begin, end = text[: found.start()], text[found.end() :]
    return list(dict.fromkeys(word for part in found.group(1).split(",") for word in expand(begin + part + end)))


@dataclass
class Line:
    number: int
    section: str
    kind: str
    calls: list

    def names(self):
        return {re.findall(r"^(?:cg::)?(\w+)", call)[0] for call in self.calls}

    def kernel(self):
        words = set(re.findall(r"\w+", " ".join(self.calls)))
        body = (HALVES if words & {"x", "x2"} else "") + (BFLOATS if words & {"w", "w2"} else "")
        for place, call in enumerate(self.calls):
            body += "" if self.kind == "auto" else "FITS(%s, %s); " % (self.kind, call)
            body += call + "; " if self.kind == "void" else "keep(out + 16 * %d, %s); " % (place, call)
        return '#line %d "%s"\nENTRY(line_%d) { %s}\n' % (self.number, LIST, self.number, body)


def read_list():
    lines, section = [], ""
    with open(os.path.join(HERE, LIST), encoding="utf-8") as file:
        for number, text in enumerate(file.read().splitlines(), 1):
            if text.startswith("["):
                section = text.strip("[]")
            elif text and not text.startswith("#"):
                kind, call = re.split(r"\s{2,}", text, maxsplit=1)
                lines.append(Line(number, section, kind, expand(call)))
    return lines


LINES = read_list()


def without(*conditions):
    return [line for line in LINES if not set(line.section.split(", ")) & set(conditions)]


def names_of(lines):
    return {name for line in lines for name in line.names()}


def source_of(lines):
    names = any(line.section.startswith("CUDA names") for line in lines)
    return PREAMBLE % (CUDA_PREAMBLE if names else "") + "".join(line.kernel() for line in lines)


def missing(lines, messages):
    """Returns the functions that a compiler does not take, with its first message about each; else all that it says."""
    texts = []
    for line in lines:
        place = re.escape(LIST) + r"[:(]%d\b" % line.number
        said = [text.partition("; did you mean")[0] for text in messages.splitlines() if re.search(place, text)]
        found = {name for name in line.names() for text in said if re.search(r"\b%s\b" % name, text)}
        for name in sorted(found) or (["one of " + " ".join(sorted(line.names()))] if said else []):
            texts.append("%s: %s" % (name, next((text for text in said if name in text), said[0] if said else "")))
    return "\n".join(texts) or messages[-4000:]


def top_level(text):
    """Returns a source without what its braces hold, but for namespaces and extern "C"."""
    nested, place, flat = [], 0, ""
    for brace in re.finditer(r"[{}]", text):
        if not any(nested):
            flat += text[place : brace.start()] + ";"
        if brace.group() == "{":
            nested.append(any(nested) or not re.search(r'(\bnamespace\b[\s\w]*|extern\s*"");$', flat))
        else:
            nested.pop()
        place = brace.end()
    return flat + text[place:]


def declared(text):
    """Returns the functions that a preprocessed source, with its macros, declares in the headers of the dialect."""
    own, kept, found = False, [], set()
    for line in text.splitlines():
        place = re.match(r'# (?:line )?\d+ "([^"]*)"', line)
        renamed = re.match(r"#define (\w+) (rill_\w+_|__builtin_\w+)$", line)
        if place:
            own = "/rill/device/" in place.group(1)
        elif own and renamed:
            found.add(renamed.group(1))
        elif own and not line.startswith("#"):
            kept.append(line)
    for statement in top_level(re.sub(r'"(\\.|[^"\\])*"', '""', "\n".join(kept))).split(";"):
        before, text = None, statement
        while before != text:
            before, text = text, re.sub(r"<[^<>]*>", "", text)
        text = re.sub(r"(__attribute__|__declspec|alignas)\s*\(\(?(\w|\s|,|\([^()]*\))*\)?\)", "", text)
        name = re.match(r"[\w\s*&:]*?(\w+)\s*\(", text)
        if name and not re.match(r"\s*(using|typedef|struct|enum|static_assert)\b", text):
            found.add(name.group(1))
    return found - {"void", "sizeof"}


class RunTimeCompiler:
    """NVRTC or hipRTC."""

    def __init__(self, library, prefix, *options):
        self.library, self.prefix = ctypes.CDLL(library), prefix
        self.options = [option.encode() for option in (*options, "-std=c++17", "-I" + INCLUDE)]

    def call(self, name, *arguments):
        return getattr(self.library, self.prefix + name)(*arguments)

    def compile(self, text):
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        if self.call("CreateProgram", ctypes.byref(program), text.encode(), b"list.cu", 0, None, None):
            return 1, "there is no program"
        options = (ctypes.c_char_p * len(self.options))(*self.options)
        result = self.call("CompileProgram", program, len(options), options)
        self.call("GetProgramLogSize", program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value + 1)
        self.call("GetProgramLog", program, log)
        self.call("DestroyProgram", ctypes.byref(program))
        return result, log.value.decode("utf-8", "replace")


def find_library(*names):
    for name in names:
        try:
            return ctypes.CDLL(name)._name
        except OSError:
            continue
    return None


NVRTC = find_library("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2")
HIPRTC = find_library("libhiprtc.so.7", "libhiprtc.so.6", "libamdhip64.so.6", "libamdhip64.so.5")
# The oldest clang, too, if all are to be tried.
OLDEST = next(filter(None, (llvm.which_clang("clang++-%d" % n) for n in range(compilers.OLDEST_CLANG, 41))), None)


def clangs(newest):
    return [newest] + [clang for clang in (OLDEST,) if support.LONG and clang and clang != newest]


class Intrinsics(support.TestCase):
    def toolchain(self, lines, **given):
        options: dict = dict(nvcc="none", hipcc="none", clang=None, cxx=None, output=None, defines=[], type_headers=[])
        options.update(cpu_options=["-O0"], cuda_options=[], hip_options=[])
        options.update(check=False, debug=False, fp_contract="fast", verbose=False, fibers=False)
        options.update(cuda_names="CUDA names" in {line.section for line in lines})
        options.update(given, source=self.write("list.kernel.cu", source_of(lines)))
        toolchain = compilers.Toolchain(argparse.Namespace(**options), [INCLUDE])
        self.addCleanup(toolchain.close)
        return toolchain

    def compile(self, form, toolchain, lines, command):
        done = toolchain.execute(command)
        if done.returncode != 0:
            self.fail("%s lacks functions of %s\n%s" % (form, LIST, missing(lines, done.stderr + done.stdout)))

    def check_headers(self, form, toolchain, command):
        """That each function of the headers that this form includes is in the list."""
        drop = ("-ptx", "--genco", "-S", "-c", "--no-gpu-bundle-output", "-o", self.path("output"))
        command = [word for word in command if word not in drop] + ["-E"]
        command += ["-Xcompiler", "-dD"] if command[0] == NVCC else ["-dD"]
        command += ["--cuda-device-only"] if command[0] == HIPCC else []
        done = toolchain.execute(command)
        self.assertEqual(done.returncode, 0, done.stderr)
        names = {name for name in declared(done.stdout) if not NOT_LISTED.fullmatch(name)}
        self.assertGreater(len(names), 50)
        self.assertEqual(sorted(names - names_of(LINES)), [], "%s has functions that are not in %s" % (form, LIST))

    def check_gpu(self, form, target, *lacks, **given):
        """First what takes no library, then the rest."""
        plain = [line for line in LINES if line.section == "dialect"]
        for some in (plain, [line for line in without(*lacks) if line not in plain]):
            lines, toolchain = some, self.toolchain(some, **given)
            if "clang" in given and not toolchain.clc_flags("cuda" if target.backend == "cuda" else 4):
                lines = [line for line in lines if "libclc" not in line.section]
                self.write("list.kernel.cu", source_of(lines))
            make = toolchain.cuda_command if target.backend == "cuda" else toolchain.hip_command
            command = [word for word in make(target, self.path("output")) if word != "-O3"]
            command += ["-Xcicc", "-O0"] if command[0] == NVCC else ["-O1", "-ferror-limit=0"]
            self.compile(form, toolchain, lines, command)
        self.check_headers(form, toolchain, command)

    def check_bytes(self, form, *lacks, **given):
        """That no function selects a byte or a half in an instruction, where compilers have been wrong."""
        toolchain = self.toolchain(without("libclc", *lacks), **given)
        command = toolchain.hip_command(compilers.Target("hip", "gfx90a"), self.path("list.s"))
        done = toolchain.execute([word for word in command if word != "--no-gpu-bundle-output"] + ["-S"])
        with self.subTest(form=form):
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(re.findall(r"\w+_sdwa .*", self.read("list.s")), [])

    def check_clang(self, vendor, target, clang):
        form = "%s for %s" % (os.path.basename(clang), vendor)
        with self.subTest(form=form):
            self.check_gpu(form, target, clang=clang)

    def check_cpu(self, form, *flags, **given):
        toolchain = self.toolchain(LINES, **given)
        command = [*toolchain.host.cxx, *toolchain.host.flags("x86-64" if support.X86 else os.uname().machine), *flags]
        command += ["-c", "-o", self.path("output"), toolchain.source]
        self.compile(form, toolchain, LINES, command)
        self.check_headers(form, toolchain, command)

    def check_at_run_time(self, form, *compiler):
        lines = [line for line in LINES if line.section.startswith("dialect")]
        result, log = RunTimeCompiler(*compiler).compile(source_of(lines))
        if result != 0:
            self.fail("%s lacks functions of %s\n%s" % (form, LIST, missing(lines, log)))

    @unittest.skipUnless(NVCC, "no nvcc")
    def test_nvcc_has_every_function(self):
        self.check_gpu("nvcc", compilers.Target("cuda", "ptx_80"), nvcc=NVCC)

    @unittest.skipUnless(HIPCC, "no hipcc")
    def test_hipcc_has_every_function(self):
        self.check_gpu("hipcc", compilers.Target("hip", "gfx90a"), "not hipcc", hipcc=HIPCC)

    @unittest.skipUnless(CUDA_CLANG, "no clang 15 or later")
    def test_clang_for_nvidia_has_every_function(self):
        for clang in clangs(CUDA_CLANG):
            self.check_clang("NVIDIA", compilers.Target("cuda", "ptx_70"), clang)

    @unittest.skipUnless(CLANG, "no clang 15 or later with lld")
    def test_clang_for_amd_has_every_function(self):
        for clang in clangs(CLANG):
            self.check_clang("AMD", compilers.Target("hip", "gfx90a"), clang)

    @unittest.skipUnless(CLANG, "no clang 15 or later with lld")
    def test_no_bytes_are_selected(self):
        for clang in clangs(CLANG):
            self.check_bytes(os.path.basename(clang), clang=clang)

    @unittest.skipUnless(HIPCC, "no hipcc")
    def test_no_bytes_are_selected_with_hipcc(self):
        self.check_bytes("hipcc", "not hipcc", hipcc=HIPCC)

    @unittest.skipUnless(LOOPS, "no clang whose LLVM can be loaded")
    def test_the_cpu_has_every_function_in_loops(self):
        self.check_cpu("cpu, loops over threads")

    def test_the_cpu_has_every_function_on_fibers(self):
        self.check_cpu("cpu, fibers", "-DRILL_HELPERS_READ_INDEX=1", cxx=" ".join(CXX))

    @unittest.skipUnless(NVRTC, "no NVRTC")
    def test_nvrtc_has_every_function(self):
        self.check_at_run_time("NVRTC", NVRTC, "nvrtc", "--gpu-architecture=compute_80")

    @unittest.skipUnless(HIPRTC, "no hipRTC")
    def test_hiprtc_has_every_function(self):
        self.check_at_run_time("hipRTC", HIPRTC, "hiprtc", "--offload-arch=gfx90a", "-O1")

    def test_the_documents_list_every_function(self):
        """The first columns of the tables name functions of the dialect, and the page names all of these."""
        with open(os.path.join(ROOT, "docs", "reference", "KERNELS.md"), encoding="utf-8") as file:
            page = file.read()
        known = names_of([line for line in LINES if line.section.startswith("dialect")])
        rows = page.partition("## The functions")[2].partition("## 16-bit floating point")[0]
        columns = " ".join(re.findall(r"^\| ([^|]*`[^|]*) \|", rows, re.MULTILINE))
        code = re.sub(r"\(.*?\)|<.*?>", "", " ".join(re.findall(r"`([^`]*)`", columns)))
        unknown = set(re.findall(r"\w+", code)) - known - OF_C - {"_block", "_system"}
        self.assertEqual(sorted(unknown), [], "not in %s" % LIST)
        words = set(re.findall(r"\w+", page))
        one = {re.sub(r"^(atomic\w+?)_(block|system)$", r"\1", name) for name in known}
        # sqrt and expf are named by sqrtf and exp.
        unnamed = sorted(name for name in one if not {name, name + "f", re.sub("f$", "", name)} & words)
        self.assertEqual(unnamed, [], "not in docs/reference/KERNELS.md")


if __name__ == "__main__":
    support.main()
