"""Rewrites saturating conversions of floating-point numbers to integers, for which clang emits calls of llvm.fptosi.sat
and llvm.fptoui.sat.

nvcc converts to 8 and 16 bits by converting to 32 bits and truncating the result; `narrow` rewrites these conversions
in the same way, before LLVM folds any of them. clang 19 does not vectorize the calls, so `replace` replaces them after
rillcc's last pass by comparisons, selects and a plain conversion of a number that is clamped to the range of the
integer.
"""

import re

from . import llvm

NARROW = re.compile(r"(llvm\.fpto[su]i\.sat)\.i(8|16)\.f\d+$")
WIDE = re.compile(r"llvm\.fpto([su])i\.sat\.i(32|64)\.f(32|64)$")
DIGITS = {32: 24, 64: 53}  # bits of precision, by the type's size in bits


def narrow(module):
    """Replaces conversions to 8 and 16 bits by conversions to 32 bits."""
    m, lib = module, module.lib
    builder = lib.CreateBuilderInContext(m.context)
    for function, found in declarations(m, NARROW):
        number = lib.LookupIntrinsicID(found.group(1).encode(), len(found.group(1)))
        for call in m.users(function):
            (value,) = m.arguments(call)
            wide = lib.GetIntrinsicDeclaration(m.handle, number, llvm.array([m.i32, lib.TypeOf(value)]), 2)
            lib.PositionBuilderBefore(builder, call)
            made = lib.BuildCall2(builder, lib.GlobalGetValueType(wide), wide, llvm.array([value]), 1, b"")
            lib.ReplaceAllUsesWith(call, lib.BuildTrunc(builder, made, lib.TypeOf(call), b""))
            lib.InstructionEraseFromParent(call)
    lib.DisposeBuilder(builder)


def replace(module):
    """Replaces conversions from float and double to 32 and 64 bits."""
    lib = module.lib
    builder = lib.CreateBuilderInContext(module.context)
    for function, found in declarations(module, WIDE):
        for call in module.users(function):
            lib.PositionBuilderBefore(builder, call)
            lib.ReplaceAllUsesWith(call, convert(module, builder, call, found.group(1) == "s", int(found.group(3))))
            lib.InstructionEraseFromParent(call)
    lib.DisposeBuilder(builder)


def declarations(module, pattern):
    found = ((function, pattern.match(module.name(function))) for function in module.functions())
    return [(function, match) for function, match in found if match]


def convert(module, builder, call, signed, float_bits):
    """Builds the conversion of min(max(x, least), most), and 0 for NaN."""
    lib = module.lib
    (x,) = module.arguments(call)
    kind, bits = lib.TypeOf(call), lib.GetIntTypeWidth(lib.TypeOf(call))
    real = lambda value: lib.ConstReal(lib.TypeOf(x), float(value))
    is_so = lambda what, a, b: lib.BuildFCmp(builder, what, a, b, b"")
    select = lambda *values: lib.BuildSelect(builder, *values, b"")
    least, end = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)
    most = end - max(1, end >> DIGITS[float_bits])  # the greatest integer below `end` that the floating-point type can represent
    at_least = select(is_so(llvm.OGT, x, real(least)), x, real(least))  # `least` if x is NaN
    clamped = select(is_so(llvm.OLT, at_least, real(most)), at_least, real(most))
    result = (lib.BuildFPToSI if signed else lib.BuildFPToUI)(builder, clamped, kind, b"")
    if most != end - 1:
        result = select(is_so(llvm.OGE, x, real(end)), module.number(end - 1, kind), result)
    return select(is_so(llvm.UNO, x, x), module.number(0, kind), result) if signed else result
