"""Executes a loop in which each thread sums its own row of memory for LANES threads at once.

    for (int k = 0; k < n; k++) sum += a[row * n + k] * x[k];  // one row for each thread

A thread's sum is a chain of additions that must not be reordered, and LLVM does not vectorize a loop that contains
another loop. Neighbouring threads read addresses that are a row apart, so vector loads would be gathers, which are
slow. Instead, the first of LANES threads that reaches such a loop executes it for all of them, with vectors that have
an element for each thread. For each thread, it loads the adjacent numbers of CHUNK iterations together, and transposes
the numbers of all threads in registers.

    loop over the threads:                       loop over the threads:
      before                                       before
      loop                                         if (x >= done && all of the next LANES threads reach the loop)
      after                                          execute the loop for x, x + 1, ...; keep the results; done = x + LANES
                                                   if (x < done) take the results, else execute the loop
                                                   after

Each thread executes the same operations on the same numbers in the same order. All but the first of the LANES threads
read memory earlier than before. This is valid because the region contains no synchronization, and neither the loop nor
the code before it writes memory, so the threads may run in any order.
"""

from . import llvm
from .row_loops import CASTS, FCMP, FNEG, RowLoops

LANES, GROUP = 16, 4  # threads at once; elements of each thread in one load
CHUNK = 8  # iterations for which each thread's numbers are loaded together, unless the elements are bytes
SHORTEST = 16  # a loop with fewer iterations is not changed
MOST_LOOPS = 8  # in a function


