// A program on two devices. Its argument says what it does; each check that fails is printed.
#include <cuda_runtime.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

constexpr int kSize = 1024, kBytes = kSize * sizeof(int);

__device__ int own[2] = {3, 4};
__device__ const int fixed_value = 7;
__constant__ int constant = 5;
__managed__ int common = 1;

__global__ void set(int* to, int value) { to[threadIdx.x] = value + static_cast<int>(threadIdx.x); }
__global__ void add(int* to, const int* from) { to[threadIdx.x] += from[threadIdx.x]; }
__global__ void change(int by) {
  own[0] += by;
  common += by;
}
__global__ void read(int* to) {
  to[0] = own[0];
  to[1] = own[1];
  to[2] = constant;
  to[3] = fixed_value;
}

int failures = 0;

template <typename A, typename B>
void same(int line, A got, B expected) {
  if (got == static_cast<A>(expected)) return;
  std::printf("line %d: got %d, expected %d\n", line, static_cast<int>(got), static_cast<int>(expected));
  ++failures;
}
#define SAME(got, expected) same(__LINE__, got, expected)
#define OK(call) SAME(call, cudaSuccess)

int* memory_of(int device) {
  int* pointer = nullptr;
  OK(cudaSetDevice(device));
  OK(cudaMalloc(&pointer, kBytes));
  return pointer;
}

int last_of(const int* pointer) {
  int value = 0;
  OK(cudaMemcpy(&value, pointer + kSize - 1, sizeof value, cudaMemcpyDeviceToHost));
  return value;
}

void properties() {
  int value = -1;
  cudaDeviceProp first, second;
  OK(cudaGetDeviceCount(&value));
  SAME(value, 2);
  OK(cudaGetDevice(&value));
  SAME(value, 0);
  SAME(cudaSetDevice(2), cudaErrorInvalidDevice);
  SAME(cudaSetDevice(-1), cudaErrorInvalidDevice);
  OK(cudaSetDevice(1));
  OK(cudaGetDevice(&value));
  SAME(value, 1);
  std::thread([] {  // another thread begins with device 0
    int device = -1;
    OK(cudaGetDevice(&device));
    SAME(device, 0);
  })
      .join();
  OK(cudaGetDeviceProperties(&first, 0));
  OK(cudaGetDeviceProperties(&second, 1));
  SAME(std::memcmp(&first.uuid, &second.uuid, sizeof first.uuid) != 0, true);
  SAME(cudaGetDeviceProperties(&first, 2), cudaErrorInvalidDevice);
  OK(cudaChooseDevice(&value, &second));
  SAME(value, 0);
  SAME(cudaChooseDevice(&value, nullptr), cudaErrorInvalidValue);
  OK(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 1));
  OK(cudaDeviceCanAccessPeer(&value, 0, 1));
  SAME(value, 1);
  OK(cudaDeviceCanAccessPeer(&value, 1, 1));
  SAME(value, 0);
  SAME(cudaDeviceCanAccessPeer(&value, 0, 2), cudaErrorInvalidDevice);
  OK(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 1));
  SAME(value, 1);
}

