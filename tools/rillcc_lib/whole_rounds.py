"""Adds a copy in front of a loop, for the iterations in which all threads take part.

    for (int j = threadIdx.x; j < n; j += blockDim.x) sum += w[row * n + j] * x[j];

Threads leave such a loop in different iterations, so it cannot be interchanged with the loop over the threads
(interchange.py). The copy executes the iterations in which j is below n for all threads. All threads leave the copy in
the same iteration, so the copy can be interchanged:

    most = blockDim.x - 1;  // the largest j
    left = true;            // whether some thread may have iterations left
    if (most < n) {
        do { sum += ...; j += blockDim.x; most += blockDim.x; } while (most < n);
        left = most - (blockDim.x - 1) < n;
    }
    if (left && j < n) goto loop;

If no thread has more than one iteration left after the copy, the threads execute a second copy, of one iteration.
Otherwise the original loop executes the remaining iterations. In blocks in which some threads execute no iteration, the
original loop executes all of them. Each thread executes the same iterations in the same order as before.
"""

from dataclasses import dataclass

from . import llvm
from .all_below import BELOW, EXTENSIONS, SIGNED, AllBelow
from .ir import PURE
from .regions import BEGIN, BLOCK, THREAD

MOST_CHAIN = 8  # basic blocks between the branch that guards a loop and the loop


@dataclass
class Plan:
    """A loop whose induction variable is a uniform value plus a term of the thread's index."""

    loop: object
    before: int  # the only predecessor of the header outside the loop
    after: int  # the exit block
    stays: bool  # the value of the condition for which the loop continues
    predicate: int  # of the comparison of the counter with the limit
    steps: list  # extensions that are applied to the counter before the comparison
    limit: int
    counter: int  # a phi of the header
    step: int


class Varying:
    def __init__(self, interchange):
        self.interchange = interchange

    def __contains__(self, value):
        return not self.interchange.is_uniform(value)


