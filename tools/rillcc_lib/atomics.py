"""Replaces atomic operations on shared memory by plain loads and stores, which are several times as fast.

This is valid because one worker executes all threads of a block, does not switch threads within an operation, and no
other block accesses this memory.

`mark` finds the operations before the cut, because only then can shared memory be distinguished from other memory.
`replace` runs after rillcc's last pass: threads that update one location are not independent, so until then the
operations stay atomic.
"""

from . import llvm

PLAIN = {1: "Add", 2: "Sub", 3: "And", 5: "Or", 6: "Xor"}  # numbers of LLVMAtomicRMWBinOp
EXCHANGE = 0


def mark(module):
    for operation in operations(module):
        if not module.lib.GetVolatile(operation) and is_shared(module, module.lib.GetOperand(operation, 0)):
            module.lib.SetAtomicSingleThread(operation, 1)


def replace(module):
    lib = module.lib
    builder = lib.CreateBuilderInContext(module.context)
    for operation in operations(module):
        if not lib.IsAtomicSingleThread(operation):
            continue
        lib.PositionBuilderBefore(builder, operation)
        if module.opcode(operation) == llvm.ATOMIC_CMPXCHG:
            replace_exchange(module, builder, operation)
        elif lib.GetAtomicRMWBinOp(operation) in (EXCHANGE, *PLAIN):
            replace_update(module, builder, operation)
    lib.DisposeBuilder(builder)


def operations(module):
    kinds = (llvm.ATOMIC_RMW, llvm.ATOMIC_CMPXCHG)
    blocks = [block for function in module.functions() for block in module.blocks(function)]
    return [i for block in blocks for i in module.instructions(block) if module.opcode(i) in kinds]


def is_shared(module, pointer):
    """Returns whether a pointer is certain to point to shared memory."""
    seen, work = set(), [pointer]
    while work:
        value = work.pop()
        if value in seen:
            continue
        seen.add(value)
        opcode = module.opcode(value) if module.lib.IsAInstruction(value) else None
        callee = module.callee(value) if opcode == llvm.CALL else None
        name = module.name(callee) if callee else ""
        if opcode == llvm.GEP or (opcode is None and module.lib.IsAConstantExpr(value)):
            work += module.operands(value)[:1]
        elif opcode in (llvm.SELECT, llvm.PHI):
            work += module.operands(value)[opcode == llvm.SELECT :]
        elif name.startswith("llvm.threadlocal"):
            work += module.arguments(value)[:1]
        elif name != "rill_ir_shared" and not (module.lib.IsAGlobalVariable(value) and module.lib.IsThreadLocal(value)):
            return False
    return True


def replace_update(module, builder, operation):
    lib = module.lib
    pointer, value = module.operands(operation)
    old = lib.BuildLoad2(builder, lib.TypeOf(operation), pointer, b"")
    name = PLAIN.get(lib.GetAtomicRMWBinOp(operation))
    new = getattr(lib, "Build" + name)(builder, old, value, b"") if name else value
    lib.BuildStore(builder, new, pointer)
    lib.ReplaceAllUsesWith(operation, old)
    lib.InstructionEraseFromParent(operation)


def replace_exchange(module, builder, operation):
    """Replaces a compare-and-exchange, which returns the old value and whether it was the expected one."""
    lib = module.lib
    pointer, expected, value = module.operands(operation)
    old = lib.BuildLoad2(builder, lib.TypeOf(value), pointer, b"")
    equal = lib.BuildICmp(builder, llvm.EQ, old, expected, b"")
    lib.BuildStore(builder, lib.BuildSelect(builder, equal, value, old, b""), pointer)
    both = lib.GetUndef(lib.TypeOf(operation))
    for i, part in enumerate((old, equal)):
        both = lib.BuildInsertValue(builder, both, part, i, b"")
    lib.ReplaceAllUsesWith(operation, both)
    lib.InstructionEraseFromParent(operation)
