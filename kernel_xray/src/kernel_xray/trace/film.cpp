// film.cpp: keeps the frames of a film.
#include "trace/film.h"

#include <algorithm>
#include <utility>

#include "trace/metrics.h"

namespace simt::trace {

bool Film::wants(uint64_t block) const { return std::find(blocks_.begin(), blocks_.end(), block) != blocks_.end(); }

void Film::add(Frame frame) {
  if (!wants(frame.block)) return;  // another block of a cluster
  if (frames.size() < limit_)
    frames.push_back(std::move(frame));
  else
    ++left_out;
}

void Film::add(Frame frame, const Request& request, const Lane* lanes) {
  const Event& event = *request.events[0];
  frame.pc = event.pc();
  for (unsigned k = 0; k < request.count; ++k) frame.mask |= 1u << request.lanes[k];
  if (event.kind != Kind::step && event.kind != Kind::fence) {
    frame.what = Frame::What::request;
    frame.kind = event.kind;
    frame.space = event.region->space;
    frame.size = event.size;
    frame.start = event.region->virtual_start;
    frame.region = event.region->name;
    frame.whole = true;
    for (unsigned k = 0; k < request.count; ++k) {
      const Lane& lane = lanes[request.lanes[k]];
      const Value& value = lane.values[static_cast<size_t>(request.events[k] - lane.record)];
      frame.addresses.push_back(request.events[k]->address);
      frame.values.push_back(value);
      frame.whole = frame.whole && value.known;
    }
  }
  add(std::move(frame));
}

}  // namespace simt::trace
