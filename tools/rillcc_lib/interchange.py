"""Makes the loop over the threads the inner loop, if all threads leave a loop of the kernel in the same iteration (loop
interchange).

    for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * m + column];

If threads run one by one, such a loop adds numbers one after another, from addresses that are far apart. With the loop
over the threads inside, LLVM vectorizes it: neighbouring threads read adjacent elements of b and the same element of a.
The only change to the kernel is a cut at the end of the loop's body (regions.py): each thread keeps `sum` in an element
of an array from one iteration to the next. No thread waits at this cut, and each thread executes its operations in the
same order as before.

The interchange requires that all threads leave the loop in the same iteration. Each access to memory in the loop must
be to one address for all threads, to elements near each other or to a table of constants; gathers.py decides on other
loads. Code that only some threads execute must not access memory. A later step checks whether all threads are there; if
some may be missing, it removes the cut.
"""

from . import clamps, flow, llvm, whole_rounds
from .gathers import MANY, Gathers
from .ir import DIVISIONS, PURE
from .regions import BEGIN, BLOCK, INTERCHANGE, MARKERS, THREAD

VECTOR_TYPE, STRUCT_TYPE, ARRAY_TYPE, FLOATS = 13, 10, 11, (1, 2, 3)  # values of LLVMGetTypeKind
SAME = (llvm.SEXT, llvm.ZEXT, llvm.TRUNC, llvm.FREEZE)
# Divisors for which the quotient of a thread's index is the number of its warp, and the remainder depends on the lane.
WARPS = range(32, 1025, 32)
QUOTIENTS = {llvm.LSHR: range(5, 11), llvm.ASHR: range(5, 11), llvm.UDIV: WARPS, llvm.SDIV: WARPS}
REMAINDERS = {llvm.AND: range(31, 1024, 32), llvm.UREM: WARPS, llvm.SREM: WARPS}
MOST_LOOPS = 32  # per kernel; with many more, clang takes a long time
# An attribute of kernels in which neighbouring threads store more than MOST_APART elements apart. Such a kernel is
# slower when vectorized.
SCATTERS, MOST_APART = b"rill-scatters", 8
MOST_NEAR = 4  # elements from a thread to the next one for which LLVM loads whole vectors and takes elements from them


class Loop:
    def __init__(self, header, latch, blocks):
        self.header, self.latch, self.blocks = header, latch, blocks
        self.gathers = False  # whether loads of neighbouring threads are far apart


def add(a, b):
    return MANY if a is MANY or b is MANY else a + b


def times(stride, factor):
    return stride if stride == 0 else MANY if stride is MANY or factor is MANY else stride * factor


