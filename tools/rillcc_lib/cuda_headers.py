"""Provides replacements of CUDA's own headers, and of its libraries' headers, for compilers other than nvcc. With
--cuda-names, headers whose declarations rill/device/cuda_names.h provides are empty. All other headers cause an error
of one sentence, whether or not a CUDA toolkit is installed."""

import fnmatch
import os
import re

FOLDER = "cuda-headers"

EMPTY = """cuda.h cuda_runtime.h cuda_runtime_api.h cuda_device_runtime_api.h cuda_profiler_api.h cudaProfiler.h
    builtin_types.h channel_descriptor.h common_functions.h cuda_stdint.h device_atomic_functions.h device_functions.h
    device_double_functions.h device_launch_parameters.h device_types.h driver_functions.h driver_types.h host_config.h
    host_defines.h library_types.h math_constants.h math_functions.h sm_20_atomic_functions.h sm_20_intrinsics.h
    sm_30_intrinsics.h sm_32_atomic_functions.h sm_32_intrinsics.h sm_35_atomic_functions.h sm_35_intrinsics.h
    sm_60_atomic_functions.h sm_61_intrinsics.h vector_functions.h vector_types.h cuda_fp16.h cuda_bf16.h cuda_fp8.h
    cooperative_groups.h cooperative_groups/reduce.h cooperative_groups/scan.h""".split()

# These headers include rill/device/cuda_cub.h.
CUB = """cub/cub.cuh cub/block/block_reduce.cuh cub/block/block_scan.cuh cub/block/block_load.cuh
    cub/block/block_store.cuh cub/warp/warp_reduce.cuh cub/warp/warp_scan.cuh cub/thread/thread_operators.cuh
    cub/util_type.cuh""".split()
CUB_HAS = "rill has BlockReduce, BlockScan, BlockLoad, BlockStore, WarpReduce and WarpScan of CUB"

# Sources for both vendors include these headers for AMD GPUs; hipcc has them.
HIP = ["hip/hip_%s.h" % name for name in "runtime runtime_api cooperative_groups fp16 bf16 vector_types".split()]

WITH_NVCC = "; for nvcc alone, include it in an #ifdef __NVCC__"
ON_HOST = "is called on the host, with the stream that rill_stream_native returns"
ARRAYS = "rill's kernels/ folder has sums, minima, maxima, scans and histograms of arrays"

