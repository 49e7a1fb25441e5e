// capture.cpp: the captures in progress.
//
// A capture begins in one stream; others join it when they wait for an event recorded in a stream that takes part. Each
// has the nodes that its next node depends on. A capture that met an error is invalid: all that is left is to end it.
#include "api/capture.h"

#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "api/handles.h"
#include "threads/launch.h"

namespace simt {

std::atomic<int> captures_in_progress{0};

namespace {

struct Capture {
  unsigned long long id;
  cudaGraph_t handle;
  GraphPointer graph;
  cudaStreamCaptureMode mode;
  std::thread::id thread;
  cudaStream_t origin;
  bool invalid = false;
  std::map<cudaStream_t, std::vector<cudaGraphNode_t>> streams;  // with the nodes that their next one depends on
};

std::mutex mutex;
std::list<Capture> captures;
unsigned long long last_id = 0;
thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

bool is_legacy(cudaStream_t stream) { return stream == nullptr || stream == cudaStreamLegacy; }

Capture* capture_of(cudaStream_t stream) {
  for (Capture& capture : captures)
    if (capture.streams.count(stream)) return &capture;
  return nullptr;
}

Capture* capture_of(const CapturedEvent& event) {
  for (Capture& capture : captures)
    if (capture.id == event.capture) return &capture;
  return nullptr;
}

cudaError_t invalidate(Capture& capture, cudaError_t code) {
  capture.invalid = true;
  return failed(code);
}

// Work in the legacy stream would wait for a captured stream that is not non-blocking.
bool blocks_legacy(const Capture& capture) {
  for (const auto& [stream, after] : capture.streams) {
    if (!(stream_flags(stream) & cudaStreamNonBlocking)) return true;
  }
  return false;
}

std::optional<cudaError_t> refused_in_legacy() {
  std::optional<cudaError_t> answer;
  for (Capture& capture : captures)
    if (blocks_legacy(capture)) answer = invalidate(capture, cudaErrorStreamCaptureImplicit);
  return answer;
}

// True if every node of the other streams comes before the origin's next one.
bool joined(const Capture& capture) {
  std::set<cudaGraphNode_t> before;
  std::vector<cudaGraphNode_t> waiting = capture.streams.at(capture.origin);
  while (!waiting.empty()) {
    const cudaGraphNode_t node = waiting.back();
    waiting.pop_back();
    if (!before.insert(node).second) continue;
    const auto& after = capture.graph->find(node)->after;
    waiting.insert(waiting.end(), after.begin(), after.end());
  }
  for (const auto& [stream, last] : capture.streams)
    for (cudaGraphNode_t node : last)
      if (!before.count(node)) return false;
  return true;
}

}  // namespace

std::optional<cudaError_t> record(cudaStream_t stream, cudaGraphNodeType type, Action run) {
  const std::lock_guard<std::mutex> lock(mutex);
  Capture* capture = capture_of(stream);
  if (!capture) return is_legacy(stream) ? refused_in_legacy() : std::nullopt;
  if (capture->invalid) return failed(cudaErrorStreamCaptureInvalidated);
  auto& after = capture->streams[stream];
  cudaGraphNode_t node;
  if (cudaError_t error = add_node(capture->graph, type, std::move(run), after.data(), after.size(), &node))
    return invalidate(*capture, error);
  after = {node};
  return cudaSuccess;
}

std::optional<int> capture_launch(const Site& site, const Config& config, const Closure& closure) {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!is_legacy(config.stream) && !capture_of(config.stream)) return std::nullopt;
  }
  return record(config.stream, cudaGraphNodeTypeKernel,
                [launch = StoredLaunch(site, config, closure)] { return static_cast<cudaError_t>(launch.run()); });
}

bool invalidate_capture(cudaStream_t stream) {
  const std::lock_guard<std::mutex> lock(mutex);
  Capture* capture = capture_of(stream);
  if (capture) capture->invalid = true;
  return capture != nullptr;
}

void forget_capture(cudaStream_t stream) {
  const std::lock_guard<std::mutex> lock(mutex);
  Capture* capture = capture_of(stream);
  if (!capture) return;
  capture->invalid = true;
  if (capture->origin != stream) return;
  captures.remove_if([=](const Capture& other) { return &other == capture; });
  --captures_in_progress;
}

void forget_captures() {
  const std::lock_guard<std::mutex> lock(mutex);
  captures.clear();
  captures_in_progress = 0;
}

std::optional<cudaError_t> refused_by_capture(cudaStream_t stream) {
  if (!capturing()) return std::nullopt;
  const std::lock_guard<std::mutex> lock(mutex);
  if (Capture* capture = capture_of(stream)) return invalidate(*capture, cudaErrorStreamCaptureUnsupported);
  return is_legacy(stream) ? refused_in_legacy() : std::nullopt;
}

std::optional<cudaError_t> refused_by_capture(Unsafe what) {
  if (!capturing()) return std::nullopt;
  const std::lock_guard<std::mutex> lock(mutex);
  std::optional<cudaError_t> answer;
  for (Capture& capture : captures) {
    const bool mine = capture.thread == std::this_thread::get_id();
    const bool of_all = capture.mode == cudaStreamCaptureModeGlobal && thread_mode == cudaStreamCaptureModeGlobal;
    const bool of_mine =
        mine && capture.mode != cudaStreamCaptureModeRelaxed && thread_mode != cudaStreamCaptureModeRelaxed;
    if (what == Unsafe::wait || of_all || of_mine) answer = invalidate(capture, cudaErrorStreamCaptureUnsupported);
  }
  return answer;
}

