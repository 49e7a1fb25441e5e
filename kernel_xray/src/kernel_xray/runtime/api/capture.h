// capture.h: streams whose work is recorded in a graph instead of run.
#pragma once

#include <atomic>
#include <optional>

#include "api/graph.h"
#include "api/host_call.h"

namespace simt {

extern std::atomic<int> captures_in_progress;
inline bool capturing() { return captures_in_progress.load(std::memory_order_relaxed) != 0; }

// While a capture is in progress. For work in a stream: records it if the stream is captured, or refuses it; without an
// answer it is to be run.
std::optional<cudaError_t> record(cudaStream_t stream, cudaGraphNodeType type, Action run);
std::optional<cudaError_t> refused_by_capture(cudaStream_t stream);  // for calls that wait for a stream
std::optional<int> capture_launch(const Site& site, const Config& config, const Closure& closure);
bool invalidate_capture(cudaStream_t stream);  // after an error; false: the stream is not captured
void forget_capture(cudaStream_t stream);      // which is destroyed
void forget_captures();                        // cudaDeviceReset

enum class Unsafe {
  call,  // it may synchronise: allowed in captures that are relaxed or of another thread
  wait,  // it waits for the whole device: never allowed
};
std::optional<cudaError_t> refused_by_capture(Unsafe what);

// Puts work into a stream: records it, or runs it.
template <typename Run>
cudaError_t submit(cudaStream_t stream, cudaGraphNodeType type, Run run) {
  if (!stream_exists(stream)) return no_stream();
  if (capturing())
    if (const auto answer = record(stream, type, run)) return *answer;
  return run();
}

// Events in captured streams.
struct CapturedEvent {
  unsigned long long capture = 0;  // 0: it was not recorded in a captured stream
  std::vector<cudaGraphNode_t> after;
};
bool in_capture(const CapturedEvent& event);  // of a capture that is still in progress
void invalidate_capture(const CapturedEvent& event);
// Fills in the event if the stream is captured; an error if its capture has failed.
std::optional<cudaError_t> record_event(cudaStream_t stream, CapturedEvent& event);
// The stream waits for the event: it joins the event's capture.
std::optional<cudaError_t> wait_for_event(cudaStream_t stream, const CapturedEvent& event);

}  // namespace simt
