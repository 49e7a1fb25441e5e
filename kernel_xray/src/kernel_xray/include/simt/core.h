// core.h: what a translated kernel needs from the simulator's run-time library (libsimt).
//
// The model. A launch runs its blocks on a pool of operating-system threads. A block stays on the thread that started
// it, and blocks on one thread run one after another, so the state of the current block hangs off one thread-local
// pointer. Each CUDA thread is a fibre: it runs without interruption until it reaches a barrier or a warp collective,
// and only then does another fibre run. A launch returns when the grid is done. The blocks of a cluster
// (`__cluster_dims__`) share an operating-system thread and are scheduled like the threads of one block.
//
// Deviations from CUDA: launches are synchronous, memory is sequentially consistent between fibres of a block, and a
// kernel that waits for a block of another cluster can wait for ever (the watchdog ends it), except at the barrier of a
// cooperative grid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
};

struct CUstream_st;
using cudaStream_t = CUstream_st*;

namespace simt {

#define SIMT_API __attribute__((visibility("default")))
#ifdef __clang__  // forbids a copy of the call on each path of a branch: lanes that meet at it would no longer meet
#define SIMT_CONVERGENT __attribute__((convergent))
#else
#define SIMT_CONVERGENT
#endif

// For functions that work on local variables only. Traced, each of their accesses and branches would be an event, and
// reading another thread's local variables would be reported as an error.
#if defined(__clang__)
#define SIMT_NOT_TRACED __attribute__((no_sanitize("thread", "coverage")))
#elif __GNUC__ >= 12
#define SIMT_NOT_TRACED __attribute__((no_sanitize("thread"), no_sanitize_coverage))
#else
#define SIMT_NOT_TRACED __attribute__((no_sanitize("thread")))
#endif

inline constexpr unsigned kWarpSize = 32;
inline constexpr unsigned kFullMask = 0xffffffffu;

// ---------------------------------------------------------------------------------------------------------------
// Indices

struct Geometry {  // the same for all threads of a block
  uint3 block_index;
  dim3 block_dim;
  dim3 grid_dim;
};

struct Thread {  // the identity of one fibre
  uint3 thread_index;
  const Geometry* geometry;
  unsigned linear;         // index in the block; warp = linear / 32, lane = linear % 32
  bool carry = false;      // inline PTX: the carry flag,
  void* copies = nullptr;  // the copies that the thread has started with cp.async,
  uintptr_t asked = 0;     // and the phase of an mbarrier for which it has asked last, in vain
};

#if defined(__linux__)
#define SIMT_TLS __attribute__((tls_model("initial-exec")))
#else
#define SIMT_TLS
#endif
// Outside a kernel: thread (0, 0, 0) of a 1x1x1 grid. `__thread`, because each read of an `extern thread_local` calls a
// function, in case it has a constructor.
extern SIMT_API __thread Thread* current_thread SIMT_TLS;
#ifdef SIMT_TRACED  // by value from the library: reading an index is not traced
SIMT_API Thread thread_copy();
SIMT_API Geometry geometry_copy();
inline Thread self() { return thread_copy(); }
inline uint3 thread_index() { return thread_copy().thread_index; }
inline uint3 block_index() { return geometry_copy().block_index; }
inline dim3 block_dim() { return geometry_copy().block_dim; }
inline dim3 grid_dim() { return geometry_copy().grid_dim; }
inline unsigned lane() { return thread_copy().linear % kWarpSize; }
#else
inline Thread& self() { return *current_thread; }
inline const uint3& thread_index() { return self().thread_index; }
inline const uint3& block_index() { return self().geometry->block_index; }
inline const dim3& block_dim() { return self().geometry->block_dim; }
inline const dim3& grid_dim() { return self().geometry->grid_dim; }
inline unsigned lane() { return self().linear % kWarpSize; }
#endif
SIMT_API bool in_kernel();
SIMT_API bool set_compute_capability(int major);  // of the simulated devices; true

// The types of threadIdx, blockIdx, blockDim and gridDim (keywords.h). They hold nothing: the rewriter passes each use of
// such a name to here(), which gives the index of the thread that asks. Host code may use these names for variables of
// its own, so here() returns anything else as it is.
struct ThreadIndex {
  operator dim3() const { return thread_index(); }
};
struct BlockIndex {
  operator dim3() const { return block_index(); }
};
struct BlockDim {
  operator dim3() const { return block_dim(); }
};
struct GridDim {
  operator dim3() const { return grid_dim(); }
};
#define SIMT_HERE __attribute__((always_inline)) inline
SIMT_HERE decltype(auto) here(ThreadIndex) { return thread_index(); }
SIMT_HERE decltype(auto) here(BlockIndex) { return block_index(); }
SIMT_HERE decltype(auto) here(BlockDim) { return block_dim(); }
SIMT_HERE decltype(auto) here(GridDim) { return grid_dim(); }
template <typename T>
SIMT_HERE constexpr T&& here(T&& own) {
  return static_cast<T&&>(own);
}

// ---------------------------------------------------------------------------------------------------------------
// Synchronisation. Each call returns when all the threads that it waits for have made the same call.

enum class Vote { sync, count, all, any };
constexpr int answer_to(Vote vote, unsigned trues, unsigned threads) {
  if (vote == Vote::count) return static_cast<int>(trues);
  return vote == Vote::all ? trues == threads : vote == Vote::any && trues != 0;
}
// Over all threads of the block that have not exited.
SIMT_CONVERGENT SIMT_API int block_barrier(Vote vote, int predicate);

// A warp collective: every lane of `mask` gives a 64-bit value and gets a 64-bit answer.
enum class Collective {
  sync,       // answer 0
  shuffle,    // the value of lane `operand`; all ones where that lane takes no part
  ballot,     // bit i: lane i takes part and gave a value other than 0
  match_any,  // bit i: lane i gave the same value as this lane
  match_all,  // the mask if all gave the same value, else 0
  add_u32,    // from here on: the reduction over the lanes of the mask
  min_u32,
  max_u32,
  and_u32,
  or_u32,
  xor_u32,
  min_s32,
  max_s32,
};
SIMT_CONVERGENT SIMT_API uint64_t warp_collective(Collective what, unsigned mask, uint64_t value, unsigned operand = 0);
// The lanes of this warp that have not exited and could run together with this one.
SIMT_CONVERGENT SIMT_API unsigned active_mask();
SIMT_API void yield_thread();                     // lets the other threads of the block run (__nanosleep)
SIMT_API void let_others_run();                   // likewise, outside of an X-ray, which switches by itself
[[noreturn]] SIMT_API void exit_thread();         // ends this thread; its destructors do not run
SIMT_CONVERGENT SIMT_API void cluster_barrier();  // over all threads of the cluster that have not exited
// Arrives at the cluster's barrier without waiting: this thread's next cluster_barrier() waits for those who have not.
SIMT_API void cluster_arrive();
SIMT_CONVERGENT SIMT_API void warp_group_barrier();  // over the 128 threads of a warp group, 4 warps
// Barrier `id`, 0 to 15, of the block for this number of threads; those who arrive at it do not wait.
SIMT_CONVERGENT SIMT_API int named_barrier(unsigned id, unsigned threads, Vote vote = Vote::sync, int predicate = 0);
SIMT_API void named_arrive(unsigned id, unsigned threads);
SIMT_API unsigned cluster_rank();              // of this block in its cluster
SIMT_API unsigned cluster_blocks();            // how many blocks this block's cluster has
SIMT_API dim3 cluster_dim();                   // the cluster's dimensions in blocks
SIMT_CONVERGENT SIMT_API void grid_barrier();  // over all threads of a cooperative grid that have not exited
SIMT_API bool in_cooperative_grid();
SIMT_API void wait_for_kernel_before();  // which has ended in any case; an X-ray finds what a GPU may do before
SIMT_API void let_next_kernel_begin();
SIMT_API void set_registers(unsigned number, bool more);                 // of a thread of the running warp: setmaxnreg
SIMT_API void cluster_dims(unsigned x, unsigned y = 1, unsigned z = 1);  // of the kernel that begins
SIMT_API void max_registers(unsigned number);                            // of each thread, when its kernel begins
SIMT_API void launch_bounds(unsigned threads, unsigned blocks, unsigned cluster = 0);  // which bound them

// ---------------------------------------------------------------------------------------------------------------
// Shared memory: one arena per block.

struct SharedSite {  // identifies one __shared__ declaration; constant-initialised, one per template instantiation
  char unused = 0;
};
SIMT_API void* shared_static(const SharedSite* site, size_t bytes, size_t alignment);
SIMT_API void* shared_dynamic();  // the `bytes` of <<<grid, block, bytes>>>; 128-byte aligned
SIMT_API size_t shared_dynamic_bytes();
SIMT_API void* shared_dynamic_of(unsigned rank);  // of a block of this cluster: distributed shared memory
// The address of a byte of shared memory in 32 bits, as __cvta_generic_to_shared gives it: an offset in the shared memory
// of its block, and above it the block's rank in the cluster, as on a GPU.
inline constexpr unsigned kSharedRankShift = 24;
SIMT_API size_t shared_address(const void* p);
// For inline PTX: the byte of this block's shared memory that has such an address, or to which the address is a pointer.
// Any other address ends the kernel. Or the byte of any block of the cluster.
SIMT_API char* shared_pointer(uint64_t address);
SIMT_API char* shared_pointer_in_cluster(uint64_t address);

// `extern __shared__ T name[];` and `__shared__ T name;` outside a function: each use finds the array or variable of the
// block that asks, through here() or through the conversion.
template <typename Array>
struct DynamicShared {
  using Element = std::remove_extent_t<Array>;
  operator Element*() const { return static_cast<Element*>(shared_dynamic()); }
};
template <typename Array>
SIMT_HERE Array& here(const DynamicShared<Array>&) {
  return *static_cast<Array*>(shared_dynamic());
}

template <typename T, size_t alignment>
struct StaticShared {
  SharedSite site;
  operator T&() const {
    return *static_cast<T*>(shared_static(&site, sizeof(T), alignof(T) > alignment ? alignof(T) : alignment));
  }
};
template <typename T, size_t alignment>
SIMT_HERE T& here(const StaticShared<T, alignment>& variable) {
  return variable;
}

// ---------------------------------------------------------------------------------------------------------------
// __device__ and __managed__ variables: each is registered after its declaration, for the tracer and because each device
// has values of its own, except of managed and constant variables.

class SIMT_API DeviceVariable {
 public:
  DeviceVariable(const char* name, const volatile void* start, size_t bytes, bool shared);
  ~DeviceVariable();
  DeviceVariable(const DeviceVariable&) = delete;
  DeviceVariable& operator=(const DeviceVariable&) = delete;

