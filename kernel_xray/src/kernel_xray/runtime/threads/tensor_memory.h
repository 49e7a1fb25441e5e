// tensor_memory.h: the tensor memory of a block (include/simt/tensor_memory.h): its cells, and who has which columns.
//
// Columns are allocated from a multiple of their number on, the first free ones. What is not allocated, or not in the
// caller's lanes, is a fault, and so are columns that are not freed when the block ends. What a column held is gone when
// it is allocated: NaN.
//
// Deviations from CUDA: an allocation for a pair of blocks (cta_group::2) is one for each of the two that asks for it. One
// that waits for columns that nobody frees ends the kernel after a while.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "../../include/simt/tensor_memory.h"

namespace simt {

class TensorMemory {
 public:
  static constexpr unsigned kLanes = 128, kColumns = 512, kLeast = 32;  // columns of an allocation

  struct Part {  // an allocation, of the thread with this index in its block
    unsigned first, columns, thread;
    const void* site;
  };
  std::vector<Part> parts;
  bool relinquished = false;

  // Allocates columns for `part`; false: none are free.
  bool allocate(Part part);
  bool free(unsigned first, unsigned columns);  // false: there is no such allocation
  bool covers(unsigned first, unsigned columns) const;
  uint32_t* row(unsigned lane) { return cells_.get() + lane * kColumns; }
  void end();  // of the block

 private:
  std::unique_ptr<uint32_t[]> cells_;
};

constexpr uint32_t column_of(uint32_t address) { return address & 0xffff; }
constexpr uint32_t lane_of(uint32_t address) { return address >> 16; }

// What to tell of a block that ends without having freed its columns.
std::string not_freed(const TensorMemory::Part& part);
// That of a block of the running cluster.
TensorMemory& tensor_memory_of(unsigned rank);
// Ends the kernel, for the thread whose call returns to `site`.
[[noreturn]] void refuse_tensor(const void* site, const char* kind, const std::string& message);
// Ends the kernel if the columns are not allocated, or if the lanes are not there.
void check_columns(const void* site, unsigned rank, uint32_t address, unsigned lanes, unsigned columns,
                   const char* who);

}  // namespace simt