# Maps advice on what to use instead to the headers that it is about. A "*" marks headers that are refused only if no
# toolkit has them.
INSTEAD = {
    "cuBLAS %s; rill has rill_kernels_sgemm_many in kernels/" % ON_HOST: """cublas.h cublas_v2.h cublas_api.h cublasLt.h
        cublasXt.h nvblas.h""",
    "cuFFT " + ON_HOST: "cufft.h cufftXt.h cufftw.h",
    "cuSPARSE " + ON_HOST: "cusparse.h cusparse_v2.h",
    "cuSOLVER " + ON_HOST: "cusolverDn.h cusolverSp.h cusolverMg.h cusolverRf.h cusolver_common.h",
    "cuDNN " + ON_HOST: "cudnn.h",
    "NCCL is called on the host; rill has collective operations in rill/comm.h": "nccl.h",
    "NVRTC is called on the host; rill has rill_module_compile": "nvrtc.h nvJitLink.h",
    "it is for the host: a kernel source contains only kernels": """nvToolsExt.h nvtx3/nvToolsExt.h nvtx3/nvtx3.hpp nvml.h
        cupti.h cuda_gl_interop.h cuda_egl_interop.h cuda_vdpau_interop.h cudaGL.h cudaEGL.h helper_cuda.h
        helper_functions.h""",
    "CUB's device-wide functions are called on the host; " + ARRAYS: " ".join(
        "cub/device/device_%s.cuh" % name
        for name in """adjacent_difference copy for histogram memcpy merge merge_sort partition radix_sort reduce
            run_length_encode scan segmented_radix_sort segmented_reduce segmented_sort select transform *""".split()
    ),
    CUB_HAS
    + WITH_NVCC: " ".join(
        "cub/%s.cuh" % name
        for name in """block/block_adjacent_difference block/block_discontinuity block/block_exchange
            block/block_histogram block/block_merge_sort block/block_radix_rank block/block_radix_sort
            block/block_shuffle warp/warp_exchange warp/warp_load warp/warp_merge_sort warp/warp_store config
            util_allocator util_arch util_debug util_device util_macro util_math util_ptx version thread/thread_load
            thread/thread_reduce thread/thread_scan thread/thread_store *""".split()
    ),
    "rill has no random number generators: a generator such as Philox or PCG takes a few lines in the source"
    + WITH_NVCC: """curand.h curand_kernel.h curand_discrete.h curand_globals.h curand_lognormal.h curand_mrg32k3a.h
        curand_mtgp32.h curand_mtgp32_host.h curand_mtgp32_kernel.h curand_normal.h curand_philox4x32_x.h
        curand_poisson.h curand_precalc.h curand_uniform.h""",
    "Thrust is called on the host; " + ARRAYS: " ".join(
        "thrust/%s.h" % name
        for name in """adjacent_difference advance binary_search complex copy count device_allocator device_delete
            device_free device_malloc device_new device_ptr device_reference device_vector distance equal
            execution_policy extrema fill find for_each functional gather generate host_vector inner_product logical
            memory merge mismatch pair partition random reduce remove replace reverse scan scatter sequence
            set_operations shuffle sort swap system_error tabulate transform transform_reduce transform_scan tuple
            uninitialized_copy uninitialized_fill unique universal_vector version system/cuda/error
            system/cuda/execution_policy iterator/constant_iterator iterator/counting_iterator
            iterator/discard_iterator iterator/permutation_iterator iterator/reverse_iterator
            iterator/transform_iterator iterator/zip_iterator *""".split()
    ),
    "rill has no matrix units (WMMA): sum the products in registers, as kernels/sgemm.kernel.cu does" + WITH_NVCC: "mma.h",
    "rill has no asynchronous copies to shared memory: copy each element, then __syncthreads()"
    + WITH_NVCC: """cuda_pipeline.h cuda_pipeline_primitives.h cuda_awbarrier.h cuda_awbarrier_primitives.h cuda/barrier
        cuda/pipeline cooperative_groups/memcpy_async.h""",
    "rill has atomicAdd and the other atomic functions, also with _block and _system" + WITH_NVCC: "cuda/atomic",
    "include the C++ library's header of that name, without cuda/std" + WITH_NVCC: " ".join(
        "cuda/std/" + name
        for name in """algorithm array atomic barrier bit bitset cassert cfloat chrono climits cmath complex concepts
            cstddef cstdint cstdlib cstring ctime expected functional initializer_list iterator latch limits mdspan
            memory numbers numeric optional ranges ratio semaphore source_location span tuple type_traits utility
            variant version *""".split()
    ),
    "rill has no libcu++" + WITH_NVCC: """cuda/annotated_ptr cuda/bit cuda/cmath cuda/functional cuda/latch cuda/numeric
        cuda/ptx cuda/semaphore cuda/stream_ref cuda/type_traits cuda/version cuda/warp nv/target cuda/*""",
    "rill has no floating-point types of 4 and 6 bits" + WITH_NVCC: "cuda_fp4.h cuda_fp6.h",
    "rill has no textures and no surfaces: read from memory": """texture_types.h texture_fetch_functions.h
        texture_indirect_functions.h cuda_texture_types.h surface_types.h surface_functions.h
        surface_indirect_functions.h cuda_surface_types.h""",
}
CALLED = {name: sentence for sentence, names in INSTEAD.items() for name in names.split()}
WITH_NAMES = "use rillcc --cuda-names, which declares its contents for kernels"

REFUSED = re.compile(r"(?P<file>.*/%s[^/]*/[^:]*):\d+:\d+: error: (?:#error )?\"(?P<said><[^>]+>: .*)\"" % FOLDER)
MISSING = re.compile(r"fatal error: '?(?P<name>[\w./]+?)(?:' file not found|: No such file)")


def write(folder, names, text=None):
    """Writes headers that consist of `text`; without `text`, each header is an error that says what to use instead."""
    for name in names:
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write('#error "<%s>: %s"\n' % (name, instead_of(name)) if text is None else text)


def write_all(folder, cuda_names):
    """Writes the folders with CUDA's headers and with HIP's headers."""
    empty = "" if cuda_names else None
    write(folder, [name for name in CALLED if "*" not in name])
    write(folder, EMPTY, empty)
    write(folder, CUB, "#include <rill/device/cuda_cub.h>\n" if cuda_names else None)
    write(folder + "-hip", HIP, empty)


def instead_of(name):
    """Returns what to use instead of a header, or "" if it is not a CUDA header."""
    if name in EMPTY or name in CUB or name in HIP:
        return WITH_NAMES
    return next((CALLED[known] for known in CALLED if fnmatch.fnmatchcase(name, known)), "")


def is_toolkit(folder):
    return os.path.exists(os.path.join(folder, "cuda_runtime_api.h"))
