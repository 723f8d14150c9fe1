"""Cuts what one thread of a block does into regions, each of which the threads of a block can execute one after another.

The function is one thread's program.  At some points, *sync_points*, threads wait for one another: barriers, and what the
lanes of a warp do uniform.  A *cut* is a block where a region begins; a region is what can be reached from its cut
without coming to another one.  Cuts are

- where the program begins, and what follows a sync;
- branches around sync_points that all threads take alike, and what they lead to: executed once for the block;
- blocks that are reached from two regions: so each block is in one region, and a region is entered at its cut only;
- blocks where all threads are together again after a divergent region.

A cut where there is no sync changes nothing: any order of the threads between two sync_points is a right one, and each
thread's own order stays.

A block is *uniform* if all threads that have not ended come to it at the same time: what decides about coming there is
the same for all.  A value is *uniform* if it is the same for all threads: it is kept once.  docs/reference/ARCHITECTURE.md has
the argument.
"""

import functools
from dataclasses import dataclass, field
from typing import Optional

from . import all_below, flow, llvm, tails, whole_warps
from .ir import DIVISIONS, PURE

FREE, BARRIER, WARP, WARP_ANY = range(4)  # what a cut waits for: the numbers of rill/device/host_regions.h

# What the header gives up to be replaced here.
BEGIN = "rill_ir_begin"
THREAD = ("rill_ir_thread_x", "rill_ir_thread_y", "rill_ir_thread_z", "rill_ir_thread")
BLOCK = tuple("rill_ir_%s_%s" % (what, axis) for what in ("block", "block_dim", "grid_dim") for axis in "xyz")
BLOCK += ("rill_ir_shared",)
# What rillcc itself puts before a volatile access to shared memory: the lanes of a warp that can come do it together.
IN_STEP = "rill_ir_in_step"
# The end of a round of a loop whose threads go innermost (interchange.py): nobody waits.
INTERCHANGE = "rill_ir_interchange"
# An attribute of versions of kernels in which the threads beyond a border do nothing (borders.py).
BORDERS, COUNT = b"rill-borders", "rill_ir_barrier_count"


@dataclass(frozen=True)
class SyncPoint:
    waits: int
    helper: str = ""  # of the header: the function that is called after synchronization
    mask: Optional[int] = None  # the argument that says which lanes


SYNC_POINTS = {
    "rill_ir_barrier": SyncPoint(BARRIER),
    "rill_ir_barrier_count": SyncPoint(BARRIER, "rill_sched_count"),
    "rill_ir_warp_sync": SyncPoint(WARP, "", 0),
    "rill_ir_ballot": SyncPoint(WARP, "rill_sched_ballot", 1),
    "rill_ir_active": SyncPoint(WARP_ANY, "rill_sched_active"),
    IN_STEP: SyncPoint(WARP_ANY),
    INTERCHANGE: SyncPoint(FREE),
    "rill_ir_shuffle32": SyncPoint(WARP, "rill_sched_shuffle32", 4),
    "rill_ir_shuffle64": SyncPoint(WARP, "rill_sched_shuffle64", 4),
    "rill_ir_reduce32": SyncPoint(WARP, "rill_sched_reduce32", 2),
    "rill_ir_reduce64": SyncPoint(WARP, "rill_sched_reduce64", 2),
}
SHUFFLES = ("rill_ir_shuffle32", "rill_ir_shuffle64")
COPIES = "llvm.memset.", "llvm.memcpy.", "llvm.memmove."  # the last argument says whether one is volatile
NO_ACCESSES = "llvm.lifetime.", "llvm.assume", "llvm.experimental.noalias."
MARKERS = set(THREAD) | set(BLOCK) | set(SYNC_POINTS) | {BEGIN}


class Refused(Exception):
    """The reason why a kernel cannot be cut."""


def require(condition, invariant):
    """Checks an invariant of rillcc, in every build: a kernel for which one does not hold runs on fibers."""
    if not condition:
        raise Refused("%s does not hold, which is a mistake of rillcc" % invariant)


@dataclass(eq=False)
class Region:
    number: int
    entry: int
    blocks: list
    uniform: bool
    sync: Optional[int] = None  # the call after which it begins
    waits: int = FREE
    exits: list = field(default_factory=list)  # regions, each once
    ends: bool = False  # a thread may end in it
    scalar: bool = False  # executed once for the block
    leaves: dict = field(default_factory=dict)  # of such a one: a block on a way out of it, and the region it leads to

    def is_static(self):
        """Returns whether it is known where all threads that leave it go on, uniform."""
        if self.scalar:
            return True
        return self.uniform and (not self.exits or (len(self.exits) == 1 and self.exits[0].uniform))


