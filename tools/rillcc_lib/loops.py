"""Emits a region as a loop over the threads of a block, row by row."""

import functools
from dataclasses import dataclass, field
from typing import Optional

from . import few, llvm, short_regions
from .all_below import SWAPPED
from .interchange import SCATTERS
from .ir import PURE
from .regions import SYNC_POINTS, THREAD
from .row_loops import ThreadLoop
from .slots import MOST_THREADS, Slots

INVERTED = {llvm.ULT: llvm.UGE, llvm.UGE: llvm.ULT, llvm.SLT: llvm.SGE, llvm.SGE: llvm.SLT, llvm.NE: llvm.EQ, llvm.EQ: llvm.NE}
INVERTED.update({llvm.UGT: llvm.ULE, llvm.ULE: llvm.UGT, llvm.SGT: llvm.SLE, llvm.SLE: llvm.SGT})


@dataclass
class Rows:
    """The loops over the threads of a block: the block in front of the rows, and the header of the loop over one row."""

    rows: int
    loop: int


@dataclass
class Few:
    """The threads that do something in a region in which all other threads do nothing."""

    index: str  # the name of the index that they compare
    predicate: int  # of the comparison
    limit: int  # compared with the index
    every: Optional[tuple] = None  # (index, mask, number) of `index & mask == number`, or None
    offset: int = 0  # added to the index before it is compared
    way: Optional[int] = None  # the value of the branch condition for these threads; None if it has this value only for some of them
    others: list = field(default_factory=list)  # uniform values that the other threads would compute

    def is_one(self):
        """Returns whether the index must have one value: it may be the index of a thread or of a row."""
        return self.predicate == llvm.EQ and not self.every


