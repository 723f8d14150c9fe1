"""tools/check-headers: accepts matching headers, and reports each kind of difference. Our own declarations, with one change
each, serve as a vendor's headers."""
import importlib.machinery
import os
import re
import subprocess
import sys
import tempfile
import types
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
TOOL = os.path.join(ROOT, "tools", "check-headers")


def load_tool():
    loader = importlib.machinery.SourceFileLoader("check_headers", TOOL)
    module = types.ModuleType("check_headers")
    module.__file__ = TOOL
    loader.exec_module(module)
    return module


tool = load_tool()


def header_of(vendor, version):
    text = "\n".join(f"enum {{ {constant} }};" for constant in tool.constants(vendor))
    for path in tool.VENDORS[vendor]["own"]:
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            own = re.sub(r"^enum {\n#define GPU_.*?^};$", "", file.read(), flags=re.M | re.S)
        text += re.sub(r"^#(include|ifndef RILL|define RILL).*$|^#endif$", "", own, flags=re.M)
    return f"{text}\n#define {version}\n"


OURS = {
    "cuda.h": header_of("cuda", "CUDA_VERSION 13000"),
    "hip/hip_runtime_api.h": header_of("hip", "HIP_VERSION 70000000"),
}


class CheckHeaders(unittest.TestCase):
    def check(self, header, *changes):
        text = OURS[header]
        for before, after in changes:
            self.assertEqual(len(re.findall(before, text)), 1, before)
            text = re.sub(before, after, text)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, header)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write("#include <stddef.h>\n" + text)
            return subprocess.run([sys.executable, TOOL, folder], capture_output=True, text=True, check=False)

    def differs(self, header, before, after, says):
        result = self.check(header, (before, after))
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertRegex(result.stderr, says)

    def test_matching_headers_agree(self):
        for header in OURS:
            result = self.check(header)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertRegex(result.stdout, r"[123]\d\d declarations agree\n$")

    def test_another_constant_is_reported(self):
        self.differs("cuda.h", "CUDA_ERROR_NOT_READY = 600", "CUDA_ERROR_NOT_READY = 601", "the value of CUDA_ERROR_NOT_READY")
        self.differs("cuda.h", "CU_STREAM_CAPTURE_STATUS_ACTIVE = 1", "CU_STREAM_CAPTURE_STATUS_ACTIVE = 3",
                     "the value of CU_STREAM_CAPTURE_STATUS_ACTIVE")
        self.differs("hip/hip_runtime_api.h", "hipDeviceAttributeWarpSize = 87", "hipDeviceAttributeWarpSize = 10",
                     "the value of hipDeviceAttributeWarpSize")
        self.differs("hip/hip_runtime_api.h", "hipMemcpyDefault = 4", "hipMemcpyDefault = 3", "the value of hipMemcpyDefault")

    def test_another_macro_is_reported(self):
        self.differs("cuda.h", r"\(\(CUstream\)0x2\)", "((CUstream)0x3)", "CU_STREAM_PER_THREAD is")

    def test_another_type_is_reported(self):
        self.differs("cuda.h", "typedef int CUdevice;", "typedef long CUdevice;", "the type CUdevice")
        self.differs("hip/hip_runtime_api.h", "struct ihipStream_t", "struct other", "the type hipStream_t")

    def test_another_struct_is_reported(self):
        self.differs("cuda.h", "  unsigned int numAttrs;\n", "  unsigned int numAttrs;\n  void *more;\n",
                     "the size of CUlaunchConfig")
        self.differs("hip/hip_runtime_api.h", r"  int isManaged;\n", "  size_t isManaged;\n",
                     "the size of isManaged in hipPointerAttribute_t")
        self.differs("hip/hip_runtime_api.h", r"rill_before\[1160\]", "rill_before[1168]",
                     "the offset of gcnArchName in hipDeviceProp_tR0600")
        self.differs("cuda.h", "    int flags;\n    int triggerAtBlockStart;", "    int triggerAtBlockStart;\n    int flags;",
                     "the offset of programmaticEvent.flags in CUlaunchAttributeValue")

    def test_another_function_is_reported(self):
        self.differs("cuda.h", r"CUresult cuMemAlloc\(CUdeviceptr \*pointer, size_t size\)",
                     "CUresult cuMemAlloc(CUdeviceptr *pointer, int size)", "conflicting types for .cuMemAlloc_v2")
        self.differs("hip/hip_runtime_api.h", r"hipError_t hipSetDevice\(int device\)", "void hipSetDevice(int device)",
                     "conflicting types for .hipSetDevice")

    def test_missing_declarations_are_reported(self):
        self.differs("cuda.h", r"CUresult cuEventQuery\(CUevent event\);", "", "required.*cuEventQuery")
        result = self.check("hip/hip_runtime_api.h", (r"hipError_t hipStreamGetId\(.*", ""))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("not in these headers: hipStreamGetId", result.stdout)

    def test_a_folder_without_headers_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            result = subprocess.run([sys.executable, TOOL, folder], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("neither cuda.h nor hip/hip_runtime_api.h", result.stderr)


if __name__ == "__main__":
    unittest.main()
