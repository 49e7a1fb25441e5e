// fibre.h: stacks, and switching between them.
//
// A context is a stack pointer to the saved callee-saved registers. A switch pushes them, swaps the stack pointer and
// pops them: some ten instructions, with no system call. x86-64 and AArch64 have their own code in fibre.cpp; elsewhere
// (or with -DSIMT_UCONTEXT) POSIX ucontext does it, about ten times slower.
#pragma once

#include <cstddef>

namespace simt {

struct Context {
  void* stack_pointer = nullptr;  // with ucontext: the ucontext_t, which lies on the stack too
};

#if defined(SIMT_UCONTEXT) || !(defined(__x86_64__) || defined(__aarch64__))
#define SIMT_USE_UCONTEXT
#endif

// Suspends the caller into `from` and resumes `to`. Never fails.
#ifdef SIMT_USE_UCONTEXT
void switch_context(Context& from, Context& to);
#else
extern "C" void simt_switch(void** save, void* load);
inline void switch_context(Context& from, Context& to) { simt_switch(&from.stack_pointer, to.stack_pointer); }
#endif

// Resumes `to` and drops the caller's context; allowed in a signal handler.
[[noreturn]] void jump_context(Context& to);

// Prepares a context that calls entry() on the stack [low, top). entry must not return.
void make_context(Context& context, void* low, void* top, void (*entry)());

// The lowest byte of its stack that a suspended context uses. Its stack may be saved from there to the top, used by
// others, and restored.
char* low_end(const Context& context);

// The end of the calling thread's own stack, which no fibre runs on.
char* stack_end();

// A pool of stacks in one mapping, each with a guard region below, so that an overflow faults instead of spreading.
// Only pages that a fibre touches take memory. A guard splits the mapping, of which a process has so many (Linux:
// vm.max_map_count, 65,530): a stack gets its guard when it is first used, and none once all stacks of the process have
// taken half of them. A kernel that overflows does so on the guarded stacks, too.
class Stacks {
 public:
  static constexpr size_t kStackBytes = 256 * 1024;
  static constexpr size_t kGuardBytes = 64 * 1024;

  explicit Stacks(size_t count);
  ~Stacks();
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  void* open(size_t index);  // low(index), of a stack that is about to be used
  void* low(size_t index) const;
  void* top(size_t index) const;             // offset from stack to stack, to spread hot lines over cache sets
  bool contains(const void* address) const;  // is this address in one of the stacks or guard regions?
  bool in_guard(const void* address) const;  // in one of the guard regions?

 private:
  char* memory_;
  size_t count_, guarded_ = 0;
};

// Memory between two guard regions, so that a stray access faults. Only pages that are touched take memory.
class GuardedMemory {
 public:
  explicit GuardedMemory(size_t bytes);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  char* start() const { return memory_ + kGuardBytes; }
  bool in_guard(const void* address) const;

 private:
  static constexpr size_t kGuardBytes = 1024 * 1024;
  char* memory_;
  size_t bytes_;  // with both guards
};

}  // namespace simt
