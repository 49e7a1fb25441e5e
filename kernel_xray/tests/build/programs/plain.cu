// plain.cu: a program that does what its first argument says. test_programs.py runs it, untraced.
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda_fp16.h>
#include <thread>

__global__ void hello_kernel() { printf("hello from thread %d\n", threadIdx.x); }

__global__ void fill_kernel(int* x, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = i;
}

__global__ void assert_kernel(int limit) {
  assert(int(threadIdx.x) < limit);  // <- assert
}

// Launches, PTX and open brackets in comments and strings are text: k<<<1, 1>>>(p, 1; asm("x"); /*
const char* const text[] = {"k<<<1, 1(((", "asm(\"mov\") // /* \\", R"x(k<<<)" tex2D)x"};
/* surf2Dwrite( <<< */ const int shifted = 1 << 2 >> 1;

const char* name(cudaError_t error) { return cudaGetErrorName(error); }

// A fault: what the calls after it return, on this host thread and on another one.
int fault() {
  int *x, *y = nullptr, host = 0;
  cudaMalloc(&x, 1024);
  fill_kernel<<<1, 32>>>(x, 1 << 20);  // <- fault
  printf("synchronise %s\n", name(cudaDeviceSynchronize()));
  printf("last %s\n", name(cudaGetLastError()));
  printf("again %s\n", name(cudaGetLastError()));
  fill_kernel<<<1, 32>>>(x, 256);
  printf("launch %s\n", name(cudaPeekAtLastError()));
  printf("malloc %s\n", name(cudaMalloc(&y, 4)));
  printf("to_device %s\n", name(cudaMemcpy(x, &host, 4, cudaMemcpyHostToDevice)));
  printf("from_device %s\n", name(cudaMemcpy(&host, x, 4, cudaMemcpyDeviceToHost)));
  printf("memset %s\n", name(cudaMemset(x, 0, 4)));
  printf("free %s\n", name(cudaFree(x)));
  printf("reset %s\n", name(cudaDeviceReset()));
  std::thread([] { printf("elsewhere %s\n", name(cudaDeviceSynchronize())); }).join();
  return y ? 1 : 3;
}

int main(int count, char** arguments) {
  const char* what = arguments[1];
  auto wanted = [&](const char* name) { return strcmp(what, name) == 0; };
  if (wanted("hello")) {
    hello_kernel<<<1, 2>>>();
    return cudaDeviceSynchronize();
  }
  if (wanted("good")) {  // no fault; and an ordinary error, which reading clears
    int *x, host[256];
    cudaMalloc(&x, 1024);
    fill_kernel<<<1, 32>>>(x, 256);
    fill_kernel<<<1, 2000>>>(x, 256);
    printf("%s, then ", name(cudaGetLastError()));
    printf("%s\n", name(cudaGetLastError()));
    cudaMemcpy(host, x, 1024, cudaMemcpyDeviceToHost);
    return host[255] == 255 ? 0 : 1;
  }
  if (wanted("arguments")) {
    for (int i = 0; i < count; ++i) printf("[%s]", arguments[i]);
    return 7;
  }
  if (wanted("stdin")) {
    for (int c; (c = getchar()) != EOF;) putchar(c == 'a' ? 'A' : c);
    return 0;
  }
  if (wanted("file")) {
    char text[16] = "";
    if (FILE* file = fopen("data.txt", "r")) fgets(text, sizeof text, file);
    printf("%s %s", text, getenv("SOME_VARIABLE"));
    return 0;
  }
  if (wanted("sleep")) {  // with a child that would go on alone
    const pid_t child = fork();
    if (child) printf("%d %d\n", getpid(), child);
    sleep(60);
  }
  if (wanted("flood")) {
    for (int i = 0; i < 12000; ++i) printf("%0999d\n", i);
    fprintf(stderr, "the end\n");
  }
  if (wanted("abort")) {
    printf("before\n");
    abort();
  }
  if (wanted("text")) {
    for (const char* line : text) puts(line);
    printf("%d\n", shifted);
  }
  if (wanted("half")) return __half2float(__float2half(1.5f) * __half(2.0f)) == 3.0f ? 0 : 1;
  if (wanted("fault")) return fault();
  if (wanted("assert")) {
    assert_kernel<<<2, 8>>>(5);
    return cudaDeviceSynchronize() == cudaErrorAssert ? 0 : 1;
  }
  return 0;
}
