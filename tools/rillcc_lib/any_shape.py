"""Finds the kernels that work in blocks of any shape, so that the library may choose the shape.

In such a kernel, blockIdx.x and threadIdx.x are used only in blockIdx.x * blockDim.x + threadIdx.x, the index in
the grid, and gridDim.x only in gridDim.x * blockDim.x; the same holds for y and z. The indices then do not depend
on the shape of the blocks, as long as the product of gridDim and blockDim stays the same. Nothing else depends on
the shape: the kernel has no synchronization, no shared memory, no warp or block functions, and no calls that report
the position of a thread, such as assertions.
"""

from . import llvm
from .regions import BEGIN

AXES = "xyz"


class AnyShape:
    def __init__(self, rewriter):
        self.rewriter, self.lib, self.m = rewriter, rewriter.lib, rewriter.m

    def includes(self, function):
        """Returns whether the function, which runs a block, belongs to such a kernel."""
        self.calls = {}  # maps the call of an index function to its name and axis
        first, *others = self.m.blocks(function)
        start = self.m.instructions(first)
        begins = [number for number, i in enumerate(start) if self.is_call(i, BEGIN)]
        instructions = start[begins[0] + 1 :] if begins else []  # what precedes belongs to the block
        instructions += [i for block in others for i in self.m.instructions(block)]
        if not begins or not all(map(self.is_plain, instructions)):
            return False
        return all(self.is_used_for_index(call, *names) for call, names in self.calls.items())

    def has_columns(self):
        """Returns whether the kernel that was examined last has more than one dimension."""
        return any(kind == "thread" and axis != "x" for kind, axis in self.calls.values())

    def is_plain(self, instruction):
        opcode = self.m.opcode(instruction)
        if opcode in (llvm.LOAD, llvm.STORE, llvm.ATOMIC_RMW, llvm.ATOMIC_CMPXCHG):
            return not self.rewriter.is_shared(self.lib.GetOperand(instruction, 1 if opcode == llvm.STORE else 0))
        if not self.lib.IsACallInst(instruction):
            return opcode not in (llvm.INVOKE, llvm.CALL_BR)
        callee = self.m.callee(instruction)
        name = self.m.name(callee) if callee else ""
        if name.startswith("llvm.threadlocal") or any(map(self.rewriter.is_shared, self.m.arguments(instruction))):
            return False
        kind, _, axis = name.removeprefix("rill_ir_").rpartition("_")
        if name.startswith("rill_ir_") and kind in ("thread", "block", "block_dim", "grid_dim") and axis in AXES:
            self.calls[instruction] = kind, axis
            return True
        return name.startswith("llvm.") or bool(callee and not name.startswith("rill_ir_") and self.m.uses_no_memory(callee))

    def is_call(self, instruction, name):
        callee = self.m.callee(instruction) if self.lib.IsACallInst(instruction) else None
        return bool(callee) and self.m.name(callee) == name

    def is_used_for_index(self, call, kind, axis):
        users = self.users(call)
        if kind == "thread":
            return all(self.is_index(user, axis) for user in users)
        if kind == "block":
            return all(self.is_product(user, ("block", "block_dim"), axis) and self.is_base(user, axis) for user in users)
        pairs = [("block", "block_dim"), ("grid_dim", "block_dim")][1 if kind == "grid_dim" else 0 :]
        return all(any(self.is_product(user, pair, axis) for pair in pairs) for user in users)

    def is_base(self, product, axis):
        """Returns whether the index of a block's first thread is used only for the indices of threads."""
        users = self.users(product)
        return bool(users) and all(self.is_index(user, axis) for user in users)

    def is_index(self, value, axis):
        """Returns whether a value is a term of a sum with as many indices of threads as of first threads of blocks, so that
        they form indices in the grid. LLVM may have added other terms first."""
        if not self.m.is_binary(value, llvm.ADD):
            return False
        while len(self.m.users(value)) == 1 and self.m.is_binary(self.m.users(value)[0], llvm.ADD):
            value = self.m.users(value)[0]
        threads, bases, work = 0, 0, list(self.m.operands(value))
        while work:
            term = work.pop()
            if self.m.is_binary(term, llvm.ADD) and len(self.m.users(term)) == 1:
                work += self.m.operands(term)
                continue
            term = self.without_extension(term)
            threads += self.calls.get(term) == ("thread", axis)
            bases += self.is_product(term, ("block", "block_dim"), axis)
        return threads == bases == 1

    def is_product(self, value, kinds, axis):
        if not self.m.is_binary(value, llvm.MUL):
            return False
        factors = [self.calls.get(self.without_extension(operand)) for operand in self.m.operands(value)]
        return sorted(map(str, factors)) == sorted(str((kind, axis)) for kind in kinds)

    def without_extension(self, value):
        while self.m.is_binary(value, llvm.ZEXT) or self.m.is_binary(value, llvm.SEXT):
            value = self.lib.GetOperand(value, 0)
        return value

    def users(self, value):
        """Returns the users of a value and of its extensions to more bits."""
        found, work = [], [value]
        while work:
            for user in self.m.users(work.pop()):
                extends = self.m.opcode(user) in (llvm.ZEXT, llvm.SEXT)
                (work if extends else found).append(user)
        return found
