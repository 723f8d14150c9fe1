"""Finds indices such as `i * 3 & 63`, which grow by 3 from thread to thread until they wrap.

The vectorizer of clang 19 miscompiles loads with such an index in a loop with a known trip count: it loads the elements
of several threads together, as if the index did not wrap. Its analysis takes `x & 63`, and a conversion to 8 or 16 bits,
for an induction variable with so many bits. A source with such an index is compiled without groups of interleaved loads
(host.py).
"""

from . import llvm

MOST_MASK = 1 << 24  # no index of a thread reaches such a number
DEPTH = 6  # of instructions between a product, the operation that wraps, and an address
PRODUCTS = {llvm.MUL, llvm.SHL}
LINEAR = {llvm.ADD, llvm.SUB, llvm.OR, llvm.XOR, llvm.ZEXT, llvm.SEXT, llvm.TRUNC} | PRODUCTS


class Wraps:
    def __init__(self, module):
        self.m, self.lib = module, module.lib

    def exist(self):
        values = (value for function in self.m.functions() for block in self.m.blocks(function) for value in self.m.instructions(block))
        return any(self.wraps(v) and self.is_product(self.lib.GetOperand(v, 0), DEPTH) and self.is_in_address(v, DEPTH) for v in values)

    def wraps(self, value):
        opcode = self.m.opcode(value)
        if opcode == llvm.TRUNC:
            return self.lib.TypeOf(value) in (self.m.i8, self.m.i16)
        mask = self.m.constant(self.lib.GetOperand(value, 1)) if opcode == llvm.AND else None
        return mask is not None and mask & (mask + 1) == 0 and mask < MOST_MASK

    def is_product(self, value, depth):
        """Returns whether a value may grow by more than one from one iteration of a loop to the next."""
        if depth == 0 or not self.lib.IsAInstruction(value):
            return False
        opcode, operands = self.m.opcode(value), self.m.operands(value)
        if opcode == llvm.PHI:
            steps = [v for v in operands if self.m.is_binary(v, llvm.ADD) and value in self.m.operands(v)]
            return any(self.m.constant(self.lib.GetOperand(step, 1)) != 1 for step in steps)
        return opcode in PRODUCTS or (opcode in LINEAR and any(self.is_product(operand, depth - 1) for operand in operands))

    def is_in_address(self, value, depth):
        for user in self.m.users(value) if depth > 0 else ():
            opcode = self.m.opcode(user)
            if opcode == llvm.GEP or (opcode in LINEAR and self.is_in_address(user, depth - 1)):
                return True
        return False
