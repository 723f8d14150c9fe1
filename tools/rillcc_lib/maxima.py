"""Turns fmaxf and fminf into a comparison and a choice if one of the numbers is never NaN.

    float most = -INFINITY;
    for (int j = threadIdx.x; j < n; j += blockDim.x) most = fmaxf(most, x[j]);

fmaxf returns the other number if one is NaN, which takes three instructions on x86. Here `most` is never NaN, because it
begins as a number, and the maximum of a number and anything is a number. `x[j] > most ? x[j] : most` is then the same, and
it is what the instruction for maxima computes. Both return `most` if the two are equal, as +0 and -0 are.
"""

import ctypes
import math

from . import llvm

MAXIMA = {"llvm.maxnum.f32": llvm.OGT, "llvm.maxnum.f64": llvm.OGT, "llvm.minnum.f32": llvm.OLT, "llvm.minnum.f64": llvm.OLT}
UI_TO_FP, SI_TO_FP = 35, 36  # opcodes


def simplify(module):
    if not module.is_x86():
        return
    for function in module.functions():
        calls = [i for block in module.blocks(function) for i in module.instructions(block) if name(module, i) in MAXIMA]
        numbers = never_nan(module, function) if calls else set()
        builder = module.lib.CreateBuilderInContext(module.context)
        for call in calls:
            replace(module, builder, call, numbers)
        module.lib.DisposeBuilder(builder)


def name(module, value):
    """Returns the name of the function that an instruction calls; "" for any other instruction."""
    callee = module.callee(value) if module.lib.IsACallInst(value) else None
    return module.name(callee) if callee else ""


def never_nan(module, function):
    """Returns the instructions of a function that are never NaN: those for which this follows from their operands, if it is
    assumed for all of them."""
    inside = [i for block in module.blocks(function) for i in module.instructions(block)]
    found = {i for i in inside if module.opcode(i) in (llvm.PHI, llvm.SELECT, UI_TO_FP, SI_TO_FP) or name(module, i) in MAXIMA}
    while True:
        wrong = {i for i in found if not follows(module, i, found)}
        if not wrong:
            return found
        found -= wrong


def follows(module, value, numbers):
    opcode = module.opcode(value)
    if opcode in (UI_TO_FP, SI_TO_FP):
        return True
    if opcode == llvm.CALL:
        return any(is_number(module, v, numbers) for v in module.arguments(value))
    ways = [v for v, _ in module.incoming(value)] if opcode == llvm.PHI else module.operands(value)[1:]
    return all(is_number(module, v, numbers) for v in ways)


def is_number(module, value, numbers):
    """Returns whether a value is in a set of values that are never NaN, or is a constant number."""
    lost = ctypes.c_int()
    constant = module.lib.IsAConstantFP(value)
    return value in numbers or (bool(constant) and not math.isnan(module.lib.ConstRealGetDouble(value, ctypes.byref(lost))))


def replace(module, builder, call, numbers):
    lib, values = module.lib, module.arguments(call)
    number = next((v for v in values if is_number(module, v, numbers)), None)
    if number is None:
        return
    other = values[1] if values[0] == number else values[0]
    lib.PositionBuilderBefore(builder, call)
    beyond = lib.BuildFCmp(builder, MAXIMA[name(module, call)], other, number, b"")
    chosen = lib.BuildSelect(builder, beyond, other, number, b"")
    if chosen in numbers or call in numbers:
        numbers.add(chosen)
    lib.ReplaceAllUsesWith(call, chosen)
    lib.InstructionEraseFromParent(call)
