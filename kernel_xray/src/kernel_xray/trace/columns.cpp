// columns.cpp: the order of the uses of tensor memory.
#include "trace/columns.h"

namespace simt::trace {

namespace {
constexpr char kProduct[] =
    "a tcgen05.mma may still be writing: nothing has waited for the mbarrier of a tcgen05.commit that follows it";
constexpr char kWarp[] =
    "a tcgen05.ld or tcgen05.st of a warp may still be using: nothing orders the two, such as an "
    "mbarrier at which the warp arrives, or a barrier";
}  // namespace

TensorColumns::Column& TensorColumns::column(unsigned rank, unsigned number) {
  if (columns_.empty()) columns_.resize(size_t{cluster_.worker.cluster_blocks} * TensorMemory::kColumns);
  return columns_[rank * TensorMemory::kColumns + number];
}

void TensorColumns::check(const VectorClock& known, const Use& use, const char* who, uint64_t pc, const char* other) {
  if (!use.epoch.clock || known.knows(use.epoch)) return;
  if (Finding* found = cluster_.place("race", pc, use.pc, cluster_.running()))
    found->message = std::string(who) + " uses columns of tensor memory that " + other;
}

void TensorColumns::access(unsigned first, unsigned count, const char* who, const void* site) {
  if (!watched()) return;
  const unsigned i = cluster_.running(), rank = cluster_.rank_of(i), linear = cluster_.index_of(i);
  for (unsigned c = first; c < first + count; ++c) {
    Column& one = column(rank, c);
    check(clocks_.acquired(i), one.product, who, pc_of(site), kProduct);
    if (linear % kWarpSize == 0) one.by_warp[linear / kWarpSize % 4] = {clocks_.epoch(i), pc_of(site), i};
  }
}

void TensorColumns::end(unsigned first, unsigned count, const void* site) {
  if (!watched() || columns_.empty()) return;
  const unsigned i = cluster_.running(), rank = cluster_.rank_of(i);
  const ProxyClocks known = clocks_.full(i);
  for (unsigned c = first; c < first + count; ++c) {
    Column& one = column(rank, c);
    check(known.generic, one.product, "tcgen05.dealloc", pc_of(site), kProduct);
    for (const Use& use : one.by_warp) check(known.generic, use, "tcgen05.dealloc", pc_of(site), kWarp);
    one = {};
  }
}

void TensorColumns::product(unsigned rank, unsigned first, unsigned count, const ProxyClocks& known, Epoch epoch) {
  if (!watched()) return;
  const unsigned i = cluster_.running();
  for (unsigned c = first; c < first + count; ++c) {
    Column& one = column(rank, c);
    for (const Use& use : one.by_warp) check(known.generic, use, "tcgen05.mma", cluster_.pc(i), kWarp);
    if (epoch.clock) one.product = {epoch, cluster_.pc(i), i};
  }
}

void TensorColumns::end_cluster() {
  if (cluster_.failed || !cluster_.worker.tensor_memory) return;
  for (unsigned rank = 0; rank < cluster_.worker.cluster_blocks; ++rank)
    for (const TensorMemory::Part& part : cluster_.worker.tensor_memory[rank].parts)
      cluster_.record_failure(rank * cluster_.block_threads + part.thread, "tensor-memory", {pc_of(part.site)},
                              not_freed(part));
}

}  // namespace simt::trace
