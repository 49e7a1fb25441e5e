// fibres.cpp: three fibres run round-robin; each keeps integers and doubles alive in registers across switches, unwinds
// an exception on its own stack, and checks its stack's alignment. Prints "all right" and exits 0, or prints the
// failure. One fibre's stack is then saved, used by another fibre, and restored; and a crowd of workers opens its stacks.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <vector>

#include "threads/fibre.h"
#ifdef SIMT_USE_UCONTEXT
#include <ucontext.h>
#endif
#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

using namespace simt;

constexpr int kFibres = 3, kRounds = 1000;
Context main_context, contexts[kFibres];
int running, turns, finished;

void require(bool good, const char* what) {
  if (good) return;
  std::printf("wrong: %s\n", what);
  std::exit(1);
}

__attribute__((noinline)) void pass_turn(int me) {
  const int next = (me + 1) % kFibres;
  running = next;
  ++turns;
  switch_context(contexts[me], contexts[next]);
#ifdef BREAK_ORDER
  running = 99;
#endif
  require(running == me, "another fibre goes on than the one that was switched to");
}

__attribute__((noinline)) void fail(int code) { throw std::runtime_error(code ? "one" : "zero"); }

void body() {
  const int me = running;
  alignas(16) volatile char aligned[16];
  require(reinterpret_cast<uintptr_t>(&aligned) % 16 == 0, "the stack is not aligned");
  // Enough live values for all the callee-saved registers, integer and floating point.
  long a = me + 1, b = me + 2, c = me + 3, d = me + 4, e = me + 5, f = me + 6, g = me + 7, h = me + 8;
  double p = me + 0.25, q = me + 0.5, r = me + 0.75, s = me + 1.25;
  for (int round = 0; round < kRounds; ++round) {
    pass_turn(me);
#ifdef BREAK_REGISTERS
    if (round == 10) e += 1;
#endif
    a += 1;
    b += 2;
    c += 3;
    d += 4;
    e += 5;
    f += 6;
    g += 7;
    h += 8;
    p += 1;
    q += 2;
    r += 3;
    s += 4;
    try {
      fail(round % 2);
    } catch (const std::runtime_error& error) {
      require(error.what()[0] == (round % 2 ? 'o' : 'z'), "an exception took a wrong way");
    }
  }
  const long n = kRounds;
  require(a == me + 1 + n && b == me + 2 + 2 * n && c == me + 3 + 3 * n && d == me + 4 + 4 * n, "integers are lost");
  require(e == me + 5 + 5 * n && f == me + 6 + 6 * n && g == me + 7 + 7 * n && h == me + 8 + 8 * n,
          "integers are lost");
  require(p == me + 0.25 + n && q == me + 0.5 + 2 * n && r == me + 0.75 + 3 * n && s == me + 1.25 + 4 * n,
          "doubles are lost");
  if (++finished == kFibres) jump_context(main_context);
  running = (me + 1) % kFibres;
  switch_context(contexts[me], contexts[running]);
}

Context parked, intruder;

void sleeper() {
  int values[100];
  for (int i = 0; i < 100; ++i) values[i] = 3 * i;
  int* volatile own = values;
  switch_context(parked, main_context);
  for (int i = 0; i < 100; ++i) require(own[i] == 3 * i, "a restored stack is not as it was");
  ++finished;
  jump_context(main_context);
}

void scribbler() {
  volatile char all[4096];
  for (volatile char& c : all) c = 'x';
  jump_context(main_context);
}

// ucontext keeps two records on the stack: where the fibre begins, and where it waits. On AArch64, one has 4.5 KB.
#ifdef SIMT_USE_UCONTEXT
constexpr size_t kSmall = 4096 + 2 * sizeof(ucontext_t);
#else
constexpr size_t kSmall = 4096;
#endif

void park(Stacks& stacks) {
  make_context(parked, stacks.low(0), stacks.top(0), sleeper);
  switch_context(main_context, parked);
  char* top = static_cast<char*>(stacks.top(0));
  const std::vector<char> saved(low_end(parked), top);
  require(saved.size() < kSmall, "a stack's used part is not small");
  make_context(intruder, stacks.low(0), stacks.top(0), scribbler);
  switch_context(main_context, intruder);
#ifndef BREAK_PARKING
  std::copy(saved.begin(), saved.end(), top - saved.size());
#endif
  switch_context(main_context, parked);
}

// Of 40 workers with clusters of 2,048 threads: more guards than Linux gives mappings to a process.
void crowd() {
  std::vector<std::unique_ptr<Stacks>> workers;
  for (int worker = 0; worker < 40; ++worker) {
    workers.push_back(std::make_unique<Stacks>(2048));
    for (int i = 15; i < 2048; i += 16) *static_cast<volatile char*>(workers.back()->open(i)) = 1;
  }
#ifdef __linux__
  int pipes[2];  // a guard cannot be written from
  require(pipe(pipes) == 0, "no pipe");
  const auto readable = [&](int worker, int i) {
    return write(pipes[1], static_cast<char*>(workers[worker]->low(i)) - 1, 1) == 1;
  };
  require(!readable(0, 0) && !readable(0, 2047) && !readable(3, 1000), "a stack of the first workers has no guard");
  void* more = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(more != MAP_FAILED, "the process has no mapping left");
#endif
}

int main() {
  Stacks stacks(kFibres);
  for (int i = 0; i < kFibres; ++i) make_context(contexts[i], stacks.open(i), stacks.top(i), body);
  require(stacks.in_guard(static_cast<char*>(stacks.low(1)) - 1), "the guard region is not below the stack");
  require(!stacks.in_guard(stacks.low(1)) && !stacks.in_guard(&main_context), "the guard region is too large");
  char *begin = static_cast<char*>(stacks.low(0)) - Stacks::kGuardBytes,
       *end = begin + kFibres * (Stacks::kGuardBytes + Stacks::kStackBytes);
  require(stacks.contains(begin) && stacks.contains(end - 1), "the stacks are not in their own memory");
  require(!stacks.contains(begin - 1) && !stacks.contains(end), "memory beside the stacks counts as theirs");
  running = 0;
  switch_context(main_context, contexts[0]);
  require(finished == kFibres && turns == kFibres * kRounds, "not every turn was taken");
  park(stacks);
  crowd();
  require(finished == kFibres + 1, "the parked fibre did not go on");
  std::puts("all right");
}
