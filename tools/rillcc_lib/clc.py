"""Finds libclc's functions for GPUs, for a clang without a vendor's device libraries (rill/device/clc_math.h)."""

import glob
import os
import re

from . import ir, llvm

# A source without any of these words is compiled without libclc, whose bitcode takes a second to read.
WORDS = re.compile(
    r"\b(_*(exp|exp2|exp10|expm1|log|log2|log10|log1p|pow|a?(sin|cos|tan)h?|sincos|atan2|erfc?|cbrt|hypot|fmod|fdim"
    r"|remainder|round|nearbyint|l?lround|l?lrint|ldexp|frexp|modf|nextafter)f?|rsqrtf?|(sin|cos)pif?|normcdff?)\b"
)
PLACES = ("/usr/lib/clc", "/usr/lib64/clc", "/usr/share/clc", "/usr/local/share/clc")
BITCODE = {"hip": "amdgcn--amdhsa.bc", "cuda": "nvptx64--nvidiacl.bc"}
PROBE = '#define D __attribute__((device)) float\nD e(float) __asm__("_Z3expf");\nD f(float x) { return e(x); }\n'
INTERFACE = {
    "GetMDNodeNumOperands": "up",
    "GetMDNodeOperands": "vpp",
    "GetNamedMetadataNumOperands": "ups",
    "GetNamedMetadataOperands": "vpsp",
    "ReplaceMDNodeOperandWith": "vpup",
}
llvm.SIGNATURES.update(INTERFACE)


def find(clang, backend="hip"):
    """Returns the path of the bitcode that belongs to a clang, or that a distribution installed. Returns None if there
    is none."""
    folder = os.path.dirname(os.path.dirname(os.path.realpath(clang)))
    for place in [os.path.join(folder, "share", "clc"), os.path.join(folder, "lib", "clc"), *PLACES]:
        found = glob.glob(os.path.join(place, BITCODE[backend]))
        if found:
            return found[0]
    return None


def operands(library, count, get, node):
    values = llvm.array([None] * count)
    get(*node, values)
    return list(values)[:count]


def can_link(toolchain, command, bitcode):
    """Returns whether the bitcode can be linked. Bitcode of a later LLVM makes the compiler abort, so this is tested
    first."""
    probe = toolchain.path("probe.cu")
    with open(probe, "w", encoding="utf-8") as file:
        file.write(PROBE)
    command = command + ["-Wno-linker-warnings", *link_flags(bitcode), "-S", "-o", os.devnull, probe]
    return toolchain.execute(command).returncode == 0


def prepare(toolchain, version, output):
    """Writes libclc's bitcode for code objects of this version, because LLVM requires that versions agree. Returns
    whether this was possible."""
    bitcode, place = find(toolchain.clang), llvm.find_library(toolchain.clang)
    if not bitcode or not place:
        return False
    command = [toolchain.clang, "-x", "hip", "--cuda-device-only", "--offload-arch=gfx90a", "-nogpulib", "-nogpuinc"]
    library = llvm.Library(place)
    if not hasattr(library.library, "LLVMReplaceMDNodeOperandWith"):
        return False
    if not can_link(toolchain, command + ["-mcode-object-version=5"], bitcode):
        return False
    module = ir.Module(library, bitcode)
    try:
        name = b"llvm.module.flags"
        count = library.GetNamedMetadataNumOperands(module.handle, name)
        for flag in operands(library, count, library.GetNamedMetadataOperands, (module.handle, name)):
            parts = operands(library, library.GetMDNodeNumOperands(flag), library.GetMDNodeOperands, (flag,))
            # "amdgpu_code_object_version" up to LLVM 18, "amdhsa_code_object_version" from 19 on
            if "code_object_version" in module.text(parts[1]):
                library.ReplaceMDNodeOperandWith(flag, 2, library.ValueAsMetadata(module.number(100 * version)))
        module.write(output)
    finally:
        module.close()
    return True


def link_flags(bitcode):
    return ["-Xclang", "-mlink-builtin-bitcode", "-Xclang", bitcode]
