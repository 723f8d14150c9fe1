"""Decides where the values of a thread's program are kept when its regions become loops. Within a region they are in
registers. If another region needs a value, it is kept in an element of an array for each thread, once for the block, or
it is computed again."""

import contextlib
import functools

from . import flow, llvm
from .ir import DIVISIONS, PURE
from .regions import SHUFFLES, THREAD, Refused, require

MOST_REMATERIALIZED = 12  # instructions for which a value is computed again instead of kept
MOST_BYTES = 1024  # that each thread keeps
MOST_THREADS = 1024  # RILL_CPU_MAX_THREADS
PATTERN = 0xA5
SPARE = 32  # additional elements at each end of an array whose elements other lanes read


class Slots:
    # These belong to the function that is being written (threads.py).
    threads: int  # the number of threads in a block
    ended: int  # the block that returns
    is_flat: bool  # whether the kernel uses only the x index
    needs_next: bool  # whether each thread stores its next region in `next`
    next: int
    state: list  # the range of threads that are executing (first, end), and whether all warps are complete

    def __init__(self, cutter):
        self.c, self.m, self.lib = cutter, cutter.m, cutter.lib
        self.function, self.builder = cutter.function, cutter.builder
        self.regions = cutter.regions
        self.setup_end = None  # the instruction in front of which code that runs before the threads is built
        self.cut_phis = {phi: region for region in self.regions for phi in self.m.phis(region.entry)}
        self.slots = {}  # value: (array or variable, its type, whether each thread has an element)
        self.shared_slots = {}  # value: the phi whose slot it shares
        self.private = {}  # variable on the stack: (array, its type)
        self.imports = {}
        self.bytes = 0  # in arrays, for each thread
        self.padding = 0  # bytes between the arrays
        self.thread_loops = []  # the loops over threads that increment by one
        self.local = self.find_local_memory()
        self.liveness()
        self.coalesce_slots()
        shuffles = [call for call in self.c.sync_points.values() if self.c.marker(call) in SHUFFLES]
        self.exchanged = {call: self.find_exchanged(call) for call in shuffles}
        self.shuffled = {self.shared_slots.get(value, value) for value in self.exchanged.values()}

    # Short forms

    def at_end(self, block):
        self.lib.PositionBuilderAtEnd(self.builder, block)

    def before(self, instruction):
        self.lib.PositionBuilderBefore(self.builder, instruction)

    def build(self, what, *arguments):
        return getattr(self.lib, "Build" + what)(self.builder, *arguments, b"")

    def load(self, kind, pointer):
        return self.build("Load2", kind, pointer)

    def store(self, value, pointer):
        return self.lib.BuildStore(self.builder, value, pointer)

    def store_value(self, value, place):
        if self.lib.TypeOf(value) == self.m.i1:
            value = self.build("ZExt", value, self.m.i8)
        return self.store(value, place)

    def branch(self, block):
        return self.lib.BuildBr(self.builder, block)

    def branch_if(self, condition, yes, no):
        return self.lib.BuildCondBr(self.builder, condition, yes, no)

    def new_block(self, name):
        return self.m.new_block(self.function, name)

    def call(self, name, *arguments):
        function = self.m.function(name)
        require(function, "the header has %s" % name)
        kind = self.lib.GlobalGetValueType(function)
        made = self.lib.BuildCall2(self.builder, kind, function, llvm.array(arguments), len(arguments), b"")
        if self.place_of_calls:
            self.lib.InstructionSetDebugLoc(made, self.place_of_calls)
        return made

    @functools.cached_property
    def place_of_calls(self):
        return self.m.place_of_calls(self.function)

    def element(self, kind, base, index):
        return self.build("GEP2", kind, base, llvm.array([index]), 1)

    # Placement of values

    def find_local_memory(self):
        """Returns the variables on the stack that are used in one region only, and whose lifetime begins there
        according to the compiler."""
        found = {}
        for variable in self.c.private_memory():
            if not self.lib.IsAAllocaInst(variable):
                continue
            users = self.derived_users(variable)
            regions = {self.c.owner.get(self.lib.GetInstructionParent(user)) for user in users}
            if len(regions) != 1 or None in regions:
                continue
            region = regions.pop()
            starts = [u for u in users if self.intrinsic(u).startswith("llvm.lifetime.start")]
            if region and len(starts) == 1 and self.is_first(starts[0], users, region):
                if not self.is_captured(variable, users) or self.ends_inside(starts[0], users, region):
                    found[variable] = region
        return found

    def is_captured(self, variable, users):
        """Returns whether the address of a variable may escape."""
        pointers = {variable} | {user for user in users if self.lib.TypeOf(user) == self.m.pointer}
        for user in users:
            opcode = self.m.opcode(user)
            if opcode == llvm.STORE and self.lib.GetOperand(user, 0) not in pointers:
                continue
            if opcode in (llvm.LOAD, llvm.ICMP, llvm.GEP, llvm.PHI, llvm.SELECT):
                continue
            if not self.intrinsic(user).startswith(("llvm.lifetime.", "llvm.memset.", "llvm.memcpy.", "llvm.memmove.")):
                return True
        return False

    def ends_inside(self, start, users, region):
        """Returns whether a variable's lifetime ends on every path before the region is left."""
        inside = set(region.blocks)
        graph = {b: [s for s in self.c.successors[b] if s in inside and s != region.entry] for b in region.blocks}
        ends = {self.lib.GetInstructionParent(u) for u in users if self.intrinsic(u).startswith("llvm.lifetime.end")}
        home = self.lib.GetInstructionParent(start)
        order = self.c.instructions[home]
        if home in ends and not any(u in users for u in order[order.index(start) + 1 :]
                                    if self.intrinsic(u).startswith("llvm.lifetime.end")):
            ends.discard(home)
        left = flow.reachable(graph, [home], ends) - ends
        return all(len(graph[b]) == len(self.c.successors[b]) for b in left)

    def intrinsic(self, instruction):
        if not self.lib.IsACallInst(instruction):
            return ""
        callee = self.m.callee(instruction)
        return self.m.name(callee) if callee else ""

    def is_lifetime(self, instruction):
        return self.intrinsic(instruction).startswith("llvm.lifetime.")

    def derived_users(self, variable):
        """Returns all instructions that use a variable or a pointer derived from its address."""
        seen, work = set(), [variable]
        while work:
            for user in self.m.users(work.pop()):
                if user not in seen:
                    seen.add(user)
                    if self.m.opcode(user) in PURE or self.m.opcode(user) == llvm.PHI:
                        work.append(user)
        return seen

    def is_first(self, start, users, region):
        """Returns whether `start` precedes all other users whenever the region is executed."""
        inside = set(region.blocks)
        graph = {b: [s for s in self.c.successors[b] if s in inside and s != region.entry] for b in region.blocks}
        above = flow.dominators(graph, region.entry)
        home = self.lib.GetInstructionParent(start)
        for user in users:
            block = self.lib.GetInstructionParent(user)
            if block == home:
                order = self.c.instructions[block]
                if order.index(user) < order.index(start) and self.m.opcode(user) not in PURE:
                    return False
            elif block not in above or not flow.dominates(above, home, block):
                if self.m.opcode(user) not in PURE:
                    return False
        return True

    def liveness(self):
        """Computes for each block the values of other blocks that are live at its start (`live_in`) and at its end
        (`live_out`)."""
        c = self.c
        uses, defined, edge_uses = {}, {}, {}
        for block in c.order:
            used = set()
            for instruction in c.instructions[block]:
                if self.m.opcode(instruction) == llvm.PHI:
                    for value, other in self.m.incoming(instruction):
                        if value in c.block_of:
                            edge_uses.setdefault(other, set()).add(value)
                else:
                    used |= {v for v in self.m.operands(instruction) if v in c.block_of and c.block_of[v] != block}
            uses[block], defined[block] = used, set(c.instructions[block])
        self.live_in = {block: set(uses[block]) for block in c.order}
        changed = True
        while changed:
            changed = False
            for block in reversed(c.order):
                out = set(edge_uses.get(block, ()))
                for other in c.successors[block]:
                    out |= self.live_in[other]
                more = (out - defined[block]) | uses[block]
                if more - self.live_in[block]:
                    self.live_in[block] |= more
                    changed = True
        self.live_out = {}
        for block in c.order:
            self.live_out[block] = set(edge_uses.get(block, ()))
            for other in c.successors[block]:
                self.live_out[block] |= self.live_in[other]

    def is_live_after(self, value, instruction):
        """Returns whether a value may still be needed after an instruction."""
        block = self.c.block_of[instruction]
        if value in self.live_out[block]:
            return True
        inside = self.c.instructions[block]
        after = set(inside[inside.index(instruction) + 1 :])
        return any(user in after and self.m.opcode(user) != llvm.PHI for user in self.m.users(value))

    def find_exchanged(self, call):
        """Returns the value whose slot holds the argument of a shuffle. If a floating-point number has a slot anyway,
        its bits need no second slot, provided that the number is live after the shuffle. Uses by phis do not count,
        because phis are set earlier."""
        value = self.m.arguments(call)[0]
        if value in self.c.block_of and self.m.opcode(value) == llvm.BIT_CAST:
            number = self.lib.GetOperand(value, 0)
            known = number in self.c.block_of and self.c.marker(number) is None
            if known and number in self.live_in[self.c.successors[self.c.block_of[call]][0]]:
                return number
        return value

    def interfere(self, a, b):
        return self.is_live_after(a, b) or self.is_live_after(b, a)

    def coalesce_slots(self):
        """Lets a phi and its incoming values share a slot if they are never live at the same time."""
        groups = {phi: [phi] for phi in self.cut_phis}
        ways = [(phi, value) for phi in self.cut_phis if phi in self.c.varying for value, _ in self.m.incoming(phi)]
        above = flow.dominators(self.c.successors, self.c.body)
        # Values that are carried to the next iteration come first, because they would be copied in each iteration.
        for from_round in True, False:
            for phi, value in ways:
                if value not in self.c.varying or value not in self.c.block_of or value in self.shared_slots:
                    continue
                if from_round and not flow.dominates(above, self.c.block_of[phi], self.c.block_of[value]):
                    continue
                if value in self.cut_phis or self.is_rematerialized(value) or self.c.marker(value):
                    continue
                if all(not self.interfere(value, other) for other in groups[phi]):
                    groups[phi].append(value)
                    self.shared_slots[value] = phi

    # Slots

    def slot(self, value):
        """Returns the slot in which a value is kept between regions: (array or variable, its type, whether each thread
        has an element)."""
        value = self.shared_slots.get(value, value)
        if value not in self.slots:
            each = value in self.c.varying
            kind = self.lib.TypeOf(value)
            if kind == self.m.i1:
                kind = self.m.i8
            self.slots[value] = (self.allocate(kind, each, spare=SPARE if value in self.shuffled else 0), kind, each)
        return self.slots[value]

    @contextlib.contextmanager
    def in_front(self):
        """Moves the builder to the code that runs before the threads, and back at the end."""
        usual, self.builder = self.builder, self.c.setup_builder
        self.before(self.setup_end)
        yield
        self.builder = usual

    def allocate(self, kind, each, alignment=0, spare=0):
        """Builds memory for one value, or for one value of each thread."""
        size = self.lib.ABISizeOfType(self.m.layout, kind)
        if not each:
            with self.in_front():
                place = self.build("Alloca", kind)
                self.fill(place, self.m.number(size, self.m.i64))
                return place
        self.bytes += size
        if self.bytes > MOST_BYTES:
            raise Refused("its variables are too large: each thread keeps more than %d bytes across barriers" % MOST_BYTES)
        return self.allocate_array(kind, alignment, spare)

    def fill(self, place, size):
        """Fills memory with a pattern, in tests, so that a read of a value that was never stored is always noticed."""
        if self.c.fill:
            self.lib.BuildMemSet(self.builder, place, self.m.number(PATTERN, self.m.i8), size, 1)

    def most_bytes(self):
        """Returns the largest size of a block's arrays."""
        return self.bytes * MOST_THREADS + self.padding

    def is_rematerialized(self, value):
        """Returns whether a value is computed again instead of kept."""
        return self.repeats(value) and self.cost(value, set()) <= MOST_REMATERIALIZED

    def repeats(self, value):
        """Returns whether an instruction returns the same result for the same operands, at little cost."""
        if self.lib.TypeOf(value) == self.m.void or self.c.marker(value) in THREAD:
            return False
        opcode = self.m.opcode(value)
        if opcode in DIVISIONS:
            return self.m.constant(self.lib.GetOperand(value, 1)) is not None
        if opcode == llvm.CALL and self.c.is_pure_call(value):
            names = ("threadlocal", "smin", "smax", "umin", "umax", "fptosi.sat", "fptoui.sat")
            return self.intrinsic(value).startswith(tuple("llvm." + name for name in names))
        return opcode in PURE and opcode != llvm.FREEZE

    def cost(self, value, seen):
        """Returns the number of instructions that compute a value again. The number is larger than the limit if this is
        impossible. A uniform operand of a value that differs between threads counts as one instruction, because it may
        be kept once."""
        c = self.c
        if value in c.prologue:
            return 1 if value in c.varying else 0
        if value not in c.block_of or value in seen or c.marker(value) in THREAD:
            return 0
        if not self.repeats(value):
            return MOST_REMATERIALIZED + 1 if value in c.varying else 0
        seen.add(value)
        most = 1 if value in c.varying else MOST_REMATERIALIZED + 1
        costs = ((operand, self.cost(operand, seen)) for operand in self.m.operands(value))
        return 1 + sum(cost if operand in c.varying else min(most, cost) for operand, cost in costs)

    def allocate_array(self, kind, alignment=0, spare=0):
        self.padding += 2 * max(64, alignment) + 2 * spare * self.lib.ABISizeOfType(self.m.layout, kind)
        with self.in_front():
            count = self.build("Add", self.threads, self.m.number(2 * spare)) if spare else self.threads
            array = self.build("ArrayAlloca", kind, count)
            self.lib.SetAlignment(array, max(64, alignment))
            size = self.m.number(self.lib.ABISizeOfType(self.m.layout, kind), self.m.i64)
            self.fill(array, self.build("Mul", self.build("ZExt", count, self.m.i64), size))
            return self.element(kind, array, self.m.number(spare)) if spare else array

    # Values in a region

    def need(self, region, value):
        """Returns a value for use in a region, which may have been computed in another region."""
        c = self.c
        if not self.lib.IsAInstruction(value):
            return value
        if value in c.prologue and (value not in c.varying or self.local.get(value) is region):
            return value
        own = value in c.block_of and c.owner[c.block_of[value]] is region
        if own and value not in self.cut_phis and c.marker(value) is None:
            return value
        key = (region, value)
        if key not in self.imports:
            self.imports[key] = self.import_value(region, value)
        return self.imports[key]

    def import_value(self, region, value):
        c, lib = self.c, self.lib
        marker = c.marker(value)
        if marker in THREAD:
            return region.index[THREAD.index(marker)]
        if lib.IsAAllocaInst(value):
            return self.import_memory(region, value)
        if value not in self.cut_phis and marker is None and value not in self.slots and self.is_rematerialized(value):
            operands = [self.need(region, operand) for operand in self.m.operands(value)]
            copy = lib.InstructionClone(value)
            self.before(region.import_end)
            self.m.insert(self.builder, copy)
            for i, operand in enumerate(operands):
                lib.SetOperand(copy, i, operand)
            return copy
        place, kind = self.place(region, value)
        loaded = self.load(kind, place)
        return self.build("Trunc", loaded, self.m.i1) if lib.TypeOf(value) == self.m.i1 else loaded

    def place(self, region, value):
        """Returns the place of a value in its slot, and its type. The builder is then at the end of the region's
        imports."""
        slot, kind, each = self.slot(value)
        self.before(region.import_end)
        return (self.element(kind, slot, region.wide_index) if each else slot), kind

    def import_memory(self, region, variable):
        if variable not in self.private:
            kind = self.lib.GetAllocatedType(variable)
            alignment, size = self.lib.GetAlignment(variable), self.lib.ABISizeOfType(self.m.layout, kind)
            if size % alignment:
                kind = self.lib.ArrayType2(self.m.i8, (size + alignment - 1) // alignment * alignment)
            self.private[variable] = (self.allocate(kind, True, alignment), kind)
        array, kind = self.private[variable]
        self.before(region.import_end)
        return self.element(kind, array, region.wide_index)
