// runtime_api_memory_test.cpp: allocations, copies and symbols of the simulator's run-time API.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <vector>

#include "api/allocations.h"
#include "check.h"
#include "runtime_api_stub.h"

using check::same;

// The status with which a child process ends that runs the action.
template <typename Action>
int status_of_child(Action action) {
  const pid_t child = fork();
  if (child == 0) {
    action();
    _exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  return status;
}

template <typename Action>
bool crashes(Action action) {
  const int status = status_of_child([=] {
    std::signal(SIGSEGV, SIG_DFL);
    std::signal(SIGBUS, SIG_DFL);
    action();
  });
  return WIFSIGNALED(status) && (WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGBUS);
}

void allocation() {
  float* a = nullptr;
  same("malloc", cudaMalloc(&a, 1000), cudaSuccess);
  same("256-byte aligned", reinterpret_cast<uintptr_t>(a) % 256, 0u);
  same("poisoned with NaN", std::isnan(a[0]) && std::isnan(a[249]), true);
  same("free", cudaFree(a), cudaSuccess);
  same("free twice", cudaFree(a), cudaErrorInvalidValue);
  same("free null", cudaFree(nullptr), cudaSuccess);

  float local = 0;
  same("free a host pointer", cudaFree(&local), cudaErrorInvalidValue);
  cudaMalloc(&a, 1000);
  same("free inside", cudaFree(a + 1), cudaErrorInvalidValue);
  same("free device memory as host memory", cudaFreeHost(a), cudaErrorInvalidValue);
  float* pinned = nullptr;
  same("malloc host", cudaMallocHost(&pinned, 64), cudaSuccess);
  same("free host memory as device memory", cudaFree(pinned), cudaErrorInvalidValue);
  same("free host", cudaFreeHost(pinned), cudaSuccess);
  cudaFree(a);

  void* none = &local;
  same("malloc 0 bytes", cudaMalloc(&none, 0), cudaSuccess);
  same("0 bytes give null", none == nullptr, true);
  same("malloc to null", cudaMalloc(static_cast<void**>(nullptr), 4), cudaErrorInvalidValue);
  same("malloc too much", cudaMalloc(&none, size_t{1} << 50), cudaErrorMemoryAllocation);
  same("malloc all addresses", cudaMalloc(&none, ~size_t{0}), cudaErrorMemoryAllocation);
  same("malloc of no stream", cudaMallocAsync(&none, 4, reinterpret_cast<cudaStream_t>(0x1234)),
       cudaErrorInvalidResourceHandle);
  same("managed, bad flags", cudaMallocManaged(&none, 4, 77), cudaErrorInvalidValue);
  same("host, bad flags", cudaHostAlloc(&none, 4, 0x40), cudaErrorInvalidValue);

  size_t pitch = 0;
  same("malloc pitch", cudaMallocPitch(&a, &pitch, 513, 3), cudaSuccess);
  same("pitch", pitch, 1024u);
  cudaFree(a);
  same("malloc pitch too much", cudaMallocPitch(&a, &pitch, 1 << 20, ~size_t{0} / 2), cudaErrorMemoryAllocation);
}

void accounting() {
  size_t before = 0, during = 0, after = 0, total = 0;
  void* a = nullptr;
  cudaMemGetInfo(&before, &total);
  cudaMalloc(&a, 1 << 20);
  cudaMemGetInfo(&during, &total);
  cudaFree(a);
  same("info", cudaMemGetInfo(&after, &total), cudaSuccess);
  same("an allocation takes memory", before - during, 1u << 20);
  same("freeing gives it back", after, before);
  same("info to null", cudaMemGetInfo(nullptr, &total), cudaErrorInvalidValue);
}

// Allocates and frees more than the reserved addresses hold, between allocations that stay. It runs in a child process
// whose addresses are limited, forked before this process's first allocation.
void reuse_of_addresses() {
  const int status = status_of_child([] {
    const rlimit limit = {rlim_t{1} << 30, rlim_t{1} << 30};
    setrlimit(RLIMIT_AS, &limit);
    char* kept[10];
    bool good = true;
    for (int i = 0; i < 5000 && good; ++i) {
      char* a = nullptr;
      good = cudaMalloc(&a, 300 * 1024) == cudaSuccess;
      if (good && i < 10) {
        cudaMemset(kept[i] = a, i, 300 * 1024);
      } else {
        good = good && cudaFree(a) == cudaSuccess;
      }
    }
    for (char i = 0; i < 10 && good; ++i) good = kept[+i][0] == i && kept[+i][300 * 1024 - 1] == i;
    if (!good) _exit(1);
  });
  same("freed addresses are used again", status, 0);
}

void protection() {
  char *a = nullptr, *b = nullptr;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  same("the last byte is there", crashes([=] { a[4095] = 1; }), false);
  same("one past the end faults", crashes([=] { a[4096] = 1; }), true);
  same("neighbours do not touch", b - a > 4096, true);
  const std::string past = simt::Allocations::instance().describe(a + 4100);
  same("a fault past the end is described", past == "4 bytes past the end of an allocation of 4096 bytes", true);
  const std::string inside = simt::Allocations::instance().describe(a + 7);
  same("a byte inside is described", inside == "byte 7 of an allocation of 4096 bytes", true);
  int local;
  same("host memory is not described", simt::Allocations::instance().describe(&local).empty(), true);
  cudaFree(a);
  same("freed memory faults", crashes([=] { a[0] = 1; }), true);
  const std::string freed = simt::Allocations::instance().describe(a);
  same("freed memory is described", freed.find("not allocated") != std::string::npos, true);
  cudaFree(b);
}

void copies() {
  std::vector<int> host(100, 7), back(100, 0);
  int *a = nullptr, *b = nullptr, *managed = nullptr, *pinned = nullptr;
  cudaMalloc(&a, 400);
  cudaMalloc(&b, 400);
  cudaMallocManaged(&managed, 400);
  cudaMallocHost(&pinned, 400);
  same("to device", cudaMemcpy(a, host.data(), 400, cudaMemcpyHostToDevice), cudaSuccess);
  same("on device", cudaMemcpy(b, a, 400, cudaMemcpyDeviceToDevice), cudaSuccess);
  same("from device", cudaMemcpy(back.data(), b, 400, cudaMemcpyDeviceToHost), cudaSuccess);
  same("copied", back[0] * 100 + back[99], 707);
  same("default direction", cudaMemcpy(back.data(), a, 400, cudaMemcpyDefault), cudaSuccess);
  same("managed is on both sides",
       cudaMemcpy(managed, pinned, 400, cudaMemcpyHostToDevice) + cudaMemcpy(managed, a, 400, cudaMemcpyDeviceToHost),
       0);

  const auto bad = cudaErrorInvalidValue;
  same("exchanged pointers", cudaMemcpy(host.data(), a, 400, cudaMemcpyHostToDevice), bad);
  same("exchanged pointers back", cudaMemcpy(a, host.data(), 400, cudaMemcpyDeviceToHost), bad);
  same("device as host", cudaMemcpy(a, b, 400, cudaMemcpyHostToHost), bad);
  same("device as source and host", cudaMemcpy(a, b, 400, cudaMemcpyHostToDevice), bad);
  same("no such direction", cudaMemcpy(a, b, 400, static_cast<cudaMemcpyKind>(9)), cudaErrorInvalidMemcpyDirection);
  same("count too large", cudaMemcpy(a, host.data(), 404, cudaMemcpyHostToDevice), bad);
  same("count too large from inside", cudaMemcpy(a + 1, host.data(), 400, cudaMemcpyHostToDevice), bad);
  same("from inside", cudaMemcpy(a + 1, host.data(), 396, cudaMemcpyHostToDevice), cudaSuccess);
  same("to null", cudaMemcpy(nullptr, host.data(), 4, cudaMemcpyHostToDevice), bad);
  same("nothing to null", cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice), cudaSuccess);
  same("from nowhere", cudaMemcpy(a, reinterpret_cast<void*>(0x1000), 4, cudaMemcpyHostToDevice), bad);
  same("huge count from host", cudaMemcpy(back.data(), host.data(), size_t{1} << 46, cudaMemcpyHostToHost), bad);
  same("no such stream", cudaMemcpyAsync(a, b, 4, cudaMemcpyDeviceToDevice, reinterpret_cast<cudaStream_t>(0x77)),
       cudaErrorInvalidResourceHandle);

  same("set", cudaMemset(a, 1, 400), cudaSuccess);
  same("set byte", a[99], 0x01010101);
  same("set too much", cudaMemset(a, 1, 401), bad);
  same("set null", cudaMemset(nullptr, 1, 4), bad);
  cudaFree(b);
  same("from freed memory", cudaMemcpy(a, b, 4, cudaMemcpyDeviceToDevice), bad);
  same("set freed memory", cudaMemset(b, 0, 4), bad);
  cudaFree(a);
  cudaFree(managed);
  cudaFreeHost(pinned);
}

