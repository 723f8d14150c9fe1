"""Adds hints to a compiler's messages about a kernel source."""

import itertools
import os
import re

from . import clc, cuda_headers

# Replacements for names of CUDA programs that the dialect does not have.
REPLACEMENTS = {
    "clock64": "rill_clock_ns()",
    "__nanosleep": "rill_pause()",
    "__shfl": "rill_shuffle",
    "__shfl_up": "rill_shuffle_up",
    "__shfl_down": "rill_shuffle_down",
    "__shfl_xor": "rill_shuffle_xor",
    "__ballot": "rill_ballot",
    "__any": "rill_vote_any",
    "__all": "rill_vote_all",
    "__trap": "assert(false)",
}
# Replacements in a source with rill/device/cuda_names.h: CUDA's own newer names.
OLD_NAMES = {
    "__shfl": "__shfl_sync(~0u, v, lane)",
    "__shfl_up": "__shfl_up_sync(~0u, v, delta)",
    "__shfl_down": "__shfl_down_sync(~0u, v, delta)",
    "__shfl_xor": "__shfl_xor_sync(~0u, v, mask)",
    "__ballot": "__ballot_sync(~0u, p)",
    "__any": "__any_sync(~0u, p)",
    "__all": "__all_sync(~0u, p)",
}
# Names of rill/device/cuda_names.h, except names with two leading underscores, which is_cuda_name() searches for.
CUDA_NAME = re.compile(
    r"(make_)?(u?char|u?short|u?int|u?long|u?longlong|float|double)[1-4]|warpSize|cooperative_groups|sincosf?|exp10f?"
    r"|half2?|__half2?|nv_bfloat16|__nv_bfloat16|rsqrtf?|(sin|cos)pif?|normcdff?"
)
TEXTURE = re.compile(r"tex[123]D\w*|tex1Dfetch|texture|textureReference|cuda(Texture|Surface)\w+|surf[123]D\w*|surface")
GRID = re.compile(r"this_grid|grid_group|this_multi_grid|multi_grid_group|cudaGridDependencySynchronize")
HOST = re.compile(r"(cuda|cublas|cufft|curand|cusparse)[A-Z_]\w*|thrust")
ERROR = re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):\d+: (?:fatal )?error: (?P<text>.*)$")
UNDEFINED = re.compile(r"undefined (?:reference to|symbol:) [`']?([^'\n]+)")
# CUDA's own headers that its host headers include. They repeat declarations of the dialect.
CUDA_HEADER = re.compile(r".*/(vector_types|vector_functions|builtin_types|driver_types|host_defines|crt/\w+)\.h\w*")
INCLUDED = re.compile(r"^(?:In file included|\s+) from (?P<file>[^:]+):(?P<line>\d+)[:,]")
ASSEMBLY = re.compile(r"\basm\b|invalid instruction mnemonic")  # in an error, or in the source line of the error
OVERLOADED = re.compile(r"overloaded function could not be resolved|wrong type argument to unary plus")
OF_CUB = re.compile(r"['‘]cub(::|['’])")
NAMESPACE = re.compile(r"\bnamespace\s+(?:\w+\s*=\s*)?(?:::)?(\w+)")
SYSTEM = re.compile(r"/usr/|/opt/|<scratch space>")
PLACE = re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)? (?P<kind>\w+)")
WHICH_KERNEL = "RILL_KERNEL_INSTANCE(name, static_cast<void (*)(parameters)>(kernel))"
GUIDE = "see docs/guides/FROM_CUDA.md of rill"


def hint(name, device_headers, cuda_names=False):
    """Returns a hint for a name that a compiler does not know, or None."""
    if cuda_names and name in OLD_NAMES:
        return '"%s" is from older versions of CUDA: write %s' % (name, OLD_NAMES[name])
    if name in REPLACEMENTS:
        return '"%s" is not in the dialect: write %s' % (name, REPLACEMENTS[name])
    if TEXTURE.fullmatch(name):
        return '"%s": rill has no textures and no surfaces; read from memory (%s)' % (name, GUIDE)
    if GRID.fullmatch(name):
        return '"%s": the blocks of a grid cannot wait for each other; use two launches (%s)' % (name, GUIDE)
    if HOST.fullmatch(name):
        return '"%s" is for the host: a kernel source contains only kernels (%s)' % (name, GUIDE)
    if not cuda_names and (CUDA_NAME.fullmatch(name) or (name.startswith("__") and is_cuda_name(name, device_headers))):
        return '"%s" is a name of CUDA: include <rill/device/cuda_names.h>, or use rillcc --cuda-names' % name
    return None


def cub_hint(names):
    """Returns a hint for names of CUB."""
    if any(name.startswith("Device") for name in names):
        return "CUB's device-wide functions are for the host: a kernel source contains only kernels (%s)" % GUIDE
    others = [name for name in names if name != "cub"]
    if others:
        return '"cub::%s": %s' % (others[0], cuda_headers.CUB_HAS)
    return '"cub" requires #include <cub/cub.cuh> and rillcc --cuda-names'


def is_cuda_name(name, device_headers):
    for header in ("bits", "math", "warp", "half"):
        with open(os.path.join(device_headers, "cuda_%s.h" % header), encoding="utf-8") as file:
            if re.search(r"\b%s\b" % re.escape(name), file.read()):
                return True
    return False


def explain(text, device_headers, cuda_names):
    """Returns the output for a failed compile. If headers are refused, this is only one sentence for each of them,
    because they cause the other errors. Otherwise it is the compiler's messages, followed by the hints."""
    refused = header_hints(text.splitlines(), device_headers)
    if refused:
        return show(refused)
    return without_system_notes(text) + show(compiler_hints(text, device_headers, cuda_names))


