// faults.cu: kernels with one fault each, for the simulator alone: on a GPU most of them would end the process's use of
// the device. Each case must end with an error that names the fault, the kernel, the block and the thread.
#include <cassert>
#include <stdexcept>
#include <thread>

#include "api_misuse.cu"  // so that the two compile as one source
#include "case.h"

// ------------------------------------------------------------------------------------------------------------------
// Memory

__global__ void null_write_kernel(int* p) { p[threadIdx.x] = 1; }
CASE(null_write) { null_write_kernel<<<1, 32>>>(nullptr); }

__global__ void null_read_kernel(const int* p, int* out) { out[0] = p[2 + threadIdx.x]; }
CASE(null_read) { null_read_kernel<<<1, 1>>>(nullptr, call.data<int>(0)); }

__global__ void store_kernel(int* p) { *p = 1; }
CASE(wild_pointer) { store_kernel<<<1, 1>>>(reinterpret_cast<int*>(0x10deadbee0ull)); }
CASE(impossible_pointer) { store_kernel<<<1, 1>>>(reinterpret_cast<int*>(0xdeadbeefdeadbee0ull)); }
CASE(code_is_read_only) { store_kernel<<<1, 1>>>(reinterpret_cast<int*>(&store_kernel)); }

__global__ void far_kernel(int* p, int64_t offset) { p[offset * threadIdx.x] = 1; }
CASE(far_behind) { far_kernel<<<1, 2>>>(call.data<int>(0), int64_t(1) << 42); }
CASE(far_before) { far_kernel<<<1, 2>>>(call.data<int>(0), -(int64_t(1) << 42)); }

// Only one thread of one block: the message must name it.
__global__ void second_block_kernel(int* p) {
  const bool bad = blockIdx.x == 1 && blockIdx.y == 2 && threadIdx.x == 3 && threadIdx.y == 1 && threadIdx.z == 1;
  int* q = bad ? nullptr : p;
  atomicAdd(q, 1);
}
CASE(second_block) { second_block_kernel<<<dim3(2, 3), dim3(4, 2, 2)>>>(call.data<int>(0)); }

// After a barrier, when the threads are fibres.
__global__ void after_barrier_kernel(int* p) {
  __shared__ int cells[64];
  cells[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 40) p = nullptr;
  p[threadIdx.x] = cells[63 - threadIdx.x];
}
CASE(after_barrier) { after_barrier_kernel<<<1, 64>>>(call.data<int>(0)); }

__global__ void null_function_kernel(int* p, int (*function)(int)) { p[0] = function(1); }
CASE(null_function) { null_function_kernel<<<1, 1>>>(call.data<int>(0), nullptr); }

CASE(null_kernel) {
  void (*kernel)(int*) = call.number(0) ? store_kernel : nullptr;
  kernel<<<1, 1>>>(call.data<int>(0));
}

template <typename T, int N>
__global__ void template_fault_kernel(T* p) {
  p[N] = T(1);
}
CASE(in_a_template) {  // g++ 12 at -O1 leaves out a store through a pointer that it knows to be null
  template_fault_kernel<double, 3><<<1, 1>>>(reinterpret_cast<double*>(intptr_t(call.number(0))));
}

template <typename Function>
__global__ void apply_kernel(Function function) {
  function();
}
CASE(in_a_lambda) {
  int* p = nullptr;
  apply_kernel<<<1, 1>>>([=] __device__() { *p = 1; });
}

// ------------------------------------------------------------------------------------------------------------------
// Stack

__device__ int descend(volatile int* depth, int n) {
  volatile int frame[64];
  frame[n % 64] = n;
  *depth = n;
  return n < 0 ? 0 : descend(depth, n + 1) + frame[n % 64];
}
__global__ void recursion_kernel(int* out) { out[0] = descend(out + 1, 0); }
CASE(endless_recursion) { recursion_kernel<<<1, 1>>>(call.data<int>(0)); }

