// replay.cpp: merges the records of a warp's lanes into requests.
#include "trace/replay.h"

#include <algorithm>

namespace simt::trace {

namespace {

constexpr uint64_t kFirstSteps = 12;  // of a launch: some are in the kernel itself

// How many events until a lane reaches a key; kFar if that is not soon.
unsigned distance(const Lane& lane, uint64_t key) {
  const unsigned end = std::min(lane.length, lane.position + kFar);
  for (unsigned i = lane.position + 1; i < end; ++i)
    if (lane.record[i].key == key) return i - lane.position;
  return kFar;
}

}  // namespace

// `head`: the keys of the lanes' next events.
uint64_t Replay::next_key(const uint64_t* head, unsigned n) const {
  unsigned best = static_cast<unsigned>(std::min_element(head, head + n) - head);
  uint64_t seen = head[best];
  for (unsigned k = 0; k < n; ++k) {
    if (head[k] == head[best] || head[k] == seen || head[k] == kNoKey) continue;
    seen = head[k];
    if (distance(cluster_.lanes[k], head[best]) < distance(cluster_.lanes[best], head[k])) best = k;
  }
  return head[best];
}

inline void Replay::check(unsigned i, const Event& event) {
  if (event.kind == Kind::fence)
    clocks_.memory_fence(i, event.scope);
  else
    races_.check(clocks_.thread(i), i, event);
}

// Whether the thread has more to record once its events are replayed: it runs again, or returns from an ordered call.
bool Replay::goes_on(unsigned i) const { return cluster_.ready(i) || cluster_.waits(i, FibreThread::Waiting::turn); }

// Whether a record ends before what the choice of a key may look at, and its lane can go on.
bool Replay::ends_early(unsigned first, unsigned n) const {
  for (unsigned k = 0; k < n; ++k)
    if (cluster_.lanes[k].short_of(kFar) && cluster_.ready(first + k)) return true;
  return false;
}

void Replay::run(unsigned warp, bool all) {
  const unsigned first = warp * kWarpSize, n = cluster_.lanes_of(warp);
  uint64_t head[kWarpSize];  // keys of the lanes' next events
  for (unsigned k = 0; k < n; ++k) {
    const Lane& lane = cluster_.lanes[k];
    head[k] = lane.position < lane.length ? lane.record[lane.position].key : kNoKey;
  }
  Request request;
  bool starved = false;
  for (unsigned k = 0; k < n && !all; ++k) starved = starved || (head[k] == kNoKey && goes_on(first + k));
  bool together = std::all_of(head + 1, head + n, [&](uint64_t key) { return key == head[0]; });
  while (!starved && cluster_.steps_left) {
    if (!together && !all && ends_early(first, n)) break;
    const uint64_t key = together ? head[0] : next_key(head, n);
    if (key == kNoKey) break;
    request.count = 0;
    together = true;
    Lane* lane = cluster_.lanes;
    for (unsigned k = 0; k < n; ++k, ++lane) {
      if (head[k] == key) {
        const Event* const next = lane->record + lane->position++;
        request.events[request.count] = next;
        request.lanes[request.count++] = k;
        const bool more = lane->position < lane->length;
        head[k] = more ? next[1].key : kNoKey;
        starved = starved || (!more && !all && goes_on(first + k));
      }
      together = together && head[k] == head[0];
    }
    const Event& event = *request.events[0];
    const bool access = event.kind != Kind::step && event.kind != Kind::fence;  // other events have only a key and kind
    const bool landed = access && event.form == Form::landed;
    info_.steps += !landed;
    info_.lane_steps += !landed * request.count;
    cluster_.steps_left -= std::min<uint64_t>(cluster_.steps_left, request.count);
    if (info_.steps <= kFirstSteps) info_.pcs.insert(event.pc());
    const bool quiet = landed || (access && event.form == Form::quiet);
    if (cluster_.filmed && !quiet)
      cluster_.session.film.add(cluster_.frame_of(first, Frame::What::step, 0, 0), request, cluster_.lanes);
    if (event.kind == Kind::step) continue;
    if (access && !quiet) {
      count(counts(event), request);
      work.add(first, request);
      if (cluster_.session.asks_what_if) what_if.add(warp, request);
    }
    if (cluster_.fences) continue;  // the scheduler has checked the records
    for (unsigned k = 0; k < request.count; ++k) check(first + request.lanes[k], *request.events[k]);
  }
}

void Replay::check(unsigned i) {
  Lane& lane = cluster_.lane(i);
  for (uint32_t at = std::max(lane.position, lane.checked); at < lane.length; ++at)
    if (lane.record[at].kind != Kind::step) check(i, lane.record[at]);
  lane.checked = lane.length;
}

Counts& Replay::counts(const Event& event) {
  Counts*& known = counts_[event.key];
  if (!known) known = &cluster_.session.counts[{cluster_.kernel, event.pc(), event.kind}];
  return *known;
}

}  // namespace simt::trace
