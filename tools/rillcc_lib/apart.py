"""Finds the kernels whose blocks never wait for one another, so that the blocks may run in any order.

To wait for another block, a block repeatedly reads a value that the other block will write. A compiler assumes that
plain loads return the same value again, unless something in between may have changed it: an atomic or volatile access,
a fence, assembly, or a call of a function that is not in the source. A kernel without any of these cannot wait.

An atomic operation whose result is not used, as in a histogram or at the end of a sum, tells the block nothing. It may
still make plain loads return new values, but this only matters if the loop around it ends because of such a value.
"""

from . import flow, llvm

ATOMIC = {llvm.FENCE, llvm.ATOMIC_CMPXCHG, llvm.ATOMIC_RMW}


class Blocks:
    """Searches the functions of a module for operations that may affect or depend on other blocks."""

    def __init__(self, rewriter):
        self.rewriter, self.lib, self.m = rewriter, rewriter.lib, rewriter.m
        self.markers = set(rewriter.markers())
        self.successors = {}  # of the blocks of each function that was searched

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
                    if not self.is_plain(instruction) and not (function in functions and self.learns_nothing(instruction)):
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

    def learns_nothing(self, instruction):
        """Returns whether an instruction of a kernel belongs to an atomic operation without a result that is used, in no
        loop that ends because of a value that was loaded."""
        opcode, place, repeated = self.m.opcode(instruction), self.lib.GetInstructionParent(instruction), None
        if opcode == llvm.LOAD:
            return self.starts_update(instruction)
        if opcode == llvm.ATOMIC_CMPXCHG and self.is_update(instruction):
            repeated = place
        elif opcode != llvm.ATOMIC_RMW or self.m.users(instruction) or self.lib.GetVolatile(instruction):
            return False
        successors = dict(self.successors_in(self.lib.GetBasicBlockParent(place)))
        successors[place] = [block for block in successors[place] if block != repeated]
        loop = flow.reachable(successors, successors[place]) & flow.reachable(flow.reverse(successors), [place])
        exits = [block for block in loop if not loop.issuperset(successors[block])]
        return all(self.is_counted(self.lib.GetOperand(self.m.terminator(block), 0), loop) for block in exits)

    def successors_in(self, function):
        if function not in self.successors:
            self.successors[function] = {block: self.m.successors(block) for block in self.m.blocks(function)}
        return self.successors[function]

    def is_update(self, exchange):
        """Returns whether a compare-and-exchange is repeated with the value that it found until it succeeds, as in the
        addition of a float, and no result is used afterwards. Such a loop waits for nobody."""
        place = self.lib.GetInstructionParent(exchange)
        if [block == place for block in self.m.successors(place)] != [False, True]:
            return False
        done = self.lib.GetOperand(self.m.terminator(place), 0)
        expected = self.without_cast(self.lib.GetOperand(exchange, 1))
        if not self.is_result(done, exchange) or not self.m.is_binary(expected, llvm.PHI):
            return False
        if self.lib.GetInstructionParent(expected) != place:
            return False
        (found,) = [value for value, block in self.m.incoming(expected) if block == place]
        if self.m.is_binary(found, llvm.SELECT) and self.lib.GetOperand(found, 0) == done:
            found = self.lib.GetOperand(found, 2)
        users = [user for instruction in self.m.instructions(place) for user in self.m.users(instruction)]
        return self.is_result(self.without_cast(found), exchange) and all(
            self.lib.GetInstructionParent(user) == place for user in users
        )

    def starts_update(self, load):
        """Returns whether a volatile load only supplies the first value that an update expects."""
        users, exchanges = self.users_of_casts(load), []
        for user in users:
            exchanges += self.users_of_casts(user) if self.m.opcode(user) == llvm.PHI else []
        exchanges = [user for user in exchanges if self.m.opcode(user) == llvm.ATOMIC_CMPXCHG and self.is_update(user)]
        expected = {self.without_cast(self.lib.GetOperand(exchange, 1)) for exchange in exchanges}
        return expected.issuperset(users)

    def is_result(self, value, exchange):
        return self.m.is_binary(value, llvm.EXTRACT_VALUE) and self.lib.GetOperand(value, 0) == exchange

    def without_cast(self, value):
        return self.lib.GetOperand(value, 0) if self.m.is_binary(value, llvm.BIT_CAST) else value

    def users_of_casts(self, value):
        users = self.m.users(value)
        casts = [user for user in users if self.m.opcode(user) == llvm.BIT_CAST]
        return [user for user in users if user not in casts] + [user for cast in casts for user in self.m.users(cast)]

    def is_counted(self, value, loop):
        """Returns whether a condition in a loop is computed from counters and from values that the loop does not change."""
        seen, work = set(), [value]
        while work:
            value = work.pop()
            if value in seen or not self.lib.IsAInstruction(value) or self.lib.GetInstructionParent(value) not in loop:
                continue
            seen.add(value)
            if self.m.opcode(value) == llvm.PHI:
                ways = self.m.incoming(value)
                if len(ways) != 2 or sum(block in loop for _, block in ways) != 1:
                    return False
                work += [way for way, _ in ways]
            elif self.m.is_computable(value):
                work += self.m.operands(value)
            else:
                return False
        return True

    def is_plain_call(self, call):
        """Returns whether a call cannot make a block wait for another block. The callee may be a function of the
        source, which is checked separately, a function that accesses no memory, or a function of the backend, where
        only threads of one block wait for each other."""
        callee = self.m.callee(call)
        if not callee:
            return not self.lib.IsAInlineAsm(self.lib.GetCalledValue(call)) and self.rewriter.is_service(call)
        known = self.m.name(callee).startswith("llvm.") or callee in self.markers
        return known or not self.lib.IsDeclaration(callee) or self.m.uses_no_memory(callee)
