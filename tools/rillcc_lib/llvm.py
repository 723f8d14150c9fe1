"""Wraps the part of LLVM's C interface that rillcc needs to read, inspect, change and write bitcode.

Values, types, blocks and modules are numbers (addresses of LLVM's own objects). The library is the one that clang is
linked with, so that both use the same version of bitcode.
"""

import ctypes
import glob
import os
import re
import shutil

from .errors import RillccError

# Opcodes, from llvm-c/Core.h.
RET, BR, SWITCH, INDIRECT_BR, UNREACHABLE, CALL_BR, INVOKE, RESUME = 1, 2, 3, 4, 7, 67, 5, 58
ADD, SUB, MUL, UDIV, SDIV, UREM, SREM = 8, 10, 12, 14, 15, 17, 18
SHL, LSHR, ASHR, AND, OR, XOR = 20, 21, 22, 23, 24, 25
ALLOCA, LOAD, STORE, GEP = 26, 27, 28, 29
TRUNC, ZEXT, SEXT = 30, 31, 32
BIT_CAST, ADDR_SPACE_CAST = 41, 60
ICMP, PHI, CALL, SELECT, FREEZE = 42, 44, 45, 46, 68
EXTRACT_ELEMENT, INSERT_ELEMENT, EXTRACT_VALUE = 50, 51, 53
FENCE, ATOMIC_CMPXCHG, ATOMIC_RMW = 55, 56, 57
OGT, OGE, OLT, UNO = 2, 3, 4, 8
EQ, NE, UGT, UGE, ULT, ULE, SGT, SGE, SLT, SLE = range(32, 42)
FUNCTION_INDEX = -1 & 0xFFFFFFFF
AVAILABLE_EXTERNALLY_LINKAGE, APPENDING_LINKAGE, INTERNAL_LINKAGE = 1, 7, 8
NOT_ATOMIC = 0  # value of LLVMAtomicOrdering
INTEGER_TYPE = 8  # value of LLVMGetTypeKind

POINTER, INT, UINT, BOOL, TEXT = ctypes.c_void_p, ctypes.c_ulonglong, ctypes.c_uint, ctypes.c_int, ctypes.c_char_p
DIAGNOSTIC_HANDLER = ctypes.CFUNCTYPE(None, POINTER, POINTER)

