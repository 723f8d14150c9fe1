"""Restores sums that LLVM has replaced by `or` because the two numbers have no common bits, as in `blockIdx.x * 4096 +
threadIdx.x`.

The steps that find the distance between neighbouring threads' accesses, or a loop's induction variable, search for
sums.
"""

from . import llvm
from .regions import THREAD
from .slots import MOST_THREADS

DEPTH = 6  # largest depth of an expression that is examined


def restore(module):
    builder = module.lib.CreateBuilderInContext(module.context)
    inside = [i for f in module.functions() for block in module.blocks(f) for i in module.instructions(block)]
    for value in [i for i in inside if module.opcode(i) == llvm.OR and is_sum(module, i)]:
        module.lib.PositionBuilderBefore(builder, value)
        total = module.lib.BuildNUWAdd(builder, *module.operands(value), b"")
        if module.lib.IsAInstruction(total):
            module.lib.SetNSW(total, 1)
        module.lib.ReplaceAllUsesWith(value, total)
        module.lib.InstructionEraseFromParent(value)
    module.lib.DisposeBuilder(builder)


def is_sum(module, value):
    """Returns whether the operands of an `or` have no common bits. LLVM marks such an `or` from version 18 on."""
    if module.lib.TypeOf(value) not in (module.i32, module.i64):
        return False
    a, b = [ones(module, operand) for operand in module.operands(value)]
    return bool(module.lib.GetIsDisjoint(value)) or a & b == 0


def ones(module, value, depth=DEPTH):
    """Returns a mask of the bits of a value that may be 1."""
    lib, number = module.lib, module.constant(value)
    every = (1 << lib.GetIntTypeWidth(lib.TypeOf(value))) - 1
    if number is not None or depth == 0 or not lib.IsAInstruction(value):
        return every if number is None else number & every
    opcode, operands = module.opcode(value), module.operands(value)
    if opcode == llvm.CALL:
        callee = module.callee(value)
        return MOST_THREADS - 1 if callee and module.name(callee) in THREAD else every
    if opcode == llvm.ZEXT:
        return ones(module, operands[0], depth - 1)
    by = module.constant(operands[1]) if opcode in (llvm.SHL, llvm.LSHR, llvm.UREM) else None
    if by is not None:
        if opcode == llvm.UREM:
            return (1 << (by - 1).bit_length()) - 1 if by else every
        left = ones(module, operands[0], depth - 1)
        return left << by & every if opcode == llvm.SHL else left >> by
    if opcode not in (llvm.AND, llvm.OR, llvm.ADD, llvm.SUB, llvm.MUL):
        return every
    a, b = [ones(module, operand, depth - 1) for operand in operands]
    if opcode in (llvm.AND, llvm.OR):
        return a & b if opcode == llvm.AND else a | b
    low_a, low_b = a & -a, b & -b  # the lowest bit that may be 1, or 0 if there is none
    if opcode == llvm.MUL:
        return every & -(low_a * low_b) if a and b else 0
    return every & -min(low_a or low_b, low_b or low_a) if a or b else 0
