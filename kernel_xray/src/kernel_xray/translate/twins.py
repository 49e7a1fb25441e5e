"""Names that get a twin in the simulator, of the same length where possible: tensors live on the CPU there, and the
compiler is not nvcc."""

TWINS = {
    "is_cuda": "is_cpu ",
    "kCUDA": "kCPU ",
    "aoti_torch_device_type_cuda": "aoti_torch_device_type_cpu ",
    "__NVCC__": "__SIMTCC__",
    "__CUDACC__": "__SIMTCC__",
    "__CUDACC_VER_MAJOR__": "__SIMTCC_VER_MAJOR__",
    "__CUDACC_VER_MINOR__": "__SIMTCC_VER_MINOR__",
    "__CUDA_ARCH__": "__SIMT_ARCH__",
    "__CUDA_ARCH_FEAT_SM90_ALL": "__SIMT_ARCH_FEAT_SM90_ALL",
    "__CUDA_ARCH_FEAT_SM100_ALL": "__SIMT_ARCH_FEAT_SM100_ALL",
    "__CUDA_ARCH_SPECIFIC__": "__SIMT_ARCH_SPECIFIC__",
    "__CUDA_ARCH_FAMILY_SPECIFIC__": "__SIMT_ARCH_FAMILY_SPECIFIC__",
    "__noinline__": "__attribute__((noinline))",
}