void rows() {
  char in[4][8], out[4][8] = {};
  for (int i = 0; i < 32; ++i) in[i / 8][i % 8] = static_cast<char>(i);
  char* a = nullptr;
  size_t pitch = 0;
  cudaMallocPitch(&a, &pitch, 8, 4);
  same("2D to device", cudaMemcpy2D(a, pitch, in, 8, 8, 4, cudaMemcpyHostToDevice), cudaSuccess);
  same("2D row", a[3 * pitch + 5], 29);
  same("2D part back", cudaMemcpy2D(out, 8, a, pitch, 3, 2, cudaMemcpyDeviceToHost), cudaSuccess);
  same("2D part", out[1][2] * 100 + out[1][3] * 10 + out[2][0], 1000);
  same("2D width over pitch", cudaMemcpy2D(a, 7, in, 8, 8, 4, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue);
  same("2D too high", cudaMemcpy2D(a, pitch, in, 0, 0, 5, cudaMemcpyHostToDevice), cudaSuccess);
  same("2D beyond", cudaMemcpy2D(a, pitch, in, 8, 8, 5, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  same("2D overflow", cudaMemcpy2D(a, ~size_t{0}, in, 8, 8, 3, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  same("2D set", cudaMemset2D(a, pitch, 9, 2, 3), cudaSuccess);
  same("2D set part", a[pitch + 1] * 100 + a[pitch + 2], 910);
  same("2D set width over pitch", cudaMemset2D(a, 8, 9, 9, 2), cudaErrorInvalidPitchValue);
  cudaFree(a);
}

float table[4];
int number;
volatile int seen[2];

void symbols() {
  const float values[4] = {1, 2, 3, 4};
  float back[4] = {};
  int five = 5;
  same("to symbol", cudaMemcpyToSymbol(table, values, sizeof values), cudaSuccess);
  same("symbol", table[3], 4);
  same("to symbol at offset", cudaMemcpyToSymbol(table, values, 8, 8), cudaSuccess);
  same("symbol at offset", table[2] * 10 + table[3], 12);
  same("to scalar", cudaMemcpyToSymbol(number, &five, sizeof five), cudaSuccess);
  same("scalar", number, 5);
  same("from symbol", cudaMemcpyFromSymbol(back, table, 8, 8), cudaSuccess);
  same("from symbol value", back[1], 2);
  same("volatile symbol", cudaMemcpyToSymbol(seen, &five, 4) + cudaMemcpyFromSymbol(&five, seen, 4), 0);
  same("beyond a symbol", cudaMemcpyToSymbol(number, values, 8), cudaErrorInvalidValue);
  same("offset beyond a symbol", cudaMemcpyToSymbol(table, values, 4, 16), cudaErrorInvalidValue);
  same("symbol as host", cudaMemcpyToSymbol(table, values, 4, 0, cudaMemcpyDeviceToHost),
       cudaErrorInvalidMemcpyDirection);
  same("symbol from null", cudaMemcpyToSymbol(table, nullptr, 4), cudaErrorInvalidValue);
  float* address = nullptr;
  size_t size = 0;
  same("symbol address", cudaGetSymbolAddress(&address, table), cudaSuccess);
  same("is the symbol", address == table, true);
  same("symbol size", cudaGetSymbolSize(&size, table) + size, 16u);
}

void attributes() {
  void *device = nullptr, *pinned = nullptr, *managed = nullptr;
  int local[2] = {};
  cudaMalloc(&device, 16);
  cudaMallocHost(&pinned, 16);
  cudaMallocManaged(&managed, 16);
  auto type = [](const void* pointer) {
    cudaPointerAttributes found;
    return cudaPointerGetAttributes(&found, pointer) ? -1 : static_cast<int>(found.type);
  };
  same("device pointer", type(device), cudaMemoryTypeDevice);
  same("pinned pointer", type(pinned), cudaMemoryTypeHost);
  same("managed pointer", type(managed), cudaMemoryTypeManaged);
  same("host pointer", type(local), cudaMemoryTypeUnregistered);
  same("register", cudaHostRegister(local, 8, cudaHostRegisterDefault), cudaSuccess);
  same("registered pointer", type(local + 1), cudaMemoryTypeHost);
  same("register twice", cudaHostRegister(local, 4, 0), cudaErrorHostMemoryAlreadyRegistered);
  void* alias = nullptr;
  same("device pointer of host", cudaHostGetDevicePointer(&alias, local, 0), cudaSuccess);
  same("unregister", cudaHostUnregister(local), cudaSuccess);
  same("unregister twice", cudaHostUnregister(local), cudaErrorHostMemoryNotRegistered);
  same("device pointer of unregistered", cudaHostGetDevicePointer(&alias, local, 0), cudaErrorInvalidValue);
  same("prefetch", cudaMemPrefetchAsync(managed, 16, 0), cudaSuccess);
  same("prefetch to host", cudaMemPrefetchAsync(managed, 16, cudaMemLocation{cudaMemLocationTypeHost, 0}, 0),
       cudaSuccess);
  same("prefetch too much", cudaMemPrefetchAsync(managed, 17, 0), cudaErrorInvalidValue);
  same("prefetch device memory", cudaMemPrefetchAsync(device, 16, 0), cudaErrorInvalidValue);
  same("prefetch to no device", cudaMemPrefetchAsync(managed, 16, 3), cudaErrorInvalidDevice);
  cudaFree(device);
  cudaFreeHost(pinned);
  cudaFree(managed);
}

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {reuse_of_addresses, allocation, accounting, protection, copies, rows, symbols, attributes});
}
