// whatif.cpp: merges, drops and joins the requests of a warp's window, and counts what results.
#include "trace/whatif.h"

#include <algorithm>

namespace simt::trace {

namespace {

constexpr unsigned kLineBytes = 128;

// The widest access that a manner makes of accesses of `size` bytes.
unsigned width_of(Manner manner, unsigned size) {
  constexpr unsigned kWidths[kManners] = {4, 8, 16, 0, 4, 8, 16, 0, 4, 8, 16};
  return std::max(size, kWidths[static_cast<unsigned>(manner)]);
}
bool loads_once(Manner manner) { return manner >= Manner::once && manner <= Manner::once_in_16; }
bool loads_guarded(Manner manner) { return manner >= Manner::guarded && manner <= Manner::guarded_in_16; }

}  // namespace

bool WhatIf::Group::same_access(const Group& other) const {
  if (kind != other.kind || size != other.size || width != other.width || mask != other.mask) return false;
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    if ((mask >> lane & 1) && address[lane] != other.address[lane]) return false;
  return true;
}

WhatIf::Group WhatIf::group_of(const Request& request) {
  const Event& event = *request.events[0];
  Group group{event.kind, event.region, event.size, event.size, 0, 1, 0, ~uint64_t{0}, 0, {}, {event.pc()}};
  for (unsigned i = 0; i < request.count; ++i) {
    const uint64_t address = request.events[i]->address;
    group.mask |= 1u << request.lanes[i];
    group.address[request.lanes[i]] = address;
    group.low = std::min(group.low, address);
    group.high = std::max(group.high, address + event.size);
  }
  return group;
}

void WhatIf::add(unsigned warp, const Request& request) {
  const Event& event = *request.events[0];
  if (event.kind > Kind::atomic) return;
  const Group own = group_of(request);
  Warp& state = warps_[warp];
  for (unsigned m = 0; m < kManners; ++m) {
    const Manner manner = static_cast<Manner>(m);
    Window& window = state.windows[m];
    if (manner != Manner::joined) separate(window, own, manner);  // a lane's later store does not undo its load
    if (event.kind == Kind::atomic || manner >= Manner::copied) continue;
    if (manner == Manner::joined)
      join(window, own);
    else
      merge(window, own, manner);
    if (window.size() <= kWindow) continue;
    window.front().storing = window.front().mask;  // a store so far behind has not moved it
    finish(window.front(), manner);
    window.pop_front();
  }
  if (event.kind != Kind::atomic) unroll(state, own);
  if (event.kind == Kind::load && event.region->space == Space::global) state.load = own;
  if (event.kind == Kind::store && event.region->space == Space::shared) {
    if (state.load.mask && state.load.size == own.size) copy(state.load, own);
    state.load.mask = 0;
  }
}

void WhatIf::end_window(unsigned warp) {
  const auto found = warps_.find(warp);
  if (found == warps_.end()) return;
  for (unsigned m = 0; m < kManners; ++m)
    for (Group& group : found->second.windows[m]) finish(group, static_cast<Manner>(m));
  for (auto& entry : found->second.loops) end_loop(entry.second);
  warps_.erase(found);
}

void WhatIf::end_windows() {
  while (!warps_.empty()) end_window(warps_.begin()->first);
}

// Finishes the groups of the other kind that a request of the same threads might overlap.
void WhatIf::separate(Window& window, const Group& request, Manner manner) {
  for (auto group = window.begin(); group != window.end();) {
    if (loads_guarded(manner) && request.kind == Kind::store && request.region->space == Space::global)
      group->storing |= request.mask;
    const bool overlaps = (group->mask & request.mask) && group->low < request.high && request.low < group->high;
    if (group->kind == request.kind || !overlaps) {
      ++group;
      continue;
    }
    finish(*group, manner);
    group = window.erase(group);
  }
}

void WhatIf::merge(Window& window, Group request, Manner manner) {
  const unsigned width = width_of(manner, request.size), one = static_cast<unsigned>(__builtin_ctz(request.mask));
  const uint64_t place = request.address[one] % width;
  bool mergeable = true;
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    mergeable = mergeable && (!(request.mask >> lane & 1) || request.address[lane] % width == place);
  if (mergeable) {
    for (uint64_t& address : request.address) address -= place;
    request.width = width;
    request.filled = 1u << place / request.size;
  }
  const auto known =
      std::find_if(window.rbegin(), window.rend(), [&](const Group& g) { return g.same_access(request); });
  const bool repeated = known != window.rend() && (known->filled & request.filled);
  if (repeated && loads_once(manner) && request.kind == Kind::load) {
    session_.link(known->pcs[0], request.pcs[0], manner);
    return;
  }
  if (known == window.rend() || repeated) {
    if (repeated) {
      finish(*known, manner);
      window.erase(std::next(known).base());
    }
    window.push_back(std::move(request));
  } else {
    known->filled |= request.filled;
    known->low = std::min(known->low, request.low);
    known->high = std::max(known->high, request.high);
    known->pcs.push_back(request.pcs[0]);
  }
}

// Loads by different lanes at two places of the program, each executed once, become one load.
void WhatIf::join(Window& window, const Group& request) {
  const auto has = [&](const Group& group) {
    return std::find(group.pcs.begin(), group.pcs.end(), request.pcs[0]) != group.pcs.end();
  };
  const auto before = std::find_if(window.begin(), window.end(), has);
  if (before != window.end()) {
    finish(*before, Manner::joined);
    window.erase(before);
  }
  const auto other = std::find_if(window.rbegin(), window.rend(), [&](const Group& group) {
    return group.kind == Kind::load && request.kind == Kind::load && group.size == request.size &&
           group.region->space == request.region->space && !(group.mask & request.mask);
  });
  if (other == window.rend()) return window.push_back(request);
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    if (request.mask >> lane & 1) other->address[lane] = request.address[lane];
  other->mask |= request.mask;
  other->low = std::min(other->low, request.low);
  other->high = std::max(other->high, request.high);
  other->pcs.push_back(request.pcs[0]);
}

// The iterations of a program counter are its requests, one after the other, until a lane comes back that had left.
void WhatIf::unroll(Warp& warp, const Group& request) {
  Loop& loop = warp.loops.try_emplace(request.pcs[0], Loop{request, {}}).first->second;
  const bool another = !loop.iterations.empty() && request.mask & ~loop.iterations.back().mask;
  if (another || request.size != loop.first.size || loop.iterations.size() == kIterations) {
    end_loop(loop);
    loop.first = request;
  }
  loop.iterations.push_back({request.mask, {}});
  std::copy(std::begin(request.address), std::end(request.address), loop.iterations.back().address.begin());
}

void WhatIf::end_loop(Loop& loop) {
  constexpr std::pair<unsigned, Manner> kFactors[] = {
      {2, Manner::unrolled_2}, {4, Manner::unrolled_4}, {16, Manner::unrolled_16}};
  for (auto [factor, manner] : kFactors)
    unrolled(loop.iterations, factor, [&, manner = manner](const Iteration& iteration) {
      Group group = loop.first;
      group.mask = iteration.mask;
      std::copy(iteration.address.begin(), iteration.address.end(), group.address);
      finish(group, manner);
    });
  loop.iterations.clear();
}

// cp.async past the L1 takes a sector for each pair of a source's line and a target's sector (found on an H200).
void WhatIf::copy(const Group& load, const Group& store) {
  std::vector<std::pair<uint64_t, uint64_t>> pairs;
  unsigned lanes = 0;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if (!(load.mask & store.mask & 1u << lane)) continue;
    ++lanes;
    pairs.push_back({load.address[lane] / kLineBytes, store.address[lane] / kSectorBytes});
  }
  if (!lanes) return;
  std::sort(pairs.begin(), pairs.end());
  const auto distinct = std::unique(pairs.begin(), pairs.end()) - pairs.begin();
  Counts& counts = session_.what_if[{kernel_, load.pcs[0], Kind::load, Manner::copied, load.size}];
  counts.space = Space::global;
  counts.size = load.size;
  counts.requests += 1;
  counts.lanes += lanes;
  counts.sectors += static_cast<uint64_t>(distinct);
  counts.ideal_sectors += (lanes * load.size + kSectorBytes - 1) / kSectorBytes;
}