 private:
  uint64_t start_;
};
#define SIMT_REGISTER_VARIABLE(name, number, shared) \
  static const ::simt::DeviceVariable simt_device_variable_##name##_##number(#name, &name, sizeof(name), shared);
#define SIMT_DEVICE_VARIABLE(name, number) \
  SIMT_REGISTER_VARIABLE(                  \
      name, number,                        \
      ::std::is_reference_v<decltype(name)> || ::std::is_const_v<::std::remove_all_extents_t<decltype(name)>>)
#define SIMT_MANAGED_VARIABLE(name, number) SIMT_REGISTER_VARIABLE(name, number, true)

// ---------------------------------------------------------------------------------------------------------------
// Faults: they end the kernel and become a C++ exception at its launch, then a Python exception.

class SIMT_API Fault : public std::exception {
 public:
  Fault(std::string kind, std::string message);
  ~Fault() override;
  const char* what() const noexcept override;
  std::string kind, message;
};
[[noreturn]] SIMT_API void fault(const char* kind, const std::string& message);  // from inside a kernel
[[noreturn]] SIMT_API void fault(const char* kind, const char* message);  // the same; makes no string in traced code
// Inline PTX that the translator does not know; from a kernel or the host.
[[noreturn]] SIMT_API void not_translated(const char* why, const char* file, int line);
[[noreturn]] SIMT_API void assert_failed(const char* expression, const char* file, int line, const char* function);

// ---------------------------------------------------------------------------------------------------------------
// Launching: `kernel<<<config>>>(arguments)` is translated to
//   ::simt::launcher({"kernel", file, line}, ::simt::Config(config),
//                    [=](auto simt_pass, auto&... a) mutable {
//                      if constexpr (simt_pass.plain) kernel(a...); else simt_pass(kernel, a...);
//                    })(arguments)
// The lambda copies what it names, for it may run after the function that launches has returned.

struct Site {
  const char* kernel;
  const char* file;
  int line;
  const void* function = nullptr;  // the kernel's address, if its name denotes a single function
  dim3 cluster{};                  // blocks: the kernel's __cluster_dims__
  bool guessed = false;            // `kernel` is the text of a pointer: debugging information may know the function
#ifdef SIMT_TRACED
  bool traced = true;
#else
  bool traced = false;
#endif
};

struct Config {
  dim3 grid, block;
  size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
  bool cooperative = false;
  bool early = false;  // it may begin before the kernel before it has ended
  Config(dim3 grid_, dim3 block_, size_t shared_ = 0, cudaStream_t stream_ = nullptr)
      : grid(grid_), block(block_), shared_bytes(shared_), stream(stream_) {}
};

// Threads of one block that a fibre runs one after another, in a loop in the kernel's own code. Their identity is in one
// place, `thread`, which names the running one.
struct Range {
  Thread* thread;
  dim3 block;
  unsigned end;  // behind the last thread's linear index; 0 once a thread has waited: the next runs on another fibre