def header_hints(lines, device_headers):
    """Returns (file, line, hint) for each CUDA header that is refused or missing."""
    found = []
    for i, line in enumerate(lines):
        refused, missing, error = cuda_headers.REFUSED.match(line), cuda_headers.MISSING.search(line), ERROR.match(line)
        if refused:
            place = find_include(lines[:i], (device_headers,)) or (refused["file"], 1)
            found.append((*place, refused["said"]))
        elif missing and error and cuda_headers.instead_of(missing["name"]):
            said = "<%s>: %s" % (missing["name"], cuda_headers.instead_of(missing["name"]))
            found.append((error["file"], int(error["line"]), said))
    return list(dict.fromkeys(found))


def without_system_notes(text):
    """Returns a compiler's messages without notes about system headers. Such a note fills a page with the macros that
    declare a function of the C library."""
    kept, chain, dropping = [], [], False
    for line in text.splitlines(keepends=True):
        place = PLACE.match(line)
        if re.match(r"(In file included|\s+) from ", line):
            chain.append(line)
            continue
        if place:
            dropping = place["kind"] == "note" and SYSTEM.match(place["file"]) is not None
        elif re.match(r"\d+ (?:error|warning)s? generated|[^\s:|][^:|]*: (?!note: |\()", line):
            dropping = False
        kept += [] if dropping else chain + [line]
        chain = []
    return "".join(kept)


def compiler_hints(text, device_headers, cuda_names=False):
    """Returns (file, line, hint) for a compiler's errors, with each hint once."""
    found, lines, seen = [], text.splitlines(), set()
    for i, line in enumerate(lines):
        match = ERROR.match(line)
        if not match:
            continue
        if CUDA_HEADER.fullmatch(match["file"]):
            place = find_include(lines[:i], (device_headers, os.path.dirname(match["file"]) + os.sep))
            if place and CUDA_HEADER not in seen:
                seen.add(CUDA_HEADER)
                why = "the header included here includes CUDA's own headers: a kernel source contains only kernels (%s)" % GUIDE
                found.append((*place, why))
            continue
        said = None
        names = re.findall(r"['‘](?:\w+::)*(\w+)", match["text"])
        names += NAMESPACE.findall(excerpt(lines, i)) if "expected namespace name" in match["text"] else []
        if OF_CUB.search(match["text"]):
            said = cub_hint(names)
        for name in names:
            said = said or hint(name, device_headers, cuda_names)
            if not said and is_host_function_error(lines[i:]):
                said = '"%s" is only available on the host' % name
                if clc.WORDS.fullmatch(name):
                    said = '"%s" for GPUs requires nvcc or hipcc, or libclc with clang (on Debian: libclc-19)' % name
        if not said and any("<<<" in excerpt for excerpt in lines[i + 1 : i + 2]):
            said = "a launch with <<< >>> is for the host: a kernel source contains only kernels (%s)" % GUIDE
        if not said and ASSEMBLY.search("".join(lines[i : i + 2])):
            where = "#ifdef __NVCC__" if cuda_names else "#if RILL_ON_CUDA"
            said = "assembly is for one kind of processor: put PTX in an %s, and C++ in its #else" % where
        if not said and OVERLOADED.search(match["text"]) and "RILL_KERNEL_INSTANCE" in "".join(lines[i + 1 : i + 2]):
            said = "there are several kernels of that name: select one with %s" % WHICH_KERNEL
        if said and said not in seen:
            seen.add(said)
            found.append((match["file"], int(match["line"]), said))
    return found


def is_host_function_error(lines):
    """Returns whether the first line is an error about a function of the C library that GPUs do not have."""
    host = "__host__ function" in lines[0]
    for line in itertools.takewhile(lambda line: not ERROR.match(line), lines[1:]):
        place = PLACE.match(line)
        if place and place["kind"] == "note" and SYSTEM.match(place["file"]):
            return host or "__host__ function" in line
    return False


def excerpt(lines, i):
    """Returns the source line that a compiler shows after an error, without its number."""
    return re.sub(r"^\s*\d*\s*\|", "", lines[i + 1]) if i + 1 < len(lines) else ""


def find_include(lines, foreign):
    """Returns the innermost #include in the user's files that led to the line after `lines`."""
    places, inwards = [], True
    for line in reversed(lines):
        match = INCLUDED.match(line)
        if match:
            places.append((match["file"], int(match["line"])))
            inwards &= not line.startswith(" ")
        elif places:
            break
    foreign += ("/usr/", "/opt/", "<")
    own = [place for place in (places if inwards else reversed(places)) if not place[0].startswith(foreign)]
    return own[0] if own else None


def linker_hints(text, files, device_headers, cuda_names=False):
    """Returns (file, line, hint) for each function that a linker did not find, and whether all of them were located."""
    names = list(dict.fromkeys(re.findall(r"[\w:~]+|.*", name)[0] for name in UNDEFINED.findall(text)))
    found = []
    for name in names:
        file, line = find_use(name.rpartition("::")[2], files)
        why = '"%s" is declared but not defined: a source must define all functions that its kernels call' % name
        found.append((file, line, hint(name, device_headers, cuda_names) or why))
    return found, all(file for file, _, _ in found)


def find_use(name, files):
    """Returns the file and line of the first apparent call of a function, or (None, 0)."""
    call = re.compile(r"\b%s\s*\(" % re.escape(name))
    declaration = re.compile(r"^[\w\s:<>*&,()\"]*[\w*&>]\s+[*&]*%s\s*\([^{}]*\)[^{}]*;\s*$" % re.escape(name))
    for path in files:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        for number, line in enumerate(lines, 1):
            if call.search(line) and not (declaration.match(line) and "return" not in line):
                return path, number
    return None, 0


def show(found):
    return "".join("rillcc: %s:%d: %s\n" % place for place in found)
