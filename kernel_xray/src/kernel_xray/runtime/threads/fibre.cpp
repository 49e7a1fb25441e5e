// fibre.cpp: the context switch for x86-64 and AArch64, ucontext for the rest, and the stacks.
#include "threads/fibre.h"

#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#if defined(__APPLE__)
#define SIMT_SYMBOL(name) "_" name
#define SIMT_HIDDEN(name) ".private_extern _" name "\n"
#else
#define SIMT_SYMBOL(name) name
#define SIMT_HIDDEN(name) ".hidden " name "\n"
#endif

#if defined(__x86_64__) && !defined(SIMT_USE_UCONTEXT)

// Callee-saved under the System V ABI: rbx, rbp, r12-r15 and the stack pointer. The x87 and SSE control words are
// left alone: no kernel changes them. `ret` instead of `pop; jmp`: every call then has its return, so the processor
// predicts the returns that follow, as long as fibres wait at the same place.
asm(".text\n.globl " SIMT_SYMBOL("simt_switch") "\n" SIMT_HIDDEN("simt_switch") ".p2align 4\n"
    SIMT_SYMBOL("simt_switch") ":\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
    "  ret\n");

namespace {
constexpr size_t kSavedWords = 7;  // six registers and the address to resume at
constexpr size_t kEntryWord = 6;
}  // namespace

#elif defined(__aarch64__) && !defined(SIMT_USE_UCONTEXT)

// Callee-saved under AAPCS64: x19-x28, the frame pointer x29, the link register x30, and d8-d15.
asm(".text\n.globl " SIMT_SYMBOL("simt_switch") "\n" SIMT_HIDDEN("simt_switch") ".p2align 4\n"
    SIMT_SYMBOL("simt_switch") ":\n"
    "  sub sp, sp, #160\n"
    "  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
    "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
    "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
    "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
    "  ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n"
    "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
    "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
    "  add sp, sp, #160\n  br x30\n");

namespace {
constexpr size_t kSavedWords = 20;
constexpr size_t kEntryWord = 11;  // x30
}  // namespace

#else

#include <ucontext.h>

#endif

namespace simt {

#ifndef SIMT_USE_UCONTEXT

void jump_context(Context& to) {
  void* forgotten;
  simt_switch(&forgotten, to.stack_pointer);
  __builtin_unreachable();
}

void make_context(Context& context, void* /*low*/, void* top, void (*entry)()) {
  auto* words = reinterpret_cast<void**>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t{15});
  *--words = nullptr;  // in place of a return address: entry sees the stack alignment of a call
#if defined(__aarch64__)
  --words;  // the stack pointer stays a multiple of 16
#endif
  words -= kSavedWords;
  std::memset(words, 0, kSavedWords * sizeof(void*));
  words[kEntryWord] = reinterpret_cast<void*>(entry);
  context.stack_pointer = words;
}

char* low_end(const Context& context) { return static_cast<char*>(context.stack_pointer); }

#else

namespace {
ucontext_t* machine(const Context& context) { return static_cast<ucontext_t*>(context.stack_pointer); }
}  // namespace

void switch_context(Context& from, Context& to) {
  ucontext_t here;
  ucontext_t* volatile place = &here;
  from.stack_pointer = place;
  swapcontext(place, machine(to));
}

void jump_context(Context& to) {
  setcontext(machine(to));
  std::abort();
}

void make_context(Context& context, void* low, void* top, void (*entry)()) {
  auto* m = reinterpret_cast<ucontext_t*>((reinterpret_cast<uintptr_t>(top) - sizeof(ucontext_t)) /
                                          alignof(ucontext_t) * alignof(ucontext_t));
  getcontext(m);
  m->uc_stack.ss_sp = low;
  m->uc_stack.ss_size = static_cast<size_t>(reinterpret_cast<char*>(m) - static_cast<char*>(low));
  m->uc_link = nullptr;
  makecontext(m, entry, 0);
  context.stack_pointer = m;
}

char* low_end(const Context& context) {
  constexpr size_t kBelow = 2048;  // at least the frame of swapcontext
  return static_cast<char*>(context.stack_pointer) - kBelow;
}

#endif

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

namespace {
constexpr size_t kStride = Stacks::kGuardBytes + Stacks::kStackBytes;
}

char* stack_end() {
#if defined(__APPLE__)
  return static_cast<char*>(pthread_get_stackaddr_np(pthread_self()));
#else
  static thread_local char* end = nullptr;  // kept: for the main thread, glibc parses /proc/self/maps each time
  if (end) return end;
  pthread_attr_t attributes;
  pthread_getattr_np(pthread_self(), &attributes);
  void* low;
  size_t bytes;
  pthread_attr_getstack(&attributes, &low, &bytes);
  pthread_attr_destroy(&attributes);
  return end = static_cast<char*>(low) + bytes;
#endif
}

// How many stacks of the process may still have one: a guard and the stack above it are two mappings.
static std::atomic<long> guards = [] {
  long mappings = 65530;
  if (std::FILE* file = std::fopen("/proc/sys/vm/max_map_count", "r")) {
    if (std::fscanf(file, "%ld", &mappings) != 1) mappings = 65530;
    std::fclose(file);
  }
  return mappings / 4;
}();

Stacks::Stacks(size_t count) : count_(count) {
  void* memory =
      mmap(nullptr, count * kStride, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<char*>(memory);
#ifdef MADV_NOHUGEPAGE
  madvise(memory, count * kStride, MADV_NOHUGEPAGE);  // a stack that touches a page must not take 2 MB
#endif
}

Stacks::~Stacks() {
  munmap(memory_, count_ * kStride);
  guards += static_cast<long>(guarded_);
}

void* Stacks::open(size_t index) {
  for (; guarded_ <= index; ++guarded_) {
    if (--guards >= 0) mprotect(memory_ + guarded_ * kStride, kGuardBytes, PROT_NONE);
  }
  return low(index);
}

void* Stacks::low(size_t index) const { return memory_ + index * kStride + kGuardBytes; }

void* Stacks::top(size_t index) const {
  size_t offset = index * 320 % 4096;  // shifts each stack by five cache lines
  return memory_ + (index + 1) * kStride - offset;
}

bool Stacks::contains(const void* address) const {
  return static_cast<size_t>(static_cast<const char*>(address) - memory_) < count_ * kStride;
}

bool Stacks::in_guard(const void* address) const {
  return contains(address) && static_cast<size_t>(static_cast<const char*>(address) - memory_) % kStride < kGuardBytes;
}

GuardedMemory::GuardedMemory(size_t bytes)
    : bytes_((bytes + 2 * kGuardBytes - 1) / kGuardBytes * kGuardBytes + kGuardBytes) {
  void* memory = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<char*>(memory);
  if (mprotect(start(), bytes_ - 2 * kGuardBytes, PROT_READ | PROT_WRITE) == 0) return;
  munmap(memory_, bytes_);
  throw std::bad_alloc();
}

GuardedMemory::~GuardedMemory() { munmap(memory_, bytes_); }

bool GuardedMemory::in_guard(const void* address) const {
  const auto offset = static_cast<size_t>(static_cast<const char*>(address) - memory_);
  return offset < kGuardBytes || (offset < bytes_ && offset >= bytes_ - kGuardBytes);
}

}  // namespace simt