# Name: (result, arguments) as letters: p pointer, u unsigned, i 64 bits, b bool, s text, v void, d double.
SIGNATURES = {
    "AddAttributeAtIndex": "vpup",
    "AddCallSiteAttribute": "vpup",
    "AddCase": "vppp",
    "AddFunction": "ppsp",
    "AddIncoming": "vpppu",
    "AppendBasicBlockInContext": "ppps",
    "ArrayType2": "ppi",
    "BasicBlockAsValue": "pp",
    "BlockAddress": "ppp",
    "BuildAShr": "pppps",
    "BuildAdd": "pppps",
    "BuildAlloca": "ppps",
    "BuildAnd": "pppps",
    "BuildArrayAlloca": "pppps",
    "BuildBinOp": "pp" + "u" + "pps",
    "BuildBitCast": "pppps",
    "BuildBr": "ppp",
    "BuildCall2": "ppppp" + "us",
    "BuildCast": "pp" + "u" + "pps",
    "BuildCondBr": "ppppp",
    "BuildFCmp": "ppupps",
    "BuildFDiv": "pppps",
    "BuildFNeg": "ppps",
    "BuildFPToSI": "pppps",
    "BuildFPToUI": "pppps",
    "BuildFreeze": "ppps",
    "BuildGEP2": "pppppus",
    "BuildICmp": "ppupps",
    "BuildInsertElement": "ppppps",
    "BuildInsertValue": "ppppus",
    "BuildLShr": "pppps",
    "BuildLoad2": "pppps",
    "BuildMul": "pppps",
    "BuildNSWAdd": "pppps",
    "BuildNUWAdd": "pppps",
    "BuildOr": "pppps",
    "BuildPhi": "ppps",
    "BuildRet": "ppp",
    "BuildRetVoid": "pp",
    "BuildSDiv": "pppps",
    "BuildSExt": "pppps",
    "BuildSIToFP": "pppps",
    "BuildSelect": "ppppps",
    "BuildShl": "pppps",
    "BuildShuffleVector": "ppppps",
    "BuildStore": "pppp",
    "BuildSub": "pppps",
    "BuildSwitch": "ppppu",
    "BuildTrunc": "pppps",
    "BuildUIToFP": "pppps",
    "BuildUDiv": "pppps",
    "BuildURem": "pppps",
    "BuildUnreachable": "pp",
    "BuildXor": "pppps",
    "BuildZExt": "pppps",
    "ConstAllOnes": "pp",
    "ConstArray2": "pppi",
    "ConstInt": "ppib",
    "ConstIntGetZExtValue": "ip",
    "ConstNull": "pp",
    "ContextCreate": "p",
    "ContextDispose": "vp",
    "ContextSetDiagnosticHandler": "vppp",
    "CountBasicBlocks": "up",
    "CountIncoming": "up",
    "CountParams": "up",
    "CreateBuilderInContext": "pp",
    "CreateEnumAttribute": "ppui",
    "CreateMemoryBufferWithContentsOfFile": "bspp",
    "CreateMemoryBufferWithMemoryRangeCopy": "psis",
    "CreatePassBuilderOptions": "p",
    "CreateStringAttribute": "ppsusu",
    "DeleteBasicBlock": "vp",
    "DeleteGlobal": "vp",
    "DisposeBuilder": "vp",
    "DisposeErrorMessage": "vp",
    "DisposeMemoryBuffer": "vp",
    "DisposeMessage": "vp",
    "DisposeModule": "vp",
    "DisposePassBuilderOptions": "vp",
    "DoubleTypeInContext": "pp",
    "FloatTypeInContext": "pp",
    "FunctionType": "pppub",
    "GetAllocatedType": "pp",
    "GetAlignment": "up",
    "GetArrayLength2": "ip",
    "GetAttributeCountAtIndex": "upu",
    "GetAttributesAtIndex": "vpup",
    "GetAtomicRMWBinOp": "up",
    "GetBasicBlockName": "sp",
    "GetBasicBlockParent": "pp",
    "GetBasicBlockTerminator": "pp",
    "GetCalledFunctionType": "pp",
    "GetCalledValue": "pp",
    "GetCondition": "pp",
    "GetConstOpcode": "up",
    "GetDebugLocFilename": "spp",
    "GetDebugLocLine": "up",
    "GetDiagInfoDescription": "pp",
    "GetDiagInfoSeverity": "up",
    "GetElementType": "pp",
    "GetEntryBasicBlock": "pp",
    "GetEnumAttributeAtIndex": "ppuu",
    "GetEnumAttributeKindForName": "usi",
    "GetEnumAttributeValue": "ip",
    "GetErrorMessage": "pp",
    "GetFCmpPredicate": "up",
    "GetFirstBasicBlock": "pp",
    "GetFirstFunction": "pp",
    "GetFirstGlobal": "pp",
    "GetFirstInstruction": "pp",
    "GetFirstUse": "pp",
    "GetGlobalParent": "pp",
    "GetICmpPredicate": "up",
    "GetIncomingBlock": "ppu",
    "GetIncomingValue": "ppu",
    "GetInitializer": "pp",
    "GetInlineAsm": "ppsLsLbbub",
    "GetInsertBlock": "pp",
    "GetInstructionCallConv": "up",
    "GetInstructionOpcode": "up",
    "GetInstructionParent": "pp",
    "GetGEPSourceElementType": "pp",
    "GetIntTypeWidth": "up",
    "GetIntrinsicDeclaration": "ppupi",
    "GetIntrinsicID": "up",
    "GetIsDisjoint": "bp",
    "GetLinkage": "up",
    "GetMDKindIDInContext": "upsu",
    "GetMetadata": "ppu",
    "GetModuleContext": "pp",
    "GetModuleDataLayout": "pp",
    "GetNamedFunction": "pps",
    "GetNamedGlobal": "pps",
    "GetNextBasicBlock": "pp",
    "GetNextFunction": "pp",
    "GetNextGlobal": "pp",
    "GetNextInstruction": "pp",
    "GetNextUse": "pp",
    "GetNumArgOperands": "up",
    "GetNumOperands": "bp",
    "GetNumSuccessors": "up",
    "GetOperand": "ppu",
    "GetOrdering": "up",
    "GetParam": "ppu",
    "GetReturnType": "pp",
    "GetSection": "sp",
    "GetStringAttributeAtIndex": "ppusu",
    "GetSubprogram": "pp",
    "GetSuccessor": "ppu",
    "GetTarget": "sp",
    "GetTypeKind": "up",
    "GetUndef": "pp",
    "GetUser": "pp",
    "GetValueName2": "spp",
    "GlobalGetValueType": "pp",
    "InsertBasicBlockInContext": "ppps",
    "InsertIntoBuilder": "vpp",
    "InstructionClone": "pp",
    "InstructionEraseFromParent": "vp",
    "InstructionRemoveFromParent": "vp",
    "Int16TypeInContext": "pp",
    "Int1TypeInContext": "pp",
    "Int32TypeInContext": "pp",
    "Int64TypeInContext": "pp",
    "Int8TypeInContext": "pp",
    "IntTypeInContext": "ppu",
    "IsAAllocaInst": "pp",
    "IsAArgument": "pp",
    "IsABasicBlock": "pp",
    "IsACallInst": "pp",
    "IsAConstant": "pp",
    "IsAConstantExpr": "pp",
    "IsAConstantFP": "pp",
    "IsAConstantInt": "pp",
    "IsAFunction": "pp",
    "IsAGlobalValue": "pp",
    "IsAGlobalVariable": "pp",
    "IsAInlineAsm": "pp",
    "IsAInstruction": "pp",
    "AddGlobal": "ppps",
    "SetGlobalConstant": "vpb",
    "ConstStringInContext2": "ppsib",
    "ConstReal": "ppd",
    "ConstRealGetDouble": "dpp",
    "ConstVector": "ppu",
    "SetNUW": "vpb",
    "SetNSW": "vpb",
    "SetCurrentDebugLocation2": "vpp",
    "InstructionGetDebugLoc": "pp",
    "InstructionSetDebugLoc": "vpp",
    "DeleteFunction": "vp",
    "BuildMemSet": "ppppp" + "u",
    "IsATerminatorInst": "pp",
    "IsAtomicSingleThread": "bp",
    "IsConditional": "bp",
    "IsConstant": "bp",
    "IsDeclaration": "bp",
    "IsGlobalConstant": "bp",
    "IsThreadLocal": "bp",
    "GetVolatile": "bp",
    "LookupIntrinsicID": "usi",
    "MDNodeInContext2": "pppi",
    "MetadataReplaceAllUsesWith": "vpp",
    "MDStringInContext2": "ppsi",
    "MetadataAsValue": "ppp",
    "MoveBasicBlockAfter": "vpp",
    "MoveBasicBlockBefore": "vpp",
    "ParseBitcodeInContext2": "bppp",
    "ParseCommandLineOptions": "vups",
    "ParseIRInContext": "bpppp",
    "PointerTypeInContext": "ppu",
    "PassBuilderOptionsSetLoopUnrolling": "vpb",
    "PassBuilderOptionsSetLoopVectorization": "vpb",
    "PositionBuilderAtEnd": "vpp",
    "PositionBuilderBefore": "vpp",
    "PrintModuleToString": "pp",
    "PrintValueToString": "pp",
    "RemoveCallSiteEnumAttribute": "vpuu",
    "RemoveEnumAttributeAtIndex": "vpuu",
    "RemoveStringAttributeAtIndex": "vpusu",
    "ReplaceAllUsesWith": "vpp",
    "RunPasses": "ppspp",
    "SetAlignment": "vpu",
    "SetAtomicSingleThread": "vpb",
    "SetInitializer": "vpp",
    "SetComdat": "vpp",
    "SetLinkage": "vpu",
    "SetMetadata": "vpup",
    "SetOperand": "vpup",
    "SetSection": "vps",
    "SetSuccessor": "vpup",
    "SizeOfTypeInBits": "ipp",
    "StoreSizeOfType": "ipp",
    "ABISizeOfType": "ipp",
    "ABIAlignmentOfType": "upp",
    "TemporaryMDNode": "pppi",
    "TypeOf": "pp",
    "ValueAsMetadata": "pp",
    "VectorType": "ppu",
    "VerifyFunction": "bpu",
    "VerifyModule": "bpup",
    "VoidTypeInContext": "pp",
    "WriteBitcodeToFile": "bps",
}
LETTERS = {"L": ctypes.c_size_t, "p": POINTER, "u": UINT, "i": INT, "b": BOOL, "s": TEXT, "v": None, "d": ctypes.c_double}


