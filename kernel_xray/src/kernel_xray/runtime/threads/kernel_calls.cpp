// kernel_calls.cpp: the functions that kernels call (core.h), forwarded to this thread's worker or its traced block.
#include <cstring>

#include "threads/block.h"
#include "trace/trace.h"
#include "trace/traced_block.h"

namespace simt {

SIMT_API Thread thread_copy();
SIMT_API Geometry geometry_copy();

bool in_kernel() { return current_worker && current_worker->in_fibre.load(std::memory_order_relaxed); }

namespace {
Worker& device_side(const char* what) {
  Worker* const worker = current_worker;
  if (worker && worker->in_fibre.load(std::memory_order_relaxed)) return *worker;
  throw Fault("host-call", std::string(what) + " was called outside a kernel");
}
}  // namespace

int block_barrier(Vote vote, int predicate) {
  Worker& worker = device_side("__syncthreads");
  return trace::in_traced_block() ? trace::Call()->barriers.block(vote, predicate, __builtin_return_address(0))
                                  : worker.barrier(vote, predicate);
}
uint64_t warp_collective(Collective what, unsigned mask, uint64_t value, unsigned operand) {
  Worker& worker = device_side("a warp collective");
  return trace::in_traced_block()
             ? trace::Call()->barriers.collective(what, mask, value, operand, __builtin_return_address(0))
             : worker.collective(what, mask, value, operand);
}
unsigned active_mask() {
  Worker& worker = device_side("__activemask");
  const void* site = __builtin_return_address(0);
  return trace::in_traced_block() ? trace::Call()->barriers.active(site) : worker.active(site);
}
void yield_thread() {
  Worker& worker = device_side("__nanosleep");
  if (trace::in_traced_block())
    trace::this_block->cluster.pause();
  else
    worker.yield();
}
void let_others_run() {
  if (in_kernel() && !trace::in_traced_block()) current_worker->yield();
}
void tensor_work(TensorType factors, unsigned multiply_adds) noexcept {
  if (!trace::in_traced_block()) return;
  const unsigned rank = trace::this_block->cluster.running_rank();
  trace::this_block->replay.work.add_products(rank, factors, multiply_adds);
}
void special_function() noexcept {
  if (trace::in_traced_block()) trace::this_block->replay.work.add_special();
}
void exit_thread() {
  Worker& worker = device_side("the PTX instruction exit");
  if (!trace::in_traced_block()) worker.exit_running();
  worker.running->exited = true;
  trace::this_block->cluster.suspend();
  __builtin_unreachable();
}
void* shared_static(const SharedSite* site, size_t bytes, size_t alignment) {
  Worker& worker = device_side("a __shared__ declaration");
  return trace::in_traced_block() ? trace::Call()->shared.variable(site, bytes, alignment)
                                  : worker.shared_static(site, bytes, alignment);
}
void* shared_dynamic() {
  Worker& worker = device_side("extern __shared__");
  return worker.shared_of(trace::in_traced_block() ? trace::this_block->cluster.running_rank() : worker.cluster_rank());
}
void cluster_barrier() {
  Worker& worker = device_side("a cluster's barrier");
  if (trace::in_traced_block())
    trace::OrderedCall(__builtin_return_address(0))->barriers.cluster(__builtin_return_address(0));
  else
    worker.cluster_barrier();
}
void cluster_arrive() {
  Worker& worker = device_side("a cluster's barrier");
  if (trace::in_traced_block())
    trace::OrderedCall(__builtin_return_address(0))->barriers.cluster_arrive();
  else
    worker.cluster_arrive();
}
void grid_barrier() {
  Worker& worker = device_side("grid.sync()");
  if (!worker.job->config.cooperative)
    fault("cooperative launch",
          "grid.sync() in a kernel that was launched with <<<>>>: only cudaLaunchCooperativeKernel "
          "starts all blocks of a grid together");
  if (trace::in_traced_block())
    trace::OrderedCall(__builtin_return_address(0))->barriers.cluster(__builtin_return_address(0));
  else
    worker.grid_barrier();
}
bool in_cooperative_grid() { return in_kernel() && current_worker->job->config.cooperative; }
void wait_for_kernel_before() {
  device_side("griddepcontrol.wait");
  if (trace::in_traced_block() && trace::Call()->races.follows())
    trace::OrderedCall(__builtin_return_address(0))->races.wait_for_kernel_before();
}
void let_next_kernel_begin() {
  device_side("griddepcontrol.launch_dependents");
  if (trace::in_traced_block()) trace::Call()->races.let_next_kernel_begin();
}
void set_registers(unsigned number, bool more) {
  device_side("setmaxnreg");
  if (trace::in_traced_block()) trace::Call()->barriers.set_registers(number, more, __builtin_return_address(0));
}
void cluster_dims(unsigned x, unsigned y, unsigned z) {
  if (x * y * z > 1 && device_side("a kernel").cluster_blocks == 1)
    fault(kWithoutClusters, std::to_string(x) + " " + std::to_string(y) + " " + std::to_string(z));
}
void max_registers(unsigned number) {
  if (trace::in_traced_block()) trace::Call()->barriers.max_registers(number);
}
void launch_bounds(unsigned threads, unsigned blocks, unsigned) {
  if (trace::in_traced_block()) trace::Call()->barriers.launch_bounds(threads, blocks);
}
void warp_group_barrier() {
  Worker& worker = device_side("a warp group's barrier");
  if (trace::in_traced_block())
    trace::Call()->barriers.warp_group(__builtin_return_address(0));
  else
    worker.warp_group_barrier();
}
namespace {
Worker& at_named_barrier(unsigned id, unsigned threads) {
  Worker& worker = device_side("a named barrier");
  if (id >= kNamedBarriers || !threads || threads % kWarpSize || threads > kMaxThreads)
    fault("barrier", "a barrier of inline PTX has a number from 0 to 15 and is for whole warps");
  return worker;
}
}  // namespace
int named_barrier(unsigned id, unsigned threads, Vote vote, int predicate) {
  Worker& worker = at_named_barrier(id, threads);
  if (!trace::in_traced_block()) return worker.named_barrier(id, threads, vote, predicate);
  const void* const site = __builtin_return_address(0);
  return answer_to(vote, trace::OrderedCall(site)->barriers.named(id, threads, predicate, site), threads);
}
void named_arrive(unsigned id, unsigned threads) {
  Worker& worker = at_named_barrier(id, threads);
  if (trace::in_traced_block())
    trace::OrderedCall(__builtin_return_address(0))->barriers.arrive(id, threads);
  else
    worker.named_arrive(id, threads);
}
unsigned cluster_rank() {
  Worker& worker = device_side("a block's rank in its cluster");
  return trace::in_traced_block() ? trace::this_block->cluster.running_rank() : worker.cluster_rank();
}
unsigned cluster_blocks() { return device_side("the blocks of a cluster").cluster_blocks; }
dim3 cluster_dim() {
  const Worker& worker = device_side("a cluster's dimensions");
  const uint3 first = worker.blocks[0].geometry.block_index;
  const uint3 last = worker.blocks[worker.cluster_blocks - 1].geometry.block_index;
  return {last.x - first.x + 1, last.y - first.y + 1, last.z - first.z + 1};
}
void* shared_dynamic_of(unsigned rank) {
  Worker& worker = device_side("another block's shared memory");
  const unsigned blocks = worker.cluster_blocks;
  const bool found_later = trace::in_traced_block();  // what a block does after another's end, in any order (races.h)
  const trace::Silence silence;                       // building a message is not traced
  if (rank >= blocks)
    worker.abandon({"cluster", "the kernel requests block " + std::to_string(rank) + " of a cluster of " +
                                   std::to_string(blocks) + (blocks == 1 ? " block" : " blocks")});
  if (worker.blocks[rank].alive == 0 && !found_later)
    worker.abandon({"cluster", "block " + std::to_string(rank) +
                                   " of the cluster has ended and its shared memory is gone; "
                                   "a block must not end while others use its shared memory"});
  return worker.shared_of(rank);
}
size_t shared_address(const void* p) {
  const Worker& worker = device_side("__cvta_generic_to_shared");
  const auto offset = static_cast<size_t>(static_cast<const char*>(p) - worker.shared);
  if (worker.cluster_blocks == 1) return offset;
  if (offset >= worker.cluster_blocks * kSharedLimit)
    return static_cast<size_t>(static_cast<const char*>(p) - static_cast<const char*>(shared_dynamic()));
  return offset % kSharedLimit | offset / kSharedLimit << kSharedRankShift;
}
char* shared_pointer_in_cluster(uint64_t address) {
  const auto rank = static_cast<unsigned>(address >> kSharedRankShift);
  return static_cast<char*>(shared_dynamic_of(rank)) + (address & ((1u << kSharedRankShift) - 1));
}
char* shared_pointer(uint64_t address) {
  constexpr char kOutside[] =
      "inline PTX uses a shared address outside the block's shared memory; it takes what __cvta_generic_to_shared "
      "returns, in 32 bits";
  char* const here = static_cast<char*>(shared_dynamic());
  const uint64_t low = address & ((1u << kSharedRankShift) - 1);
  const bool own = low < kSharedLimit && (low == address || address >> kSharedRankShift == cluster_rank());
  const uint64_t offset = own ? low : address - reinterpret_cast<uint64_t>(here);
  if (offset < kSharedLimit) return here + offset;
  // A GPU's generic address has the shared one in its lower half, and code that takes it without a conversion works.
  const uint64_t of_half = static_cast<uint32_t>(offset);
  if (address >> 32 == 0 && of_half < kSharedLimit) return here + of_half;
  if (!trace::in_traced_block()) fault("out-of-bounds", kOutside);
  const auto after_call = reinterpret_cast<uint64_t>(__builtin_return_address(0));
  trace::Call()->cluster.fail("out-of-bounds", {after_call - 1}, kOutside);
  __builtin_unreachable();
}
size_t shared_dynamic_bytes() { return device_side("extern __shared__").job->config.shared_bytes; }

// The indices of a traced thread (core.h, under SIMT_TRACED).
SIMT_API Thread thread_copy() { return *current_thread; }
SIMT_API Geometry geometry_copy() { return *current_thread->geometry; }

void fault(const char* kind, const std::string& message) { fault(kind, message.c_str()); }
void fault(const char* kind, const char* message) {
  if (!in_kernel()) throw Fault(kind, message);
  const trace::Silence silence;
  current_worker->abandon({kind, message});
}

void not_translated(const char* why, const char* file, int line) {
  std::string message;
  {
    const trace::Silence silence;
    const char* const slash = std::strrchr(file, '/');
    message = (slash ? slash + 1 : file) + (":" + std::to_string(line)) + ": " + why;
  }
  if (trace::in_traced_block()) {
    const trace::Silence silence;
    trace::lane_fault("unsupported", {0, file, static_cast<unsigned>(line)}, message);
  }
  fault("unsupported", message.c_str());
}

namespace {

// The expression as the source has it, with the translator's macros (keywords.h) replaced by the names they stand for.
std::string as_written(std::string expression) {
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"simt_tIdx", "threadIdx"}, {"simt_bIx", "blockIdx"}, {"simt_bDm", "blockDim"}, {"simt_gD", "gridDim"}};
  for (const auto& [macro, name] : kNames)
    for (size_t at = 0; (at = expression.find(macro, at)) != std::string::npos; at += std::strlen(name))
      expression.replace(at, std::strlen(macro), name);
  return expression;
}

}  // namespace

void assert_failed(const char* expression, const char* file, int line, const char* function) {
  std::string message;
  {
    const trace::Silence silence;  // building the message is not traced
    message = "assertion failed: " + as_written(expression) + "\n  at " + file + ":" + std::to_string(line) + ", in " +
              function;
  }
  fault("assert", message.c_str());
}

}  // namespace simt
