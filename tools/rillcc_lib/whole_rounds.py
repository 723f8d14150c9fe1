"""The rounds of a loop that all threads take part in, as a loop in front of it.

    for (int j = threadIdx.x; j < n; j += blockDim.x) sum += w[row * n + j] * x[j];

Threads leave such a loop in different rounds, so it is not one that all go around alike.  Of the rounds in which j is below
n for all threads, a loop of its own is made, which is one (interchange.py):

    most = blockDim.x - 1;  // the largest j
    left = true;            // whether some thread may have rounds left
    if (most < n) {
        do { sum += ...; j += blockDim.x; most += blockDim.x; } while (most < n);
        left = most - (blockDim.x - 1) < n;
    }
    if (left && j < n) goto loop;

Where all threads have one round left at most, they go on to a copy of that round instead.  The loop itself stays for blocks in
which some threads have no round.  Each thread executes the same rounds in the same order.
"""

from dataclasses import dataclass

from . import llvm
from .all_below import BELOW, EXTENSIONS, SIGNED, AllBelow
from .ir import PURE
from .regions import BEGIN, BLOCK, THREAD

MOST_CHAIN = 8  # blocks between what decides about a loop and the loop


@dataclass
class Plan:
    """A loop whose counter differs between threads by a part of their index."""

    loop: object
    before: int  # the block in front of its first one
    after: int  # what it leads to
    stays: bool  # which value of the condition leads to another round
    predicate: int  # how the counter is compared with the limit,
    steps: list  # after these extensions of it
    limit: int
    counter: int  # a phi
    step: int


class Varying:
    def __init__(self, interchange):
        self.interchange = interchange

    def __contains__(self, value):
        return not self.interchange.is_uniform(value)


