"""Inserts a call before each access to a variable or shared array at a computed index (--check). The call names the
variable, so that an access past its end is detected wherever it lands.

If an access uses a pointer that was stored or passed, its variable is unknown; the red zones of zones.py cover such
accesses.
"""

import re

from . import llvm

CALL = "rill_check_variable"  # defined in rill/device/host_check.h
OWN = re.compile(r"(_ZL?\d+)?rill_")  # variables of rill's own headers
COPIES = re.compile(r"llvm\.mem(cpy|move|set)\.")
WRITES, ATOMIC = 1, 2


class Bounds:
    def __init__(self, module):
        self.m, self.lib = module, module.lib
        self.builder = self.lib.CreateBuilderInContext(module.context)

    def add(self):
        for function in self.m.functions():
            for block in self.m.blocks(function):
                for instruction in self.m.instructions(block):
                    for pointer, size, kind in self.accesses(instruction):
                        start = self.start(pointer)
                        if start and start != pointer:
                            self.call(instruction, pointer, size, start, kind)
        self.lib.DisposeBuilder(self.builder)

    def accesses(self, instruction):
        """Returns (pointer, bytes, kind) of each access of an instruction."""
        lib, opcode = self.lib, self.m.opcode(instruction)
        if opcode == llvm.CALL:
            return self.copied(instruction)
        if opcode not in (llvm.LOAD, llvm.STORE, llvm.ATOMIC_RMW, llvm.ATOMIC_CMPXCHG):
            return []
        pointer = lib.GetOperand(instruction, opcode == llvm.STORE)
        value = instruction if opcode == llvm.LOAD else lib.GetOperand(instruction, 1 if opcode != llvm.STORE else 0)
        kind = 0 if opcode == llvm.LOAD else WRITES
        if opcode not in (llvm.LOAD, llvm.STORE) or lib.GetOrdering(instruction):
            kind |= ATOMIC
        return [(pointer, self.m.number(lib.StoreSizeOfType(self.m.layout, lib.TypeOf(value)), self.m.i64), kind)]

    def copied(self, call):
        callee = self.m.callee(call)
        found = COPIES.match(self.m.name(callee)) if callee else None
        if not found:
            return []
        to, source, size = self.m.arguments(call)[:3]
        if self.lib.GetIntTypeWidth(self.lib.TypeOf(size)) != 64:
            return []
        return [(to, size, WRITES)] + ([(source, size, 0)] if found.group(1) != "set" else [])

    def start(self, pointer):
        """Returns the start of the variable from which a pointer was computed, or None if the variable is unknown."""
        lib, found = self.lib, pointer
        while True:
            opcode = lib.GetConstOpcode(found) if lib.IsAConstantExpr(found) else lib.IsAInstruction(found) and self.m.opcode(found)
            if opcode not in (llvm.GEP, llvm.BIT_CAST, llvm.ADDR_SPACE_CAST):
                break
            found = lib.GetOperand(found, 0)
        variable = found
        if opcode == llvm.CALL and self.m.callee(found):
            if self.m.name(self.m.callee(found)).startswith("llvm.threadlocal.address"):
                (variable,) = self.m.arguments(found)
        known = lib.IsAGlobalVariable(variable) and not lib.IsDeclaration(variable) and not lib.IsGlobalConstant(variable)
        return found if known and not OWN.match(self.m.name(variable)) else None

    def call(self, before, pointer, size, start, kind):
        lib = self.lib
        function, values = self.m.function(CALL), [pointer, size, start, self.m.number(kind)]
        lib.PositionBuilderBefore(self.builder, before)
        lib.BuildCall2(self.builder, lib.GlobalGetValueType(function), function, llvm.array(values), len(values), b"")
