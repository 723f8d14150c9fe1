"""Finds the kernels whose blocks never wait for one another, so that the blocks may run in any order.

To wait for another block, a block repeatedly reads a value that the other block will write. A compiler assumes that
plain loads return the same value again, unless something in between may have changed it: an atomic or volatile access,
a fence, assembly, or a call of a function that is not in the source. A kernel without any of these cannot wait.
"""

from . import llvm

ATOMIC = {llvm.FENCE, llvm.ATOMIC_CMPXCHG, llvm.ATOMIC_RMW}


class Blocks:
    """Searches the functions of a module for operations that may affect or depend on other blocks."""

    def __init__(self, rewriter):
        self.rewriter, self.lib, self.m = rewriter, rewriter.lib, rewriter.m
        self.markers = set(rewriter.markers())

    def never_wait(self, functions):
        """Returns whether blocks that run these functions never wait for other blocks."""
        seen, work = set(), list(functions)
        while work:
            function = work.pop()
            if function in seen:
                continue
            seen.add(function)
            for block in self.m.blocks(function):
                for instruction in self.m.instructions(block):
                    if not self.is_plain(instruction):
                        return False
                    if self.lib.IsACallInst(instruction) and self.m.callee(instruction):
                        work.append(self.m.callee(instruction))
        return True

    def is_plain(self, instruction):
        opcode = self.m.opcode(instruction)
        if opcode in (llvm.LOAD, llvm.STORE):
            return not self.lib.GetVolatile(instruction) and not self.lib.GetOrdering(instruction)
        if self.lib.IsACallInst(instruction):
            return self.is_plain_call(instruction)
        return opcode not in ATOMIC | {llvm.INVOKE, llvm.CALL_BR}

    def is_plain_call(self, call):
        """Returns whether a call cannot make a block wait for another block. The callee may be a function of the
        source, which is checked separately, a function that accesses no memory, or a function of the backend, where
        only threads of one block wait for each other."""
        callee = self.m.callee(call)
        if not callee:
            return not self.lib.IsAInlineAsm(self.lib.GetCalledValue(call)) and self.rewriter.is_service(call)
        known = self.m.name(callee).startswith("llvm.") or callee in self.markers
        return known or not self.lib.IsDeclaration(callee) or self.m.uses_no_memory(callee)
