// graphs.cu: CUDA graphs: captured streams, explicit nodes, updates, and calls that a capture forbids.
#include "case.h"

__global__ void add_kernel(int* x, int value) { x[threadIdx.x] += value; }
__global__ void scale_kernel(int* x, const int* by) { x[threadIdx.x] *= *by; }
static void CUDART_CB count(void* counter) { ++*static_cast<int*>(counter); }

struct Stream {
  cudaStream_t stream = nullptr;
  explicit Stream(unsigned flags = cudaStreamNonBlocking) { EXPECT_SUCCESS(cudaStreamCreateWithFlags(&stream, flags)); }
  ~Stream() { cudaStreamDestroy(stream); }
  operator cudaStream_t() const { return stream; }
};

// x int[32] of zeros. Work of two streams; what host variables hold when the graph runs does not matter.
CASE(captured) {
  int *x = call.data<int>(0), *y = nullptr, *by = nullptr, called = 0;
  EXPECT_SUCCESS(cudaMalloc(&y, 128));
  EXPECT_SUCCESS(cudaMalloc(&by, sizeof(int)));
  const Stream first, second;
  cudaEvent_t fork, join;
  EXPECT_SUCCESS(cudaEventCreate(&fork));
  EXPECT_SUCCESS(cudaEventCreate(&join));
  int factor = 3;
  cudaStreamCaptureStatus status;
  EXPECT_SUCCESS(cudaStreamIsCapturing(first, &status));
  EXPECT(status == cudaStreamCaptureStatusNone);

  EXPECT_SUCCESS(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
  EXPECT_SUCCESS(cudaMemcpyAsync(by, &factor, sizeof(int), cudaMemcpyHostToDevice, first));
  {
    int value = 1;
    add_kernel<<<1, 32, 0, first>>>(x, value);
    value = 100;
  }
  EXPECT_SUCCESS(cudaEventRecord(fork, first));
  EXPECT_SUCCESS(cudaStreamWaitEvent(second, fork, 0));
  EXPECT_SUCCESS(cudaStreamIsCapturing(second, &status));
  EXPECT(status == cudaStreamCaptureStatusActive);
  EXPECT_SUCCESS(cudaMemsetAsync(y, 0, 128, second));
  add_kernel<<<1, 32, 0, second>>>(y, 5);
  EXPECT_SUCCESS(cudaEventRecord(join, second));
  scale_kernel<<<1, 32, 0, first>>>(x, by);
  EXPECT_SUCCESS(cudaStreamWaitEvent(first, join, 0));
  EXPECT_SUCCESS(cudaLaunchHostFunc(first, count, &called));
  cudaGraph_t graph;
  EXPECT_SUCCESS(cudaStreamEndCapture(first, &graph));
  EXPECT(called == 0);

  size_t nodes = 0, roots = 0;
  EXPECT_SUCCESS(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_SUCCESS(cudaGraphGetRootNodes(graph, nullptr, &roots));
  EXPECT(nodes == 6 && roots == 1);
  std::vector<cudaGraphNode_t> all(nodes);
  EXPECT_SUCCESS(cudaGraphGetNodes(graph, all.data(), &nodes));
  int kernels = 0;
  for (cudaGraphNode_t node : all) {
    cudaGraphNodeType type;
    EXPECT_SUCCESS(cudaGraphNodeGetType(node, &type));
    kernels += type == cudaGraphNodeTypeKernel;
  }
  EXPECT(kernels == 3);

  cudaGraphExec_t executable;
  EXPECT_SUCCESS(cudaGraphInstantiate(&executable, graph, 0));
  EXPECT_SUCCESS(cudaGraphDestroy(graph));
  for (int i = 0; i < 3; ++i) EXPECT_SUCCESS(cudaGraphLaunch(executable, first));
  EXPECT_SUCCESS(cudaStreamSynchronize(first));
  EXPECT(called == 3);
  int result[32];
  EXPECT_SUCCESS(cudaMemcpy(result, y, sizeof(result), cudaMemcpyDeviceToHost));
  for (int v : result) EXPECT(v == 5);
  EXPECT_SUCCESS(cudaGraphExecDestroy(executable));
  EXPECT(cudaGraphLaunch(nullptr, first) == cudaErrorInvalidValue);
  cudaGetLastError();
  EXPECT_SUCCESS(cudaEventDestroy(fork));
  EXPECT_SUCCESS(cudaEventDestroy(join));
  EXPECT_SUCCESS(cudaFree(y));
  EXPECT_SUCCESS(cudaFree(by));
}

// x int[32] of zeros: set to 2, add 3, copy, call a function; the dependencies are not in the order of creation.
CASE(explicit_nodes) {
  int *x = call.data<int>(0), value = 3, host_copy[32], called = 0;
  cudaGraph_t graph;
  EXPECT_SUCCESS(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t add, set, copy, host, empty;

  void* arguments[] = {&x, &value};
  cudaKernelNodeParams kernel{};
  kernel.func = (void*)add_kernel;
  kernel.gridDim = dim3(1);
  kernel.blockDim = dim3(32);
  kernel.kernelParams = arguments;
  EXPECT_SUCCESS(cudaGraphAddKernelNode(&add, graph, nullptr, 0, &kernel));
  value = 50;  // the node has copied its arguments

  cudaMemsetParams memset{};
  memset.dst = x;
  memset.value = 2;
  memset.elementSize = sizeof(int);
  memset.width = 32;
  memset.height = 1;
  EXPECT_SUCCESS(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &memset));
  EXPECT_SUCCESS(cudaGraphAddDependencies(graph, &set, &add, nullptr, 1));
#ifdef __SIMT__
  EXPECT(cudaGraphAddDependencies(graph, &set, &add, 1) == cudaErrorInvalidValue);  // the form of CUDA 12
  cudaGraphEdgeData edge{};
  EXPECT(cudaGraphRemoveDependencies(graph, &set, &add, &edge, 1) == cudaSuccess);
  EXPECT(cudaGraphAddDependencies(graph, &set, &add, &edge, 1) == cudaSuccess);
  edge.type = 1;
  EXPECT(cudaGraphAddDependencies(graph, &set, &add, &edge, 1) == cudaErrorNotSupported);
#endif
  EXPECT(cudaGraphAddDependencies(graph, &set, &add, nullptr, 1) == cudaErrorInvalidValue);

  cudaMemcpy3DParms box{};
  box.srcPtr = make_cudaPitchedPtr(x, sizeof(host_copy), 32, 1);
  box.dstPtr = make_cudaPitchedPtr(host_copy, sizeof(host_copy), 32, 1);
  box.extent = make_cudaExtent(sizeof(host_copy), 1, 1);
  box.kind = cudaMemcpyDeviceToHost;
  EXPECT_SUCCESS(cudaGraphAddMemcpyNode(&copy, graph, &add, 1, &box));
  cudaHostNodeParams counts{};
  counts.fn = count;
  counts.userData = &called;
  EXPECT_SUCCESS(cudaGraphAddHostNode(&host, graph, &copy, 1, &counts));
  EXPECT_SUCCESS(cudaGraphAddEmptyNode(&empty, graph, &host, 1));

  cudaGraphExec_t executable;
  EXPECT_SUCCESS(cudaGraphInstantiate(&executable, graph, 0));
  const Stream stream;
  EXPECT_SUCCESS(cudaGraphLaunch(executable, stream));
  EXPECT_SUCCESS(cudaStreamSynchronize(stream));
  for (int v : host_copy) EXPECT(v == 5);
  EXPECT(called == 1);

  int other = 10;
  void* others[] = {&x, &other};
  kernel.kernelParams = others;
  EXPECT_SUCCESS(cudaGraphExecKernelNodeSetParams(executable, add, &kernel));
  EXPECT(cudaGraphExecKernelNodeSetParams(executable, set, &kernel) == cudaErrorInvalidValue);
  EXPECT_SUCCESS(cudaGraphLaunch(executable, stream));
  EXPECT_SUCCESS(cudaStreamSynchronize(stream));
  for (int v : host_copy) EXPECT(v == 12);

  // The graph itself still adds 3; its clone is a child of another graph, in which a kernel comes first.
  cudaGraph_t outer, clone;
  EXPECT_SUCCESS(cudaGraphClone(&clone, graph));
  EXPECT_SUCCESS(cudaGraphCreate(&outer, 0));
  cudaGraphNode_t first, inner;
  EXPECT_SUCCESS(cudaGraphAddKernelNode(&first, outer, nullptr, 0, &kernel));
  EXPECT_SUCCESS(cudaGraphAddChildGraphNode(&inner, outer, &first, 1, clone));
  cudaGraphExec_t outer_executable;
  EXPECT_SUCCESS(cudaGraphInstantiate(&outer_executable, outer, NULL, NULL, 0));
  EXPECT_SUCCESS(cudaGraphLaunch(outer_executable, stream));
  EXPECT_SUCCESS(cudaStreamSynchronize(stream));
  for (int v : host_copy) EXPECT(v == 5);
  EXPECT(called == 3);

  EXPECT_SUCCESS(cudaGraphAddDependencies(graph, &empty, &set, nullptr, 1));  // a cycle
  EXPECT(cudaGraphInstantiate(&executable, graph, 0) == cudaErrorInvalidValue);
  cudaGetLastError();
  for (cudaGraph_t made : {graph, clone, outer}) EXPECT_SUCCESS(cudaGraphDestroy(made));
  EXPECT_SUCCESS(cudaGraphExecDestroy(outer_executable));
}

static cudaGraph_t chain(cudaStream_t stream, int* x, int kernels, int value) {
  cudaGraph_t graph;
  EXPECT_SUCCESS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < kernels; ++i) add_kernel<<<1, 32, 0, stream>>>(x, value);
  EXPECT_SUCCESS(cudaStreamEndCapture(stream, &graph));
  return graph;
}

// x int[32] of zeros
CASE(updates) {
  int* x = call.data<int>(0);
  const Stream stream;
  cudaGraph_t ones = chain(stream, x, 2, 1), tens = chain(stream, x, 2, 10), longer = chain(stream, x, 3, 100);
  cudaGraphExec_t executable;
  EXPECT_SUCCESS(cudaGraphInstantiate(&executable, ones, 0));
  EXPECT_SUCCESS(cudaGraphLaunch(executable, stream));
  cudaGraphExecUpdateResultInfo info;
  EXPECT_SUCCESS(cudaGraphExecUpdate(executable, tens, &info));
  EXPECT(info.result == cudaGraphExecUpdateSuccess);
  EXPECT_SUCCESS(cudaGraphLaunch(executable, stream));
  EXPECT(cudaGraphExecUpdate(executable, longer, &info) == cudaErrorGraphExecUpdateFailure);
  EXPECT(info.result == cudaGraphExecUpdateErrorTopologyChanged);
  cudaGetLastError();

  // A graph cannot be launched into a captured stream.
  EXPECT_SUCCESS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  EXPECT(cudaGraphLaunch(executable, stream) == cudaErrorStreamCaptureUnsupported);
  cudaGraph_t none;
  EXPECT(cudaStreamEndCapture(stream, &none) == cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
  EXPECT_SUCCESS(cudaStreamSynchronize(stream));
  for (cudaGraph_t graph : {ones, tens, longer}) EXPECT_SUCCESS(cudaGraphDestroy(graph));
  EXPECT_SUCCESS(cudaGraphExecDestroy(executable));
}

// A call in a capture of a stream with these flags, in this mode: its code, and the code of the capture's end.
template <typename Body>
static void during(unsigned flags, cudaStreamCaptureMode mode, cudaError_t code, cudaError_t end, int line, Body body) {
  const Stream stream(flags), other(cudaStreamDefault);
  cudaEvent_t event;
  EXPECT_SUCCESS(cudaEventCreate(&event));
  EXPECT_SUCCESS(cudaStreamBeginCapture(stream, mode));
  const cudaError_t got = body(stream, other, event);
  cudaGetLastError();
  cudaGraph_t graph;
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
  cudaGetLastError();
  if (got != code || ended != end)
    throw std::runtime_error("line " + std::to_string(line) + ": got " + cudaGetErrorName(got) + ", then " +
                             cudaGetErrorName(ended));
  if (!ended) EXPECT_SUCCESS(cudaGraphDestroy(graph));
  EXPECT_SUCCESS(cudaEventDestroy(event));
}

CASE(forbidden) {
  int* x = call.data<int>(0);
  void* memory = nullptr;
  void** p = &memory;
  const auto global = cudaStreamCaptureModeGlobal, relaxed = cudaStreamCaptureModeRelaxed;
  const auto unsupported = cudaErrorStreamCaptureUnsupported, spoilt = cudaErrorStreamCaptureInvalidated;
#define DURING(flags, mode, code, end, expression)                                                           \
  during(flags, mode, code, end, __LINE__, [=](cudaStream_t stream, cudaStream_t other, cudaEvent_t event) { \
    (void)stream, (void)other, (void)event;                                                                  \
    return (expression);                                                                                     \
  })
  for (unsigned flags : {cudaStreamDefault, cudaStreamNonBlocking}) {
    DURING(flags, global, unsupported, spoilt, cudaMalloc(p, 64));
    DURING(flags, relaxed, cudaSuccess, cudaSuccess, (cudaMalloc(p, 64), cudaFree(*p)));
    DURING(flags, global, unsupported, spoilt, cudaFree(nullptr));
    DURING(flags, relaxed, unsupported, spoilt, cudaStreamSynchronize(stream));
    DURING(flags, global, unsupported, spoilt, cudaStreamSynchronize(other));
    DURING(flags, global, unsupported, spoilt, cudaStreamQuery(stream));
    DURING(flags, relaxed, unsupported, spoilt, cudaDeviceSynchronize());
    DURING(flags, global, cudaErrorInvalidValue, spoilt, (add_kernel<<<0, 1, 0, stream>>>(x, 1), cudaGetLastError()));
    DURING(flags, global, cudaErrorCapturedEvent, spoilt, (cudaEventRecord(event, stream), cudaEventQuery(event)));
    DURING(flags, global, cudaSuccess, cudaSuccess,
           (cudaEventRecord(event, stream), cudaStreamWaitEvent(other, event, 0)));
    DURING(flags, global, cudaErrorStreamCaptureIsolation, spoilt,
           (cudaEventRecord(event, other), cudaStreamWaitEvent(stream, event, 0)));
    DURING(flags, global, cudaErrorIllegalState, cudaSuccess, cudaStreamBeginCapture(stream, global));
    cudaGraph_t graph;
    cudaGraph_t* made = &graph;
    DURING(flags, global, cudaErrorIllegalState, cudaSuccess, cudaStreamEndCapture(other, made));
    DURING(flags, global, cudaErrorStreamCaptureUnmatched, spoilt,
           (cudaEventRecord(event, stream), cudaStreamWaitEvent(other, event, 0), cudaStreamEndCapture(other, made)));
    DURING(flags, global, cudaSuccess, cudaErrorStreamCaptureUnjoined,
           (cudaEventRecord(event, stream), cudaStreamWaitEvent(other, event, 0), cudaMemsetAsync(x, 0, 4, other)));
  }
  const auto implicit = cudaErrorStreamCaptureImplicit;
  DURING(cudaStreamDefault, global, implicit, spoilt, cudaMemcpy(x, x + 1, 4, cudaMemcpyDefault));
  DURING(cudaStreamDefault, global, implicit, spoilt, cudaMemset(x, 0, 4));
  DURING(cudaStreamDefault, relaxed, implicit, spoilt, (add_kernel<<<1, 1>>>(x, 1), cudaGetLastError()));
  DURING(cudaStreamNonBlocking, relaxed, cudaSuccess, cudaSuccess, (add_kernel<<<1, 1>>>(x, 0), cudaGetLastError()));
  cudaGraph_t graph;
  EXPECT(cudaStreamBeginCapture(nullptr, global) == unsupported);
  EXPECT(cudaStreamEndCapture(nullptr, &graph) == cudaErrorIllegalState);
  cudaGetLastError();
}

// A fault in a graph's kernel, by the index that it writes.
__global__ void write_kernel(int* x, int index) { x[index] = 1; }
CASE(write_at) {
  int* x = nullptr;
  EXPECT_SUCCESS(cudaMalloc(&x, 128));
  const Stream stream;
  cudaGraph_t graph;
  EXPECT_SUCCESS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  write_kernel<<<1, 1, 0, stream>>>(x, static_cast<int>(call.number(0)));
  EXPECT_SUCCESS(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable;
  EXPECT_SUCCESS(cudaGraphInstantiate(&executable, graph, 0));
  EXPECT_SUCCESS(cudaGraphLaunch(executable, stream));
}
