"""Conversions of floating point to integers, which saturate: clang makes calls of llvm.fptosi.sat and llvm.fptoui.sat of them.

To 8 and 16 bits nvcc converts by way of 32 bits, of which the low ones are left; `narrow` does that first, before LLVM
computes any conversion.  clang 19 makes no vectors of the calls, so `replace` makes comparisons and selections of them after
rillcc's last pass: a plain conversion of what is clamped to numbers that the integer can hold.
"""

import re

from . import llvm

NARROW = re.compile(r"(llvm\.fpto[su]i\.sat)\.i(8|16)\.f\d+$")
WIDE = re.compile(r"llvm\.fpto([su])i\.sat\.i(32|64)\.f(32|64)$")
DIGITS = {32: 24, 64: 53}  # binary ones that a number of so many bits has


def narrow(module):
    """Makes conversions to 8 and 16 bits conversions to 32 bits."""
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
    """Builds min(max(x, least), most), converted; 0 for NaN."""
    lib = module.lib
    (x,) = module.arguments(call)
    kind, bits = lib.TypeOf(call), lib.GetIntTypeWidth(lib.TypeOf(call))
    real = lambda value: lib.ConstReal(lib.TypeOf(x), float(value))
    is_so = lambda what, a, b: lib.BuildFCmp(builder, what, a, b, b"")
    select = lambda *values: lib.BuildSelect(builder, *values, b"")
    least, end = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)
    most = end - max(1, end >> DIGITS[float_bits])  # an integer, and the greatest below `end` that is a number of this type
    at_least = select(is_so(llvm.OGT, x, real(least)), x, real(least))  # the least one if x is NaN
    clamped = select(is_so(llvm.OLT, at_least, real(most)), at_least, real(most))
    result = (lib.BuildFPToSI if signed else lib.BuildFPToUI)(builder, clamped, kind, b"")
    if most != end - 1:
        result = select(is_so(llvm.OGE, x, real(end)), module.number(end - 1, kind), result)
    return select(is_so(llvm.UNO, x, x), module.number(0, kind), result) if signed else result
