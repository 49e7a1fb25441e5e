// event.cpp: events, which remember when they were recorded.
//
// The times are the host's and say nothing about a GPU. cudaEventElapsedTime still returns them, so that programs that
// time themselves run to the end, and prints a note on stderr, once per process.
#include "api/capture.h"
#include "api/devices.h"
#include "api/handles.h"
#include "threads/stray.h"

#include <chrono>
#include <cstdio>

namespace simt {
namespace {

using Clock = std::chrono::steady_clock;

struct EventRecord {
  unsigned flags;
  int device;
  bool recorded;
  Clock::time_point when;
  CapturedEvent captured{};
};

Handles<EventRecord>& events() { return lasting<Handles<EventRecord>>(); }

// When an event was recorded. As in CUDA, an unrecorded event, or one that keeps no time, is not a valid handle.
cudaError_t read_time(cudaEvent_t event, Clock::time_point* when, int* device) {
  return events().with(event, [=](EventRecord& record) {
    if (record.captured.capture && in_capture(record.captured)) return failed(cudaErrorCapturedEvent);
    if (!record.recorded || (record.flags & cudaEventDisableTiming)) return failed(cudaErrorInvalidResourceHandle);
    *when = record.when;
    *device = record.device;
    return cudaSuccess;
  });
}

}  // namespace

void forget_events(int device) {
  events().remove_if([=](const EventRecord& record) { return record.device == device; });
}

}  // namespace simt

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  simt::host_only("cudaEventCreate");
  constexpr unsigned known = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
  const bool timed_between_processes = (flags & cudaEventInterprocess) && !(flags & cudaEventDisableTiming);
  if (!event || (flags & ~known) || timed_between_processes) return simt::failed(cudaErrorInvalidValue);
  simt::events().add(event, {flags, simt::current_device(), false, {}});
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventDestroy(cudaEvent_t event) { return simt::events().remove(event); }

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  simt::host_only("cudaEventRecord");
  if (!simt::stream_exists(stream)) return simt::no_stream();
  if (flags != cudaEventRecordDefault && flags != cudaEventRecordExternal) return simt::failed(cudaErrorInvalidValue);
  const int device = simt::stream_device(stream);
  const auto record_now = [=] {
    return simt::events().with(event, [=](simt::EventRecord& record) {
      if (record.device != device) return simt::no_stream();
      record.recorded = true;
      record.when = simt::Clock::now();
      record.captured = {};
      return cudaSuccess;
    });
  };
  if (!simt::capturing()) return record_now();
  if (flags == cudaEventRecordExternal) return simt::submit(stream, cudaGraphNodeTypeEventRecord, record_now);
  std::optional<cudaError_t> answer;
  const cudaError_t known = simt::events().with(event, [&](simt::EventRecord& record) {
    answer = simt::record_event(stream, record.captured);
    return cudaSuccess;
  });
  return known || !answer ? (known ? known : record_now()) : *answer;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  simt::host_only("cudaEventSynchronize");
  simt::StreamWatch::current().waited("cudaEventSynchronize");
  return simt::events().with(event, [](simt::EventRecord& record) {
    if (!simt::capturing() || !simt::in_capture(record.captured)) return simt::pending_fault();
    simt::invalidate_capture(record.captured);
    return simt::failed(cudaErrorCapturedEvent);
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) { return cudaEventSynchronize(event); }

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  if (!simt::stream_exists(stream)) return simt::no_stream();
  if (flags != cudaEventWaitDefault && flags != cudaEventWaitExternal) return simt::failed(cudaErrorInvalidValue);
  simt::StreamWatch::current().waited();
  return simt::events().with(event, [=](simt::EventRecord& record) {
    if (!simt::capturing()) return cudaSuccess;
    const auto nothing = [] { return cudaSuccess; };  // the event has happened when the graph comes to it
    if (flags == cudaEventWaitExternal) return simt::submit(stream, cudaGraphNodeTypeWaitEvent, nothing);
    return simt::wait_for_event(stream, record.captured).value_or(cudaSuccess);
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  static std::once_flag said;
  simt::Clock::time_point from, to;
  int of_start = 0, of_end = 0;
  if (!milliseconds) return simt::failed(cudaErrorInvalidValue);
  if (cudaError_t error = simt::read_time(start, &from, &of_start)) return error;
  if (cudaError_t error = simt::read_time(end, &to, &of_end)) return error;
  if (of_start != of_end) return simt::no_stream();
  std::call_once(said, [] {
    std::fputs("note: cudaEventElapsedTime gives the simulator's time on this CPU, which says nothing about a GPU\n",
               stderr);
  });
  *milliseconds = std::chrono::duration<float, std::milli>(to - from).count();
  return simt::pending_fault();
}
