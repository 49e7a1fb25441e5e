// shim.h: includes PyTorch's header of this name after renaming the functions that need a GPU.
//
// PyTorch's stable interface rests on C functions. Those for CUDA exist only in a CUDA build of PyTorch, and those for
// "the accelerator" fail where PyTorch knows of none. Renamed, they are the simulator's (runtime/torch_bridge.cpp), and
// PyTorch's own torch/csrc/stable/accelerator.h and macros.h work on top of them, whatever their version. Works for the
// functions of PyTorch 2.11 to 2.13 (in 2.11, Stream has no nativeHandle; aoti_torch_get_current_cuda_stream, declared
// when USE_CUDA is defined, works in all).
#pragma once

#define aoti_torch_create_device_guard simt_aoti_torch_create_device_guard
#define aoti_torch_delete_device_guard simt_aoti_torch_delete_device_guard
#define aoti_torch_device_guard_set_index simt_aoti_torch_device_guard_set_index
#define aoti_torch_get_current_device_index simt_aoti_torch_get_current_device_index
#define aoti_torch_get_current_stream simt_aoti_torch_get_current_stream
#define aoti_torch_delete_stream simt_aoti_torch_delete_stream
#define aoti_torch_stream_id simt_aoti_torch_stream_id
#define torch_stream_native_handle simt_torch_stream_native_handle

// Declared by PyTorch where USE_CUDA is defined.
#define aoti_torch_create_cuda_guard simt_aoti_torch_create_cuda_guard
#define aoti_torch_delete_cuda_guard simt_aoti_torch_delete_cuda_guard
#define aoti_torch_cuda_guard_set_index simt_aoti_torch_cuda_guard_set_index
#define aoti_torch_create_cuda_stream_guard simt_aoti_torch_create_cuda_stream_guard
#define aoti_torch_delete_cuda_stream_guard simt_aoti_torch_delete_cuda_stream_guard
#define aoti_torch_get_current_cuda_stream simt_aoti_torch_get_current_cuda_stream
#define aoti_torch_cuda_caching_allocator_raw_alloc simt_aoti_torch_cuda_caching_allocator_raw_alloc
#define aoti_torch_cuda_caching_allocator_raw_delete simt_aoti_torch_cuda_caching_allocator_raw_delete
#define torch_set_current_cuda_stream simt_torch_set_current_cuda_stream
#define torch_get_cuda_stream_from_pool simt_torch_get_cuda_stream_from_pool
#define torch_cuda_stream_synchronize simt_torch_cuda_stream_synchronize
#define torch_c10_cuda_check_msg simt_torch_c10_cuda_check_msg
#define torch_c10_cuda_free_error_msg simt_torch_c10_cuda_free_error_msg

#include <simt/runtime_refused.h>

extern "C" SIMT_REFUSED("cuBLAS; call torch::stable or ATen operators instead") int torch_get_current_cuda_blas_handle(
    void** handle);

#include_next <torch/csrc/inductor/aoti_torch/c/shim.h>
