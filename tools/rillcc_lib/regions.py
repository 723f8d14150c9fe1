"""Cuts the program of one thread into regions that the threads of a block can execute one after another.

At a *synchronization point* threads wait for one another: a barrier or a warp function. A *cut* is a basic block at
which a region begins. A region consists of the basic blocks that can be reached from its cut without passing another
cut. These are cuts:

- the start of the program, and the code after a synchronization point;
- branches that lead to synchronization points and that all threads take in the same direction, and their successors:
  such a branch is executed once for the block of threads;
- basic blocks that can be reached from two regions, so that each basic block is in one region, which is entered only at
  its cut;
- basic blocks that all threads reach together again after a divergent region.

A cut without a synchronization point changes nothing: between two synchronization points any order of the threads is
valid, and each thread's own order is preserved.

A basic block is *uniform* if all threads that have not ended reach it together, because the conditions that lead to it
have the same value for all threads; otherwise it is *divergent*. A value is *uniform* if it is the same for all
threads, and is then kept once. docs/reference/ARCHITECTURE.md explains why the results do not change.
"""

import functools
from dataclasses import dataclass, field
from typing import Optional

from . import all_below, few, flow, llvm, tails, vector_calls, whole_warps
from .ir import DIVISIONS, PURE

FREE, BARRIER, WARP, WARP_ANY = range(4)  # what a cut waits for; the numbers are in rill/device/host_regions.h

# Functions of the header whose calls rillcc replaces.
BEGIN = "rill_ir_begin"
THREAD = ("rill_ir_thread_x", "rill_ir_thread_y", "rill_ir_thread_z", "rill_ir_thread")
BLOCK = tuple("rill_ir_%s_%s" % (what, axis) for what in ("block", "block_dim", "grid_dim") for axis in "xyz")
BLOCK += ("rill_ir_shared",)
# rillcc puts this marker before a volatile access to shared memory. The lanes of a warp that can reach it execute the
# access together.
LOCKSTEP = "rill_ir_in_step"
# The end of an iteration of an interchanged loop (interchange.py), where no thread waits.
INTERCHANGE = "rill_ir_interchange"
# BORDERS is an attribute of a kernel's version in which threads beyond a border do nothing (borders.py). COUNT is a
# barrier that counts threads.
BORDERS, COUNT = b"rill-borders", "rill_ir_barrier_count"


@dataclass(frozen=True)
class SyncPoint:
    waits: int
    helper: str = ""  # the function of the header that performs the exchange after synchronization
    mask: Optional[int] = None  # the number of the argument that names the lanes


SYNC_POINTS = {
    "rill_ir_barrier": SyncPoint(BARRIER),
    "rill_ir_barrier_count": SyncPoint(BARRIER, "rill_sched_count"),
    "rill_ir_warp_sync": SyncPoint(WARP, "", 0),
    "rill_ir_ballot": SyncPoint(WARP, "rill_sched_ballot", 1),
    "rill_ir_active": SyncPoint(WARP_ANY, "rill_sched_active"),
    LOCKSTEP: SyncPoint(WARP_ANY),
    INTERCHANGE: SyncPoint(FREE),
    few.MARKER: SyncPoint(FREE),
    "rill_ir_shuffle32": SyncPoint(WARP, "rill_sched_shuffle32", 4),
    "rill_ir_shuffle64": SyncPoint(WARP, "rill_sched_shuffle64", 4),
    "rill_ir_reduce32": SyncPoint(WARP, "rill_sched_reduce32", 2),
    "rill_ir_reduce64": SyncPoint(WARP, "rill_sched_reduce64", 2),
}
SHUFFLES = ("rill_ir_shuffle32", "rill_ir_shuffle64")
COPIES = "llvm.memset.", "llvm.memcpy.", "llvm.memmove."  # the last argument is true for a volatile call
NO_ACCESSES = "llvm.lifetime.", "llvm.assume", "llvm.experimental.noalias."
MARKERS = set(THREAD) | set(BLOCK) | set(SYNC_POINTS) | {BEGIN}


class Refused(Exception):
    """The reason why a kernel cannot be cut."""


def require(condition, invariant):
    """Checks an invariant of rillcc, in every build; a kernel that violates it runs on fibers."""
    if not condition:
        raise Refused("an invariant of rillcc does not hold (%s), which is a bug in rillcc" % invariant)