void peers() {
  OK(cudaSetDevice(0));
  SAME(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
  SAME(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessUnsupported);
  SAME(cudaDeviceEnablePeerAccess(2, 0), cudaErrorInvalidDevice);
  SAME(cudaDeviceEnablePeerAccess(1, 1), cudaErrorInvalidValue);
  OK(cudaDeviceEnablePeerAccess(1, 0));
  SAME(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
  OK(cudaSetDevice(1));  // each direction is enabled by itself
  SAME(cudaDeviceDisablePeerAccess(0), cudaErrorPeerAccessNotEnabled);
  int *mine = memory_of(0), *theirs = memory_of(1);
  set<<<1, kSize>>>(theirs, 10);
  OK(cudaDeviceSynchronize());
  OK(cudaSetDevice(0));
  set<<<1, kSize>>>(mine, 100);
  add<<<1, kSize>>>(mine, theirs);
  OK(cudaDeviceSynchronize());
  SAME(last_of(mine), 110 + 2 * (kSize - 1));
  (void)cudaGetLastError();
  OK(cudaFree(theirs));
  OK(cudaFree(mine));
}

void owners() {
  int *first = memory_of(0), *second = memory_of(1), *managed = nullptr, *pinned = nullptr;
  cudaPointerAttributes attributes;
  OK(cudaPointerGetAttributes(&attributes, first));
  SAME(attributes.device, 0);
  OK(cudaPointerGetAttributes(&attributes, second));
  SAME(attributes.device, 1);
  OK(cudaMallocManaged(&managed, kBytes));
  OK(cudaMallocHost(&pinned, kBytes));
  set<<<1, kSize>>>(second, 20);
  OK(cudaDeviceSynchronize());
  OK(cudaMemcpyPeer(first, 0, second, 1, kBytes));  // copies need no peer access
  SAME(last_of(first), 20 + kSize - 1);
  OK(cudaMemcpy(second, first, 4, cudaMemcpyDefault));
  OK(cudaMemcpyPeerAsync(second, 1, first, 0, kBytes, nullptr));
  SAME(cudaMemcpyPeer(first, 0, second, 2, kBytes), cudaErrorInvalidDevice);
  cudaMemcpy3DPeerParms box = {};
  box.srcDevice = 1, box.dstDevice = 0;
  box.srcPtr = make_cudaPitchedPtr(second, 64, 64, kBytes / 64);
  box.dstPtr = make_cudaPitchedPtr(first, 64, 64, kBytes / 64);
  box.extent = make_cudaExtent(64, kBytes / 64, 1);
  set<<<1, kSize>>>(second, 21);
  OK(cudaMemcpy3DPeer(&box));
  SAME(last_of(first), 21 + kSize - 1);
  set<<<1, kSize>>>(managed, 30);
  set<<<1, kSize>>>(pinned, 31);
  OK(cudaDeviceSynchronize());
  OK(cudaSetDevice(0));
  add<<<1, kSize>>>(managed, pinned);  // both are every device's
  OK(cudaDeviceSynchronize());
  SAME(managed[1], 63);
  OK(cudaSetDevice(1));
  OK(cudaDeviceReset());  // of device 1 alone
  SAME(cudaMemcpy(second, first, 4, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  SAME(last_of(first), 21 + kSize - 1);
  SAME(cudaGetLastError(), cudaErrorInvalidValue);
  OK(cudaFree(first));
}

void streams() {
  cudaStream_t first, second;
  cudaEvent_t start, stop;
  float time;
  int *mine = memory_of(0), *theirs = memory_of(1);
  OK(cudaStreamCreate(&second));
  OK(cudaEventCreate(&stop));
  OK(cudaSetDevice(0));
  OK(cudaStreamCreate(&first));
  OK(cudaEventCreate(&start));
  set<<<1, kSize, 0, first>>>(mine, 1);
  OK(cudaGetLastError());
  // Device 0 is current: the Programming Guide says that this fails; on an H200, CUDA 13 runs it on device 1.
  set<<<1, kSize, 0, second>>>(mine, 2);
  SAME(cudaGetLastError(), cudaErrorInvalidResourceHandle);
  SAME(last_of(mine), kSize);
  OK(cudaMemcpyAsync(theirs, mine, kBytes, cudaMemcpyDefault, second));  // which a copy may do
  OK(cudaEventRecord(start, first));
  SAME(cudaEventRecord(start, second), cudaErrorInvalidResourceHandle);
  OK(cudaEventRecord(stop, second));
  OK(cudaStreamWaitEvent(second, start, 0));
  OK(cudaEventSynchronize(stop));
  OK(cudaStreamSynchronize(second));
  SAME(cudaEventElapsedTime(&time, start, stop), cudaErrorInvalidResourceHandle);
  (void)cudaGetLastError();

  cudaGraph_t graph;  // its kernels run where they were captured
  cudaGraphExec_t executable;
  OK(cudaSetDevice(1));
  OK(cudaStreamBeginCapture(second, cudaStreamCaptureModeRelaxed));
  set<<<1, kSize, 0, second>>>(theirs, 5);
  OK(cudaStreamEndCapture(second, &graph));
  OK(cudaGraphInstantiate(&executable, graph, 0));
  OK(cudaSetDevice(0));
  OK(cudaGraphLaunch(executable, first));
  OK(cudaStreamSynchronize(first));
  SAME(last_of(theirs), 5 + kSize - 1);
}

void variables() {
  int *results[2] = {memory_of(0), memory_of(1)}, host[4], value = 50;
  OK(cudaMemcpyToSymbol(constant, &value, sizeof value));  // of device 1
  change<<<1, 1>>>(10);
  OK(cudaDeviceSynchronize());
  OK(cudaSetDevice(0));
  change<<<1, 1>>>(100);
  value = 9;
  OK(cudaMemcpyToSymbol(own, &value, sizeof value, sizeof value));
  const int expected[2][4] = {{103, 9, 5, 7}, {13, 4, 50, 7}};
  for (int device : {0, 1}) {
    OK(cudaSetDevice(device));
    read<<<1, 1>>>(results[device]);
    OK(cudaMemcpy(host, results[device], sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 4; ++i) SAME(host[i], expected[device][i]);
    OK(cudaMemcpyFromSymbol(host, own, sizeof own));
    SAME(host[0], expected[device][0]);
  }
  SAME(common, 111);  // a managed variable is every device's
}

void threads() {  // one for each device, at the same time
  std::vector<std::thread> all;
  for (int device : {0, 1})
    all.emplace_back([=] {
      OK(cudaSetDevice(device));
      int *x, *y, host[kSize];
      OK(cudaMalloc(&x, kBytes));
      OK(cudaMalloc(&y, kBytes));
      for (int round = 0; round < 200; ++round) {
        set<<<1, kSize>>>(x, device);
        set<<<1, kSize>>>(y, round);
        add<<<1, kSize>>>(x, y);
        change<<<1, 1>>>(device + 1);
        OK(cudaMemcpy(host, x, kBytes, cudaMemcpyDeviceToHost));
        SAME(host[kSize - 1], device + round + 2 * (kSize - 1));
      }
      OK(cudaMemcpyFromSymbol(host, own, sizeof own));
      SAME(host[0], 3 + 200 * (device + 1));
      OK(cudaDeviceSynchronize());
    });
  for (auto& one : all) one.join();
}

void copies() {  // of device 1 while device 0 runs kernels, which may not access them
  std::atomic<bool> over{false};
  std::thread other([&] {
    OK(cudaSetDevice(1));
    int *x, host[kSize];
    OK(cudaMalloc(&x, kBytes));
    OK(cudaMemset(x, 0, kBytes));
    while (!over) OK(cudaMemcpy(host, x, kBytes, cudaMemcpyDeviceToHost));
    SAME(host[kSize - 1], 0);
  });
  int* y;
  OK(cudaMalloc(&y, kBytes));
  for (int round = 0; round < 3000; ++round) set<<<1, kSize>>>(y, round);
  OK(cudaDeviceSynchronize());
  over = true;
  other.join();
}

void foreign() {  // device 0 has not enabled access
  int* theirs = memory_of(1);
  OK(cudaSetDevice(0));
  set<<<1, kSize>>>(theirs, 1);  // <- foreign
  SAME(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
}

int main(int count, char** arguments) {
  const std::map<std::string, std::function<void()>> all = {
      {"properties", properties}, {"peers", peers},     {"owners", owners}, {"streams", streams},
      {"variables", variables},   {"threads", threads}, {"copies", copies}, {"foreign", foreign}};
  for (int i = 1; i < count; ++i) {
    all.at(arguments[i])();
    std::printf("%s\n", arguments[i]);
  }
  return failures != 0;
}
