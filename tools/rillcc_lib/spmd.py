"""Rewrites a module between the two halves of clang, from the program of one thread to functions that run the threads
of a block.

For each kernel the module has two functions: run_block is the program of one thread after rill_ir_begin, and run_thread
is the same program for a thread on a fiber. A table entry points to both. If a kernel can be cut, run_block is
rewritten and run_thread is removed; otherwise run_block is removed.
"""

import functools
import os
from dataclasses import dataclass

from . import (
    any_shape,
    apart,
    atomics,
    bounds,
    conversions,
    counts,
    divisions,
    few,
    interchange,
    ir,
    llvm,
    maxima,
    regions,
    rows,
    small_vectors,
    stacks,
    sums,
    threads,
    usual_blocks,
    vector_calls,
    versions,
    wraps,
)
from .slots import MOST_THREADS

# With more synchronization points than this, clang takes minutes to compile the loops between them.
MOST_SYNC_POINTS = 64
RETURN_STATUS = 2  # value for LLVMVerifyFunction
CACHE_LINE = 64  # bytes
NEVER_WAIT, ANY_SHAPE = 1, 2  # facts about kernels, from rill/device/cpu_image.h
# Functions of the C library for which rill/device/host_math.h has functions that vectorize.
MATHEMATICS = """expf exp2f exp10f expm1f logf log2f log10f log1pf sinf cosf sincosf tanf asinf acosf atanf atan2f sinhf coshf tanhf
    asinhf acoshf atanhf erff erfcf powf cbrtf hypotf sinpif cospif""".split()
MATHEMATICS_OF_DOUBLE = """exp exp2 exp10 expm1 log log2 log10 log1p sin cos sincos tan asin acos atan atan2 sinh cosh tanh asinh
    acosh atanh cbrt hypot sinpi cospi""".split()
# Functions of the header that some kernels need.
HELPERS = ("rill_fiber_", "rill_sched_", "rill_check_")
COUNTS = "rill_sched_count"  # borders.py may need this helper later
# These passes precede the cut. They inline functions, turn variables into registers and unroll small loops.
PREPARE = "always-inline,globaldce,default<O1>"
FINISH = "function(jump-threading,simplifycfg,loop-simplify,lcssa)"


@dataclass
class Entry:
    """A kernel in the image's table."""

    name: str
    run_block: int
    run_thread: int
    versions: list  # the functions that run a block: run_block, or the versions from which it chooses