@dataclass(eq=False)
class Region:
    number: int
    entry: int
    blocks: list
    uniform: bool
    sync: Optional[int] = None  # the call after which the region begins
    waits: int = FREE
    exits: list = field(default_factory=list)  # the next regions, each once
    ends: bool = False  # whether a thread may end in the region
    scalar: bool = False  # whether the region is executed once for the block
    leaves: dict = field(default_factory=dict)  # for a scalar region, maps a block on an exit to the region to which the exit leads

    def is_static(self):
        """Returns whether all threads that leave the region go to the same region, which is uniform."""
        if self.scalar:
            return True
        return self.uniform and (not self.exits or (len(self.exits) == 1 and self.exits[0].uniform))


class Finder:
    def __init__(self, module, function, fill=False):
        self.m = module
        self.fill = fill  # whether memory for values is first filled with a pattern
        self.lib = module.lib
        self.function = function
        self.has_borders = module.has_text_attribute(function, BORDERS)
        self.builder = self.lib.CreateBuilderInContext(module.context)
        self.setup_builder = self.lib.CreateBuilderInContext(module.context)
        self.sync_points = {}  # block that ends in a synchronization point: the call
        self.prologue = set()  # values that are computed before the threads start
        self.varying = set()
        self.divergent = set()  # blocks that threads reach at different times
        # These are lists because regions are numbered in this order: the order of a set would depend on the addresses
        # of LLVM's objects.
        self.branches = []  # blocks that consist of a branch that is executed once
        self.leaving = []  # branches after warp functions at which some threads leave the synchronizing code

    def close(self):
        self.lib.DisposeBuilder(self.builder)
        self.lib.DisposeBuilder(self.setup_builder)

    def find(self):
        self.find_prologue()
        self.find_sync_points()
        self.read()
        self.take_whole_warps()
        self.choose_interchanges()
        tails.duplicate_tails(self)
        self.read()
        self.find_uniform()
        below = all_below.AllBelow(self, THREAD)
        below.split_counters()
        self.read()
        self.find_uniform()
        if not self.has_borders:  # in a version with borders these conditions do not hold
            below.note()
        self.read()
        self.find_uniform()
        for block in [b for b in self.order if self.is_hoisted(b)]:
            self.hoist(block)
        self.read()
        self.find_uniform()
        for block in self.find_leaving():
            done = [i for i in self.instructions[block][:-1] if self.m.opcode(i) not in PURE]
            if done:
                self.m.split(block, done[-1], self.builder)
            self.leaving.append(block)
        self.read()
        self.find_uniform()
        few.drop_unfit(self)
        self.read()
        self.find_uniform()
        self.split_edges()
        self.read()
        self.find_uniform()
        self.find_regions()
        free = [self.is_free(block) for block in self.sync_points]
        counts = [self.marker(call) == COUNT for call in self.sync_points.values()]
        self.inside = INTERCHANGE in map(self.marker, self.sync_points.values())  # whether loops are interchanged
        self.has_gathers = self.gathers(self.sync_points)
        # Whether threads wait for each other. Barriers that only count the threads inside a border are ignored.
        self.synchronizes = not all(free) and not (self.has_borders and all(f or c for f, c in zip(free, counts)))

    # Values with which every thread starts

    def calls(self, name):
        marker = self.m.function(name)
        inside = self.function
        users = self.m.users(marker) if marker else []
        return [call for call in users if self.lib.GetBasicBlockParent(self.lib.GetInstructionParent(call)) == inside]

    def find_prologue(self):
        begins = self.calls(BEGIN)
        entry = self.lib.GetEntryBasicBlock(self.function)
        if len(begins) != 1 or self.lib.GetInstructionParent(begins[0]) != entry:
            raise Refused("its threads do not start in its first basic block")
        self.start = self.m.split(entry, begins[0], self.builder)
        values = self.m.arguments(begins[0])
        for name, value in zip(BLOCK, values):
            for call in self.calls(name):
                self.lib.ReplaceAllUsesWith(call, value)
                self.lib.InstructionEraseFromParent(call)
        self.size, self.grid = values[3:6], set(values[6:9])
        self.dynamic_shared = values[9]
        self.lib.InstructionEraseFromParent(begins[0])
        for block in self.m.blocks(self.function):
            for instruction in self.m.instructions(block):
                if self.lib.IsAAllocaInst(instruction) and block != self.start:
                    raise Refused("it allocates memory on its stack at run time")
        self.prologue = set(self.m.instructions(self.start))

    def find_sync_points(self):
        for block in self.m.blocks(self.function):
            for instruction in self.m.instructions(block):
                name = self.marker(instruction)
                if name in SYNC_POINTS:
                    self.copy_index_arguments(instruction)
                    self.sync_points[self.m.split(block, instruction, self.builder)] = instruction

    def take_whole_warps(self):
        """Makes synchronization independent of conditions on warps."""
        if not whole_warps.is_for(self.m, self.function):
            return
        masks = {name: point.mask for name, point in SYNC_POINTS.items() if point.waits in (WARP, WARP_ANY)}
        self.find_uniform()
        while whole_warps.WholeWarps(self, masks).take():
            self.read()
            self.find_uniform()

    def choose_interchanges(self):
        """Removes the cuts of loops that threads may not all reach at the same time; removes all of them if some threads end
        before others synchronize."""
        bad = [block for block in self.sync_points if self.is_free(block)]
        if not bad:
            return
        while bad:
            self.find_uniform()
            places = [block for block in self.sync_points if self.is_free(block)]
            parting = [b for b in self.syncing if self.instructions[b][-1] in self.varying]
            leaving = [b for b in parting if any(other not in self.syncing for other in self.successors[b])]
            ahead = flow.reachable(self.successors, leaving)
            bad = [b for b in places if b in self.divergent or b in ahead] or (places if leaving else [])
            for block in bad:
                self.lib.InstructionEraseFromParent(self.sync_points.pop(block))
            self.read()

    def has_warp_functions(self):
        return any(SYNC_POINTS[self.marker(call)].waits in (WARP, WARP_ANY) for call in self.sync_points.values())

    def is_free(self, block):
        """Returns whether a block ends in a cut at which no thread waits."""
        call = self.sync_points.get(block)
        return call is not None and SYNC_POINTS[self.marker(call)].waits == FREE

    def gathers(self, blocks):
        """Returns whether one of these blocks ends an iteration of an interchanged loop that gathers."""
        calls = [self.sync_points[block] for block in blocks if block in self.sync_points]
        return any(self.lib.GetMetadata(call, self.m.gathers_kind) for call in calls)

    def copy_index_arguments(self, call):
        """Replaces exchanged indices by values, because only values have slots that other threads can read."""
        for i, argument in enumerate(self.m.arguments(call)):
            if self.lib.IsAInstruction(argument) and self.marker(argument) in THREAD:
                self.lib.PositionBuilderBefore(self.builder, call)
                self.lib.SetOperand(call, i, self.lib.BuildFreeze(self.builder, argument, b""))

    def marker(self, instruction):
        """Returns the name of the called function if it is one of MARKERS, or None."""
        if not self.lib.IsACallInst(instruction):
            return None
        callee = self.m.callee(instruction)
        name = self.m.name(callee) if callee else ""
        return name if name in MARKERS else None

    # The control-flow graph

    def read(self):
        self.body = self.m.successors(self.start)[0]
        blocks = [block for block in self.m.blocks(self.function) if block != self.start]
        self.successors = {block: list(dict.fromkeys(self.m.successors(block))) for block in blocks}
        for block in blocks:
            if self.m.opcode(self.m.terminator(block)) not in (llvm.BR, llvm.SWITCH, llvm.RET, llvm.UNREACHABLE):
                raise Refused("it has a jump that rillcc does not support, such as a computed goto")
        self.order = list(reversed(flow.postorder(self.successors, self.body)))
        self.successors = {block: self.successors[block] for block in self.order}
        self.predecessors = flow.reverse(self.successors)
        self.instructions = {block: self.m.instructions(block) for block in self.order}
        self.block_of = {i: block for block, inside in self.instructions.items() for i in inside}
        self.sync_points = {block: call for block, call in self.sync_points.items() if block in self.successors}
        # Blocks from which threads may reach a synchronization point.
        self.syncing = flow.reachable(self.predecessors, list(self.sync_points))

    def postdominators(self, graph):
        """Returns the postdominators of a graph that may contain infinite loops. Such a loop is treated as if it were
        left at its synchronization points."""
        exits = [block for block, others in graph.items() if not others]
        leaving = flow.reachable(flow.reverse(graph), exits)
        exits += [block for block in graph if block not in leaving and block in self.sync_points]
        return flow.postdominators(graph, exits)

    # Uniform values

    def is_outside(self, value):
        """Returns whether a value was computed before the threads started, or is a constant."""
        return value not in self.block_of

    def is_pure_call(self, call):
        """Returns whether a call always returns the same result for the same arguments and has no side effects."""
        callee = self.m.callee(call)
        return bool(callee) and not self.marker(call) and self.m.uses_no_memory(callee)

    def is_computation(self, value):
        """Returns whether a value is a call that may also be executed for threads that skip it."""
        callee = self.m.callee(value) if self.lib.IsACallInst(value) else None
        name = self.m.name(callee) if callee else ""
        return (name.startswith("llvm.") or name in vector_calls.NAMES) and self.is_pure_call(value)

    def is_argument_load(self, instruction):
        """Returns whether an instruction loads from the memory of the arguments, which is constant while the kernel
        runs."""
        if self.m.opcode(instruction) != llvm.LOAD or self.lib.GetVolatile(instruction):
            return False
        return self.base(self.lib.GetOperand(instruction, 0)) in self.argument_memory

    @functools.cached_property
    def loads_agree(self):
        """Whether all threads that load from one address between two synchronization points read the same value. This
        holds if only synchronization points order the accesses of threads: a store by one of these threads would then
        be a race."""
        return all(self.leaves_order(i) for block in self.order for i in self.instructions[block])

    def leaves_order(self, instruction):
        """Returns whether an instruction is neither an atomic or volatile access nor a call that may contain one."""
        opcode = self.m.opcode(instruction)
        if opcode in (llvm.LOAD, llvm.STORE):
            return not self.lib.GetVolatile(instruction) and self.lib.GetOrdering(instruction) == llvm.NOT_ATOMIC
        if opcode != llvm.CALL or self.marker(instruction) or self.is_pure_call(instruction):
            return opcode not in (llvm.FENCE, llvm.ATOMIC_CMPXCHG, llvm.ATOMIC_RMW, llvm.INVOKE, llvm.CALL_BR)
        name = self.m.name(self.m.callee(instruction)) if self.m.callee(instruction) else ""
        if name.startswith(COPIES):
            return self.m.constant(self.m.arguments(instruction)[3]) == 0
        return name.startswith(NO_ACCESSES)

    def base(self, pointer):
        while self.lib.IsAInstruction(pointer) and self.m.opcode(pointer) == llvm.GEP:
            pointer = self.lib.GetOperand(pointer, 0)
        return pointer

    def find_argument_memory(self):
        """Returns the memory of the block, its grid, the array of pointers to arguments, and the arguments themselves.
        The block's dynamic shared memory is not included, although its address is stored with them."""
        depths = {self.lib.GetParam(self.function, 0): 0}
        for value in self.m.instructions(self.start):
            if value == self.dynamic_shared:
                continue
            if self.m.opcode(value) == llvm.LOAD and self.lib.TypeOf(value) == self.m.pointer:
                depth = depths.get(self.base(self.lib.GetOperand(value, 0)))
                if depth is not None and depth < 3:
                    depths[value] = depth + 1
        return set(depths)

    def is_varying(self, instruction, block):
        opcode = self.m.opcode(instruction)
        if opcode == llvm.PHI:
            ways = self.m.incoming(instruction)
            if block in self.divergent or any(other in self.divergent for _, other in ways):
                return True
            return any(value in self.varying for value, _ in ways)
        if block in self.sync_points and self.sync_points[block] == instruction:
            return self.marker(instruction) != "rill_ir_barrier_count" or block in self.divergent
        if opcode == llvm.CALL:
            if not self.is_pure_call(instruction):
                return True
        elif opcode == llvm.LOAD:
            if not self.is_argument_load(instruction) and (block in self.divergent or not self.loads_agree):
                # Otherwise all threads that get here between the same two synchronization points load the same value,
                # or there is a race.
                return True
        elif opcode not in PURE and opcode not in DIVISIONS and opcode not in (llvm.BR, llvm.SWITCH):
            return opcode not in (llvm.RET, llvm.UNREACHABLE)
        return any(operand in self.varying for operand in self.m.operands(instruction))

    def find_uniform(self):
        self.argument_memory = self.find_argument_memory()
        self.varying, self.divergent = set(self.private_memory()), set()
        parted = set()
        syncing = {block: [s for s in self.successors[block] if s in self.syncing] for block in self.syncing}
        self.after = (self.postdominators(self.successors), self.postdominators(syncing))
        changed = True
        while changed:
            changed = False
            for block in self.order:
                for instruction in self.instructions[block]:
                    if instruction not in self.varying and self.is_varying(instruction, block):
                        self.varying.add(instruction)
                        changed = True
                if self.has_varying_mask(block) and block not in parted:
                    parted.add(block)
                    barriers = [b for b in self.sync_points if self.is_barrier(b)]
                    self.divergent |= flow.reachable(self.successors, self.successors[block], barriers)
                    changed = True
                end = self.instructions[block][-1]
                if end in self.varying and len(self.successors[block]) > 1 and block not in parted:
                    parted.add(block)
                    self.part(block, syncing)
                    changed = True
            more = {b for b in flow.reachable(self.successors, self.ways_out()) if b not in self.syncing} - self.divergent
            if more:
                self.divergent |= more
                changed = True

    def has_varying_mask(self, block):
        """Returns whether a block ends in a warp function whose mask depends on data. Lanes of other masks may be in
        another iteration of a loop, even if all of them get here equally often."""
        call = self.sync_points.get(block)
        mask = SYNC_POINTS[self.marker(call)].mask if call else None
        return mask is not None and not self.depends_only_on_index(self.m.arguments(call)[mask])

    def depends_only_on_index(self, value):
        """Returns whether a value is computed only from the thread's index and uniform values."""
        seen, work = set(), [value]
        while work:
            value = work.pop()
            if value in seen or value not in self.varying or self.marker(value) in THREAD:
                continue
            if self.m.opcode(value) not in PURE:
                return False
            seen.add(value)
            work += self.m.operands(value)
        return True

    def ways_out(self):
        """Returns the blocks at which divergent threads leave the code that leads to synchronization points. They reach
        these blocks one by one."""
        return [s for b in self.divergent & self.syncing for s in self.successors[b] if s not in self.syncing]

    def part(self, block, syncing):
        """Marks the blocks after a branch that splits the threads as divergent, up to the block that all threads must
        reach together."""
        overall, sync = self.after
        if block not in self.syncing:
            end = overall.get(block, flow.EXIT)
            self.divergent |= flow.reachable(self.successors, self.successors[block], {end}) - {end}
            return
        if len(syncing[block]) > 1:
            end = sync.get(block, flow.EXIT)
            between = flow.reachable(syncing, syncing[block], {end}) - {end}
            if any(self.is_barrier(other) for other in between):
                # Some threads may wait here for others that do not arrive.
                between = flow.reachable(self.successors, syncing[block])
            self.divergent |= between
        leave = [s for s in self.successors[block] if s not in self.syncing]
        self.divergent |= flow.reachable(self.successors, leave)

    def private_memory(self):
        """Returns the variables on the stack, which each thread has for itself, and the pointers into them."""
        found = {}
        for value in self.m.instructions(self.start):
            if self.lib.IsAAllocaInst(value):
                found[value] = True
            elif any(operand in found for operand in self.m.operands(value)):
                if self.m.opcode(value) not in PURE:
                    raise Refused("it writes memory before its threads start")
                found[value] = True
        return found

    def is_barrier(self, block):
        """Returns whether a block ends in a barrier."""
        call = self.sync_points.get(block)
        return call is not None and SYNC_POINTS[self.marker(call)].waits == BARRIER

    # Branches that are executed once

    def is_hoisted(self, block):
        if len(self.successors[block]) < 2 or block in self.divergent or block not in self.syncing:
            return False
        if self.instructions[block][-1] in self.varying:
            return False
        end = self.after[0].get(block, flow.EXIT)
        inside = flow.reachable(self.successors, self.successors[block], {end}) - {end}
        return any(other in self.sync_points for other in inside)

    def hoist(self, block):
        inside = self.instructions[block]
        if len(inside) > 1:
            self.m.split(block, inside[-2], self.builder)
        self.branches.append(block)

    def find_leaving(self):
        """Returns the branches after a warp function at which some threads leave the synchronizing code, although all
        threads were there before. The code in front of such a branch becomes a region in which no thread ends
        (lanes.py)."""
        _, owner = self.find_cuts()
        after = {self.successors[block][0] for block in self.sync_points if not self.is_barrier(block) and not self.is_free(block)}
        found = [b for b in self.order if owner.get(b) in after and b in self.syncing and b not in self.divergent]
        found = [b for b in found if b not in self.branches and b not in self.sync_points]
        return [b for b in found if any(other not in self.syncing for other in self.successors[b])]

    # Regions

    def find_cuts(self):
        """Finds the cuts, and the cut of each block. Invariant: a region with a divergent cut contains only divergent
        blocks. Therefore each edge to a block that all threads reach together comes from a uniform region or from a
        divergent block."""
        cuts = [self.body]
        cuts += [self.successors[block][0] for block in self.sync_points]
        cuts += [*self.branches, *self.leaving]
        cuts += [s for block in self.branches for s in self.successors[block]]
        cuts = list(dict.fromkeys(cuts))
        while True:
            known, owner, more = set(cuts), {}, []
            for cut in cuts:
                work = [cut]
                while work:
                    block = work.pop()
                    together = cut in self.divergent and block not in self.divergent
                    if owner.setdefault(block, cut) != cut or together:
                        more.append(block)
                    elif block in self.sync_points or block in self.branches:
                        continue
                    else:
                        work += [s for s in self.successors[block] if s not in known and owner.get(s) != cut]
            if not more:
                return cuts, owner
            cuts += list(dict.fromkeys(more))

    def split_edges(self):
        """Inserts blocks for the copies to the phis of cuts. Afterwards each region has only one edge to a cut with
        phis, from a block that has no other successor and is not a branch that is executed once."""
        cuts, owner = self.find_cuts()
        for cut in cuts:
            phis = self.m.phis(cut)
            if not phis:
                continue
            ways = {}
            for block in self.predecessors[cut]:
                ways.setdefault(owner[block], []).append(block)
            for region, blocks in ways.items():
                if region in self.branches or len(blocks) > 1 or len(self.successors[blocks[0]]) > 1:
                    self.insert(cut, blocks)

    def insert(self, cut, blocks):
        """Inserts a block between some blocks and a cut."""
        middle = self.m.new_block(None, "", before=cut)
        lib, builder = self.lib, self.builder
        for phi in self.m.phis(cut):
            ways = [(value, block) for value, block in self.m.incoming(phi) if block in blocks]
            if len({value for value, _ in ways}) == 1:
                joined = ways[0][0]
            else:
                lib.PositionBuilderAtEnd(builder, middle)
                joined = lib.BuildPhi(builder, lib.TypeOf(phi), b"")
                lib.AddIncoming(joined, llvm.array([v for v, _ in ways]), llvm.array([b for _, b in ways]), len(ways))
            others = [(value, block) for value, block in self.m.incoming(phi) if block not in blocks]
            lib.PositionBuilderBefore(builder, phi)
            new = lib.BuildPhi(builder, lib.TypeOf(phi), b"")
            others = [(new if value == phi else value, block) for value, block in others + [(joined, middle)]]
            lib.AddIncoming(new, llvm.array([v for v, _ in others]), llvm.array([b for _, b in others]), len(others))
            lib.ReplaceAllUsesWith(phi, new)
            lib.InstructionEraseFromParent(phi)
        for block in blocks:
            self.m.redirect(block, cut, middle)
        lib.PositionBuilderAtEnd(builder, middle)
        lib.BuildBr(builder, cut)

    def find_regions(self):
        cuts, owner = self.find_cuts()
        self.owner = {}
        self.regions = []
        for cut in cuts:
            region = Region(len(self.regions), cut, [b for b in self.order if owner.get(b) == cut], cut not in self.divergent)
            self.regions.append(region)
            for block in region.blocks:
                self.owner[block] = region
        for block, call in self.sync_points.items():
            if self.is_free(block):
                continue
            region = self.owner[self.successors[block][0]]
            region.sync = call
            region.waits = SYNC_POINTS[self.marker(call)].waits
        known = set(cuts)
        for region in self.regions:
            for block in region.blocks:
                leads = [s for s in self.successors[block] if s in known]
                region.exits += [self.owner[s] for s in leads if self.owner[s] not in region.exits]
                region.ends |= self.m.opcode(self.instructions[block][-1]) == llvm.RET
            region.scalar = region.uniform and all(self.is_scalar(i) for b in region.blocks for i in self.instructions[b])

    def is_scalar(self, instruction):
        """Returns whether executing an instruction once has the same effect as executing it for each thread."""
        if self.marker(instruction):
            return not any(argument in self.varying for argument in self.m.arguments(instruction))
        return instruction not in self.varying
