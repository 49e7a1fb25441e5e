// tensor_memory.h: Blackwell's tensor memory (PTX: tcgen05), and the products that are summed there.
//
// Each block has 128 lanes of 512 columns of 32 bits. An address names a cell: its lane in the upper 16 bits, its column in
// the lower ones. A block allocates columns; a warp reads and writes the 32 lanes of its place in its warp group; a
// product sums in them, whichever thread has asked for it.
//
// As everywhere in the simulator, a product is complete when the call returns. An X-ray knows that a GPU may still be at
// it until a thread has waited for an mbarrier on which tensor_commit arrives (kernel_xray/trace/units.h).
#pragma once

#include "core.h"

namespace simt {

// By one thread for its warp.
SIMT_API uint32_t tensor_allocate(uint32_t columns);  // the first one's address; waits for columns that others have
SIMT_API void tensor_free(uint32_t address, uint32_t columns);
SIMT_API void tensor_relinquish();  // the block allocates no more

// What the lanes of a warp read or write together. Each repetition has `rows` lanes of `bits` bits, which registers share
// as tensor_memory.cpp says. split: columns from the first to the second half of a row, of 16x32bx2; else 0.
struct TensorAccess {
  uint32_t address;
  unsigned rows, bits, registers;  // of each thread
  unsigned split;
  bool packed;  // a register holds the lower halves of two columns
};
SIMT_API void tensor_load(const TensorAccess& access, uint32_t* registers);
SIMT_API void tensor_store(const TensorAccess& access, const uint32_t* registers);

// d = a * b, or a * b + d / 2^scale if `add`. a: a descriptor of shared memory, or an address of tensor memory.
enum class TensorKind : uint8_t { f16, tf32, f8f6f4, i8 };
struct TensorProduct {
  uint32_t d;
  uint64_t a, b;
  uint32_t instruction;  // its descriptor
  TensorKind kind;
  bool pair, a_in_tensor_memory, add;
  unsigned scale;
  uint32_t disabled[8];  // lanes whose sums stay as they are, of each block
};
SIMT_API void tensor_multiply(const TensorProduct& product);
// Arrives at the mbarrier when all products that the thread has asked for are complete.
SIMT_API void tensor_commit(void* barrier);

}  // namespace simt