class Rewriter:
    def __init__(self, library, module, fill):
        self.lib, self.m, self.fill = library, module, fill
        self.arrays = {}  # kernel: the largest size of its threads' arrays, in bytes
        self.usual = usual_blocks.UsualBlocks(module, self.callers)

    # Contents of the module

    def entries(self):
        found = []
        for variable in self.m.chain(self.lib.GetFirstGlobal(self.m.handle), self.lib.GetNextGlobal):
            name = self.m.name(variable)
            if "rill_entry_" in name and (self.lib.GetSection(variable) or b"") == b"rill_kernels":
                start = self.lib.GetInitializer(variable)
                block, thread = [self.lib.GetOperand(start, i) for i in (1, 2)]
                found.append(Entry(name.split("rill_entry_", 1)[1], block, thread, self.versions_of(block)))
        return found

    def versions_of(self, run_block):
        name = self.m.name(run_block)
        if not name.startswith(versions.CHOOSES):
            return [run_block]
        name = name[len(versions.CHOOSES) :]
        names = name, name + versions.ALL, name + versions.SOME
        return [function for function in map(self.m.function, names) if function]

    def callers(self, functions):
        """Returns the functions that call one of these functions directly or indirectly."""
        found, work = set(), list(functions)
        while work:
            for user in self.m.users(work.pop()):
                if not self.lib.IsAInstruction(user):
                    continue
                function = self.lib.GetBasicBlockParent(self.lib.GetInstructionParent(user))
                if function not in found:
                    found.add(function)
                    work.append(function)
        return found

    def markers(self):
        return [self.m.function(name) for name in regions.MARKERS if self.m.function(name)]

    # Before the cut

    def prepare(self, unroll=True):
        """Inlines functions that read the thread's index or synchronize into the kernels."""
        lib, m = self.lib, self.m
        self.replace_dynamic_shared()
        self.align_shared()
        self.replace_mathematics()
        conversions.narrow(m)
        kernels = {f for entry in self.entries() for f in (entry.run_block, entry.run_thread)}
        always = m.attribute("alwaysinline")
        for function in (self.callers(self.markers()) | self.functions_in_lockstep()) - kernels:
            for name in ("noinline", "optnone"):
                kind = lib.GetEnumAttributeKindForName(name.encode(), len(name))
                lib.RemoveEnumAttributeAtIndex(function, llvm.FUNCTION_INDEX, kind)
            lib.AddAttributeAtIndex(function, llvm.FUNCTION_INDEX, always)
        self.add_range_metadata()
        self.internalize()
        vector_calls.add(m)
        self.drop_helpers(self.never_needed)
        vector_calls.drop(m)
        if not unroll:
            self.remove_loop_hints()
        m.run_passes(PREPARE, unroll)
        warp_functions = {name for name, point in regions.SYNC_POINTS.items() if point.waits in (regions.WARP, regions.WARP_ANY)}
        for entry in self.entries():
            few.Marks(m, entry.run_block, set(regions.SYNC_POINTS) - warp_functions, warp_functions).add()
        m.run_passes(FINISH, unroll)
        sums.restore(m)
        maxima.simplify(m)
        small_vectors.split(m)
        atomics.mark(m)

    def add_range_metadata(self):
        """Tells LLVM that a thread's index is not negative as an int, which makes its quotients and remainders simpler."""
        lib, m, kind = self.lib, self.m, self.lib.GetMDKindIDInContext(self.m.context, b"range", 5)
        ends = [lib.ValueAsMetadata(m.number(number)) for number in (0, MOST_THREADS)]
        node = lib.MetadataAsValue(m.context, lib.MDNodeInContext2(m.context, llvm.array(ends), len(ends)))
        for function in filter(None, map(m.function, regions.THREAD)):
            for call in m.users(function):
                lib.SetMetadata(call, kind, node)

    def remove_loop_hints(self):
        """Removes the hints of `#pragma unroll`, which are meant for GPUs and which LLVM would follow."""
        kind = self.lib.GetMDKindIDInContext(self.m.context, b"llvm.loop", 9)
        for function in self.m.functions():
            for block in self.m.blocks(function):
                self.lib.SetMetadata(self.m.terminator(block), kind, None)

    def most_sync_points(self):
        """Returns the largest number of synchronization points in one kernel."""
        counts = [0]
        for entry in self.entries():
            calls = [i for b in self.m.blocks(entry.run_block) for i in self.m.instructions(b) if self.lib.IsACallInst(i)]
            names = [self.m.name(callee) for callee in map(self.m.callee, calls) if callee]
            counts.append(sum(name in regions.SYNC_POINTS for name in names))
        return max(counts)

    def internalize(self):
        """Gives all functions internal linkage, so that LLVM removes those that no kernel calls. An image is called
        only through its table."""
        for function in self.m.functions():
            if self.lib.IsDeclaration(function) or self.lib.GetLinkage(function) == llvm.AVAILABLE_EXTERNALLY_LINKAGE:
                continue
            if (self.lib.GetSection(function) or b"") == b"rill_global":
                self.lib.SetSection(function, b"")
            self.lib.SetLinkage(function, llvm.INTERNAL_LINKAGE)
            self.lib.SetComdat(function, None)

    def drop_helpers(self, unneeded=lambda name: True):
        """Removes the helpers that nothing calls."""
        used = self.m.used()
        helpers = {name for name in used if name.startswith(HELPERS) and unneeded(name)}
        self.m.set_used([name for name in used if name not in helpers])
        self.m.run_passes("globaldce")
        # The remaining helpers stay in the list of used functions, so that the code of a kernel does not depend on
        # other callers.
        self.m.set_used([name for name in used if name not in helpers or self.m.function(name)])

    def never_needed(self, name):
        """Returns whether no kernel of this source can need a helper, judging by what the source calls."""
        if name.startswith("rill_fiber_"):
            return not self.m.function(name.replace("rill_fiber_", "rill_ir_"))
        return name.startswith("rill_sched_") and not self.threads_synchronize and name != COUNTS

    @functools.cached_property
    def threads_synchronize(self):
        return any(map(self.m.function, regions.SYNC_POINTS)) or any(map(self.volatile_accesses, self.m.functions()))

    def drop_services(self):
        """Removes the stores of the backend's functions from kernels that cannot call any of them."""
        m, lib = self.m, self.lib
        variables = [v for v in m.chain(lib.GetFirstGlobal(m.handle), lib.GetNextGlobal) if m.name(v).endswith("rill_services")]
        stores, others = [], []
        for variable in variables:
            for user in m.users(variable):
                uses = m.users(user) if lib.IsAInstruction(user) and lib.IsACallInst(user) else [None]
                for use in uses:
                    plain = use and m.is_binary(use, llvm.STORE) and lib.GetOperand(use, 1) == user
                    (stores if plain else others).append(use or user)
        if not all(map(lib.IsAInstruction, others)):
            return
        calling = {self.parent(use) for use in others}
        calls = [i for f in m.functions() for b in m.blocks(f) for i in m.instructions(b) if lib.IsACallInst(i) and not m.callee(i)]
        calling |= {self.parent(call) for call in calls if not lib.IsAInlineAsm(lib.GetCalledValue(call))}
        calling |= self.callers(calling)
        for store in stores:
            function = self.parent(store)
            # rill_fiber_enter(), unless it was inlined, stores them for the functions that call it.
            if function not in calling and "rill_fiber_enter" not in m.name(function):
                lib.InstructionEraseFromParent(store)

    def parent(self, instruction):
        return self.lib.GetBasicBlockParent(self.lib.GetInstructionParent(instruction))

    def remove_level(self):
        """Removes the processor's level from all functions, so that the command that compiles the module selects it."""
        for function in self.m.functions():
            for name in (b"target-cpu", b"target-features"):
                self.lib.RemoveStringAttributeAtIndex(function, llvm.FUNCTION_INDEX, name, len(name))

    def replace_dynamic_shared(self):
        """Replaces variables such as `extern __shared__ float tile[]` by the block's dynamic shared memory."""
        m, lib = self.m, self.lib
        for function in m.functions():
            if m.name(function).startswith("_ZTH") and lib.IsDeclaration(function):
                lib.ReplaceAllUsesWith(function, lib.ConstNull(m.pointer))  # it is not initialized
        for variable in m.chain(lib.GetFirstGlobal(m.handle), lib.GetNextGlobal):
            if not lib.IsThreadLocal(variable) or not lib.IsDeclaration(variable):
                continue
            kind = lib.FunctionType(m.pointer, llvm.array([]), 0, 0)
            shared = m.function("rill_ir_shared") or lib.AddFunction(m.handle, b"rill_ir_shared", kind)
            builder = lib.CreateBuilderInContext(m.context)
            for user in m.users(variable):
                if not lib.IsAInstruction(user):
                    continue
                lib.PositionBuilderBefore(builder, user)
                place = lib.BuildCall2(builder, kind, shared, llvm.array([]), 0, b"")
                if lib.IsACallInst(user) and m.callee(user) and m.name(m.callee(user)).startswith("llvm.threadlocal"):
                    lib.ReplaceAllUsesWith(user, place)
                    lib.InstructionEraseFromParent(user)
                else:
                    for i in (i for i, operand in enumerate(m.operands(user)) if operand == variable):
                        lib.SetOperand(user, i, place)
            lib.DisposeBuilder(builder)

    def align_shared(self):
        """Aligns shared arrays to cache lines, because an access to a vector that crosses two lines is slow."""
        for variable in self.m.chain(self.lib.GetFirstGlobal(self.m.handle), self.lib.GetNextGlobal):
            kind = self.lib.GlobalGetValueType(variable)
            if not self.lib.IsThreadLocal(variable) or self.lib.IsDeclaration(variable):
                continue
            if self.lib.ABISizeOfType(self.m.layout, kind) >= CACHE_LINE:
                self.lib.SetAlignment(variable, max(CACHE_LINE, self.lib.GetAlignment(variable)))

    def replace_mathematics(self):
        """Replaces functions of the C library and of LLVM by rill's own."""
        intrinsics = {name: "llvm.%s.f32" % name[:-1] for name in MATHEMATICS}
        intrinsics.update({name: "llvm.%s.f64" % name for name in MATHEMATICS_OF_DOUBLE})
        for name, intrinsic in intrinsics.items():
            own = self.m.function("rill_math_" + name)
            for other in (name, intrinsic):
                if own and self.m.function(other):
                    self.lib.ReplaceAllUsesWith(self.m.function(other), own)

    # Warps in lockstep

    def volatile_accesses(self, function):
        """Returns the volatile loads and stores, each with its pointer."""
        found = []
        for block in self.m.blocks(function):
            for instruction in self.m.instructions(block):
                where = {llvm.LOAD: 0, llvm.STORE: 1}.get(self.m.opcode(instruction))
                if where is not None and self.lib.GetVolatile(instruction):
                    found.append((instruction, self.lib.GetOperand(instruction, where)))
        return found

    def functions_in_lockstep(self):
        """Returns the functions with volatile accesses to memory that may not be their own, and the functions that call
        these."""
        functions = [f for f in self.m.functions() if not self.lib.IsDeclaration(f) and self.may_share(f)]
        return set(functions) | self.callers(functions)

    def may_share(self, function):
        return any(not self.is_private(pointer) for _, pointer in self.volatile_accesses(function))

    def is_private(self, pointer, seen=()):
        """Returns whether a pointer is to memory on the thread's stack. The pointer may itself be stored in a variable
        there."""
        while self.lib.IsAInstruction(pointer) and self.m.opcode(pointer) == llvm.GEP:
            pointer = self.lib.GetOperand(pointer, 0)
        if self.lib.IsAAllocaInst(pointer) or pointer in seen:
            return True
        if not self.lib.IsAInstruction(pointer) or self.m.opcode(pointer) != llvm.LOAD:
            return False
        variable = self.lib.GetOperand(pointer, 0)
        stores = [user for user in self.m.users(variable) if self.m.is_binary(user, llvm.STORE)]
        values = [self.lib.GetOperand(store, 0) for store in stores]
        return bool(self.lib.IsAAllocaInst(variable)) and all(self.is_private(v, (*seen, pointer)) for v in values)

    def is_shared(self, pointer):
        """Returns whether a pointer may be to shared memory: to a thread-local variable, or to dynamic shared memory."""
        seen, work = set(), [pointer]
        while work:
            value = work.pop()
            if value in seen:
                continue
            seen.add(value)
            if self.lib.IsAGlobalVariable(value) and self.lib.IsThreadLocal(value):
                return True
            if self.lib.IsAConstantExpr(value):
                work += self.m.operands(value)[:1]
            if not self.lib.IsAInstruction(value):
                continue
            opcode = self.m.opcode(value)
            if opcode == llvm.CALL:
                name = self.m.name(self.m.callee(value)) if self.m.callee(value) else ""
                if name == "rill_ir_shared":
                    return True
                work += self.m.arguments(value)[:1] if name.startswith("llvm.threadlocal") else []
            elif opcode == llvm.GEP:
                work.append(self.lib.GetOperand(value, 0))
            elif opcode in (llvm.SELECT, llvm.PHI):
                work += self.m.operands(value)[opcode == llvm.SELECT :]
        return False

    def mark_lockstep(self, kernel):
        """Keeps the lanes of a warp together at volatile accesses, as programs for warps in lockstep expect. This
        applies to accesses to shared memory, and if there are volatile stores, also to other memory that lanes may use
        to communicate."""
        accesses = [(at, pointer) for at, pointer in self.volatile_accesses(kernel) if not self.is_private(pointer)]
        stored = any(self.m.opcode(at) == llvm.STORE for at, _ in accesses)
        places = [at for at, pointer in accesses if stored or self.is_shared(pointer)]
        if not places:
            return
        m, lib = self.m, self.lib
        kind = lib.FunctionType(m.void, llvm.array([]), 0, 0)
        marker = m.function(regions.LOCKSTEP) or lib.AddFunction(m.handle, regions.LOCKSTEP.encode(), kind)
        builder = lib.CreateBuilderInContext(m.context)
        for place in places:
            lib.PositionBuilderBefore(builder, place)
            lib.BuildCall2(builder, kind, marker, llvm.array([]), 0, b"")
        lib.DisposeBuilder(builder)

    def independent_kernels(self):
        """Returns the kernels whose blocks never wait for others."""
        blocks = apart.Blocks(self)
        return {entry.name for entry in self.entries() if blocks.never_wait(entry.versions)}

    def kernels_of_any_shape(self):
        """Returns the kernels that work in blocks of any shape, and gain from longer rows. Kernels with interchanged loops do
        not, because their sums stay in registers while rows are short. If a kernel of two dimensions accesses columns,
        as a transpose does, its blocks are tiles whose memory fits into the cache."""
        shape, found = any_shape.AnyShape(self), set()
        for entry in self.entries():
            if all(map(shape.includes, entry.versions)):
                if not shape.has_columns() or interchange.Interchange(self.m, entry.run_block).accesses_rows():
                    found.add(entry.name)
        return found

    def interchange(self):
        for entry in self.entries():
            interchange.Interchange(self.m, entry.run_block).add()

    def add_versions(self):
        makers = [versions.Versions(self.m, entry.run_block) for entry in self.entries()]
        try:
            for step in "add", "add_borders":  # the passes of the first step must precede the second step
                for maker in makers:
                    getattr(maker, step)()
        finally:
            for maker in makers:
                maker.close()

    def fold_counts(self):
        """Removes counts of the threads in a block that are known. In a version with borders, threads beyond a border count as
        ended."""
        found = dict.fromkeys(function for entry in self.entries() for function in entry.versions)
        functions = [function for function in found if not self.m.has_text_attribute(function, regions.BORDERS)]
        if sum(counts.Counts(self.m, function).fold() for function in functions) > 0:
            self.m.run_passes("function(instsimplify,simplifycfg,adce)")

    # The cut

    def address_taken(self, functions):
        """Returns one of the functions that may be called through a pointer, or None."""
        for function in functions:
            for user in self.m.users(function):
                if not self.lib.IsACallInst(user) or self.m.callee(user) != function:
                    return function
        return None

    def is_service(self, call):
        """Returns whether an indirect call is of a function of the backend, whose pointer is in `rill_services`."""
        value = self.lib.GetCalledValue(call)
        for _ in range(8):
            if self.m.name(value).endswith("rill_services"):
                return True
            if not self.lib.IsAInstruction(value) or self.m.opcode(value) not in (llvm.LOAD, llvm.GEP, llvm.CALL):
                return False
            value = self.lib.GetOperand(value, 0)
        return False

    def cut(self, kernel, syncing_functions):
        for block in self.m.blocks(kernel):
            for instruction in self.m.instructions(block):
                if not self.lib.IsACallInst(instruction):
                    continue
                callee = self.m.callee(instruction)
                if callee in syncing_functions:
                    raise regions.Refused('"%s" calls itself, so it cannot be inlined into the kernel' % stacks.readable(self.m.name(callee)))
                if callee or self.lib.IsAInlineAsm(self.lib.GetCalledValue(instruction)):
                    continue
                if not self.is_service(instruction):
                    taken = self.address_taken(syncing_functions)
                    if taken:
                        raise regions.Refused('it may call "%s" through a pointer' % stacks.readable(self.m.name(taken)))
        finder = regions.Finder(self.m, kernel, self.fill)
        try:
            finder.find()
            writer = threads.Writer(finder)
            writer.write()
            if not finder.synchronizes and not finder.has_gathers:
                self.widen(kernel)
            if self.lib.VerifyFunction(kernel, RETURN_STATUS):
                raise regions.Refused("LLVM finds an error in the loops that rillcc made from it, which is a bug in rillcc")
            return finder, writer
        finally:
            finder.close()

    def widen(self, kernel):
        """Makes clang use vectors of 512 bits with AVX-512; its default is 256 bits. Mathematical functions become a
        third faster. Kernels with shared memory and shuffles load and store more and would lose as much, so they keep
        the default. So do kernels with interchanged loops that gather, because a gather of 512 bits takes longer than
        two of 256 bits on some processors."""
        name, width = b"prefer-vector-width", b"512"
        wide = self.lib.CreateStringAttribute(self.m.context, name, len(name), width, len(width))
        self.lib.AddAttributeAtIndex(kernel, llvm.FUNCTION_INDEX, wide)

    def remove(self, function):
        self.lib.ReplaceAllUsesWith(function, self.lib.ConstNull(self.m.pointer))
        self.lib.DeleteFunction(function)

    def cut_all(self, entry, syncing):
        """Cuts the versions of a kernel; returns a note on how it runs, and the largest size of its threads' arrays in
        bytes."""
        finder, writer = self.cut(entry.versions[0], syncing)
        note = "loops between barriers" if finder.synchronizes else "a loop over the threads"
        most, inside, has_rows = writer.most_bytes(), finder.inside, writer.has_rows
        fastest = entry.versions[0], finder, writer
        for version in entry.versions[1:]:
            at_borders = self.m.has_text_attribute(version, regions.BORDERS)
            gains = not (at_borders and has_rows)  # loops over rows are faster
            if gains:
                finder, writer = self.cut(version, syncing)
                most = max(most, writer.most_bytes())
                gains = not writer.needs_next and (finder.inside or not at_borders)
            if not gains:
                self.lib.ReplaceAllUsesWith(version, entry.versions[0])
                self.lib.DeleteFunction(version)
            else:
                inside |= finder.inside
                has_rows |= writer.has_rows
                fastest = fastest if at_borders else (version, finder, writer)
        self.note_usual(*fastest[1:])
        note += ", inside its own loops" if inside else ""
        return note + (", rows of %d threads at a time" % rows.LANES if has_rows else ""), most

    def note_usual(self, finder, writer):
        if (finder.synchronizes or finder.inside) and not writer.needs_next:
            self.usual.note(finder, writer)

    def optional_cuts(self, entry):
        """Returns the cuts of a kernel at which no thread waits."""
        markers = filter(None, map(self.m.function, (regions.INTERCHANGE, few.MARKER)))
        calls = [call for marker in markers for call in self.m.users(marker)]
        return [i for i in calls if self.lib.GetBasicBlockParent(self.lib.GetInstructionParent(i)) in entry.versions]

    def rewrite(self, refused, as_written):
        """Cuts all kernels except those in `refused`, and returns a note for each kernel. If a kernel cannot be cut,
        returns None; the module is then unusable, and the caller has to start again. A kernel with interchanged loops
        is first added to `as_written`, which disables the interchange, because a thread may keep too much between
        iterations. Any other kernel is added to `refused` with the reason."""
        notes = {}
        kernels = {f for entry in self.entries() for f in (entry.run_block, entry.run_thread, *entry.versions)}
        syncing = self.callers(self.markers()) - kernels
        for entry in self.entries():
            if entry.name in refused:
                for function in dict.fromkeys([entry.run_block, *entry.versions]):
                    self.remove(function)
                notes[entry.name] = "fibers: %s" % refused[entry.name]
                continue
            cuts = self.optional_cuts(entry)
            if entry.name in as_written:
                for cut in cuts:
                    self.lib.InstructionEraseFromParent(cut)
            try:
                notes[entry.name], self.arrays[entry.name] = self.cut_all(entry, syncing)
            except regions.Refused as why:
                if cuts and entry.name not in as_written:
                    as_written.add(entry.name)
                else:
                    refused[entry.name] = str(why)
                return None
            self.remove(entry.run_thread)
        self.usual.add()
        for marker in self.markers():
            fiber = self.m.function(self.m.name(marker).replace("rill_ir_", "rill_fiber_"))
            if fiber:
                self.lib.ReplaceAllUsesWith(marker, fiber)
        return notes