  template <typename Body>
  SIMT_HERE void run(Body body) {
    Thread& self = *thread;
    const unsigned width = block.x, height = block.y;
    uint3 at = self.thread_index;
    for (unsigned linear = self.linear;;) {
      body();
      if (++linear >= end) return;
      if (++at.x == width) {
        at.x = 0;
        if (++at.y == height) at.y = 0, ++at.z;
        self.thread_index.y = at.y;
        self.thread_index.z = at.z;
      }
      self.thread_index.x = at.x;
      self.linear = linear;
      self.carry = false;
      self.copies = nullptr;
      asm volatile("" ::: "memory");  // the next thread's accesses stay behind this, so that a fault names it
    }
  }
};

// A kernel and its arguments. A launch calls run(state, range), which runs the threads of a range, or a single one if the
// code is traced, and copies the state if it has to wait: in a graph, or until the kernel that launched it has ended.
struct Closure {
  void* state;
  void (*run)(void* state, Range& range);
  size_t bytes;
  void* (*copy)(const void* state, size_t bytes);  // on the heap; `destroy` frees it
  void (*destroy)(void* state);
  bool on_heap = false;
};

// A launch that waits keeps its arguments. From a kernel, none of them may point to the thread's own or shared memory.
SIMT_API void check_kept_pointer(const volatile void* pointer);
template <typename T>
void check_kept(const T& argument) {
  if constexpr (std::is_pointer_v<T> && !std::is_function_v<std::remove_pointer_t<T>>) check_kept_pointer(argument);
}

// The arguments of a launch, one base each. With std::tuple and std::apply, a file of a hundred kernels took a third longer
// to compile. Kernels with arguments of the same types share the code that keeps them.
template <size_t i, typename T>
struct Argument {
  T value;
  template <typename Given>
  SIMT_HERE explicit Argument(Given&& given) : value(static_cast<Given&&>(given)) {}
};
template <typename Indices, typename... T>
struct IndexedArguments;
template <size_t... i, typename... T>
struct IndexedArguments<std::index_sequence<i...>, T...> : Argument<i, T>... {
  template <typename... Given>
  SIMT_HERE explicit IndexedArguments(std::index_sequence<i...>, Given&&... given)
      : Argument<i, T>(static_cast<Given&&>(given))... {}