class Loops(Slots):
    # These belong to the function that is being written (threads.py).
    short_regions: short_regions.ShortRegions
    short: dict  # maps the metadata of a short region's loop to that of an unrolled one, and whether a block executes it once
    are_short: set  # the short regions

    # The loop over the threads

    def open_region(self, region):
        """Makes the blocks in front of a region: its head, and the thread counter."""
        m = self.m
        region.head = self.new_block("region%d" % region.number)
        region.tail = self.new_block("region%d.tail" % region.number)
        region.rows, region.few, region.lane_reads = None, None, []
        if region.scalar:
            self.at_end(region.head)
            region.import_end = self.branch(region.entry)
            return
        rows, row, loop = [self.new_block("region%d.%s" % (region.number, name)) for name in ("rows", "row", "loop")]
        region.latch = self.new_block("region%d.latch" % region.number)
        size_x, size_y, _ = self.c.size
        zero = m.number(0)
        self.at_end(region.head)
        if self.needs_next and region.uniform:
            self.call("rill_sched_first", self.next, self.threads, *self.state)
        self.branch(rows)
        self.at_end(rows)
        if self.needs_next:
            first, end = self.load(m.i32, self.state[0]), self.load(m.i32, self.state[1])
            starts = self.place_of(first)
        else:
            end, starts = self.threads, [zero] * 4
        some = region.few = self.find_few(region)
        region.rows = Rows(rows, loop)
        most = self.limit(region, some) if some else None
        self.branch(row)
        self.at_end(row)
        t, x, y, z = [self.build("Phi", m.i32) for _ in range(4)]
        left, room = self.build("Sub", end, t), self.build("Sub", size_x, x)
        count = self.build("Select", self.build("ICmp", llvm.ULT, left, room), left, room)
        stop = self.nowrap(self.build("Add", x, count))
        base = self.nowrap(self.build("Sub", t, x))
        wide_base = self.build("ZExt", base, m.i64)
        row_end = self.new_block("region%d.row_end" % region.number)
        first_x, step = x, 1
        if some:
            first_x, step = self.first(some, x, t)
            if some.index in THREAD[1:3]:
                is_inside = self.build("ICmp", llvm.EQ, (x, y, z)[THREAD.index(some.index)], most)
            elif some.is_one():
                away = self.build("Sub", most, x if some.index == "rill_ir_thread_x" else t)
                is_inside = self.build("ICmp", llvm.ULT, away, count)
                first_x = self.build("Add", x, away)
                stop = self.build("Add", first_x, m.number(1))
            else:
                if most is not None and some.index == "rill_ir_thread":
                    reached = self.build("Sub", self.build("Select", self.build("ICmp", llvm.ULT, most, t), t, most), t)
                    most = self.build("Add", x, reached)
                if most is not None:
                    stop = self.build("Select", self.build("ICmp", llvm.ULT, stop, most), stop, most)
                is_inside = self.build("ICmp", llvm.ULT, first_x, stop)
            self.branch_if(is_inside, loop, row_end)
            if some.way is not None:
                self.lib.SetOperand(m.terminator(region.entry), 0, m.number(some.way, m.i1))
        else:
            self.branch(loop)
        self.at_end(loop)
        own_x = self.build("Phi", m.i32)
        own_t = self.nowrap(self.build("Add", base, own_x))
        region.wide_index = self.nowrap(self.build("Add", wide_base, self.build("ZExt", own_x, m.i64)))
        region.index = [own_x, y, z, own_t]
        region.import_end = self.branch(region.entry)
        self.at_end(region.latch)
        following = self.nowrap(self.build("Add", own_x, m.number(step)))
        again = self.branch_if(self.build("ICmp", llvm.ULT, following, stop), loop, row_end)
        self.mark_loop(again, some)
        if self.short_regions.is_short(region, some):
            once = region not in self.short_regions.repeated
            self.short[self.lib.GetMetadata(again, self.loop_kind)] = self.unrolled(), once
            self.are_short.add(region)
        self.at_end(row_end)
        next_t = self.nowrap(self.build("Add", t, count))
        next_y = self.nowrap(self.build("Add", y, m.number(1)))
        wraps = self.build("ICmp", llvm.EQ, next_y, size_y)
        next_z = self.nowrap(self.build("Add", z, self.build("ZExt", wraps, m.i32)))
        next_y = self.build("Select", wraps, zero, next_y)
        after = region.tail
        if self.needs_next and region.uniform:
            after = self.new_block("region%d.more" % region.number)
        self.branch_if(self.build("ICmp", llvm.ULT, next_t, end), row, after)
        for phi, start, following_value in zip((t, x, y, z), starts, (next_t, zero, next_y, next_z)):
            self.lib.AddIncoming(phi, llvm.array([start, following_value]), llvm.array([rows, row_end]), 2)
        self.lib.AddIncoming(own_x, llvm.array([first_x, following]), llvm.array([row, region.latch]), 2)
        if step == 1 and not (some and some.is_one()):
            self.thread_loops.append(ThreadLoop(loop, region.latch, own_x))
        if after != region.tail:
            self.at_end(after)
            more = self.call("rill_sched_more", self.next, self.threads, *self.state)
            self.branch_if(self.build("ICmp", llvm.NE, more, self.m.number(0)), rows, region.tail)

    def place_of(self, first):
        """Returns the number and the indices of a thread: t, x, y and z."""
        size_x, size_y, _ = self.c.size
        line = self.build("UDiv", first, size_x)
        return [first, self.build("URem", first, size_x), self.build("URem", line, size_y), self.build("UDiv", line, size_y)]

    def find_few(self, region):
        """Returns which threads do something in a region that consists only of an `if` with one of these conditions, or a
        conjunction that contains one: `threadIdx.x < e` or `threadIdx.x == e` with a uniform e, or `threadIdx.x % 32 == e`
        with constants. Returns None for any other region."""
        c, lib = self.c, self.lib
        entry, end = region.entry, self.m.terminator(region.entry)
        if not region.uniform or (region.ends and region.exits) or not region.is_static():
            return None
        if len(c.successors[entry]) != 2 or self.m.opcode(end) != llvm.BR:
            return None
        yes, no = self.m.successors(entry)
        way = int(self.idle(region, yes) is None)
        idle = self.idle(region, no if way else yes)
        if idle is None:
            return None
        for i in c.instructions[entry][:-1]:
            if i in self.cut_phis or self.stays_inside(i, region) or self.is_never_kept(i):
                if self.m.opcode(i) not in PURE and i not in self.cut_phis and c.marker(i) not in THREAD:
                    if not c.is_pure_call(i):
                        return None
            elif self.is_early(region, i):
                idle.append(i)
            else:
                return None
        parts = few.conjuncts(self.m, lib.GetCondition(end), bool(way))
        parts += self.nested(region, yes if way else no, idle)
        found = min(filter(None, (self.find_threads(region, *part) for part in parts)), key=self.most_threads, default=None)
        if found:
            found.way = way if len(parts) == 1 else None
            found.others = [i for i in idle if not (self.stays_inside(i, region) or self.is_never_kept(i))]
        return found

    def nested(self, region, block, idle):
        """Returns the conditions of a further `if` that is all that a block under the first one consists of, or an empty list.
        Adds the uniform values that threads compute for which it does not hold to `idle`."""
        c, ways = self.c, self.m.successors(block)
        inside = c.instructions[block][:-1] if c.owner[block] is region else [None]
        if block == region.entry or len(ways) != 2 or len(c.predecessors[block]) != 1 or self.m.opcode(self.m.terminator(block)) != llvm.BR:
            return []
        if not all(i and self.m.opcode(i) in PURE and self.stays_inside(i, region) for i in inside):
            return []
        way = int(self.idle(region, ways[0]) is None)
        others = self.idle(region, ways[way])
        if others is None:
            return []
        idle += [i for i in others if i not in idle]
        return few.conjuncts(self.m, self.lib.GetCondition(self.m.terminator(block)), bool(way))

    def most_threads(self, some):
        """Returns the largest number of threads that do something."""
        if some.is_one():
            return 1
        limit = self.m.constant(some.limit)
        return MOST_THREADS // (some.every[1] + 1) if some.every else MOST_THREADS if limit is None else min(limit, MOST_THREADS)

    def find_threads(self, region, condition, holds):
        """Returns the threads for which a condition has the value `holds`; None if the condition has another form."""
        m, lib = self.m, self.lib
        if not m.is_binary(condition, llvm.ICMP):
            return None
        index, limit = m.operands(condition)
        predicate = lib.GetICmpPredicate(condition)
        predicate = predicate if holds else INVERTED[predicate]
        every = self.find_every(index, limit) if predicate == llvm.EQ else None
        if every:
            return Few(every[0], predicate, limit, every)
        one = few.one_index(m, condition, holds, self.c.marker)
        if one and self.is_early(region, one.number):
            if m.constant(one.number) == 0 and one.offset == 0 and one.index not in THREAD[1:3]:
                return Few(one.index, llvm.ULT, m.number(1))
            return None if self.c.has_warp_functions() else Few(one.index, llvm.EQ, one.number, offset=one.offset)
        if not self.is_index(index):
            index, limit, predicate = limit, index, SWAPPED[predicate]
        if not self.is_index(index) or not self.is_early(region, limit) or predicate not in (llvm.ULT, llvm.SLT):
            return None
        return Few(self.c.marker(index), predicate, limit)

    def is_index(self, value):
        """Returns whether a value is threadIdx.x or the number of the thread in its block."""
        return bool(self.lib.IsAInstruction(value)) and self.c.marker(value) in ("rill_ir_thread_x", "rill_ir_thread")

    def find_every(self, masked, equals):
        """Returns the name of the index, the mask and the number if `masked == equals` is `index & mask == number`.
        Returns None for any other comparison."""
        mask = self.m.constant(self.lib.GetOperand(masked, 1)) if self.m.is_binary(masked, llvm.AND) else None
        equals = self.m.constant(equals)
        if mask is None or equals is None or mask & (mask + 1) or not 0 < mask < MOST_THREADS or equals > mask:
            return None
        index = self.lib.GetOperand(masked, 0)
        return (self.c.marker(index), mask, equals) if self.is_index(index) else None

    def first(self, some, x, t):
        """Returns the first index in a row that begins at x for which the thread does something, and the distance to
        the next such index."""
        if not some.every:
            return x, 1
        name, mask, equals = some.every
        index = x if name == "rill_ir_thread_x" else t
        away = self.build("And", self.build("Sub", self.m.number(equals), index), self.m.number(mask))
        return self.build("Add", x, away), mask + 1

    def idle(self, region, block):
        """Returns the uniform values of a block through which a thread leaves a region without any other effect.
        Returns None if the block has other effects."""
        c = self.c
        plain = []
        if c.owner[block] is region and block != region.entry:
            call = c.sync_points.get(block)
            plain = [i for i in c.instructions[block][:-1] if i != call]
            if (call and SYNC_POINTS[c.marker(call)].helper) or not all(self.is_early(region, i) for i in plain):
                return None
            if self.m.opcode(self.m.terminator(block)) == llvm.RET:
                return plain
            if len(c.successors[block]) != 1:
                return None
            block = c.successors[block][0]
        if c.owner[block].entry != block or any(phi in c.varying for phi in self.m.phis(block)):
            return None
        return plain

    def stays_inside(self, value, region):
        """Returns whether a value is used only in this region, and not by phis of other regions."""
        c = self.c
        users = [user for user in self.m.users(value) if user in c.block_of]
        return all(c.owner[c.block_of[user]] is region and user not in self.cut_phis for user in users)

    def is_never_kept(self, value):
        """Returns whether each region that uses a value computes it from the thread's index."""
        given = {argument for call in self.c.sync_points.values() for argument in self.m.arguments(call)}
        return value in self.c.varying and self.is_rematerialized(value) and value not in given | set(self.exchanged.values())

    def is_early(self, region, value):
        """Returns whether a value can be computed before the threads of a region start."""
        c = self.c
        if value not in c.block_of:
            return value not in c.varying
        if value in c.varying:
            return False
        if value in self.cut_phis or c.owner[c.block_of[value]] is not region:
            return True
        return self.m.opcode(value) in PURE and all(self.is_early(region, o) for o in self.m.operands(value))

    def early(self, region, value):
        """Builds a value for which is_early() is true, at the builder's position."""
        c = self.c
        if value not in c.block_of:
            return value
        if value in self.cut_phis or c.owner[c.block_of[value]] is not region:
            slot, kind, _ = self.slot(value)
            loaded = self.load(kind, slot)
            return self.build("Trunc", loaded, self.m.i1) if self.lib.TypeOf(value) == self.m.i1 else loaded
        operands = [self.early(region, operand) for operand in self.m.operands(value)]
        copy = self.lib.InstructionClone(value)
        self.m.insert(self.builder, copy)
        for i, operand in enumerate(operands):
            self.lib.SetOperand(copy, i, operand)
        return copy

    def limit(self, region, some):
        """Builds the index below which threads are active, or the index of the only active thread, at the builder's
        position; returns None if there is no such index. Also stores the values that the other threads would compute."""
        for other in some.others:
            self.store_value(self.early(region, other), self.slot(other)[0])
        if some.every:
            return None
        value = self.early(region, some.limit)
        if some.way is None:  # another part of the condition may guard this one, which may then be poison
            value = self.build("Freeze", value)
        if some.offset:
            value = self.build("Sub", value, self.m.number(some.offset))
        if some.predicate == llvm.SLT:
            zero = self.m.number(0)
            value = self.build("Select", self.build("ICmp", llvm.SLT, value, zero), zero, value)
        return value

    def nowrap(self, sum_):
        """Marks a sum of small numbers as one that does not wrap."""
        if self.lib.IsAInstruction(sum_):
            self.lib.SetNUW(sum_, 1)
            self.lib.SetNSW(sum_, 1)
        return sum_

    def mark_loop(self, branch, some):
        """Limits interleaving, because rows are short: with more than one vector in each iteration, most of a row would
        be left to the remainder loop. Kernels that use only the x index may have two vectors. A loop over few threads is
        not unrolled: if LLVM finds that its trip count is constant, it then still vectorizes it."""
        hints = []
        if self.c.sync_points:
            hints = [self.hint("interleave.count", self.number_hint(2 if self.is_flat else 1))]
            if some and not some.every and self.m.constant(some.limit) is None:
                hints.append(self.hint("unroll.disable"))
        self.hint_loop(branch, *hints)

    def mark_lanes(self, branch):
        """Makes LLVM vectorize the loop over the lanes of a warp before it unrolls the loop, not after."""
        after = self.hint("vectorize.followup_vectorized", self.hint("isvectorized", self.number_hint(1)))
        hints = self.hint("interleave.count", self.number_hint(1)), self.hint("unroll.disable"), after
        self.hint_loop(branch, *hints)

    def unrolled(self):
        """Returns the hints for a loop that is vectorized, and then unrolled completely."""
        after = [self.hint("isvectorized", self.number_hint(1)), self.hint("unroll.full")]
        hints = self.hint("interleave.count", self.number_hint(2)), self.hint("unroll.disable")
        return self.loop_node(*hints, self.hint("vectorize.followup_vectorized", *after))

    @functools.cached_property
    def loop_kind(self):
        return self.lib.GetMDKindIDInContext(self.m.context, b"llvm.loop", 9)

    def number_hint(self, number):
        return self.lib.ValueAsMetadata(self.m.number(number))

    def hint(self, name, *more):
        text = b"llvm.loop." + name.encode()
        parts = [self.lib.MDStringInContext2(self.m.context, text, len(text)), *more]
        return self.lib.MDNodeInContext2(self.m.context, llvm.array(parts), len(parts))

    def mark_accesses(self):
        """Marks accesses to memory by different threads as independent, so that LLVM does not compare their addresses.
        This is valid because the threads may run in any order. Accesses to a variable whose memory all threads use one
        after another are not marked. Nothing is marked in a kernel that scatters its stores, or in which the address of
        such a variable escapes."""
        shared = set().union(*(self.derived_users(variable) for variable in self.local))
        if self.m.has_text_attribute(self.function, SCATTERS) or any(self.is_captured(variable, self.derived_users(variable)) for variable in self.local):
            return
        for block in self.m.blocks(self.function):
            for value in self.m.instructions(block):
                if self.m.opcode(value) in (llvm.LOAD, llvm.STORE) and value not in shared:
                    self.lib.SetMetadata(value, self.m.access_kind, self.m.access_group)

    def hint_loop(self, branch, *hints):
        """Attaches hints to a loop over threads."""
        self.lib.SetMetadata(branch, self.loop_kind, self.loop_node(*hints))

    def loop_node(self, *hints):
        """Returns the metadata of a loop over threads."""
        lib, context = self.lib, self.m.context
        hints += (self.hint("parallel_accesses", self.lib.ValueAsMetadata(self.m.access_group)),)
        itself = lib.TemporaryMDNode(context, llvm.array([]), 0)  # the metadata node that identifies a loop contains itself
        node = lib.MDNodeInContext2(context, llvm.array([itself, *hints]), 1 + len(hints))
        lib.MetadataReplaceAllUsesWith(itself, node)
        return lib.MetadataAsValue(context, node)