void WhatIf::finish(Group& group, Manner manner) {
  for (const uint64_t pc : group.pcs) session_.link(group.pcs[0], pc, manner);
  if (loads_guarded(manner) && group.kind == Kind::load) group.mask &= group.storing;
  if (group.mask) count_parts(group, 0, group.parts(), manner);
}

// Counts accesses [first, first + n) of the wide one as one request if all were made, else each half by itself.
void WhatIf::count_parts(const Group& group, unsigned first, unsigned n, Manner manner) {
  const unsigned wanted = ((1u << n) - 1) << first;
  if (!(group.filled & wanted)) return;
  if ((group.filled & wanted) != wanted) {
    count_parts(group, first, n / 2, manner);
    return count_parts(group, first + n / 2, n / 2, manner);
  }
  Event events[kWarpSize];
  Request request;
  const unsigned size = n * group.size;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if (!(group.mask >> lane & 1)) continue;
    Event& event = events[request.count];
    event = {};
    event.address = group.address[lane] + uint64_t{first} * group.size;
    event.region = group.region;
    event.size = static_cast<uint8_t>(size);
    event.kind = group.kind;
    request.events[request.count] = &event;
    request.lanes[request.count++] = lane;
  }
  count(session_.what_if[{kernel_, group.pcs[0], group.kind, manner, size}], request);
}

}  // namespace simt::trace