class WholeRounds:
    """Works on one kernel, which an Interchange has read."""

    def __init__(self, interchange, builder):
        self.i, self.m, self.lib = interchange, interchange.m, interchange.lib
        self.builder, self.marker = builder, interchange.marker
        self.varying = Varying(interchange)
        self.below = AllBelow(self, THREAD)
        begins = [value for inside in self.i.instructions.values() for value in inside if self.marker(value) == BEGIN]
        self.size = self.m.arguments(begins[0])[3:6] if begins else None
        self.around: set = set()  # the headers of copies that contain another loop
        self.rests = {}  # the header of a copy: the blocks from which threads with iterations left go on

    def add(self, most):
        """Emits a copy in front of each suitable loop; examines at most 2 * `most` loops."""
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

    # Choice of loops

    def plan(self, loop):
        """Returns the plan for a loop that exits only at its latch and continues while its counter is below a limit.
        Returns None for any other loop."""
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
        """Returns the blocks of all instructions that use the loop's values, except phis of the exit block."""
        phis = set(self.m.phis(after))
        users = (user for block in loop.blocks for value in self.i.instructions[block] for user in self.m.users(value))
        return {self.i.block_of[user] for user in users if user not in phis and user in self.i.block_of}

    def is_before(self, loop, value):
        """Returns whether a value is uniform and computed outside the loop."""
        return self.i.is_uniform(value) and self.i.block_of.get(value) not in loop.blocks

    # The copy of the loop

    def build(self, plan):
        """Emits the copy of a loop and returns the header of the copy. Returns None if no condition can be built that
        tells, before the loop, whether all threads enter it."""
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
        """Returns the unsigned sums of the counter and a loop-invariant value that are used in addresses. None of them may
        wrap in the copy, because neighbouring threads would then not access neighbouring elements."""
        found = {}
        for block in plan.loop.blocks if not plan.steps and self.lib.TypeOf(plan.counter) == self.m.i32 else ():
            for value in self.i.instructions[block]:
                others = [v for v in self.m.operands(value) if v != plan.counter] if self.m.opcode(value) == llvm.ADD else []
                wide = any(self.m.opcode(user) == llvm.ZEXT for user in self.m.users(value))
                if len(others) == 1 and wide and self.is_before(plan.loop, others[0]):
                    found[value] = others[0]
        return found

    def build_no_wrap(self, plan, least, own, distance):
        """Builds a value that is true if the sums do not wrap. The counter never exceeds the limit."""
        most = self.build_one("Add", least, distance)
        fits = self.build_one("ICmp", llvm.ULE, most, plan.limit)
        if plan.predicate in SIGNED:
            fits = self.build_one("And", fits, self.build_one("ICmp", llvm.SGE, least, self.m.number(0)))
        for other in dict.fromkeys(self.sums.values()):
            room = self.build_one("Sub", self.m.number(0xFFFFFFFF), other)
            fits = self.build_one("And", fits, self.build_one("ICmp", llvm.ULE, plan.limit, room))
        return self.build_one("Freeze", fits)

    def find_decision(self, plan):
        """Returns the block whose branch decides whether a thread reaches the loop, and the blocks between this block
        and the loop, last to first, which contain only computations. If there is no such branch, returns the block in
        front of the loop and an empty list."""
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
        """Builds a value that is true if the condition has the wanted value for all threads. Returns None if this
        cannot be expressed."""
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
        """Returns (least, own, distance, fits): the least start value of the counter in any thread, the distance from
        it to this thread's start value, the distance from it to the largest start value, and whether no start value
        wraps. Returns None if the start is not a sum with an index."""
        steps, value = self.below.steps(start)
        kinds = {self.m.opcode(step) for step in steps}
        if not kinds <= {llvm.ZEXT, llvm.SEXT} or len(kinds) > 1:
            return None
        found = self.below.build_range(value, alone=True)
        if not found or found[3]:
            return None
        least, most, (own, *more), _ = found
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
        """Builds a value that is true if no thread has more than one iteration left when the counters begin at `low`. No
        counter wraps, the largest one has reached the limit, and each of the others reaches it after one iteration."""
        m, build, signed = self.m, self.build_one, plan.predicate in SIGNED
        largest = build("Add", low, distance)
        beyond = build("Add", largest, plan.step)
        grow = [build("ICmp", llvm.SGE if signed else llvm.UGE, b, a) for a, b in ((low, largest), (largest, beyond))]
        ends = build("Xor", self.compare(plan, largest), m.number(1, m.i1))
        return build("And", build("And", *grow), build("And", ends, build("ICmp", llvm.ULT, distance, plan.step)))

    def copy_round(self, plan, joined, before):
        """Copies one iteration of a loop, entered from block `before`. Returns the first block of the copy."""
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
        """Returns the block where the path through the loop and the path that branches to `other` join. Returns None if
        something is computed before that block."""
        if other == plan.after:
            return other
        passes = len(self.m.phis(plan.after)) == len(self.m.instructions(plan.after)) - 1
        return other if passes and self.m.successors(plan.after) == [other] else None

    def from_latch(self, plan, phi):
        return next(value for value, block in self.m.incoming(phi) if block == plan.loop.latch)

    def at_end(self, plan, phi, meets, decides, joined, came):
        """Builds the value of a phi of the joining block for a thread that has no iterations left."""
        ways = {block: value for value, block in self.m.incoming(phi)}
        value = ways[plan.loop.latch if meets == plan.after else plan.after]
        if value in self.m.phis(plan.after) and meets != plan.after:
            value = self.from_latch(plan, value)
        value = joined.get(value, value)
        return self.build_one("Select", came, value, ways[decides]) if decides else value

    def drop_way(self, block, way):
        """Removes the incoming edge from block `way`."""
        for phi in self.m.phis(block):
            kept = [(value, other) for value, other in self.m.incoming(phi) if other != way]
            self.lib.PositionBuilderBefore(self.builder, phi)
            new = self.build_one("Phi", self.lib.TypeOf(phi))
            self.m.add_ways(new, [(new if value == phi else value, other) for value, other in kept])
            self.lib.ReplaceAllUsesWith(phi, new)
            self.lib.InstructionEraseFromParent(phi)

    def build_rounds(self, plan, copies, head, over, range_):
        """Builds the counters of the copy. Returns a value that is true if this thread has another iteration, and one
        that is true if some thread may have another iteration."""
        m, lib, build, (least, own, distance) = self.m, self.lib, self.build_one, range_
        header, latch, counter = copies[plan.loop.header], copies[plan.loop.latch], copies[plan.counter]
        lib.PositionBuilderBefore(self.builder, counter)
        low = build("Phi", lib.TypeOf(least))
        lib.PositionBuilderBefore(self.builder, m.instructions(header)[len(m.phis(header))])
        # This sum is at most the largest counter, which does not wrap.
        of_thread = build("NSWAdd" if plan.predicate in SIGNED else "NUWAdd", low, own)
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
        """Builds a value that is true if the condition equals `way`."""
        return condition if way else self.build_one("Xor", condition, self.m.number(1, self.m.i1))

    def phi(self, first, second):
        """Builds a phi after the copy: `first` if the copy was skipped, `second` if it was executed."""
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