  template <typename Pass, typename Kernel>
  SIMT_HERE void give(Pass pass, Kernel& kernel) {
    kernel(pass, static_cast<Argument<i, T>&>(*this).value...);
  }
  void check() const { (check_kept(static_cast<const Argument<i, T>&>(*this).value), ...); }

  static void* copied_bytes(const void* state, size_t bytes) {
    static_cast<const IndexedArguments*>(state)->check();
    return __builtin_memcpy(::operator new(bytes), state, bytes);
  }
};
template <typename... T>
using Arguments = IndexedArguments<std::index_sequence_for<T...>, T...>;

// A closure's state is the arguments, the first base of a Call.
template <typename Call>
void run_range(void* state, [[maybe_unused]] Range& range) {
  Call& call = static_cast<Call&>(*static_cast<typename Call::Kept*>(state));
#ifdef SIMT_TRACED
  call();
#else
  // A copy that nothing points to stays in registers from thread to thread. The kernel takes its parameters from it by value.
  if constexpr (std::is_trivially_copy_constructible_v<Call> && sizeof(Call) <= 128) {
    range.run(Call(call));
  } else {
    range.run([&call] { call(); });
  }
#endif
}

template <typename Call>
SIMT_HERE Closure closure_of(Call& call) {
  using Kept = typename Call::Kept;
  Kept* state = &call;
  if constexpr (std::is_trivially_copy_constructible_v<Call> && std::is_trivially_destructible_v<Call> &&
                alignof(Call) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) {
    return {state, run_range<Call>, sizeof(Call), Kept::copied_bytes, [](void* kept) { ::operator delete(kept); }};
  } else {
    return {state, run_range<Call>, sizeof(Call),
            [](const void* kept, size_t) -> void* {
              const auto& arguments = *static_cast<const Kept*>(kept);
              arguments.check();
              return static_cast<Kept*>(new Call(static_cast<const Call&>(arguments)));
            },
            [](void* kept) { delete &static_cast<Call&>(*static_cast<Kept*>(kept)); }};
  }
}

// The site of a launch of the kernel that this pointer holds, with its name, which need not be the text before `<<<`.
SIMT_API Site site_of(const void* function, Site site);

SIMT_API void launch(const Site& site, const Config& config, const Closure& closure);

template <typename Kernel, typename Pass, typename... T>
struct KernelCall : Arguments<T...> {
  using Kept = Arguments<T...>;
  Kernel kernel;