def which_clang(name):
    """Returns the first program of that name on the PATH that is a clang itself, not a link to a program that runs one,
    such as ccache. The library and a linker are searched for beside it."""
    found = (shutil.which(name, path=folder) for folder in os.get_exec_path())
    return next((path for path in found if path and "clang" in os.path.basename(os.path.realpath(path))), None)


def find_library(clang):
    """Returns the libLLVM that this clang is linked with. Returns None if there is none, because some clangs are linked
    statically."""
    folder = os.path.dirname(os.path.dirname(os.path.realpath(clang)))
    version = re.search(r"-(\d+)$", os.path.realpath(clang)) or re.search(r"llvm-(\d+)", folder)
    places = [os.path.join(folder, "lib", "libLLVM*.so*"), os.path.join(folder, "lib64", "libLLVM*.so*")]
    if version:
        for name in ("libLLVM.so.%s.*", "libLLVM-%s.so*"):
            places.append(os.path.join("/usr/lib*/*-linux-gnu*", name % version.group(1)))
            places.append(os.path.join("/usr/lib*", name % version.group(1)))
    for place in places:
        found = sorted(glob.glob(place))
        if found:
            return found[0]
    return None


# Functions that LLVM 15 has under another name or lacks. Without the latter, only the optimizer knows less.
OLD = {"ArrayType2": "ArrayType", "ConstArray2": "ConstArray", "ConstStringInContext2": "ConstStringInContext", "SetNUW": None, "SetNSW": None, "GetIsDisjoint": None}


