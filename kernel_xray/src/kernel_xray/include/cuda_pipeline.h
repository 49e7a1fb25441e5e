// cuda_pipeline.h: asynchronous copies from global to shared memory as functions: those of cp.async (simt/ptx_async.h).
//
// Not here: __pipeline_arrive_on, for mbarriers of cuda_awbarrier.h, and the class nvcuda::experimental::pipeline.
#pragma once

#include "simt/ptx_async.h"

// Begins to copy `bytes` (4, 8 or 16) between multiples of as many; the last `zeros` of them are zeros in the target.
SIMT_PTX void __pipeline_memcpy_async(void* shared, const void* global, size_t bytes, size_t zeros = 0) {
  auto* const to = static_cast<char*>(shared);
  auto* const from = static_cast<char*>(const_cast<void*>(global));
  if (zeros > bytes) ::simt::fault("trap", "__pipeline_memcpy_async: zfill is more than the bytes that are copied");
  const auto present = static_cast<uint32_t>(bytes - zeros);
  if (bytes == 16)
    ::simt::ptx::start_copy<16>(to, from, present);
  else if (bytes == 8)
    ::simt::ptx::start_copy<8>(to, from, present);
  else if (bytes == 4)
    ::simt::ptx::start_copy<4>(to, from, present);
  else
    ::simt::fault("misaligned", "__pipeline_memcpy_async copies 4, 8 or 16 bytes");
}

SIMT_PTX void __pipeline_commit() { ::simt::copy_commit(); }
SIMT_PTX void __pipeline_wait_prior(size_t latest) { ::simt::copy_wait(static_cast<unsigned>(latest)); }