// ---------------------------------------------------------------------------------------------------------------
// Events

bool in_capture(const CapturedEvent& event) {
  const std::lock_guard<std::mutex> lock(mutex);
  return capture_of(event) != nullptr;
}

void invalidate_capture(const CapturedEvent& event) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (Capture* capture = capture_of(event)) capture->invalid = true;
}

std::optional<cudaError_t> record_event(cudaStream_t stream, CapturedEvent& event) {
  const std::lock_guard<std::mutex> lock(mutex);
  Capture* capture = capture_of(stream);
  if (!capture) return is_legacy(stream) ? refused_in_legacy() : std::nullopt;
  if (capture->invalid) return failed(cudaErrorStreamCaptureInvalidated);
  event = {capture->id, capture->streams[stream]};
  return cudaSuccess;
}

std::optional<cudaError_t> wait_for_event(cudaStream_t stream, const CapturedEvent& event) {
  const std::lock_guard<std::mutex> lock(mutex);
  Capture *mine = capture_of(stream), *other = capture_of(event);
  if (!mine && !other) return is_legacy(stream) ? refused_in_legacy() : std::nullopt;
  for (Capture* capture : {mine, other})
    if (capture && capture->invalid) return failed(cudaErrorStreamCaptureInvalidated);
  if (!other) return invalidate(*mine, cudaErrorStreamCaptureIsolation);
  if (is_legacy(stream)) return invalidate(*other, cudaErrorStreamCaptureImplicit);
  if (mine && mine != other) {
    invalidate(*mine, cudaErrorStreamCaptureMerge);
    return invalidate(*other, cudaErrorStreamCaptureMerge);
  }
  auto& after = other->streams[stream];
  for (cudaGraphNode_t node : event.after)
    if (std::find(after.begin(), after.end(), node) == after.end()) after.push_back(node);
  return cudaSuccess;
}

}  // namespace simt

// ---------------------------------------------------------------------------------------------------------------
// The API

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (cudaError_t fault = simt::begin_work("cudaStreamBeginCapture")) return fault;
  if (!simt::stream_exists(stream)) return simt::no_stream();
  if (static_cast<unsigned>(mode) > cudaStreamCaptureModeRelaxed) return simt::failed(cudaErrorInvalidValue);
  if (simt::is_legacy(stream)) return simt::failed(cudaErrorStreamCaptureUnsupported);
  const std::lock_guard<std::mutex> lock(simt::mutex);
  if (simt::capture_of(stream)) return simt::failed(cudaErrorIllegalState);
  simt::Capture& capture = simt::captures.emplace_back();
  capture.id = ++simt::last_id;
  capture.handle = simt::new_graph();
  capture.graph = simt::find_graph(capture.handle);
  capture.mode = mode;
  capture.thread = std::this_thread::get_id();
  capture.origin = stream;
  capture.streams[stream] = {};
  ++simt::captures_in_progress;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (!graph) return simt::failed(cudaErrorInvalidValue);
  const std::lock_guard<std::mutex> lock(simt::mutex);
  simt::Capture* capture = simt::capture_of(stream);
  if (!capture) return simt::failed(cudaErrorIllegalState);
  if (capture->origin != stream) return simt::invalidate(*capture, cudaErrorStreamCaptureUnmatched);
  if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id())
    return simt::invalidate(*capture, cudaErrorStreamCaptureWrongThread);
  cudaError_t error = cudaSuccess;
  if (capture->invalid)
    error = cudaErrorStreamCaptureInvalidated;
  else if (!simt::joined(*capture))
    error = cudaErrorStreamCaptureUnjoined;
  *graph = error ? nullptr : capture->handle;
  if (error) cudaGraphDestroy(capture->handle);
  simt::captures.remove_if([=](const simt::Capture& other) { return &other == capture; });
  --simt::captures_in_progress;
  return error ? simt::failed(error) : cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph) {
  if (!simt::stream_exists(stream)) return simt::no_stream();
  if (!status) return simt::failed(cudaErrorInvalidValue);
  *status = cudaStreamCaptureStatusNone;
  const std::lock_guard<std::mutex> lock(simt::mutex);
  const simt::Capture* capture = simt::capture_of(stream);
  if (!capture) {
    const bool blocked =
        simt::is_legacy(stream) && std::any_of(simt::captures.begin(), simt::captures.end(), simt::blocks_legacy);
    return blocked ? simt::failed(cudaErrorStreamCaptureImplicit) : cudaSuccess;
  }
  *status = capture->invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
  if (id) *id = capture->id;
  if (graph) *graph = capture->handle;
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return cudaStreamGetCaptureInfo(stream, status);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  if (!mode || static_cast<unsigned>(*mode) > cudaStreamCaptureModeRelaxed) return simt::failed(cudaErrorInvalidValue);
  std::swap(*mode, simt::thread_mode);
  return cudaSuccess;
}