# Loads in front of a loop stay in front of the condition that guards the loop, where all threads arrive together. If
# rillcc has not changed the loop, clang later moves them after the condition.
OPTIONS = [b"-instcombine-code-sinking=0"]
with_options = set()  # the libraries to which these options have been passed


class Library:
    """The functions of the library as attributes, without the prefix LLVM."""

    def __init__(self, path):
        self.path = path
        try:
            self.library = ctypes.CDLL(path)
        except OSError as error:
            raise RillccError("cannot load %s: %s" % (path, error)) from error
        if self.library._handle not in with_options:  # LLVM accepts each option once
            with_options.add(self.library._handle)
            arguments = (TEXT * (1 + len(OPTIONS)))(b"rillcc", *OPTIONS)
            self.ParseCommandLineOptions(len(arguments), arguments, b"")

    def __getattr__(self, name):
        there = name if hasattr(self.library, "LLVM" + name) else OLD.get(name, name)
        if there is None:
            return lambda *arguments: None
        function = getattr(self.library, "LLVM" + there)
        letters = SIGNATURES[name]
        function.restype = LETTERS[letters[0]]
        function.argtypes = [LETTERS[letter] for letter in letters[1:]]
        setattr(self, name, function)
        return function

    def version(self):
        if not hasattr(self.library, "LLVMGetVersion"):  # before version 16
            found = re.search(r"libLLVM-(\d+)", os.path.realpath(self.path))
            return int(found.group(1)) if found else 0
        numbers = [ctypes.c_uint() for _ in range(3)]
        self.library.LLVMGetVersion(*[ctypes.byref(number) for number in numbers])
        return numbers[0].value


def array(values):
    return (POINTER * max(len(values), 1))(*values)