class WholeRounds:
    """Of one kernel, which an Interchange has read."""

    def __init__(self, interchange, builder):
        self.i, self.m, self.lib = interchange, interchange.m, interchange.lib
        self.builder, self.marker = builder, interchange.marker
        self.varying = Varying(interchange)
        self.below = AllBelow(self, THREAD)
        begins = [value for inside in self.i.instructions.values() for value in inside if self.marker(value) == BEGIN]
        self.size = self.m.arguments(begins[0])[3:6] if begins else None
        self.around: set = set()  # the first blocks of loops in front which are around others
        self.rests = {}  # the first block of a loop in front: those where threads that have rounds left go on

    def add(self, most):
        """Adds the loops in front of those for which it pays, up to a number."""
        done: set = set()
        while self.size and len(done) < 2 * most:
            found = [(loop, False) for loop in self.i.loops() if loop.header not in done and self.i.is_fit_for_all(loop)]
            found += [(loop, True) for loop in self.i.loops(1) if loop.header not in done and self.i.is_fit_around(loop)]
            if not found:
                return
            loop, is_around = found[0]
            done.add(loop.header)
            plan = self.plan(loop)
            if plan:
                front = self.build(plan)
                done.add(front)
                if is_around:
                    self.around.add(front)
                self.i.read(self.i.kernel)

    # Which loops

    def plan(self, loop):
        """Of a loop that is left at its end only, while the counter is below a limit; else None."""
        m, i = self.m, self.i
        exits = [(b, other) for b in loop.blocks for other in i.graph[b] if other not in loop.blocks]
        befores = [b for b in m.predecessors(loop.header) if b not in loop.blocks]
        end = m.terminator(loop.latch)
        if len(exits) != 1 or exits[0][0] != loop.latch or len(befores) != 1 or m.opcode(end) != llvm.BR:
            return None
        condition, stays = self.lib.GetCondition(end), m.successors(loop.latch)[0] == loop.header
        after = exits[0][1]
        if not m.is_binary(condition, llvm.ICMP) or any(other not in loop.blocks for other in self.users_outside(loop, after)):
            return None
        predicate, value, limit = self.below.comparison(condition)
        if predicate not in BELOW or (BELOW[predicate] == predicate) != stays or not self.is_before(loop, limit):
            return None
        steps, value = self.below.steps(value)
        if any(m.opcode(step) not in EXTENSIONS for step in steps) or not m.is_binary(value, llvm.ADD):
            return None
        predicate = BELOW[predicate]
        signs = {m.opcode(step) == llvm.SEXT for step in steps}
        if signs and signs != {predicate in SIGNED}:
            return None
        for counter, step in (m.operands(value), m.operands(value)[::-1]):
            ways = {b: v for v, b in m.incoming(counter)} if counter in m.phis(loop.header) else {}
            if ways.get(loop.latch) == value and self.is_before(loop, step):
                return Plan(loop, befores[0], after, stays, predicate, steps, limit, counter, step)
        return None

    def users_outside(self, loop, after):
        """Returns the blocks of what uses the loop's values, but for the phis where it is left."""
        phis = set(self.m.phis(after))
        users = (user for block in loop.blocks for value in self.i.instructions[block] for user in self.m.users(value))
        return {self.i.block_of[user] for user in users if user not in phis and user in self.i.block_of}

    def is_before(self, loop, value):
        """Returns whether a value is the same for all threads, and there before a loop."""
        return self.i.is_uniform(value) and self.i.block_of.get(value) not in loop.blocks

    # The loop in front

    def build(self, plan):
        """Makes the loop in front of one; returns its first block.  None where it cannot be entered by all threads at
        once."""
        m, lib, loop = self.m, self.lib, plan.loop
        decides, chain = self.find_decision(plan)
        end = m.terminator(decides)
        for value in [value for block in reversed(chain) for value in self.i.instructions[block][:-1]]:
            lib.InstructionRemoveFromParent(value)
            lib.PositionBuilderBefore(self.builder, end)
            m.insert(self.builder, value)
        lib.PositionBuilderBefore(self.builder, end)
        holds = m.number(1, m.i1)
        if len(m.successors(decides)) > 1:
            way = chain[-1] if chain else loop.header
            holds = self.holds(lib.GetCondition(end), m.successors(decides)[0] == way)
        start = next(value for value, block in m.incoming(plan.counter) if block == plan.before)
        range_ = self.range(start, plan.predicate in SIGNED) if holds else None
        if not range_:
            return None
        *range_, fits = range_
        holds = self.build_one("Select", holds, fits, m.number(0, m.i1))
        self.sums = self.find_sums(plan)
        if self.sums:
            holds = self.build_one("Select", holds, self.build_no_wrap(plan, *range_), m.number(0, m.i1))
        return self.build_loop(plan, decides, chain, holds, range_)

    def find_sums(self, plan):
        """Returns the unsigned sums of the counter and what is the same in all rounds, which say where memory is accessed: none
        may wrap in the loop in front, since neighbours would not be neighbours there."""
        found = {}
        for block in plan.loop.blocks if not plan.steps and self.lib.TypeOf(plan.counter) == self.m.i32 else ():
            for value in self.i.instructions[block]:
                others = [v for v in self.m.operands(value) if v != plan.counter] if self.m.opcode(value) == llvm.ADD else []
                wide = any(self.m.opcode(user) == llvm.ZEXT for user in self.m.users(value))
                if len(others) == 1 and wide and self.is_before(plan.loop, others[0]):
                    found[value] = others[0]
        return found

    def build_no_wrap(self, plan, least, own, distance):
        """Builds what says that the sums do not wrap: the counter is never above the limit."""
        most = self.build_one("Add", least, distance)
        fits = self.build_one("ICmp", llvm.ULE, most, plan.limit)
        if plan.predicate in SIGNED:
            fits = self.build_one("And", fits, self.build_one("ICmp", llvm.SGE, least, self.m.number(0)))
        for other in dict.fromkeys(self.sums.values()):
            room = self.build_one("Sub", self.m.number(0xFFFFFFFF), other)
            fits = self.build_one("And", fits, self.build_one("ICmp", llvm.ULE, plan.limit, room))
        return self.build_one("Freeze", fits)

    def find_decision(self, plan):
        """Returns the block that decides whether a thread comes to a loop, and those between it and the loop, last to
        first, which only compute; without such a block, the one in front of the loop."""
        chain, block = [], plan.before
        while len(self.m.successors(block)) == 1 and len(chain) < MOST_CHAIN:
            befores = self.m.predecessors(block)
            if len(befores) != 1 or not all(map(self.is_early, self.i.instructions[block][:-1])):
                break
            chain.append(block)
            block = befores[0]
        if self.m.opcode(self.m.terminator(block)) == llvm.BR and block in self.i.immediate:
            return block, chain
        return plan.before, []

    def is_early(self, value):
        if self.m.opcode(value) == llvm.CALL and self.m.callee(value) and self.m.name(self.m.callee(value)).startswith("llvm.threadlocal"):
            return True  # where shared memory is
        return self.m.opcode(value) in PURE or self.marker(value) in THREAD + BLOCK

    def holds(self, condition, wanted):
        """Builds what says that a condition is the wanted one for all threads; None if that cannot be said."""
        m = self.m
        if self.i.is_uniform(condition):
            return self.taken(condition, wanted)
        opcode = m.opcode(condition)
        if opcode == llvm.ICMP:
            return self.below.build_all(condition, alone=True) if self.below.holds_below(condition) == wanted else None
        parts = m.operands(condition)
        if opcode == llvm.SELECT and m.constant(parts[2 if wanted else 1]) == (0 if wanted else 1):
            parts = [parts[0], parts[1 if wanted else 2]]
        elif opcode != (llvm.AND if wanted else llvm.OR):
            return None
        parts = [self.holds(part, wanted) for part in parts]
        return self.build_one("Select", *parts, m.number(0, m.i1)) if all(parts) else None

    def range(self, start, signed):
        """Builds the least value with which threads start to count, how much larger that of this thread is, and the largest
        one; and what says that none wraps."""
        steps, value = self.below.steps(start)
        kinds = {self.m.opcode(step) for step in steps}
        if not kinds <= {llvm.ZEXT, llvm.SEXT} or len(kinds) > 1:
            return None
        found = self.below.build_range(value, alone=True)
        if not found:
            return None
        least, most, (own, *more) = found
        for term in more:
            own = self.build_one("Add", own, term)
        wraps_as = llvm.SGE if llvm.SEXT in kinds or (signed and not kinds) else llvm.UGE
        fits = self.build_one("ICmp", wraps_as, most, least)
        if llvm.SEXT in kinds and not signed:
            zero = self.m.number(0, self.lib.TypeOf(least))
            fits = self.build_one("And", fits, self.build_one("ICmp", llvm.SGE, least, zero))
        for step in steps:
            least, most = [self.below.extend(step, bound) for bound in (least, most)]
            own = self.build_one("ZExt", own, self.lib.TypeOf(least))
        return least, own, self.build_one("Sub", most, least), fits

    def build_loop(self, plan, decides, chain, holds, range_):
        m, lib, loop = self.m, self.lib, plan.loop
        is_guarded = len(m.successors(decides)) > 1
        way = chain[-1] if chain else loop.header
        guard = m.number(1, m.i1)
        if is_guarded:
            guard = self.taken(lib.GetCondition(m.terminator(decides)), m.successors(decides)[0] == way)
        head = m.split(decides, m.instructions(decides)[-2], self.builder)
        blocks = [block for block in self.i.graph if block in loop.blocks]
        copies = m.copy_blocks(self.i.kernel, blocks, self.builder)
        over, join, rest, left = [m.new_block(self.i.kernel, "") for _ in range(4)]
        self.end(head, lib.BuildCondBr, holds, copies[loop.header], join)
        for block in blocks:
            for phi in m.phis(block):
                m.add_ways(copies[phi], [(copies.get(v, v), copies.get(b, head)) for v, b in m.incoming(phi)])
        again, some = self.build_rounds(plan, copies, head, over, range_)
        self.end(over, lib.BuildBr, join)
        self.join = (join, head, over)
        ways = [{b: v for v, b in m.incoming(phi)} for phi in m.phis(loop.header)]
        starts = {way[loop.latch]: way[plan.before] for way in ways}
        joined = {value: self.phi(start, copies.get(value, value)) for value, start in starts.items()}
        ends = {next(v for v, b in m.incoming(phi) if b == loop.latch) for phi in m.phis(plan.after)}
        for value in ends - set(joined):
            joined[value] = self.phi(lib.GetUndef(lib.TypeOf(value)), copies[value]) if value in copies else value
        more, came = self.phi(guard, again), self.phi(m.number(0, m.i1), m.number(1, m.i1))
        some = self.phi(m.number(1, m.i1), some)
        other = next(b for b in m.successors(decides) if b != way) if is_guarded else plan.after
        meets = self.meeting(plan, other)
        if meets:
            skip, single, one, skip_one = [m.new_block(self.i.kernel, "") for _ in range(4)]
            self.rests[copies[loop.header]] = [rest, one]
            lib.PositionBuilderAtEnd(self.builder, join)
            is_single = self.build_single(plan, self.phi(range_[0], self.next_low), range_[2])
            self.end(join, lib.BuildCondBr, some, single, left)
            self.end(single, lib.BuildCondBr, is_single, one, rest)
            self.end(rest, lib.BuildCondBr, more, loop.header, skip)
            self.end(one, lib.BuildCondBr, more, self.copy_round(plan, joined, one), skip_one)
            for block in left, skip, skip_one:
                self.end(block, lib.BuildBr, meets)
                for phi in m.phis(meets):
                    lib.PositionBuilderBefore(self.builder, m.terminator(block))
                    m.add_ways(phi, [(self.at_end(plan, phi, meets, decides if is_guarded else None, joined, came), block)])
            self.drop_way(meets, decides)
        else:
            self.end(join, lib.BuildCondBr, some, rest, left)
            self.end(rest, lib.BuildCondBr, more, loop.header, left)
            self.end(left, lib.BuildCondBr, came, plan.after, decides)
            self.end(decides, lib.BuildBr, other)
            for phi in m.phis(plan.after):
                m.add_ways(phi, [(joined[self.from_latch(plan, phi)], left)])
        for phi, way in zip(m.phis(loop.header), ways):
            m.replace_phi(phi, lambda v, b, way=way: (v, b) if b != plan.before else (joined[way[loop.latch]], rest), self.builder)
        for block in [*chain[::-1]] + ([decides] if meets else []):
            lib.DeleteBasicBlock(block)
        return copies[loop.header]

    def build_single(self, plan, low, distance):
        """Builds what says that no thread has more than one round left, where the counters begin at `low`: none wraps, the
        largest one is not below the limit, and all others will be above it."""
        m, build, signed = self.m, self.build_one, plan.predicate in SIGNED
        largest = build("Add", low, distance)
        beyond = build("Add", largest, plan.step)
        grow = [build("ICmp", llvm.SGE if signed else llvm.UGE, b, a) for a, b in ((low, largest), (largest, beyond))]
        ends = build("Xor", self.compare(plan, largest), m.number(1, m.i1))
        return build("And", build("And", *grow), build("And", ends, build("ICmp", llvm.ULT, distance, plan.step)))

    def copy_round(self, plan, joined, before):
        """Copies one round of a loop, which is entered from a block; returns where it begins."""
        m, loop = self.m, plan.loop
        blocks = [block for block in self.i.graph if block in loop.blocks]
        copies = m.copy_blocks(self.i.kernel, blocks, self.builder)
        for block in blocks:
            for phi in m.phis(block):
                ways = [(copies.get(v, v), copies.get(b, b)) for v, b in m.incoming(phi)]
                m.add_ways(copies[phi], ways if block != loop.header else [(joined[self.from_latch(plan, phi)], before)])
        self.end(copies[loop.latch], self.lib.BuildBr, plan.after)
        for phi in m.phis(plan.after):
            value = self.from_latch(plan, phi)
            m.add_ways(phi, [(copies.get(value, value), copies[loop.latch])])
        return copies[loop.header]

    def meeting(self, plan, other):
        """Returns where those who execute a loop meet those who do not and go to `other`, if nothing is computed before it."""
        if other == plan.after:
            return other
        passes = len(self.m.phis(plan.after)) == len(self.m.instructions(plan.after)) - 1
        return other if passes and self.m.successors(plan.after) == [other] else None

    def from_latch(self, plan, phi):
        return next(value for value, block in self.m.incoming(phi) if block == plan.loop.latch)

    def at_end(self, plan, phi, meets, decides, joined, came):
        """Builds what a value is where a thread without rounds left comes to the meeting."""
        ways = {block: value for value, block in self.m.incoming(phi)}
        value = ways[plan.loop.latch if meets == plan.after else plan.after]
        if value in self.m.phis(plan.after) and meets != plan.after:
            value = self.from_latch(plan, value)
        value = joined.get(value, value)
        return self.build_one("Select", came, value, ways[decides]) if decides else value

    def drop_way(self, block, way):
        """Removes a way into a block, whether or not it has phis."""
        for phi in self.m.phis(block):
            kept = [(value, other) for value, other in self.m.incoming(phi) if other != way]
            self.lib.PositionBuilderBefore(self.builder, phi)
            new = self.build_one("Phi", self.lib.TypeOf(phi))
            self.m.add_ways(new, [(new if value == phi else value, other) for value, other in kept])
            self.lib.ReplaceAllUsesWith(phi, new)
            self.lib.InstructionEraseFromParent(phi)

    def build_rounds(self, plan, copies, head, over, range_):
        """Builds what counts the rounds of the copy of a loop; returns what says whether a thread has another one, and
        whether one may have."""
        m, lib, build, (least, own, distance) = self.m, self.lib, self.build_one, range_
        header, latch, counter = copies[plan.loop.header], copies[plan.loop.latch], copies[plan.counter]
        lib.PositionBuilderBefore(self.builder, counter)
        low = build("Phi", lib.TypeOf(least))
        lib.PositionBuilderBefore(self.builder, m.instructions(header)[len(m.phis(header))])
        of_thread = build("NSWAdd" if plan.predicate in SIGNED else "NUWAdd", low, own)  # it is not above the largest one
        copies[plan.counter] = of_thread
        for value in [of_thread, *(copies[value] for value in self.sums)] if self.sums else ():
            lib.SetNUW(value, 1)
        lib.ReplaceAllUsesWith(counter, of_thread)
        lib.InstructionEraseFromParent(counter)
        end = m.terminator(latch)
        condition = lib.GetCondition(end)
        lib.PositionBuilderBefore(self.builder, end)
        self.next_low = next_low = build("Add", low, plan.step)
        largest, following = build("Add", low, distance), build("Add", next_low, distance)
        grows = build("ICmp", llvm.SGE if plan.predicate in SIGNED else llvm.UGE, following, largest)
        all_again = build("And", grows, self.compare(plan, following))
        self.end(latch, lib.BuildCondBr, all_again, header, over)
        m.add_ways(low, [(least, head), (next_low, latch)])
        lib.PositionBuilderAtEnd(self.builder, over)
        some = build("Or", build("Xor", grows, m.number(1, m.i1)), self.compare(plan, next_low))
        return self.taken(condition, plan.stays), some

    def end(self, block, build, *arguments):
        """Ends a block with a branch."""
        if self.m.terminator(block):
            self.lib.InstructionEraseFromParent(self.m.terminator(block))
        self.lib.PositionBuilderAtEnd(self.builder, block)
        build(self.builder, *arguments)

    def taken(self, condition, way):
        """Builds what is true where a condition is `way`."""
        return condition if way else self.build_one("Xor", condition, self.m.number(1, self.m.i1))

    def phi(self, first, second):
        """Builds what is the first value after the block that decides, and the second one after the loop in front."""
        join, head, over = self.join
        self.lib.PositionBuilderAtEnd(self.builder, join)
        phi = self.build_one("Phi", self.lib.TypeOf(first))
        self.m.add_ways(phi, [(first, head), (second, over)])
        return phi

    def compare(self, plan, counter):
        for step in plan.steps:
            counter = self.below.extend(step, counter)
        return self.build_one("ICmp", plan.predicate, counter, plan.limit)

    def build_one(self, what, *arguments):
        return getattr(self.lib, "Build" + what)(self.builder, *arguments, b"")
