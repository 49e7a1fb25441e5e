// tensor_memory.cpp: allocations, and the loads and stores of a warp.
#include "threads/tensor_memory.h"

#include <algorithm>

#include "threads/block.h"
#include "trace/trace.h"
#include "trace/traced_block.h"

namespace simt {

bool TensorMemory::allocate(Part part) {
  for (part.first = 0; part.first < kColumns; part.first += part.columns) {
    const auto overlaps = [&](const Part& other) {
      return part.first < other.first + other.columns && other.first < part.first + part.columns;
    };
    if (std::any_of(parts.begin(), parts.end(), overlaps)) continue;
    if (!cells_) cells_.reset(new uint32_t[kLanes * kColumns]);
    for (unsigned lane = 0; lane < kLanes; ++lane) std::fill_n(row(lane) + part.first, part.columns, ~0u);
    parts.push_back(part);
    return true;
  }
  return false;
}

bool TensorMemory::free(unsigned first, unsigned columns) {
  const auto same = [&](const Part& part) { return part.first == first && part.columns == columns; };
  const auto found = std::find_if(parts.begin(), parts.end(), same);
  if (found == parts.end()) return false;
  parts.erase(found);
  return true;
}

bool TensorMemory::covers(unsigned first, unsigned columns) const {  // allocations may follow each other
  for (const unsigned end = first + columns; first < end;) {
    const auto holds = [&](const Part& part) { return part.first <= first && first < part.first + part.columns; };
    const auto found = std::find_if(parts.begin(), parts.end(), holds);
    if (found == parts.end()) return false;
    first = found->first + found->columns;
  }
  return true;
}

void TensorMemory::end() {
  parts.clear();
  relinquished = false;
}

std::string not_freed(const TensorMemory::Part& part) {
  return "the block ends with " + std::to_string(part.columns) +
         " columns of tensor memory that it has allocated: a warp has to free them (tcgen05.dealloc), or a later block "
         "waits for them for ever";
}

TensorMemory& tensor_memory_of(unsigned rank) {
  std::unique_ptr<TensorMemory[]>& all = current_worker->tensor_memory;
  if (!all) all.reset(new TensorMemory[kMaxClusterBlocks]);
  return all[rank];
}

void refuse_tensor(const void* site, const char* kind, const std::string& message) {
  if (trace::in_traced_block()) trace::Call()->cluster.fail(kind, {trace::pc_of(site)}, message);
  fault(kind, message);
}

void check_columns(const void* site, unsigned rank, uint32_t address, unsigned lanes, unsigned columns,
                   const char* who) {
  const unsigned first = column_of(address), lane = lane_of(address);
  if (lane + lanes > TensorMemory::kLanes)
    refuse_tensor(site, "out-of-bounds",
                  std::string(who) + " uses the lanes " + std::to_string(lane) + " to " +
                      std::to_string(lane + lanes - 1) + " of tensor memory, which has 128");
  if (!tensor_memory_of(rank).covers(first, columns))
    refuse_tensor(site, "out-of-bounds",
                  std::string(who) + " uses the columns " + std::to_string(first) + " to " +
                      std::to_string(first + columns - 1) +
                      " of tensor memory, which are not all allocated: its address is that which tcgen05.alloc has "
                      "written, plus a column of the allocation");
}

// ---------------------------------------------------------------------------------------------------------------
// Allocations

namespace {

constexpr unsigned kPatience = 100000;  // turns of the other threads until an allocation waits in vain

TensorMemory& own_memory() {
  if (!in_kernel()) throw Fault("host-call", "tensor memory is used outside a kernel");
  return tensor_memory_of(cluster_rank());
}

}  // namespace

uint32_t tensor_allocate(uint32_t columns) {
  const void* const site = __builtin_return_address(0);
  TensorMemory& memory = own_memory();
  if (columns < TensorMemory::kLeast || columns > TensorMemory::kColumns || (columns & (columns - 1)))
    refuse_tensor(
        site, "tensor-memory",
        "tcgen05.alloc of " + std::to_string(columns) + " columns: their number is a power of two from 32 to 512");
  if (memory.relinquished)
    refuse_tensor(site, "tensor-memory", "tcgen05.alloc after tcgen05.relinquish_alloc_permit in the same block");
  if (in_cooperative_grid())
    refuse_tensor(site, "unsupported", "not supported by the simulator: tensor memory in a cooperative launch");
  for (unsigned turn = 0; !memory.allocate({0, columns, current_thread->linear, site}); ++turn) {
    if (turn == kPatience)
      refuse_tensor(site, "deadlock",
                    "tcgen05.alloc waits for " + std::to_string(columns) +
                        " columns for ever: the block has allocated the others and frees none");
    yield_thread();
  }
  return memory.parts.back().first;
}

void tensor_free(uint32_t address, uint32_t columns) {
  const void* const site = __builtin_return_address(0);
  if (!own_memory().free(column_of(address), columns))
    refuse_tensor(site, "tensor-memory",
                  "tcgen05.dealloc of " + std::to_string(columns) + " columns from column " +
                      std::to_string(column_of(address)) +
                      " on, which the block has not allocated: it takes the address and the number of one");
  if (trace::in_traced_block()) trace::Call()->columns.end(column_of(address), columns, site);
}

void tensor_relinquish() { own_memory().relinquished = true; }

// ---------------------------------------------------------------------------------------------------------------
// Loads and stores

namespace {

struct Cell {
  unsigned row, column;
};
// Where register r of lane t of a warp lies in rows of 32, 64, 128 or 256 bits, and their repetitions: in rows of 128 and
// of 256 bits as in a fragment of mma.sync.
Cell cell_of(const TensorAccess& access, unsigned t, unsigned r) {
  if (access.rows == 32) return {t, r};
  switch (access.bits) {
    case 32:
      return {t % 16, r};
    case 64:
      return {t / 4 + t % 2 * 8, r * 2 + t / 2 % 2};
    case 128:
      return {t / 4 + r % 2 * 8, r / 2 * 4 + t % 4};
    default:
      return {t / 4 + r / 2 % 2 * 8, r / 4 * 8 + t % 4 * 2 + r % 2};
  }
}

// visit(r, p) for each register r of the running thread: p points to its cell, or to the first of two.
template <typename Visit>
void each_cell(const TensorAccess& access, const void* site, const char* who, Visit visit) {
  const unsigned t = current_thread->linear % kWarpSize, warp = current_thread->linear / kWarpSize;
  const unsigned first = lane_of(access.address), quarter = warp % 4 * kWarpSize, cells = access.packed ? 2 : 1;
  const bool in_halves = access.rows == 16 && access.bits == 32;
  const unsigned columns = cells * access.registers * (in_halves ? 1 : kWarpSize / access.rows);
  const unsigned rank = cluster_rank();
  for (const uint32_t address : {access.address, access.address + access.split}) {
    check_columns(site, rank, address, access.rows, columns, who);
    if (trace::in_traced_block()) trace::Call()->columns.access(column_of(address), columns, who, site);
  }
  if (first < quarter || first + access.rows > quarter + kWarpSize)
    refuse_tensor(site, "out-of-bounds",
                  std::string(who) + " in warp " + std::to_string(warp) + " uses lanes of tensor memory from " +
                      std::to_string(first) + " on; this warp reaches the lanes " + std::to_string(quarter) + " to " +
                      std::to_string(quarter + kWarpSize - 1));
  TensorMemory& memory = tensor_memory_of(rank);
  const unsigned begin = column_of(access.address) + t / 16 * access.split;
  for (unsigned r = 0; r < access.registers; ++r) {
    const Cell cell = cell_of(access, t, r);
    visit(r, memory.row(first + cell.row) + begin + cells * cell.column);
  }
}

}  // namespace

void tensor_load(const TensorAccess& access, uint32_t* registers) {
  each_cell(access, __builtin_return_address(0), "tcgen05.ld",
            [&](unsigned r, const uint32_t* p) { registers[r] = access.packed ? (p[0] & 0xffff) | p[1] << 16 : p[0]; });
}

void tensor_store(const TensorAccess& access, const uint32_t* registers) {
  each_cell(access, __builtin_return_address(0), "tcgen05.st", [&](unsigned r, uint32_t* p) {
    p[0] = access.packed ? registers[r] & 0xffff : registers[r];
    if (access.packed) p[1] = registers[r] >> 16;
  });
}

}  // namespace simt
