// host.cpp: a C++ source of an extension that asserts and includes no header of CUDA's.
#include <assert.h>

extern "C" __attribute__((visibility("default"))) int half_of(int n) {
  assert(n % 2 == 0);
  return n / 2;
}
