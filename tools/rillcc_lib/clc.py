"""libclc's functions for AMD GPUs, for clang without AMD's device libraries: rill/device/clc_math.h."""

import glob
import os
import re

from . import ir, llvm

# Sources without such a word are compiled without it: reading its bitcode takes a second.
WORDS = re.compile(
    r"\b(_*(exp|exp2|exp10|expm1|log|log2|log10|log1p|pow|a?(sin|cos|tan)h?|sincos|atan2|erfc?|cbrt|hypot|fmod|fdim"
    r"|remainder|round|nearbyint|l?lround|l?lrint|ldexp|frexp|modf|nextafter)f?|rsqrtf?|(sin|cos)pif?|normcdff?)\b"
)
PLACES = ("/usr/lib/clc", "/usr/lib64/clc", "/usr/share/clc", "/usr/local/share/clc")
BITCODE = "amdgcn--amdhsa.bc"
PROBE = '#define D __attribute__((device)) float\nD e(float) __asm__("_Z3expf");\nD f(float x) { return e(x); }\n'
INTERFACE = {
    "GetMDNodeNumOperands": "up",
    "GetMDNodeOperands": "vpp",
    "GetNamedMetadataNumOperands": "ups",
    "GetNamedMetadataOperands": "vpsp",
    "ReplaceMDNodeOperandWith": "vpup",
}
llvm.SIGNATURES.update(INTERFACE)


def find(clang):
    """The bitcode that comes with a clang, or lies where distributions have it; None if there is none."""
    folder = os.path.dirname(os.path.dirname(os.path.realpath(clang)))
    for place in [os.path.join(folder, "share", "clc"), os.path.join(folder, "lib", "clc"), *PLACES]:
        found = glob.glob(os.path.join(place, BITCODE))
        if found:
            return found[0]
    return None


def operands(library, count, get, node):
    values = llvm.array([None] * count)
    get(*node, values)
    return list(values)[:count]


def prepare(toolchain, version, output):
    """Writes libclc's bitcode for code objects of that version, which LLVM wants to agree; gives whether it could.

    Bitcode of a later LLVM than this one ends the process that reads it, so the compiler tries first."""
    bitcode, place = find(toolchain.clang), llvm.find_library(toolchain.clang)
    if not bitcode or not place:
        return False
    probe = toolchain.path("probe.hip")
    with open(probe, "w", encoding="utf-8") as file:
        file.write(PROBE)
    command = [toolchain.clang, "-x", "hip", "--cuda-device-only", "--offload-arch=gfx90a", "-nogpulib", "-nogpuinc"]
    command += ["-mcode-object-version=5", "-Wno-linker-warnings", *link_flags(bitcode), "-S", "-o", os.devnull, probe]
    library = llvm.Library(place)
    if toolchain.execute(command).returncode != 0 or not hasattr(library.library, "LLVMReplaceMDNodeOperandWith"):
        return False
    module = ir.Module(library, bitcode)
    try:
        name = b"llvm.module.flags"
        count = library.GetNamedMetadataNumOperands(module.handle, name)
        for flag in operands(library, count, library.GetNamedMetadataOperands, (module.handle, name)):
            parts = operands(library, library.GetMDNodeNumOperands(flag), library.GetMDNodeOperands, (flag,))
            if "amdhsa_code_object_version" in module.text(parts[1]):
                library.ReplaceMDNodeOperandWith(flag, 2, library.ValueAsMetadata(module.number(100 * version)))
        module.write(output)
    finally:
        module.close()
    return True


def link_flags(bitcode):
    return ["-Xclang", "-mlink-builtin-bitcode", "-Xclang", bitcode]
