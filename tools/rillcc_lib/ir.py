"""Provides LLVM modules with their functions, basic blocks and instructions, and the changes that rillcc makes to them."""

import ctypes
import functools
import sys

from . import llvm

PURE = {llvm.ADD, llvm.SUB, llvm.MUL, llvm.SHL, llvm.LSHR, llvm.ASHR, llvm.AND, llvm.OR, llvm.XOR, llvm.GEP}
PURE |= set(range(30, 42)) | {60, llvm.ICMP, 43, llvm.SELECT, llvm.FREEZE}  # casts, comparisons, select, freeze
PURE |= {9, 11, 13, 16, 19, 66, 50, 51, 52, 53, 54}  # floating-point arithmetic, and elements of vectors and structs
USED = b"llvm.compiler.used"
# LLVM's C interface cannot create distinct nodes, so this one is parsed.
GROUP = b"define void @f() {\n  ret void, !llvm.access.group !0\n}\n!0 = distinct !{}\n"
DIVISIONS = {llvm.UDIV, llvm.SDIV, llvm.UREM, llvm.SREM}


class Module:
    """A module that was read from bitcode, and parts of it that are often needed."""

    def __init__(self, library, path):
        self.lib = library
        self.context = library.ContextCreate()
        self.handler = llvm.DIAGNOSTIC_HANDLER(self.show_error)
        library.ContextSetDiagnosticHandler(self.context, self.handler, None)
        buffer, message, module = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        if library.CreateMemoryBufferWithContentsOfFile(path.encode(), ctypes.byref(buffer), ctypes.byref(message)):
            raise OSError(ctypes.string_at(message).decode())
        if library.ParseBitcodeInContext2(self.context, buffer, ctypes.byref(module)):
            raise ValueError("clang's output is not bitcode")
        self.handle = module.value
        self.i1 = library.Int1TypeInContext(self.context)
        self.i8 = library.Int8TypeInContext(self.context)
        self.i16 = library.Int16TypeInContext(self.context)
        self.i32 = library.Int32TypeInContext(self.context)
        self.i64 = library.Int64TypeInContext(self.context)
        self.pointer = library.PointerTypeInContext(self.context, 0)
        self.void = library.VoidTypeInContext(self.context)
        self.layout = library.GetModuleDataLayout(self.handle)
        self.find_debug_calls()

    def show_error(self, diagnostic, _):
        """Prints an error from LLVM. Warnings are dropped: they are about loops that rillcc has made, which have no
        source line."""
        if self.lib.GetDiagInfoSeverity(diagnostic) == 0:
            text = ctypes.string_at(self.lib.GetDiagInfoDescription(diagnostic)).decode("utf-8", "replace")
            print("error: " + text, file=sys.stderr)

    def close(self):
        self.lib.DisposeModule(self.handle)
        self.lib.ContextDispose(self.context)

    def run_passes(self, text, unroll=True):
        options = self.lib.CreatePassBuilderOptions()
        self.lib.PassBuilderOptionsSetLoopUnrolling(options, unroll)
        self.lib.PassBuilderOptionsSetLoopVectorization(options, False)  # see divisions.py
        error = self.lib.RunPasses(self.handle, text.encode(), None, options)
        self.lib.DisposePassBuilderOptions(options)
        if error:
            raise ValueError(ctypes.string_at(self.lib.GetErrorMessage(error)).decode())
        self.find_debug_calls()

    def functions(self):
        return self.chain(self.lib.GetFirstFunction(self.handle), self.lib.GetNextFunction)

    def find_debug_calls(self):
        """Finds the functions whose calls tell debuggers where variables are. Before version 19, LLVM has such calls
        among the instructions of a block; later versions have debug records instead."""
        self.debug = {function for function in self.functions() if self.name(function).startswith("llvm.dbg.")}

    def used(self):
        """Returns the names in llvm.compiler.used, which stay although nothing in the module refers to them."""
        listed = self.lib.GetNamedGlobal(self.handle, USED)
        return [self.name(value) for value in self.operands(self.lib.GetInitializer(listed))] if listed else []

    def set_used(self, names):
        lib = self.lib
        values = [lib.GetNamedFunction(self.handle, name) or lib.GetNamedGlobal(self.handle, name) for name in map(str.encode, names)]
        listed = lib.GetNamedGlobal(self.handle, USED)
        if listed:
            lib.DeleteGlobal(listed)
        listed = lib.AddGlobal(self.handle, lib.ArrayType2(self.pointer, len(values)), USED)
        lib.SetLinkage(listed, llvm.APPENDING_LINKAGE)
        lib.SetSection(listed, b"llvm.metadata")
        lib.SetInitializer(listed, lib.ConstArray2(self.pointer, llvm.array(values), len(values)))

    def function(self, name):
        return self.lib.GetNamedFunction(self.handle, name.encode())

    def is_x86(self):
        return self.lib.GetTarget(self.handle).startswith(b"x86_64")

    def write(self, path):
        if self.lib.WriteBitcodeToFile(self.handle, path.encode()):
            raise OSError("cannot write %s" % path)

    def number(self, value, kind=None):
        return self.lib.ConstInt(kind or self.i32, value & (2**64 - 1), 0)

    def attribute(self, name, value=0):
        kind = self.lib.GetEnumAttributeKindForName(name.encode(), len(name))
        return self.lib.CreateEnumAttribute(self.context, kind, value)

    @functools.cached_property
    def access_group(self):
        """A metadata node for accesses to memory that are independent between the iterations of a loop."""
        lib, other = self.lib, ctypes.c_void_p()
        text = lib.CreateMemoryBufferWithMemoryRangeCopy(GROUP, len(GROUP), b"group")
        if lib.ParseIRInContext(self.context, text, ctypes.byref(other), ctypes.byref(ctypes.c_void_p())):
            raise ValueError("LLVM cannot parse the text")
        block = lib.GetEntryBasicBlock(lib.GetNamedFunction(other, b"f"))
        node = lib.GetMetadata(self.terminator(block), self.access_kind)
        lib.DisposeModule(other)  # the node belongs to the context
        return node

    @functools.cached_property
    def access_kind(self):
        return self.lib.GetMDKindIDInContext(self.context, b"llvm.access.group", 17)

    @functools.cached_property
    def joined_kind(self):
        """The kind of metadata of the conditions that all_below.py has joined with another one."""
        return self.lib.GetMDKindIDInContext(self.context, b"rill.joined", 11)

    @functools.cached_property
    def gathers_kind(self):
        """The kind of metadata of the cuts of interchanged loops that gather (gathers.py)."""
        return self.lib.GetMDKindIDInContext(self.context, b"rill.gathers", 12)

    def mark(self, instruction, kind):
        """Attaches metadata without contents to an instruction."""
        self.lib.SetMetadata(instruction, kind, self.lib.MetadataAsValue(self.context, self.lib.MDNodeInContext2(self.context, llvm.array([]), 0)))

    def set_text_attribute(self, function, name):
        """Sets an attribute of rillcc's own on a function."""
        attribute = self.lib.CreateStringAttribute(self.context, name, len(name), b"", 0)
        self.lib.AddAttributeAtIndex(function, llvm.FUNCTION_INDEX, attribute)

    def has_text_attribute(self, function, name):
        return self.lib.GetStringAttributeAtIndex(function, llvm.FUNCTION_INDEX, name, len(name)) is not None

    def copy_attributes(self, function, other):
        """Gives another function the attributes of a function."""
        count = self.lib.GetAttributeCountAtIndex(function, llvm.FUNCTION_INDEX)
        attributes = llvm.array([None] * count)
        self.lib.GetAttributesAtIndex(function, llvm.FUNCTION_INDEX, attributes)
        for attribute in attributes[:count]:
            self.lib.AddAttributeAtIndex(other, llvm.FUNCTION_INDEX, attribute)

    def add_call(self, builder, function, callee, attribute=None):
        """Adds and returns a block that calls a function with the same arguments and then returns."""
        lib, kind = self.lib, self.lib.GlobalGetValueType(callee)
        block = lib.AppendBasicBlockInContext(self.context, function, b"")
        lib.PositionBuilderAtEnd(builder, block)
        arguments = [lib.GetParam(function, i) for i in range(lib.CountParams(callee))]
        call = lib.BuildCall2(builder, kind, callee, llvm.array(arguments), len(arguments), b"")
        lib.BuildRetVoid(builder)
        if attribute:
            lib.AddCallSiteAttribute(call, llvm.FUNCTION_INDEX, attribute)
        return block

    def no_memory(self):
        """Returns the attribute of functions that neither read nor write memory."""
        return self.attribute("memory" if self.lib.GetEnumAttributeKindForName(b"memory", 6) else "readnone")

    @staticmethod
    def chain(first, following):
        found = []
        while first:
            found.append(first)
            first = following(first)
        return found

    # Values

    def name(self, value):
        size = ctypes.c_size_t()
        return self.lib.GetValueName2(value, ctypes.addressof(size)).decode()

    def users(self, value):
        uses = self.chain(self.lib.GetFirstUse(value), self.lib.GetNextUse)
        return [self.lib.GetUser(use) for use in uses]

    def opcode(self, instruction):
        return self.lib.GetInstructionOpcode(instruction)

    def is_binary(self, value, opcode):
        return bool(self.lib.IsAInstruction(value)) and self.opcode(value) == opcode

    def operands(self, instruction):
        return [self.lib.GetOperand(instruction, i) for i in range(self.lib.GetNumOperands(instruction))]

    def is_computable(self, instruction):
        """Returns whether an instruction may be executed anywhere: it has no effects, and is no division that can fail."""
        opcode = self.opcode(instruction)
        if opcode not in DIVISIONS:
            return opcode in PURE
        divisor = self.lib.GetOperand(instruction, 1)
        number = self.constant(divisor)
        return number is not None and number not in (0, (1 << self.lib.GetIntTypeWidth(self.lib.TypeOf(divisor))) - 1)

    def arguments(self, call):
        return [self.lib.GetOperand(call, i) for i in range(self.lib.GetNumArgOperands(call))]

    def callee(self, call):
        """Returns the function that a call names, or None for an indirect call."""
        return self.lib.IsAFunction(self.lib.GetCalledValue(call))

    def uses_no_memory(self, function):
        """Returns whether a function neither reads nor writes memory, according to its attributes."""
        kind = self.lib.GetEnumAttributeKindForName(b"memory", 6)
        found = self.lib.GetEnumAttributeAtIndex(function, llvm.FUNCTION_INDEX, kind) if kind else None
        if found is not None:
            return self.lib.GetEnumAttributeValue(found) == 0
        kind = self.lib.GetEnumAttributeKindForName(b"readnone", 8)
        return bool(kind and self.lib.GetEnumAttributeAtIndex(function, llvm.FUNCTION_INDEX, kind))

    def constant(self, value):
        """Returns the number if a value is a constant integer, or None."""
        return self.lib.ConstIntGetZExtValue(value) if self.lib.IsAConstantInt(value) else None

    def text(self, value):
        pointer = self.lib.PrintValueToString(value)
        text = ctypes.string_at(pointer).decode()
        self.lib.DisposeMessage(pointer)
        return text

    # Blocks

    def blocks(self, function):
        return self.chain(self.lib.GetFirstBasicBlock(function), self.lib.GetNextBasicBlock)

    def all_instructions(self, block):
        return self.chain(self.lib.GetFirstInstruction(block), self.lib.GetNextInstruction)

    def instructions(self, block):
        """Returns the instructions of a block without calls for debuggers, so that such calls affect no decision."""
        found = self.all_instructions(block)
        return [i for i in found if not (self.lib.IsACallInst(i) and self.callee(i) in self.debug)] if self.debug else found

    def insert(self, builder, instruction):
        """Inserts an instruction and keeps its source location, which the builder would otherwise replace by its own."""
        self.lib.SetCurrentDebugLocation2(builder, None)
        self.lib.InsertIntoBuilder(builder, instruction)

    def place_of_calls(self, function):
        """Returns a source location for calls that rillcc adds. LLVM requires one if there is debug information;
        without debug information, returns None."""
        places = (self.lib.InstructionGetDebugLoc(i) for block in self.blocks(function) for i in self.instructions(block))
        return next((place for place in places if place), None)

    def phis(self, block):
        found = []
        for instruction in self.instructions(block):
            if self.opcode(instruction) != llvm.PHI:
                break
            found.append(instruction)
        return found

    def incoming(self, phi):
        """Returns (value, block) for each predecessor of a phi's block."""
        numbers = range(self.lib.CountIncoming(phi))
        return [(self.lib.GetIncomingValue(phi, i), self.lib.GetIncomingBlock(phi, i)) for i in numbers]

    def terminator(self, block):
        return self.lib.GetBasicBlockTerminator(block)

    def successors(self, block):
        end = self.terminator(block)
        return [self.lib.GetSuccessor(end, i) for i in range(self.lib.GetNumSuccessors(end))]

    def predecessors(self, block):
        ends = set(self.users(self.lib.BasicBlockAsValue(block)))
        return [self.lib.GetInstructionParent(end) for end in ends if self.lib.IsATerminatorInst(end)]

    def redirect(self, block, old, new):
        """Redirects branches of a block from `old` to `new`; the caller updates the phis."""
        end = self.terminator(block)
        for i in range(self.lib.GetNumSuccessors(end)):
            if self.lib.GetSuccessor(end, i) == old:
                self.lib.SetSuccessor(end, i, new)

    def new_block(self, function, name, before=None):
        if before:
            return self.lib.InsertBasicBlockInContext(self.context, before, name.encode())
        return self.lib.AppendBasicBlockInContext(self.context, function, name.encode())

    def split(self, block, last, builder):
        """Moves the first instructions of a block, up to `last`, into a new block in front of it. The block's
        predecessors then branch to the new block, which is returned. The original block keeps its end, because phis in
        its successors refer to it."""
        head = self.new_block(None, "", before=block)
        for other in self.predecessors(block):
            self.redirect(other, block, head)
        for instruction in self.all_instructions(block):
            self.lib.InstructionRemoveFromParent(instruction)
            self.lib.PositionBuilderAtEnd(builder, head)
            self.insert(builder, instruction)
            if instruction == last:
                break
        self.lib.PositionBuilderAtEnd(builder, head)
        self.lib.BuildBr(builder, block)
        return head

    def join(self, head, builder):
        """Undoes split(): moves the instructions of a block to its successor, if no other block leads there."""
        ways = self.successors(head)
        if len(ways) != 1 or self.predecessors(ways[0]) != [head] or self.phis(ways[0]) or ways[0] == head:
            return
        block, place = ways[0], self.all_instructions(ways[0])[0]
        self.lib.InstructionEraseFromParent(self.terminator(head))
        for instruction in self.all_instructions(head):
            self.lib.InstructionRemoveFromParent(instruction)
            self.lib.PositionBuilderBefore(builder, place)
            self.insert(builder, instruction)
        for other in self.predecessors(head):
            self.redirect(other, head, block)
        self.lib.DeleteBasicBlock(head)

    def replace_phi(self, phi, changes, builder):
        """Recreates a phi with the incoming pairs that `changes`, a function of (value, block), returns."""
        lib = self.lib
        lib.PositionBuilderBefore(builder, phi)
        new = lib.BuildPhi(builder, lib.TypeOf(phi), b"")
        ways = [changes(value, block) for value, block in self.incoming(phi)]
        ways = [(new if value == phi else value, block) for value, block in ways]
        lib.AddIncoming(new, llvm.array([v for v, _ in ways]), llvm.array([b for _, b in ways]), len(ways))
        lib.ReplaceAllUsesWith(phi, new)
        lib.InstructionEraseFromParent(phi)
        return new

    def copy_blocks(self, function, blocks, builder):
        """Copies blocks; returns the copies of blocks and of values. The copies of phis have no incoming values yet."""
        lib = self.lib
        copies = {block: self.new_block(function, "") for block in blocks}
        for block in blocks:
            for value in self.instructions(block):
                lib.PositionBuilderAtEnd(builder, copies[block])
                if self.opcode(value) == llvm.PHI:
                    copies[value] = lib.BuildPhi(builder, lib.TypeOf(value), b"")
                else:
                    copies[value] = lib.InstructionClone(value)
                    self.insert(builder, copies[value])
        for block in blocks:
            for value in self.instructions(copies[block]):
                for i, operand in enumerate(self.operands(value)):
                    if operand in copies and not lib.IsABasicBlock(operand):
                        lib.SetOperand(value, i, copies[operand])
            for other in self.successors(block):
                self.redirect(copies[block], other, copies.get(other, other))
        return copies

    def add_ways(self, phi, ways):
        """Adds (value, block) pairs to a phi."""
        self.lib.AddIncoming(phi, llvm.array([v for v, _ in ways]), llvm.array([b for _, b in ways]), len(ways))