__global__ void recursion_after_barrier_kernel(int* out) {
  __syncthreads();
  if (threadIdx.x == 5) out[0] = descend(out + 1, 0);
}
CASE(endless_recursion_after_barrier) { recursion_after_barrier_kernel<<<1, 33>>>(call.data<int>(0)); }

__global__ void huge_array_kernel(int* out, int n) {
  volatile char large[64 << 20];
  for (int i = 0; i < n; i += 4096) large[i] = char(i);
  out[0] = large[n / 2];
}
CASE(huge_local_array) { huge_array_kernel<<<1, 1>>>(call.data<int>(0), 64 << 20); }

// ------------------------------------------------------------------------------------------------------------------
// Kernels that never end

__global__ void endless_kernel(volatile int* flag) {
  while (flag[0] == 0) {
  }
}
CASE(endless_loop) { endless_kernel<<<1, 1>>>(call.data<int>(0)); }

__global__ void empty_loop_kernel(int n) {
  for (volatile int i = 0; n > 0; i = i + 1) {
  }
}
CASE(endless_loop_in_all) { empty_loop_kernel<<<8, 64>>>(1); }

__global__ void endless_in_one_kernel(volatile int* flag) {
  while (blockIdx.x == 2 && threadIdx.x == 7 && flag[0] == 0) {
  }
}
CASE(endless_in_one_thread) { endless_in_one_kernel<<<4, 32>>>(call.data<int>(0)); }

__global__ void endless_barrier_kernel(volatile int* flag) {
  while (flag[0] == 0) __syncthreads();
}
CASE(endless_with_barrier) { endless_barrier_kernel<<<1, 64>>>(call.data<int>(0)); }

__global__ void endless_shuffle_kernel(int value) {
  while (value != 77) value = __shfl_xor_sync(0xffffffffu, value, 1);
}
CASE(endless_with_shuffle) { endless_shuffle_kernel<<<1, 32>>>(1); }

__global__ void spin_kernel(int* lock) {
  while (atomicCAS(lock, 7, 1) != 7) {
  }
}
CASE(endless_spin_on_atomic) { spin_kernel<<<2, 32>>>(call.data<int>(0)); }

__global__ void sleep_kernel(volatile int* flag) {
  while (flag[0] == 0) __nanosleep(100);
}
CASE(endless_sleep) { sleep_kernel<<<1, 2>>>(call.data<int>(0)); }

// ------------------------------------------------------------------------------------------------------------------
// Errors that the kernel raises itself

__global__ void assert_kernel(int limit) { assert(int(threadIdx.x) < limit); }
CASE(assertion) { assert_kernel<<<3, 8>>>(5); }

__global__ void assert_text_kernel(int limit) { assert(int(threadIdx.x) < limit && "the index is within the row"); }
CASE(assertion_with_text) { assert_text_kernel<<<1, 8>>>(2); }

__global__ void trap_kernel() {
  if (threadIdx.x == 9) __trap();
}
CASE(trap) { trap_kernel<<<1, 32>>>(); }

__global__ void throw_kernel() {
  if (threadIdx.x == 2) throw std::runtime_error("thrown in a kernel");
}
CASE(exception) { throw_kernel<<<1, 4>>>(); }

__global__ void throw_after_barrier_kernel() {
  __syncthreads();
  if (threadIdx.x == 2) throw std::runtime_error("thrown behind a barrier");
  __syncthreads();
}
CASE(exception_after_barrier) { throw_after_barrier_kernel<<<1, 4>>>(); }

__global__ void throw_int_kernel() { throw 42; }
CASE(exception_of_no_class) { throw_int_kernel<<<1, 1>>>(); }

__global__ void vector_at_kernel(const std::vector<int>* v, int* out) { out[0] = v->at(100); }
CASE(exception_of_the_library) {
  const std::vector<int> v(3);
  vector_at_kernel<<<1, 1>>>(&v, call.data<int>(0));
}