class Interchange:
    """The loops of one kernel, which rillcc has prepared."""

    def __init__(self, module, kernel):
        self.m, self.lib, self.kernel = module, module.lib, kernel
        self.read(kernel)

    def read(self, kernel):
        m = self.m
        start = self.lib.GetEntryBasicBlock(kernel)
        self.graph = {block: m.successors(block) for block in m.blocks(kernel)}
        self.instructions = {block: m.instructions(block) for block in self.graph}
        self.block_of = {i: block for block, inside in self.instructions.items() for i in inside}
        self.immediate = flow.dominators(self.graph, start)
        front = self.instructions[start]
        begins = [i for i, value in enumerate(front) if self.marker(value) == BEGIN]
        self.front = set(front[: begins[0]]) if begins else set()
        self.known = {}

    def marker(self, value):
        callee = self.m.callee(value) if self.lib.IsAInstruction(value) and self.lib.IsACallInst(value) else None
        name = self.m.name(callee) if callee else ""
        return name if name in MARKERS else None

    # Uniform values

    def is_uniform(self, value):
        if not self.lib.IsAInstruction(value):
            return True
        if value not in self.known:
            self.known[value] = True  # assumed for an induction variable until an operand shows otherwise
            self.known[value] = self.find_uniform(value)
            if not self.known[value]:  # other values may have been found uniform by this assumption
                self.known = {other: uniform for other, uniform in self.known.items() if not uniform}
        return self.known[value]

    def find_uniform(self, value):
        opcode = self.m.opcode(value)
        if opcode == llvm.PHI:
            ways = self.m.incoming(value)
            block = self.block_of[value]
            loops = any(flow.dominates(self.immediate, block, way) for _, way in ways)
            return loops and all(self.is_uniform(v) for v, _ in ways)
        if opcode == llvm.LOAD:
            return value in self.front
        if opcode == llvm.CALL:
            name = self.marker(value)
            return name in BLOCK if name else self.is_pure(value) and all(map(self.is_uniform, self.m.arguments(value)))
        return (opcode in PURE or opcode in DIVISIONS) and all(map(self.is_uniform, self.m.operands(value)))

    def is_pure(self, call):
        callee = self.m.callee(call)
        return bool(callee) and not self.marker(call) and self.m.uses_no_memory(callee)

    # Loops

    def loops(self, around=0):
        """Yields the loops that have a single latch and contain `around` other loops: 0 for the innermost ones."""
        backs = {}
        for block, others in self.graph.items():
            for other in others if block in self.immediate else ():
                if flow.dominates(self.immediate, other, block):
                    backs.setdefault(other, []).append(block)
        predecessors = flow.reverse(self.graph)
        for header, latches in backs.items():
            blocks = flow.reachable(predecessors, latches, [header])
            if len(latches) == 1 and sum(other in backs for other in blocks - {header}) == around:
                yield Loop(header, latches[0], blocks)

    def is_fit_around(self, loop):
        """Returns whether a loop contains a loop of a single block that computes a sum for each thread, with the same trip
        count for all threads. rows.py can execute it for several threads if only their indices decide who reaches it."""
        inner = [block for block in loop.blocks if block in self.graph[block]]
        plain = all(self.is_plain(i) for block in loop.blocks for i in self.instructions[block][:-1])
        if not inner or not plain or not self.is_uniform(self.lib.GetCondition(self.m.terminator(inner[0]))):
            return False
        kinds = [self.lib.GetTypeKind(self.lib.TypeOf(phi)) for phi in self.m.phis(inner[0])]
        return any(kind in FLOATS for kind in kinds) and any(self.m.opcode(i) == llvm.LOAD for i in self.instructions[inner[0]])

    def is_plain(self, value):
        opcode = self.m.opcode(value)
        if opcode in (llvm.LOAD, llvm.STORE):
            return not self.lib.GetVolatile(value) and self.lib.GetOrdering(value) == llvm.NOT_ATOMIC
        if opcode == llvm.CALL:
            return self.is_pure(value) or self.marker(value) in THREAD + BLOCK
        return opcode in PURE or opcode in DIVISIONS or opcode == llvm.PHI

    def pays(self, loop):
        for block in loop.blocks:
            if any(other not in loop.blocks for other in self.graph[block]):
                end = self.m.terminator(block)
                if self.m.opcode(end) != llvm.BR or not self.is_uniform(self.lib.GetCondition(end)):
                    return False
        return self.is_fit_for_all(loop)

    def is_fit_for_all(self, loop):
        """Returns whether an iteration of a loop can be executed for all threads at once, if they all take part."""
        lib = self.lib
        self.strides, self.gathers = {}, Gathers(self, loop)
        ends = [self.m.terminator(block) for block in loop.blocks - {loop.latch} if len(self.graph[block]) > 1]
        self.same_way = all(self.m.opcode(end) == llvm.BR and self.is_known_way(loop, lib.GetCondition(end)) for end in ends)
        inside = [(block, i) for block in loop.blocks for i in self.instructions[block][:-1]]
        makes = any(self.m.opcode(i) == llvm.STORE or self.is_carried(block, i) for block, i in inside)
        is_fit = makes and all(self.is_fit(loop, block, i) for block, i in inside)
        loop.gathers = self.gathers.used
        return is_fit

    def is_known_way(self, loop, condition):
        """Returns whether all threads take the same way at a branch, or usually do: all_below.py then tests in each iteration
        whether the index of each thread is below a limit."""
        if self.stride(loop, condition) == 0:
            return True
        opcode, operands = self.m.opcode(condition), self.m.operands(condition)
        if opcode in (llvm.AND, llvm.OR, llvm.XOR, llvm.SELECT, llvm.FREEZE):
            return all(self.is_known_way(loop, operand) for operand in operands)
        return opcode == llvm.ICMP and sorted(map(str, (self.stride(loop, operand) for operand in operands))) == ["0", "1"]

    def is_carried(self, block, value):
        """Returns whether a value differs between threads and is carried to the next iteration of the loop that begins
        with the block."""
        return value in self.m.phis(block) and not self.is_uniform(value)

    def is_fit(self, loop, block, value):
        opcode = self.m.opcode(value)
        if opcode == llvm.CALL:
            return self.is_pure(value) or self.marker(value) in THREAD + BLOCK
        if opcode not in (llvm.LOAD, llvm.STORE):
            return opcode in PURE or opcode in DIVISIONS or opcode == llvm.PHI
        lib = self.lib
        stored = lib.GetOperand(value, 0) if opcode == llvm.STORE else value
        kind, pointer = lib.TypeOf(stored), lib.GetOperand(value, opcode == llvm.STORE)
        if lib.GetVolatile(value) or lib.GetOrdering(value) != llvm.NOT_ATOMIC or lib.GetTypeKind(kind) == VECTOR_TYPE:
            return False
        root = self.root(pointer)
        if opcode == llvm.LOAD and lib.IsAGlobalVariable(root) and lib.IsGlobalConstant(root):
            return True  # a table of constants
        if lib.IsAAllocaInst(root) or not (self.same_way or flow.dominates(self.immediate, block, loop.latch)):
            return False
        stride, size = self.stride(loop, pointer), self.lib.ABISizeOfType(self.m.layout, kind)
        if opcode == llvm.STORE:
            return stride == size
        return (stride is not MANY and abs(stride) <= MOST_NEAR * size) or self.gathers.is_fit(pointer, stride)

    def root(self, pointer):
        while self.lib.IsAInstruction(pointer) and self.m.opcode(pointer) in (llvm.GEP, *SAME):
            pointer = self.lib.GetOperand(pointer, 0)
        return pointer

    # Strides between neighbouring threads

    def stride(self, loop, value):
        """Returns how much larger a value is in the next thread of a row, in the same iteration of the loop; in bytes
        for pointers."""
        if value not in self.strides:
            self.strides[value] = 0  # assumed for an induction variable until an operand shows otherwise
            self.strides[value] = 0 if self.is_uniform(value) else self.find_stride(loop, value)
        return self.strides[value]

    def find_stride(self, loop, value):
        m, opcode = self.m, self.m.opcode(value)
        if opcode == llvm.PHI:
            return self.stride_of_phi(loop, value)
        if opcode == llvm.CALL and self.marker(value):
            return 1 if self.marker(value) in ("rill_ir_thread_x", "rill_ir_thread") else 0
        operands = m.arguments(value) if opcode == llvm.CALL else m.operands(value)
        return self.combine(value, operands, [self.stride(loop, operand) for operand in operands])

    def combine(self, value, operands, strides):
        """Returns the stride of a value, given the strides of its operands."""
        m, opcode = self.m, self.m.opcode(value)
        if not any(stride != 0 for stride in strides):
            return 0
        if opcode in (llvm.ADD, llvm.OR):
            return add(*strides)
        if opcode == llvm.SUB:
            return add(strides[0], times(strides[1], -1))
        if opcode == llvm.XOR and m.constant(operands[1]) in (2**32 - 1, 2**64 - 1):
            return times(strides[0], -1)  # -1 - x
        if opcode == llvm.MUL:
            (a, b), (x, y) = strides, map(m.constant, operands)
            return times(a, y) if b == 0 else times(b, x) if a == 0 else MANY
        if opcode == llvm.SHL:
            by = m.constant(operands[1])
            return times(strides[0], MANY if by is None else 1 << by)
        if opcode in QUOTIENTS and (m.constant(operands[1]) or 0) in QUOTIENTS[opcode]:
            return 0 if strides[0] in (0, 1) else MANY  # the same for all lanes of a warp
        if opcode in REMAINDERS and (m.constant(operands[1]) or 0) in REMAINDERS[opcode]:
            return strides[0]
        if opcode in SAME:
            return strides[0]
        if opcode == llvm.CALL and clamps.predicate(m, value) and 0 in strides:
            return add(*strides)  # in blocks in which no thread reaches the limit
        return self.stride_of_element(value, strides) if opcode == llvm.GEP else MANY

    def stride_of_phi(self, loop, phi):
        """Returns the stride of a phi that changes by a uniform amount in each iteration, and MANY for any other phi."""
        ways = self.m.incoming(phi)
        steps = [v for v, _ in ways if self.lib.IsAInstruction(v) and phi in self.m.operands(v)]
        starts = [v for v, _ in ways if v not in steps]
        if len(starts) != 1 or any(self.m.opcode(step) not in (llvm.ADD, llvm.GEP) for step in steps):
            return MANY
        others = [v for step in steps for v in self.m.operands(step) if v != phi]
        return self.stride(loop, starts[0]) if all(map(self.is_uniform, others)) else MANY

    def stride_of_element(self, value, strides):
        lib = self.lib
        kind, total = lib.GetGEPSourceElementType(value), strides[0]
        for i, stride in enumerate(strides[1:]):
            if i > 0 and lib.GetTypeKind(kind) == STRUCT_TYPE:
                return MANY if any(strides[1 + i :]) else total
            if i > 0:
                kind = lib.GetElementType(kind)
            total = add(total, times(stride, lib.ABISizeOfType(self.m.layout, kind)))
        return total

    # The cut

    def place(self, loop):
        """Returns the instruction in front of which the cut is placed. The instructions after it in the latch compute
        only uniform values."""
        place = self.m.terminator(loop.latch)
        for value in reversed(self.instructions[loop.latch][:-1]):
            if self.m.opcode(value) not in PURE or not self.is_uniform(value):
                break
            place = value
        return place

    def scatters(self):
        """Returns whether the threads of a row store far apart from each other."""
        self.strides = {}
        stores = [i for inside in self.instructions.values() for i in inside if self.m.opcode(i) == llvm.STORE]
        for store in stores:
            stored, pointer = self.m.operands(store)
            stride = self.stride(None, pointer)
            if stride is not MANY and abs(stride) > MOST_APART * self.lib.ABISizeOfType(self.m.layout, self.lib.TypeOf(stored)):
                return True
        return False

    def accesses_rows(self):
        """Returns whether the threads of a row access neighbouring elements everywhere, or all the same element."""
        self.strides = {}
        for instruction in (i for inside in self.instructions.values() for i in inside):
            opcode = self.m.opcode(instruction)
            if opcode not in (llvm.LOAD, llvm.STORE):
                continue
            pointer = self.m.operands(instruction)[opcode == llvm.STORE]
            value = self.m.operands(instruction)[0] if opcode == llvm.STORE else instruction
            stride = self.stride(None, pointer)
            if stride is MANY or abs(stride) > MOST_NEAR * self.lib.ABISizeOfType(self.m.layout, self.lib.TypeOf(value)):
                return False
        return True

    def add(self):
        lib, m = self.lib, self.m
        builder = lib.CreateBuilderInContext(m.context)
        if self.scatters():
            m.set_text_attribute(self.kernel, SCATTERS)
        rounds = whole_rounds.WholeRounds(self, builder)
        rounds.add(MOST_LOOPS)
        paying = [loop for loop in self.loops() if self.pays(loop)]
        paying += [loop for loop in self.loops(1) if loop.header in rounds.around]
        if len(paying) > MOST_LOOPS:
            paying = []
        places = [self.place(loop) for loop in paying]
        gathering = [place for loop, place in zip(paying, places) if loop.gathers]
        # If no thread has iterations left, all threads skip the remainder together; otherwise each would test it.
        places += [m.terminator(block) for loop in paying for block in rounds.rests.get(loop.header, [])]
        kind = lib.FunctionType(m.void, llvm.array([]), 0, 0)
        marker = places and (m.function(INTERCHANGE) or lib.AddFunction(m.handle, INTERCHANGE.encode(), kind))
        if marker:  # one cut is one place
            lib.AddAttributeAtIndex(marker, llvm.FUNCTION_INDEX, m.attribute("noduplicate"))
        for place in places:
            lib.PositionBuilderBefore(builder, place)
            call = lib.BuildCall2(builder, kind, marker, llvm.array([]), 0, b"")
            if place in gathering:
                m.mark(call, m.gathers_kind)
        lib.DisposeBuilder(builder)
