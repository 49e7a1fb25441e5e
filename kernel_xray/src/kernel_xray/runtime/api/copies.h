// copies.h: boxes of bytes, and what is checked before one is copied to another.
#pragma once

#include <cstddef>

#include "../../include/simt/runtime_api.h"

namespace simt {

struct Box {  // rows of memory, in slices; pitch and slice are the distances from one to the next, in bytes
  const void* start;
  size_t pitch, slice;
};

// Checks a copy of `from_bytes` at `from` to `to_bytes` at `to` in this direction. A copy from the device waits for
// results and reports an earlier fault; any other copy is new work and clears it.
cudaError_t check_copy(const void* to, size_t to_bytes, const void* from, size_t from_bytes, cudaMemcpyKind kind);

// True if a kernel may use `bytes` bytes there: of an allocation, or mapped memory that no call here returned and that is
// not known to be the host's.
bool is_usable(const void* pointer, size_t bytes);

bool is_registered(const void* pointer);  // with cudaHostRegister

// Copies `width` bytes of `height` rows of `depth` slices. Checks everything but the widths of rows.
cudaError_t copy_box(const Box& to, const Box& from, size_t width, size_t height, size_t depth, cudaMemcpyKind kind);
cudaError_t set_box(const Box& box, int byte, size_t width, size_t height, size_t depth);

}  // namespace simt