def rewrite(library, source, output, fibers, options, any_level=False):
    """Rewrites the bitcode of one file into another. Returns a note for each kernel on how it runs, the largest size of
    its threads' arrays in bytes, facts about kernels, and whether an index wraps as in wraps.py. If `fibers` is a
    reason, all kernels run on fibers and nothing is inlined. With options.fill, the arrays are first filled with a
    pattern. With options.check, calls in front of accesses name their variables. With `any_level`, the output can be
    compiled for any level of the processor."""
    prepared = output + ".prepared"
    facts: dict = {}
    for unroll in () if fibers else (True, False):
        module = ir.Module(library, source)
        try:
            rewriter = Rewriter(library, module, options.fill)
            rewriter.prepare(unroll)
            if unroll and rewriter.most_sync_points() > MOST_SYNC_POINTS:
                continue
            never_wait = rewriter.independent_kernels()
            for entry in rewriter.entries():
                rewriter.mark_lockstep(entry.run_block)
            rewriter.interchange()
            shaped = rewriter.kernels_of_any_shape()
            facts = {name: NEVER_WAIT | (ANY_SHAPE if name in shaped else 0) for name in never_wait}
            rewriter.add_versions()
            rewriter.fold_counts()
            module.write(prepared)
            break
        finally:
            module.close()
    refused, as_written = {}, set()
    while True:
        module = ir.Module(library, source if fibers else prepared)
        try:
            rewriter = Rewriter(library, module, options.fill)
            if fibers:
                rewriter.replace_dynamic_shared()
                rewriter.replace_mathematics()
                conversions.narrow(module)
                rewriter.internalize()
                if options.check:
                    bounds.Bounds(module).add()
                refused = {entry.name: fibers for entry in rewriter.entries()}
            notes = rewriter.rewrite(refused, as_written)
            if notes is not None:
                conversions.replace(module)
                atomics.replace(module)
                divisions.Divisions(module).replace()
                index_wraps = wraps.Wraps(module).exist()
                rewriter.drop_helpers()
                vector_calls.drop(module)
                rewriter.drop_services()
                if any_level:
                    rewriter.remove_level()
                module.write(output)
                if not fibers:
                    os.unlink(prepared)
                return notes, rewriter.arrays, facts, index_wraps
        finally:
            module.close()
