"""Cuts a region before and after a branch that only one thread of each row takes, or only the threads of one row. An
example is a tile that its border threads extend by a halo:

    tile[y + 1][x + 1] = a[i];
    if (x == 0) tile[y + 1][0] = a[i - 1];
    if (y == 0) tile[0][x + 1] = a[i - width];

In one loop over the threads, LLVM would compute the bodies for all threads and discard most results, with masked stores
to elements that are not adjacent. If the branch begins a region of its own, the loop of this region executes only the
threads that take the branch (find_few in loops.py). The cuts are marked before LLVM's jump threading, which joins
consecutive branches if a thread takes only one of them.
"""

from dataclasses import dataclass

from . import flow, llvm
from .ir import PURE

MARKER = "rill_ir_few"  # a cut at which no thread waits, in front of such a branch or after its body
MOST_BLOCKS = 8  # basic blocks under the branch
MOST_BRANCHES = 8  # in a kernel
MOST_VALUES = 12  # values of each thread that cross a cut


@dataclass
class OneIndex:
    """A comparison that holds for one value of an index: for one thread of each row, for one row, or for one thread."""

    index: str  # the name of the index
    offset: int  # a constant that is added to the index
    number: int  # the value with which the sum is compared


def conjuncts(module, condition, holds=True):
    """Returns the comparisons (condition, value) that all have their value if `condition` has the value `holds`."""
    opcode = module.opcode(condition) if module.lib.IsAInstruction(condition) else None
    parts = module.operands(condition) if opcode is not None else []
    if opcode == llvm.SELECT and module.constant(parts[2 if holds else 1]) == (0 if holds else 1):
        parts = [parts[0], parts[1 if holds else 2]]
    elif opcode != (llvm.AND if holds else llvm.OR):
        return [(condition, holds)]
    return [found for part in parts for found in conjuncts(module, part, holds)]


def one_index(module, condition, holds, marker):
    """Returns the index for which a comparison has the value `holds`, or None for any other comparison."""
    m = module
    if not m.is_binary(condition, llvm.ICMP) or m.lib.GetICmpPredicate(condition) != (llvm.EQ if holds else llvm.NE):
        return None
    for value, number in (m.operands(condition), m.operands(condition)[::-1]):
        offset = m.constant(m.operands(value)[1]) if m.is_binary(value, llvm.ADD) else None
        index = value if offset is None else m.operands(value)[0]
        if m.lib.IsAInstruction(index) and (marker(index) or "").startswith("rill_ir_thread"):
            return OneIndex(marker(index), offset or 0, number)
    return None


class Marks:
    """Marks the cuts of one kernel, unless it contains warp functions, whose regions form groups (strips.py)."""

    def __init__(self, module, kernel, barriers, warp_functions):
        self.m, self.lib, self.kernel = module, module.lib, kernel
        self.barriers, self.warp_functions = barriers, warp_functions

    def marker(self, value):
        callee = self.m.callee(value) if self.lib.IsACallInst(value) else None
        return self.m.name(callee) if callee else None

    def add(self):
        m = self.m
        blocks = m.blocks(self.kernel)
        self.graph = {block: list(dict.fromkeys(m.successors(block))) for block in blocks}
        after = flow.postdominators(self.graph, [block for block in blocks if not self.graph[block]])
        places = [(block, after.get(block)) for block in blocks if self.is_branch(block, after.get(block))]
        if not 0 < len(places) <= MOST_BRANCHES:
            return
        self.instructions = {block: m.instructions(block) for block in blocks}
        calls = {block: [self.marker(i) for i in inside if self.lib.IsACallInst(i)] for block, inside in self.instructions.items()}
        self.stops = {block for block, names in calls.items() if self.barriers.intersection(names)}
        if any(self.warp_functions.intersection(names) for names in calls.values()):
            return
        kind = self.lib.FunctionType(m.void, llvm.array([]), 0, 0)
        builder = self.lib.CreateBuilderInContext(m.context)
        for block, end in places:
            if not self.is_fit(block, end):
                continue
            marker = m.function(MARKER) or self.lib.AddFunction(m.handle, MARKER.encode(), kind)
            self.lib.AddAttributeAtIndex(marker, llvm.FUNCTION_INDEX, m.attribute("noduplicate"))
            for place in (self.place(block), m.instructions(end)[0]):
                self.lib.PositionBuilderBefore(builder, place)
                self.lib.BuildCall2(builder, kind, marker, llvm.array([]), 0, b"")
        self.lib.DisposeBuilder(builder)

    def is_branch(self, block, after):
        """Returns whether a block ends with a branch to `after` and to blocks for one value of an index."""
        m, ways = self.m, self.graph[block]
        if len(ways) != 2 or m.opcode(m.terminator(block)) != llvm.BR or after not in ways or m.phis(after):
            return False
        condition, way = self.lib.GetCondition(m.terminator(block)), m.successors(block)[1] == after
        return any(one_index(m, part, holds, self.marker) for part, holds in conjuncts(m, condition, way))

    def place(self, block):
        """Returns the first of the computations in front of the branch that ends a block."""
        place = self.m.terminator(block)
        for value in reversed(self.instructions[block][:-1]):
            if self.m.opcode(value) not in PURE:
                break
            place = value
        return place

    def is_fit(self, block, after):
        """Returns whether the body of a branch has few basic blocks, stores to memory and does not synchronize, and whether
        threads synchronize before they reach the branch again."""
        body = flow.reachable(self.graph, self.graph[block], {after}) - {after}
        again = flow.reachable(self.graph, self.graph[block], self.stops)
        if len(body) > MOST_BLOCKS or body & {block, *self.stops} or block in again - self.stops:
            return False
        return any(self.m.opcode(i) == llvm.STORE for b in body for i in self.instructions[b])


def drop_unfit(finder):
    """Removes each mark that not all threads of its region pass, and each mark across which threads keep too many
    values."""
    marks = {b: call for b, call in finder.sync_points.items() if finder.marker(call) == MARKER}
    others = {b: call for b, call in finder.sync_points.items() if b not in marks}
    keeps_order = finder.loads_agree and not finder.private_memory()
    finder.sync_points = others
    _, owner = finder.find_cuts()
    dropped = []
    for block, call in marks.items():
        beyond = finder.successors[block][0]
        if keeps_order and is_passed(finder, owner, beyond) and len(crossing(finder, owner, beyond)) <= MOST_VALUES:
            finder.sync_points[block] = call
        else:
            dropped.append(block)
    for block in dropped:
        finder.lib.InstructionEraseFromParent(marks[block])
        finder.m.join(block, finder.builder)


def is_passed(finder, owner, block):
    """Returns whether all threads that reach a region pass a block in it."""
    at = owner[block]
    while at in owner and at != block:
        at = finder.after[0].get(at, flow.EXIT)
    return at == block


def crossing(finder, owner, block):
    """Returns the values that threads compute in a region in front of a block, and use after it."""
    beyond = flow.reachable(finder.successors, [block], finder.sync_points)
    inside = [b for b in owner if owner[b] == owner[block] and b not in beyond]
    values = (i for b in inside for i in finder.instructions[b] if i in finder.varying)
    return {i for i in values if any(finder.block_of.get(user) in beyond for user in finder.m.users(i))}