class Rows(RowLoops):
    """Changes the loops of a function that has been written (threads.py)."""

    start: dict  # phi of the loop: its first value
    ends: list  # the values of the loop that are used after it
    places: dict  # the variables in which the values that are used after the loop are kept, with an element for each thread
    lanes: list  # for each thread, a dictionary from a value computed before the loop to its value in this thread
    spread: dict  # a dictionary from a value computed before the loop to the vector of its values in all threads

    def add(self, loops):
        """Changes the suitable loops of a function; returns whether there are any."""
        done = 0
        for threads in loops:
            self.read(threads)
            for block in self.blocks:
                row = self.find(block) if done < MOST_LOOPS and block in self.m.successors(block) else None
                if row:
                    self.row = row
                    self.write()
                    done += 1
                    self.read(threads)
        return done > 0

    # The loop for several threads

    def build(self, what, *arguments):
        return self.w.build(what, *arguments)

    def vector(self, kind, count=LANES):
        return self.lib.VectorType(kind, count)

    def write(self):
        w, m, lib, row = self.w, self.m, self.lib, self.row
        results = self.results()
        start = {phi: {b: v for v, b in m.incoming(phi)}[row.before] for phi in m.phis(row.block)}
        enter, check, strip, fetch, merge = [w.new_block("") for _ in range(5)]
        places = {}
        with w.in_front():
            done = self.build("Alloca", m.i32)
            for value in results:
                kind = lib.TypeOf(value)
                places[value] = self.build("Alloca", lib.ArrayType2(kind, LANES) if value in self.varying else kind)
                lib.SetAlignment(places[value], 64)
        for block in m.predecessors(self.threads.header):
            if block != self.threads.latch:
                w.before(m.terminator(block))
                w.store(m.number(0), done)
        m.redirect(row.before, row.block, enter)
        w.at_end(enter)
        w.branch_if(self.build("ICmp", llvm.ULT, self.threads.counter, w.load(m.i32, done)), fetch, check)
        test = w.new_block("")
        w.at_end(check)
        room = self.build("ICmp", llvm.UGE, self.build("Sub", self.stop, self.threads.counter), m.number(LANES))
        w.branch_if(room, test, row.block)
        w.at_end(test)
        w.branch_if(self.build_all_reach(start[row.counter]), strip, row.block)
        for phi in m.phis(row.block):
            new = m.replace_phi(phi, lambda v, b: (v, check if b == row.before else b), w.builder)
            m.add_ways(new, [(next(v for v, b in m.incoming(new) if b == check), test)])
        self.remap_values(start, results, places)
        w.at_end(strip)
        self.find_inputs()
        self.write_loop(strip)
        w.store(w.nowrap(self.build("Add", self.threads.counter, m.number(LANES))), done)
        w.branch(fetch)
        w.at_end(fetch)
        # Invariant: done - LANES <= counter < done. Threads get here only if their counter is below `done`.
        lane = self.build("Add", self.build("Sub", self.threads.counter, w.load(m.i32, done)), m.number(LANES))
        taken = []
        for value in self.ends:
            kind, place = lib.TypeOf(value), self.places[value]
            if value in self.varying:
                place = w.element(kind, place, self.build("ZExt", lane, m.i64))
            taken.append(w.load(kind, place))
        w.branch(merge)
        self.join(merge, fetch, taken)

    def build_all_reach(self, start):
        """Builds a value that is true if all of the next LANES threads reach the loop, and if there are enough
        iterations. At least LANES threads are left."""
        m, outer = self.m, self.threads.counter
        rounds = self.build("Sub", self.row.limit, start)
        fits = self.build("ICmp", llvm.UGE, rounds, m.number(SHORTEST, self.lib.TypeOf(rounds)))
        self.lanes = [{outer: self.w.nowrap(self.build("Add", outer, m.number(lane))) if lane else outer} for lane in range(LANES)]
        for condition, way in self.row.guards:
            for lane in [] if self.is_uniform(condition) else self.lanes[1:]:
                holds = self.build("Freeze", self.of_lane(condition, lane))
                fits = self.build("And", fits, holds if way else self.build("Xor", holds, m.number(1, m.i1)))
        for value in self.counts:
            first, *others = [self.build("SExt", self.of_lane(value, lane), m.i64) for lane in self.lanes]
            for i, other in enumerate(others, 1):
                is_next = self.build("ICmp", llvm.EQ, other, self.build("Add", first, m.number(i, m.i64)))
                fits = self.build("And", fits, self.build("Freeze", is_next))
        return fits

    def find_inputs(self):
        """Builds, for each thread, the values from before the loop that the loop uses."""
        self.spread = {}
        for value in self.inside:
            for operand in self.outside_operands(value):
                if not self.is_uniform(operand):
                    each = [self.of_lane(operand, lane) for lane in self.lanes]
                    if self.m.opcode(value) not in (llvm.GEP, llvm.LOAD) and operand not in self.spread:
                        self.spread[operand] = self.gather(each)

    def write_loop(self, before):
        """Builds the loop for several threads, which stores its results. The builder moves from the block in front of
        the loop to the block after it."""
        w, m, lib, row = self.w, self.m, self.lib, self.row
        head, chunk, one, left = [w.new_block("") for _ in range(4)]
        starts = {phi: self.as_vector(v) if phi in self.varying else v for phi, v in self.start.items()}
        w.branch(head)
        w.at_end(head)
        phis = {phi: self.build("Phi", lib.TypeOf(starts[phi])) for phi in starts}
        size = self.chunk()
        more = self.build("Sub", row.limit, phis[row.counter])
        w.branch_if(self.build("ICmp", llvm.UGE, more, m.number(size, lib.TypeOf(more))), chunk, one)
        ends = []
        for block, count in ((chunk, size), (one, 1)):
            w.at_end(block)
            env = self.rounds(phis, count)
            again = [head, left] if row.stays == 0 else [left, head]
            w.branch_if(env[lib.GetCondition(m.terminator(row.block))], *again)
            ends.append((env, block))
        for phi, value in phis.items():
            m.add_ways(value, [(starts[phi], before), *((self.following(phi, env), block) for env, block in ends)])
        w.at_end(left)
        values = [self.build("Phi", lib.TypeOf(ends[0][0][v])) for v in self.ends]
        for phi, value in zip(values, self.ends):
            m.add_ways(phi, [(env[value], block) for env, block in ends])
        for phi, value in zip(values, self.ends):
            w.store(phi, self.places[value])

    def remap_values(self, start, results, places):
        """Finds the loop's values again after its phis were recreated."""
        new = dict(zip(self.inside, self.m.instructions(self.row.block)))
        self.inside = list(new.values())
        self.varying = {new.get(value, value) for value in self.varying}
        self.loads = [new[value] for value in self.loads]
        self.start = {new[phi]: value for phi, value in start.items()}
        self.ends = [new[value] for value in results]
        self.places = {new[value]: place for value, place in places.items()}
        self.row.counter = new[self.row.counter]

    def join(self, merge, fetch, taken):
        """Merges the results of both paths for the code after the loop."""
        w, m, lib, row = self.w, self.m, self.lib, self.row
        m.redirect(row.block, row.after, merge)
        w.at_end(merge)
        for value, other in zip(self.ends, taken):
            users = {user for user in m.users(value) if lib.GetInstructionParent(user) not in (row.block, merge)}
            phi = self.build("Phi", lib.TypeOf(value))
            m.add_ways(phi, [(value, row.block), (other, fetch)])
            for user in users:
                for i, operand in enumerate(m.operands(user)):
                    if operand == value:
                        lib.SetOperand(user, i, phi)
        w.branch(row.after)
        for phi in m.phis(row.after):
            m.replace_phi(phi, lambda v, b: (v, merge if b == row.block else b), w.builder)

    def of_lane(self, value, lane):
        """Builds the value that a value from before the loop has in another thread."""
        if value in lane or value not in self.block_of or self.is_uniform(value):
            return lane.get(value, value)
        operands = [self.of_lane(operand, lane) for operand in self.m.operands(value)]
        copy = self.lib.InstructionClone(value)
        self.m.insert(self.w.builder, copy)
        for i, operand in enumerate(operands):
            self.lib.SetOperand(copy, i, operand)
        lane[value] = copy
        return copy

    def gather(self, values):
        vector = self.lib.GetUndef(self.vector(self.lib.TypeOf(values[0])))
        for i, value in enumerate(values):
            vector = self.build("InsertElement", vector, value, self.m.number(i))
        return vector

    def as_vector(self, value):
        """Returns the vector of a value, which is either uniform or already known for each thread."""
        if value in self.spread:
            return self.spread[value]
        first = self.build("InsertElement", self.lib.GetUndef(self.vector(self.lib.TypeOf(value))), value, self.m.number(0))
        return self.shuffle(first, first, [0] * LANES)

    def shuffle(self, a, b, mask):
        mask = self.lib.ConstVector(llvm.array(list(map(self.m.number, mask))), len(mask))
        return self.build("ShuffleVector", a, b, mask)

    def chunk(self):
        """Returns the number of iterations that are executed together."""
        sizes = [self.lib.ABISizeOfType(self.m.layout, self.lib.TypeOf(load)) for load in self.loads]
        return max(CHUNK, *(16 // size for size in sizes))

    def following(self, phi, env):
        value = next(v for v, b in self.m.incoming(phi) if b == self.row.block)
        return env.get(value, self.as_vector(value) if phi in self.varying and value not in env else value)

    def rounds(self, phis, count):
        """Builds iterations of the loop; returns the values of the last one. Loads of the threads' own rows are built
        for all iterations together, or one by one if there is only one iteration."""
        first, ready = {}, {}
        state = dict(phis)
        for number in range(count):
            env = dict(state)
            for value in self.inside:
                if value in env:
                    continue
                if value not in self.varying:
                    env[value] = self.copy(value, env)
                elif value in self.loads:
                    if self.is_column(value):
                        at = self.address(self.m.operands(value)[0], env, self.lanes[0], {})
                        env[value] = self.w.load(self.vector(self.lib.TypeOf(value)), at)
                        self.lib.SetAlignment(env[value], self.lib.GetAlignment(value))
                    elif count == 1:
                        env[value] = self.gather([self.load_of(value, env, lane) for lane in self.lanes])
                    else:
                        env[value] = self.column(value, number, env, first, ready)
                elif self.m.opcode(value) != llvm.GEP and not self.is_address(value):
                    env[value] = self.vector_of(value, env)
            state = {phi: self.following(phi, env) for phi in phis}
        return env

    def is_address(self, value):
        """Returns whether a value is used only in the addresses of loads, which are built for each thread."""
        users = self.m.users(value)
        return self.m.opcode(value) != llvm.PHI and bool(users) and all(
            self.lib.GetInstructionParent(u) == self.row.block and (self.m.opcode(u) == llvm.GEP or self.is_address(u)) for u in users
        )

    def copy(self, value, env):
        copy = self.lib.InstructionClone(value)
        self.m.insert(self.w.builder, copy)
        for i, operand in enumerate(self.m.operands(value)):
            if operand in env:
                self.lib.SetOperand(copy, i, env[operand])
        return copy

    def address(self, value, env, lane, made):
        """Builds an address in this iteration for one thread."""
        if value not in self.inside:
            return self.of_lane(value, lane)
        if value not in self.varying:
            return env[value]
        if value not in made:
            operands = [self.address(operand, env, lane, made) for operand in self.m.operands(value)]
            made[value] = self.lib.InstructionClone(value)
            self.m.insert(self.w.builder, made[value])
            for i, operand in enumerate(operands):
                self.lib.SetOperand(made[value], i, operand)
        return made[value]

    def load_of(self, load, env, lane):
        made = self.w.load(self.lib.TypeOf(load), self.address(self.lib.GetOperand(load, 0), env, lane, {}))
        self.lib.SetAlignment(made, self.lib.GetAlignment(load))
        return made

    def column(self, load, number, env, first, ready):
        """Builds the vector that a load returns in one iteration of a chunk. GROUP words of each thread are loaded at
        once. A word is one element, or several small ones."""
        m, lib, kind = self.m, self.lib, self.lib.TypeOf(load)
        size = lib.ABISizeOfType(m.layout, kind)
        word, each = (kind, 1) if size >= 4 else (m.i32, 4 // size)
        if load not in first:
            first[load] = [self.address(lib.GetOperand(load, 0), env, lane, {}) for lane in self.lanes]
        group, inside = divmod(number, GROUP * each)
        if (load, group) not in ready:
            ready[load, group] = self.transpose(load, first[load], word, group * GROUP)
        value = ready[load, group][inside // each]
        if each == 1:
            return value
        bits = 8 * size
        shifted = self.build("LShr", value, self.as_vector(m.number(bits * (inside % each))))
        small = self.build("Trunc", shifted, self.vector(lib.IntTypeInContext(m.context, bits)))
        return small if lib.GetTypeKind(kind) == llvm.INTEGER_TYPE else self.build("BitCast", small, self.vector(kind))

    def transpose(self, load, places, word, start):
        """Loads GROUP words of each thread; returns a vector for each of these words."""
        parts = []
        for place in places:
            at = self.w.element(word, place, self.m.number(start, self.m.i64)) if start else place
            part = self.w.load(self.vector(word, GROUP), at)
            self.lib.SetAlignment(part, self.lib.GetAlignment(load))
            parts.append(part)
        rows = []
        for i in range(GROUP):
            wide, count = parts[i::GROUP], GROUP
            while len(wide) > 1:
                count *= 2
                wide = [self.shuffle(a, b, range(count)) for a, b in zip(wide[::2], wide[1::2])]
            rows.append(wide[0])

        def mix(a, b, mask):
            return self.shuffle(a, b, [base + i % GROUP + (LANES if i >= GROUP else 0) for base in range(0, LANES, GROUP) for i in mask])

        low, high = (0, 4, 1, 5), (2, 6, 3, 7)
        pairs = [mix(rows[0], rows[1], low), mix(rows[2], rows[3], low), mix(rows[0], rows[1], high), mix(rows[2], rows[3], high)]
        first, second = (0, 1, 4, 5), (2, 3, 6, 7)
        return [mix(pairs[i], pairs[i + 1], mask) for i in (0, 2) for mask in (first, second)]

    def vector_of(self, value, env):
        """Builds an instruction of the loop for all threads."""
        m, lib, opcode = self.m, self.lib, self.m.opcode(value)
        arguments = m.arguments(value) if opcode == llvm.CALL else m.operands(value)
        operands = [env[o] if o in self.varying else self.as_vector(env.get(o, o)) for o in arguments]
        kind = self.vector(lib.TypeOf(value))
        if opcode == llvm.CALL:
            number = lib.GetIntrinsicID(m.callee(value))
            function = lib.GetIntrinsicDeclaration(m.handle, number, llvm.array([kind]), 1)
            return self.build("Call2", lib.GlobalGetValueType(function), function, llvm.array(operands), len(operands))
        if opcode == llvm.ICMP:
            return self.build("ICmp", lib.GetICmpPredicate(value), *operands)
        if opcode == FCMP:
            return self.build("FCmp", lib.GetFCmpPredicate(value), *operands)
        if opcode in CASTS:
            return self.build("Cast", opcode, operands[0], kind)
        if opcode == FNEG:
            return self.build("FNeg", operands[0])
        if opcode == llvm.SELECT:
            return self.build("Select", *operands)
        if opcode == llvm.FREEZE:
            return self.build("Freeze", operands[0])
        return self.build("BinOp", opcode, *operands)