  template <typename... Given>
  SIMT_HERE explicit KernelCall(const Kernel& kernel_, Given&&... given)
      : Kept(std::index_sequence_for<T...>(), static_cast<Given&&>(given)...), kernel(kernel_) {}
  SIMT_HERE void operator()() { this->give(Pass(), kernel); }
};

// An argument 0 of a launch. It is an int, or where no kernel takes an int there, a null pointer.
struct Zero {
  operator int() const { return 0; }
  template <typename T>
  operator T*() const {
    return nullptr;
  }
};
template <typename T>
T& integer(T& argument) {
  return argument;
}
inline int integer(Zero) { return 0; }

// Calls a kernel with arguments among which are Zeros.
template <typename Function, typename... Arguments>
void call(Function function, Arguments&... arguments) {
  if constexpr (std::is_invocable_v<Function, decltype(integer(arguments))...>) {
    function(integer(arguments)...);
  } else {
    function(arguments...);
  }
}

// How each thread gets its copy of the arguments. As a rule, C++ makes it: a call copies what it passes by value.
struct PlainCopies {
  static constexpr bool plain = true;
};

// CUDA copies an object with a destructor on the host, sends its bytes to the device, and destroys it on the host.
struct CopiesOfBytes {
  static constexpr bool plain = false;

  // Constructs and destroys nothing: the C++ ABI of Linux and macOS passes such an object by its address, and here the
  // address is that of the bytes. A function template needs its arguments' exact types, for want of others.
  template <typename... Arguments>
  void operator()(void (*kernel)(Arguments...), Arguments&... arguments) const {
    call(kernel, arguments...);
  }
  template <typename... Parameters, typename... Arguments>
  std::enable_if_t<sizeof...(Parameters) == sizeof...(Arguments)> operator()(void (*kernel)(Parameters...),
                                                                             Arguments&... arguments) const {
    call(kernel, arguments...);
  }

