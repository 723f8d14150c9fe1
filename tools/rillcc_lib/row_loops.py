"""Finds the loops that rows.py executes for several threads at once."""

from dataclasses import dataclass

from . import flow, llvm
from .ir import PURE

# Intrinsics with a single type that LLVM also has for vectors.
VECTORIZED = ("fma", "fabs", "sqrt", "minnum", "maxnum", "smin", "smax", "umin", "umax")
FLOATS = (1, 2, 3)  # half, float and double, of LLVMGetTypeKind
CASTS, BINARIES = set(range(30, 39)) | {llvm.BIT_CAST}, set(range(8, 17)) | {18, 19, *range(20, 26)}
FNEG, FCMP = 66, 43


@dataclass
class ThreadLoop:
    """A loop over threads: its header, its latch and its induction variable."""

    header: int
    latch: int
    counter: int


@dataclass
class Row:
    """A loop inside it that consists of one basic block."""

    block: int
    before: int  # the block in front of it
    after: int
    path: list  # the blocks from the header of the loop over threads to `before`
    guards: list  # (condition, value that leads to the loop)
    counter: int  # the phi that grows by one in each iteration
    limit: int
    stays: int  # the index of the successor that is the loop


class RowLoops:
    """Works on a function that has been written (threads.py)."""

    threads: ThreadLoop
    row: Row
    inside: list  # the loop's instructions except its last one
    varying: set  # instructions whose values differ between threads in the same iteration
    loads: list  # instructions that load from each thread's own row
    counts: set  # values from before the loop that must grow by one from thread to thread

    def __init__(self, writer):
        self.w, self.m, self.lib, self.function = writer, writer.m, writer.lib, writer.function

    # Choice of loops

    def read(self, threads):
        m = self.m
        self.threads = threads
        inside = flow.reachable({b: m.predecessors(b) for b in m.blocks(self.function)}, [threads.latch], {threads.header})
        self.blocks = [block for block in m.blocks(self.function) if block in inside]
        self.block_of = {value: block for block in self.blocks for value in m.instructions(block)}
        end = m.terminator(threads.latch)
        self.stop = self.lib.GetOperand(self.lib.GetCondition(end), 1)

    def find(self, block):
        m, lib, end = self.m, self.lib, self.m.terminator(block)
        befores = [other for other in m.predecessors(block) if other != block]
        if len(befores) != 1 or m.opcode(end) != llvm.BR or not m.is_binary(lib.GetCondition(end), llvm.ICMP):
            return None
        ways, condition = m.successors(block), lib.GetCondition(end)
        stays = ways.index(block)
        after = ways[1 - stays]
        if after == block or after not in self.blocks or lib.GetICmpPredicate(condition) != (llvm.NE if stays == 0 else llvm.EQ):
            return None
        counter, limit = self.find_counter(block, condition)
        walked = self.find_path(block, befores[0])
        if not counter or not walked:
            return None
        path, guards = walked
        row = Row(block, befores[0], after, path, guards, counter, limit, stays)
        return row if self.is_profitable(row) else None

    def find_counter(self, block, condition):
        """Returns the phi that grows by one in each iteration, and the limit with which its next value is compared."""
        following, limit = self.m.operands(condition)
        if not self.m.is_binary(following, llvm.ADD) or self.block_of.get(limit) == block:
            return None, None
        counter, one = self.m.operands(following)
        ways = {b: v for v, b in self.m.incoming(counter)} if counter in self.m.phis(block) else {}
        known = self.m.constant(one) == 1 and ways.get(block) == following and self.is_uniform(limit)
        start = next((v for b, v in ways.items() if b != block), None)
        return (counter, limit) if known and self.is_uniform(start) else (None, None)

    def find_path(self, block, before):
        """Returns the blocks on the path of a thread to the loop, and the conditions on the path. Returns None if there
        are several paths, or if memory is written on the path."""
        m, path, guards = self.m, [before], []
        while True:
            end = m.terminator(path[0])
            following = path[1] if len(path) > 1 else block
            if m.opcode(end) != llvm.BR or not all(map(self.is_harmless, m.instructions(path[0])[:-1])):
                return None
            ways = m.successors(path[0])
            if len(ways) > 1:
                if ways[0] == ways[1]:
                    return None
                guards.insert(0, (self.lib.GetCondition(end), ways[0] == following))
            if path[0] == self.threads.header:
                return path, guards
            befores = m.predecessors(path[0])
            if len(befores) != 1 or befores[0] in path:
                return None
            path.insert(0, befores[0])

    def is_harmless(self, value):
        opcode = self.m.opcode(value)
        if opcode == llvm.LOAD:
            return self.is_plain(value)
        if opcode == llvm.CALL:
            callee = self.m.callee(value)
            return bool(callee) and self.m.uses_no_memory(callee)
        return opcode in PURE or value == self.threads.counter

    def is_plain(self, load):
        return not self.lib.GetVolatile(load) and self.lib.GetOrdering(load) == llvm.NOT_ATOMIC

    def is_uniform(self, value):
        """Returns whether a value from before the loop is the same for all threads."""
        if value not in self.block_of or self.w.intrinsic(value).startswith("llvm.threadlocal"):
            return True
        return self.m.opcode(value) in PURE and all(map(self.is_uniform, self.m.operands(value)))

    def is_computable(self, value, path, is_guard=False):
        """Returns whether a value from before the loop can be computed for another thread. A guard must be computed
        before it is known whether that thread reaches the loop, so it may load only from slots."""
        if value == self.threads.counter or self.is_uniform(value):
            return True
        opcode = self.m.opcode(value)
        if self.block_of[value] not in path or opcode not in PURE | {llvm.LOAD}:
            return False
        if opcode == llvm.LOAD and is_guard and not self.w.is_kept(self.lib.GetOperand(value, 0)):
            return False
        return all(self.is_computable(operand, path, is_guard) for operand in self.m.operands(value))

    def is_profitable(self, row):
        """Returns whether a loop can be executed for several threads at once, and sums floating-point numbers that each
        thread loads from its own row."""
        m, lib = self.m, self.lib
        self.row, self.inside, self.counts = row, m.instructions(row.block)[:-1], set()
        self.find_varying()
        inputs = {v for value in self.inside for v in self.outside_operands(value)}
        if not all(self.is_computable(value, row.path) for value in inputs):
            return False
        if not all(self.is_computable(condition, row.path, True) for condition, _ in row.guards):
            return False
        phis = [phi for phi in m.phis(row.block) if phi in self.varying]
        self.loads = [value for value in self.inside if value in self.varying and m.opcode(value) == llvm.LOAD]
        sums = any(lib.GetTypeKind(lib.TypeOf(phi)) in FLOATS for phi in phis)
        if not sums or not self.loads or not all(map(self.is_fit, self.inside)):
            return False
        return all(lib.TypeOf(value) != m.i1 and m.opcode(value) != llvm.GEP for value in self.results() if value in self.varying)

    def outside_operands(self, value):
        """Returns the operands of an instruction in the loop that are computed before the loop."""
        ways = [v for v, _ in self.m.incoming(value)] if self.m.opcode(value) == llvm.PHI else self.m.operands(value)
        return [v for v in ways if v in self.block_of and v not in self.inside]

    def find_varying(self):
        """Finds the values of the loop that differ between threads in the same iteration."""
        self.varying, changed = set(), True
        while changed:
            changed = False
            for value in self.inside:
                ways = self.m.incoming(value) if self.m.opcode(value) == llvm.PHI else [(v, 0) for v in self.m.operands(value)]
                differs = any(v in self.varying or (v in self.block_of and v not in self.inside and not self.is_uniform(v)) for v, _ in ways)
                if differs and value not in self.varying:
                    self.varying.add(value)
                    changed = True

    def is_fit(self, value):
        m, lib, opcode = self.m, self.lib, self.m.opcode(value)
        kind = lib.TypeOf(value)
        is_number = lib.GetTypeKind(kind) in (*FLOATS, llvm.INTEGER_TYPE)
        if opcode == llvm.LOAD:
            if not self.is_plain(value) or not is_number:
                return False
            size = lib.ABISizeOfType(m.layout, kind)
            fills_bytes = lib.SizeOfTypeInBits(m.layout, kind) == 8 * size and size in (1, 2, 4, 8)
            return value not in self.varying or (fills_bytes and (self.is_column(value) or self.step(lib.GetOperand(value, 0)) == size))
        if opcode == llvm.CALL:
            return self.is_vectorized(value) and is_number
        if opcode == llvm.GEP:  # used only by loads
            return value not in self.varying or all(user in self.loads for user in m.users(value))
        if opcode not in PURE and opcode != llvm.PHI:
            return False
        if value not in self.varying:
            return True
        known = opcode in CASTS | BINARIES | {FNEG, FCMP, llvm.ICMP, llvm.SELECT, llvm.FREEZE, llvm.PHI}
        kinds = [lib.GetTypeKind(lib.TypeOf(v)) for v in [value, *(m.operands(value))]]
        return known and all(k in (*FLOATS, llvm.INTEGER_TYPE) for k in kinds)

    def is_vectorized(self, call):
        callee = self.m.callee(call)
        if not callee or not self.lib.GetIntrinsicID(callee):
            return False
        name = self.m.name(callee).split(".")
        return len(name) == 3 and name[1] in VECTORIZED and self.m.uses_no_memory(callee)

    # Strides between threads

    def is_column(self, load):
        """Returns whether neighbouring threads load neighbouring elements."""
        return self.thread_stride(self.lib.GetOperand(load, 0)) == self.lib.ABISizeOfType(self.m.layout, self.lib.TypeOf(load))

    def thread_stride(self, value):
        """Returns how much larger a value is in the next thread, in bytes if it is a pointer; None if this is unknown."""
        m, opcode = self.m, self.m.opcode(value) if self.lib.IsAInstruction(value) else None
        if value == self.threads.counter or value not in self.block_of or (value in self.inside and value not in self.varying):
            return int(value == self.threads.counter)
        if value not in self.inside and self.is_uniform(value):
            return 0
        if self.is_count(value):
            self.counts.add(value)
            return 1
        if opcode in (llvm.SEXT, llvm.ZEXT):
            operand = m.operands(value)[0]
            exact = operand == self.threads.counter or self.has_flag(operand, "nsw" if opcode == llvm.SEXT else "nuw")
            return self.thread_stride(operand) if exact else None
        if opcode not in (llvm.ADD, llvm.SUB, llvm.MUL, llvm.SHL, llvm.GEP):
            return None
        return self.stride_of(value, [self.thread_stride(operand) for operand in m.operands(value)])

    def is_count(self, value):
        """Returns whether a value is an integer in a slot, such as the counter of an outer loop. build_all_reach() tests
        whether it grows by one from thread to thread."""
        if self.lib.TypeOf(value) != self.m.i32 or not self.m.is_binary(value, llvm.LOAD):
            return False
        pointer = self.lib.GetOperand(value, 0)
        return self.m.is_binary(pointer, llvm.GEP) and self.w.is_kept(pointer)

    def has_flag(self, value, flag):
        """Returns whether a sum does not wrap in any thread. Of its operands, only the thread's index may vary."""
        if value == self.threads.counter or (value not in self.varying and self.is_uniform(value)):
            return True
        if self.is_count(value):
            return flag == "nsw"
        words = self.m.text(value).split(" = ", 1)[1].split() if self.m.opcode(value) in (llvm.ADD, llvm.MUL, llvm.SHL) else []
        return flag in words[:3] and all(self.has_flag(operand, flag) for operand in self.m.operands(value))

    # Strides between iterations

    def step(self, value):
        """Returns how much a value grows in each iteration, in bytes if it is a pointer; None if this is unknown."""
        m = self.m
        if value not in self.inside:
            return 0
        if value == self.row.counter:
            return 1
        opcode = m.opcode(value)
        if opcode in (llvm.SEXT, llvm.ZEXT):
            operand = m.operands(value)[0]
            return self.step(operand) if self.is_exact(operand, "nsw" if opcode == llvm.SEXT else "nuw") else None
        if opcode not in (llvm.ADD, llvm.SUB, llvm.MUL, llvm.SHL, llvm.GEP):
            return None
        return self.stride_of(value, [self.step(operand) for operand in m.operands(value)])

    def stride_of(self, value, steps):
        """Returns the stride of a value, given the strides of its operands; None if it is unknown."""
        m = self.m
        opcode = m.opcode(value)
        if None in steps:
            return None
        if not any(steps):
            return 0
        if opcode == llvm.GEP:
            wide = all(not step or self.lib.TypeOf(v) == m.i64 for step, v in zip(steps[1:], m.operands(value)[1:]))
            size = self.lib.ABISizeOfType(m.layout, self.lib.GetGEPSourceElementType(value))
            return steps[0] + steps[1] * size if len(steps) == 2 and wide else None
        if opcode == llvm.ADD:
            return sum(steps)
        if opcode == llvm.SUB:
            return steps[0] - steps[1]
        number = m.constant(m.operands(value)[1])
        if number is None or steps[1]:
            return None
        return steps[0] * number if opcode == llvm.MUL else steps[0] << number

    def is_exact(self, value, flag):
        """Returns whether a number is known not to wrap from one iteration to the next."""
        if value not in self.inside:
            return True
        if value == self.row.counter:
            value = self.m.operands(self.lib.GetCondition(self.m.terminator(self.row.block)))[0]
            return flag in self.m.text(value).split(" add ", 1)[1].split()
        if self.m.opcode(value) != llvm.ADD or flag not in self.m.text(value).split(" add ", 1)[1].split():
            return False
        return all(self.is_exact(operand, flag) for operand in self.m.operands(value))

    def results(self):
        """Returns the values of the loop that are used after it."""
        users = {value: [self.lib.GetInstructionParent(user) for user in self.m.users(value)] for value in self.inside}
        return [value for value in self.inside if any(block != self.row.block for block in users[value])]