class Finder:
    def __init__(self, module, function, fill=False):
        self.m = module
        self.fill = fill  # whether what threads keep is filled with a pattern first
        self.lib = module.lib
        self.function = function
        self.has_borders = module.has_text_attribute(function, BORDERS)
        self.builder = self.lib.CreateBuilderInContext(module.context)
        self.setup_builder = self.lib.CreateBuilderInContext(module.context)
        self.sync_points = {}  # block that ends in one: the call
        self.prologue = set()  # values that are computed before the threads start
        self.varying = set()
        self.divergent = set()  # blocks that threads come to at different times
        # In the order of the function, as regions are numbered: that of a set depends on where LLVM has its memory.
        self.branches = []  # blocks that are a branch, executed once
        self.leaving = []  # branches after functions of a warp by which some threads leave for the last time

    def close(self):
        self.lib.DisposeBuilder(self.builder)
        self.lib.DisposeBuilder(self.setup_builder)

    def find(self):
        self.find_prologue()
        self.find_sync_points()
        self.read()
        self.take_whole_warps()
        self.choose_interchanges()
        tails.part(self)
        self.read()
        self.find_uniform()
        below = all_below.AllBelow(self, THREAD)
        below.part_counters()
        self.read()
        self.find_uniform()
        if not self.has_borders:  # where they do not hold
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
        self.separate()
        self.read()
        self.find_uniform()
        self.find_regions()
        free = [self.is_free(block) for block in self.sync_points]
        counts = [self.marker(call) == COUNT for call in self.sync_points.values()]
        self.inside = any(free)  # whether threads go innermost in a loop
        self.meets = not all(free) and not (self.has_borders and all(f or c for f, c in zip(free, counts)))  # or wait for each other

    # Values from which every thread starts

    def calls(self, name):
        marker = self.m.function(name)
        inside = self.function
        users = self.m.users(marker) if marker else []
        return [call for call in users if self.lib.GetBasicBlockParent(self.lib.GetInstructionParent(call)) == inside]

    def find_prologue(self):
        begins = self.calls(BEGIN)
        entry = self.lib.GetEntryBasicBlock(self.function)
        if len(begins) != 1 or self.lib.GetInstructionParent(begins[0]) != entry:
            raise Refused("its arguments are not read in one piece")
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
                    raise Refused("it takes memory of its stack as it goes")
        self.prologue = set(self.m.instructions(self.start))

    def find_sync_points(self):
        for block in self.m.blocks(self.function):
            for instruction in self.m.instructions(block):
                name = self.marker(instruction)
                if name in SYNC_POINTS:
                    self.own_arguments(instruction)
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
        """Removes the cuts of loops to which threads may not all come at the same time; all of them, if some threads end before
        others meet."""
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

    def is_free(self, block):
        """Returns whether a block ends in a cut where nobody waits."""
        call = self.sync_points.get(block)
        return call is not None and SYNC_POINTS[self.marker(call)].waits == FREE

    def own_arguments(self, call):
        """Makes values of indices that are exchanged: only values have places where others can look."""
        for i, argument in enumerate(self.m.arguments(call)):
            if self.lib.IsAInstruction(argument) and self.marker(argument) in THREAD:
                self.lib.PositionBuilderBefore(self.builder, call)
                self.lib.SetOperand(call, i, self.lib.BuildFreeze(self.builder, argument, b""))

    def marker(self, instruction):
        """Returns the name of the function of MARKERS that is called; else None."""
        if not self.lib.IsACallInst(instruction):
            return None
        callee = self.m.callee(instruction)
        name = self.m.name(callee) if callee else ""
        return name if name in MARKERS else None

    # The graph

    def read(self):
        self.body = self.m.successors(self.start)[0]
        blocks = [block for block in self.m.blocks(self.function) if block != self.start]
        self.successors = {block: list(dict.fromkeys(self.m.successors(block))) for block in blocks}
        for block in blocks:
            if self.m.opcode(self.m.terminator(block)) not in (llvm.BR, llvm.SWITCH, llvm.RET, llvm.UNREACHABLE):
                raise Refused("it has a jump that cannot be followed")
        self.order = list(reversed(flow.postorder(self.successors, self.body)))
        self.successors = {block: self.successors[block] for block in self.order}
        self.predecessors = flow.reverse(self.successors)
        self.instructions = {block: self.m.instructions(block) for block in self.order}
        self.block_of = {i: block for block, inside in self.instructions.items() for i in inside}
        self.sync_points = {block: call for block, call in self.sync_points.items() if block in self.successors}
        # Blocks from which threads may come to a sync.
        self.syncing = flow.reachable(self.predecessors, list(self.sync_points))

    def postdominators(self, graph):
        """Returns the postdominators of a graph in which some nodes loop forever; such a loop counts as left at its
        sync_points."""
        exits = [block for block, others in graph.items() if not others]
        leaving = flow.reachable(flow.reverse(graph), exits)
        exits += [block for block in graph if block not in leaving and block in self.sync_points]
        return flow.postdominators(graph, exits)

    # What is the same for all threads

    def is_outside(self, value):
        """Returns whether a value was there before the threads started, or is a constant."""
        return value not in self.block_of

    def is_pure_call(self, call):
        """Returns whether a call gives the same for the same, and does nothing else."""
        callee = self.m.callee(call)
        return bool(callee) and not self.marker(call) and self.m.uses_no_memory(callee)

    def is_argument_load(self, instruction):
        """Returns whether it reads the memory of the arguments, which nobody writes while the kernel runs."""
        if self.m.opcode(instruction) != llvm.LOAD or self.lib.GetVolatile(instruction):
            return False
        return self.base(self.lib.GetOperand(instruction, 0)) in self.argument_memory

    @functools.cached_property
    def loads_agree(self):
        """Whether all threads that read one place between two meetings read the same there: nothing in the kernel gives their
        accesses another order than meetings do, so that one of them stores there would be a race."""
        return all(self.leaves_order(i) for block in self.order for i in self.instructions[block])

    def leaves_order(self, instruction):
        """Whether an instruction is no atomic or volatile access, and no call in which one may be."""
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
        """Returns the block, its grid, the array of pointers to arguments, and what those point to; not the block's dynamic
        shared memory, whose place stands beside them."""
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
                return True  # else a race, or the same for all that come here between the same two meetings
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
                if self.names_some(block) and block not in parted:
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

    def names_some(self, block):
        """Returns whether a block ends in a function of the warp whose mask is data: lanes of other masks may be in another
        round of a loop, even if all come here equally often."""
        call = self.sync_points.get(block)
        mask = SYNC_POINTS[self.marker(call)].mask if call else None
        return mask is not None and not self.is_of_place(self.m.arguments(call)[mask])

    def is_of_place(self, value):
        """Returns whether a value is computed of the thread's index and of uniform values alone."""
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
        """Where threads that are divergent leave what leads to sync_points: they come there one by one."""
        return [s for b in self.divergent & self.syncing for s in self.successors[b] if s not in self.syncing]

    def part(self, block, syncing):
        """Threads part here: they are divergent until all must come uniform again."""
        overall, sync = self.after
        if block not in self.syncing:
            end = overall.get(block, flow.EXIT)
            self.divergent |= flow.reachable(self.successors, self.successors[block], {end}) - {end}
            return
        if len(syncing[block]) > 1:
            end = sync.get(block, flow.EXIT)
            between = flow.reachable(syncing, syncing[block], {end}) - {end}
            if any(self.is_barrier(other) for other in between):
                # Some may wait here for others that do not come.
                between = flow.reachable(self.successors, syncing[block])
            self.divergent |= between
        leave = [s for s in self.successors[block] if s not in self.syncing]
        self.divergent |= flow.reachable(self.successors, leave)

    def private_memory(self):
        """Returns the variables on the stack, of which each thread has its own, and what points into them."""
        found = {}
        for value in self.m.instructions(self.start):
            if self.lib.IsAAllocaInst(value):
                found[value] = True
            elif any(operand in found for operand in self.m.operands(value)):
                if self.m.opcode(value) not in PURE:
                    raise Refused("something is stored before the threads start")
                found[value] = True
        return found

    def is_barrier(self, block):
        """Returns whether a block ends where the whole block of threads waits."""
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
        """Returns the branches where some threads leave who were all there after a function of the warp: what comes between
        is a region in which none ends (lanes.py)."""
        _, owner = self.find_cuts()
        after = {self.successors[block][0] for block in self.sync_points if not self.is_barrier(block) and not self.is_free(block)}
        found = [b for b in self.order if owner.get(b) in after and b in self.syncing and b not in self.divergent]
        found = [b for b in found if b not in self.branches and b not in self.sync_points]
        return [b for b in found if any(other not in self.syncing for other in self.successors[b])]

    # Regions

    def find_cuts(self):
        """Finds the blocks where regions begin, and the cut of each block.  Invariant: a region whose cut is divergent has
        divergent blocks alone, so each way into a block that all threads reach together is from a uniform region or from
        a divergent block."""
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

    def separate(self):
        """Sees to it that copies for the phis of a cut have a place: from each region one way leads to each cut, and
        none from a branch that is executed once."""
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
        """Puts a block between some blocks and a cut."""
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
        """Returns whether executing it once is as good as executing it for each thread."""
        if self.marker(instruction):
            return not any(argument in self.varying for argument in self.m.arguments(instruction))
        return instruction not in self.varying