 private:
  template <typename T>
  static constexpr bool by_address = !std::is_trivially_destructible_v<T>;

  template <typename T>
  struct Bytes {
    alignas(T) unsigned char bytes[sizeof(T)];
    explicit Bytes(const T& from) { __builtin_memcpy(bytes, std::addressof(from), sizeof(T)); }
    operator void*() { return bytes; }
  };

  template <typename Parameter, typename Argument>
  static decltype(auto) lowered(Argument& argument) {
    if constexpr (!by_address<Parameter>) {
      return (argument);
    } else {
      static_assert(std::is_same_v<std::remove_const_t<Parameter>, Argument>,
                    "give the kernel an object of its parameter's type: the parameter has a destructor");
      return Bytes<Argument>(argument);
    }
  }

  template <typename... Parameters, typename... Arguments>
  static void call(void (*kernel)(Parameters...), Arguments&... arguments) {
    using Lowered = void (*)(std::conditional_t<by_address<Parameters>, void*, Parameters>...);
    reinterpret_cast<Lowered>(kernel)(lowered<Parameters>(arguments)...);
  }
};

template <typename Kernel>
struct Launcher {
  Site site;
  Config config;
  Kernel kernel;

  // Arguments are evaluated once and copied, as a launch copies them to the device; each thread gets its own copy.
  template <typename... Arguments>
  SIMT_HERE void operator()(Arguments&&... arguments) {
    constexpr bool plain = (std::is_trivially_destructible_v<std::decay_t<Arguments>> && ...);
    using Pass = std::conditional_t<plain, PlainCopies, CopiesOfBytes>;
    KernelCall<Kernel, Pass, std::decay_t<Arguments>...> call(kernel, std::forward<Arguments>(arguments)...);
    launch(site, config, closure_of(call));
  }

  // The same with the kernel's parameter types, so that an argument may be in braces.
  template <typename... Parameters>
  auto of(void (*)(Parameters...)) {
    return [self = *this](Parameters... arguments) mutable { self(static_cast<Parameters&&>(arguments)...); };
  }
};

template <typename Kernel>
SIMT_HERE Launcher<Kernel> launcher(Site site, Config config, Kernel kernel) {
  if constexpr (!std::is_empty_v<Kernel> && sizeof(Kernel) == sizeof(void*)) {
    const void* captured;  // by the lambda: the pointer that a macro was given for a kernel, or an object's `this`
    __builtin_memcpy(&captured, &kernel, sizeof captured);
    if (const Site held = site_of(captured, site); !held.guessed) site = held;
  }
  return {site, config, kernel};
}

// Work that no access to memory shows, for an X-ray to count.
enum class TensorType : uint8_t { float16, bfloat16, tf32, float8, int8 };  // of a tensor core's factors
constexpr unsigned kTensorTypes = 5;
// The calling lane's share of a product of matrices, in multiply-adds; and one result of a special-function unit.
SIMT_API void tensor_work(TensorType factors, unsigned multiply_adds) noexcept;
SIMT_API void special_function() noexcept;

// The threads for which an access is atomic, or which a fence orders: those of the block, of the cluster, or all.
enum class Scope : uint8_t { none, block, cluster, device };
SIMT_API void set_scope(Scope scope) noexcept;  // of the calling thread's next atomic accesses and fences

// While one lives, the atomic accesses and fences of a traced thread have this scope.
template <Scope scope>
class InScope {
 public:
#ifdef SIMT_TRACED
  SIMT_HERE InScope() {
    if constexpr (scope != Scope::device) set_scope(scope);
  }
  SIMT_HERE ~InScope() {
    if constexpr (scope != Scope::device) set_scope(Scope::device);
  }
#else
  SIMT_HERE InScope() {}
#endif
  InScope(const InScope&) = delete;
  InScope& operator=(const InScope&) = delete;
};

// The last error, as cudaGetLastError sees it (values of cudaError_t).
SIMT_API void set_last_error(int code);  // kept until read
SIMT_API int last_error(bool clear);     // a fault's error is sticky: it stays until the next launch or reset
SIMT_API void reset_errors();

}  // namespace simt
