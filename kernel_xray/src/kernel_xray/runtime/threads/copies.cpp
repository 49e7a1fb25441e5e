// copies.cpp: copies in flight (cp.async), each thread's own.
#include "../../include/simt/async.h"

#include <cstring>
#include <unordered_map>
#include <vector>

#include "trace/lane.h"

namespace simt {
namespace {

struct Flying {
  char *to, value[16];
  unsigned bytes, group;
};
struct Copies {  // of one thread
  std::vector<Flying> in_flight;
  unsigned groups = 0;
};

// A thread that ends with copies in flight leaves them to nobody: the next one with its place begins without any.
__attribute__((noinline)) void begin() {
  static thread_local std::unordered_map<const Thread*, Copies> of_threads;
  current_thread->copies = &(of_threads[current_thread] = {});
}
Copies& own() {
  if (!current_thread->copies) begin();
  return *static_cast<Copies*>(current_thread->copies);
}

}  // namespace

void copy_hide(void* to, size_t bytes) {
  if (trace::current_lane) trace::current_lane->mark_copy();
  Copies& copies = own();
  Flying& copy = copies.in_flight.emplace_back();
  copy.to = static_cast<char*>(to);
  copy.bytes = static_cast<unsigned>(bytes);
  copy.group = copies.groups;
  std::memcpy(copy.value, to, bytes);
  std::memset(to, 0xff, bytes);
}
void copy_commit() { ++own().groups; }
__attribute__((noinline)) void copy_wait(unsigned pending) {
  Copies& copies = own();
  auto copy = copies.in_flight.begin();
  for (; copy != copies.in_flight.end() && copy->group + pending < copies.groups; ++copy) {
    if (trace::current_lane) trace::current_lane->land(copy->to, copy->bytes, __builtin_return_address(0));
    std::memcpy(copy->to, copy->value, copy->bytes);
  }
  copies.in_flight.erase(copies.in_flight.begin(), copy);
}

}  // namespace simt
