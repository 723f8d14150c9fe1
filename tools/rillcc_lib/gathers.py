"""Decides which loads of a loop may be gathers if the loop over the threads becomes the inner loop (interchange.py).

    for (int j = 0; j < k; j++) sum += values[j * n + i] * x[columns[j * n + i]];   // x is read at random in either order
    for (int j = 0; j < k; j++) sum += values[i * k + j];                           // each thread reads a row of its own
    for (int j = 0; j < k; j++) sum = table[(sum ^ bytes[i * k + j]) & 255];        // each load waits for the one before

A load whose address depends on data is at an unrelated place in the next iteration, and in the next thread, so it costs
as much in either order. A thread that goes along a row of memory reads neighbouring elements in its own order only.
Such a loop stays as it is, unless an iteration must wait for the one before: then the loads and the arithmetic of
several threads are executed at once only if the loop over the threads is the inner loop.
"""

from . import flow, llvm

MANY = None  # represents a stride or a step that is unknown or not constant
LINE = 64  # bytes of a cache line
FAR = LINE + 1  # represents a step by a number of elements that is not constant
# Values from one iteration to the next that are computed by only one of these operations are a sum or the like, which
# LLVM computes for several iterations at once.
REDUCTIONS = {llvm.ADD, llvm.SUB}, {llvm.MUL}, {llvm.AND}, {llvm.OR}, {llvm.XOR}
INTEGERS = {llvm.ADD, llvm.SUB, llvm.MUL, llvm.AND, llvm.OR, llvm.XOR, llvm.SHL, llvm.LSHR, llvm.ASHR}


class Gathers:
    def __init__(self, interchange, loop):
        self.i, self.m, self.lib, self.loop = interchange, interchange.m, interchange.lib, loop
        self.inside = {value for block in loop.blocks for value in interchange.instructions[block]}
        self.steps: dict = {}
        self.serial, self.used = None, False

    def is_fit(self, pointer, stride):
        """Returns whether a load from places that are far apart for neighbouring threads, `stride` bytes if this is known,
        prevents no interchange."""
        self.used = True
        step = self.step(pointer)
        if step is MANY or (abs(step) > LINE and stride is not MANY):
            return True
        if self.serial is None:
            self.serial = any(map(self.is_serial, self.m.phis(self.loop.header)))
        return self.serial

    def is_serial(self, phi):
        """Returns whether each iteration needs a value of the one before that a load or several operations give."""
        if self.i.is_uniform(phi):
            return False
        last = next(value for value, block in self.m.incoming(phi) if block == self.loop.latch)
        users = {value: [u for u in self.m.users(value) if u in self.inside] for value in self.inside}
        needed = {value: [v for v in self.m.operands(value) if v in self.inside] for value in self.inside}
        chain = (flow.reachable(users, [phi]) & flow.reachable(needed, [last])) - {phi} if last in self.inside else set()
        opcodes = {self.m.opcode(value) for value in chain}
        return llvm.LOAD in opcodes or (bool(opcodes) and opcodes <= INTEGERS and not any(opcodes <= r for r in REDUCTIONS))

    def step(self, value):
        """Returns how much larger a value of one thread is in the next iteration; in bytes for pointers."""
        if value not in self.inside:
            return 0
        if value not in self.steps:
            self.steps[value] = MANY  # for a value that depends on itself
            self.steps[value] = self.find_step(value)
        return self.steps[value]

    def find_step(self, value):
        opcode = self.m.opcode(value)
        if opcode == llvm.PHI:
            return self.step_of_phi(value)
        if opcode in (llvm.LOAD, llvm.CALL):
            operands = self.m.arguments(value) if opcode == llvm.CALL else self.m.operands(value)
            return 0 if all(self.step(operand) == 0 for operand in operands) else MANY
        operands = self.m.operands(value)
        return self.i.combine(value, operands, [self.step(operand) for operand in operands])

    def step_of_phi(self, phi):
        ways = {block: value for value, block in self.m.incoming(phi)}
        following = ways.get(self.loop.latch)
        if phi not in self.m.phis(self.loop.header) or following not in self.inside:
            return MANY
        operands = self.m.operands(following)
        if self.m.opcode(following) not in (llvm.ADD, llvm.GEP) or operands[0] != phi or len(operands) != 2:
            return MANY
        if operands[1] in self.inside:
            return MANY
        number = self.m.constant(operands[1])
        if number is None:
            return FAR
        width = self.lib.GetIntTypeWidth(self.lib.TypeOf(operands[1]))
        number -= (number >> (width - 1)) << width
        if self.m.opcode(following) == llvm.GEP:
            number *= self.lib.ABISizeOfType(self.m.layout, self.lib.GetGEPSourceElementType(following))
        return number