__global__ void allocate_kernel(int** out, size_t bytes) { *out = new int[bytes]; }
CASE(bad_alloc) { allocate_kernel<<<1, 1>>>(reinterpret_cast<int**>(call.data<int>(0)), size_t(1) << 58); }

__global__ void divide_kernel(int* out, const int* zero) { out[threadIdx.x] = 7 / zero[threadIdx.x]; }
CASE(division_by_zero) { divide_kernel<<<1, 2>>>(call.data<int>(0), call.data<int>(0)); }

__global__ void remainder_kernel(unsigned* out, const unsigned* zero) { out[0] = 7u % zero[0]; }
CASE(remainder_by_zero) { remainder_kernel<<<1, 1>>>(call.data<unsigned>(0), call.data<unsigned>(0)); }

// ------------------------------------------------------------------------------------------------------------------
// Synchronisation

__global__ void half_and_half_kernel(int* out) {
  if (threadIdx.x < 16)
    __syncthreads();
  else
    out[0] = __shfl_sync(0xffffffffu, 1, 0);
}
CASE(deadlock) { half_and_half_kernel<<<1, 32>>>(call.data<int>(0)); }

__global__ void crossed_collectives_kernel(int* out) {
  if (threadIdx.x < 16)
    out[0] = __shfl_sync(0xffffffffu, 1, 0);
  else
    out[1] = __ballot_sync(0xffffffffu, 1);
}
CASE(crossed_collectives) { crossed_collectives_kernel<<<1, 32>>>(call.data<int>(0)); }

__global__ void not_in_mask_kernel(int* out) { out[threadIdx.x] = __shfl_sync(0x0000ffffu, 1, 0); }
CASE(lane_not_in_its_mask) { not_in_mask_kernel<<<1, 32>>>(call.data<int>(0)); }

__global__ void tree_kernel(const int* in, int* out) {  // the branch holds a __syncwarp of all lanes
  __shared__ int cells[64];
  const int i = threadIdx.x;
  cells[i] = in[i];
  __syncthreads();
  for (int step = 32; step > 0; step /= 2) {
    if (i < step) {
      cells[i] += cells[i + step];
      __syncwarp(0xffffffffu);
    }
  }
  __syncthreads();
  if (i == 0) out[0] = cells[0];
}
CASE(syncwarp_in_a_branch) { tree_kernel<<<1, 64>>>(call.data<int>(0), call.data<int>(0)); }

// ------------------------------------------------------------------------------------------------------------------
// Launches from threads of the host program

template <typename Function>
static void in_a_thread(Function function) {
  std::exception_ptr caught;
  std::thread thread([&] {
    try {
      function();
    } catch (...) {
      caught = std::current_exception();
    }
  });
  thread.join();
  if (caught) std::rethrow_exception(caught);
}

CASE(fault_in_a_thread) {
  in_a_thread([] { null_write_kernel<<<1, 32>>>(nullptr); });
}

__global__ void count_kernel(int* counter) { atomicAdd(counter, 1); }

// Two threads launch at the same time; the kernels of one of them fault.
CASE(fault_beside_good_launches) {
  std::exception_ptr caught;
  std::thread good([&] {
    for (int i = 0; i < 50; ++i) count_kernel<<<4, 64>>>(call.data<int>(0));
  });
  for (int i = 0; i < 10 && !caught; ++i) {
    try {
      null_write_kernel<<<1, 32>>>(nullptr);
    } catch (...) {
      caught = std::current_exception();
    }
  }
  good.join();
  if (caught) std::rethrow_exception(caught);
}

// What must still work after each of the above: shared memory, barriers, shuffles, several blocks.
__global__ void correct_kernel(int* out) {
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  const int sum = __reduce_add_sync(0xffffffffu, int(threadIdx.x));
  if (threadIdx.x % 32 == 0) atomicAdd(&total, sum);
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = total + int(blockIdx.x);
}
CASE(correct) { correct_kernel<<<3, 64>>>(call.data<int>(0)); }
