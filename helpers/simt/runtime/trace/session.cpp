// session.cpp: begins and ends an X-ray, and hands what it found to Python as JSON.
#include "trace/session.h"

#include <cstring>
#include <memory>
#include <sstream>

namespace simt {
namespace trace {

namespace {
std::unique_ptr<Session> session;
std::string last_report;
}  // namespace

Session* Session::active() { return session.get(); }

uint64_t Session::random() {  // splitmix64
  uint64_t z = (seed += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

Finding* Session::place(const char* kind, const std::string& kernel, uint64_t pc, uint64_t other_pc,
                        uint64_t position) {
  Finding* found = nullptr;
  for (Finding& f : findings)
    if (f.pc == pc && f.other_pc == other_pc && f.kind == kind && f.kernel == kernel) found = &f;
  if (found && found->position <= position) return nullptr;
  if (!found) found = &findings.emplace_back();
  found->kind = kind;
  found->kernel = kernel;
  found->pc = pc;
  found->other_pc = other_pc;
  found->position = position;
  return found;
}

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else if (static_cast<unsigned char>(c) >= ' ')
      out += c;
  }
  return out + "\"";
}

const char* name(Kind kind) {
  switch (kind) {
    case Kind::load:
      return "load";
    case Kind::store:
      return "store";
    case Kind::tile_load:
      return "tile load";
    case Kind::tile_store:
      return "tile store";
    default:
      return "atomic";
  }
}
const char* name(Space space) {
  return space == Space::global ? "global" : space == Space::shared ? "shared" : "other";
}

std::string triple(uint3 v) {
  return "[" + std::to_string(v.x) + "," + std::to_string(v.y) + "," + std::to_string(v.z) + "]";
}

std::string as_json(Session& s) {
  std::ostringstream out;
  const char* comma = "";
  out << "{\"accesses\":[";
  for (const auto& [key, c] : s.counts) {
    const auto& [kernel, pc, kind] = key;
    out << comma << "{\"kernel\":" << quoted(kernel) << ",\"pc\":" << pc << ",\"kind\":\"" << name(kind)
        << "\",\"space\":\"" << name(c.space) << "\",\"requests\":" << c.requests << ",\"sectors\":" << c.sectors
        << ",\"ideal_sectors\":" << c.ideal_sectors << ",\"wavefronts\":" << c.wavefronts
        << ",\"ideal_wavefronts\":" << c.ideal_wavefronts << ",\"received\":" << c.received << ",\"lanes\":" << c.lanes
        << ",\"size\":" << c.size << ",\"picture\":[";
    for (size_t i = 0; i < c.picture.size(); ++i)
      out << (i ? "," : "") << "[" << c.picture[i].first << "," << c.picture[i].second << "]";
    out << "]}";
    comma = ",";
  }
  out << "],\"findings\":[";
  comma = "";
  for (const Finding& f : s.findings) {
    out << comma << "{\"kind\":" << quoted(f.kind) << ",\"kernel\":" << quoted(f.kernel)
        << ",\"message\":" << quoted(f.message) << ",\"pc\":" << f.pc << ",\"other_pc\":" << f.other_pc
        << ",\"position\":" << f.position << ",\"rank\":" << f.rank << ",\"block\":" << triple(f.block)
        << ",\"thread\":" << triple(f.thread) << ",\"file\":" << quoted(f.file) << ",\"line\":" << f.line << "}";
    comma = ",";
  }
  out << "],\"launches\":[";
  comma = "";
  for (const LaunchInfo& l : s.launches) {
    out << comma << "{\"kernel\":" << quoted(l.kernel) << ",\"file\":" << quoted(l.file) << ",\"line\":" << l.line
        << ",\"grid\":" << triple(l.grid) << ",\"block\":" << triple(l.block) << ",\"blocks\":" << l.blocks
        << ",\"traced_blocks\":" << l.traced_blocks << ",\"steps\":" << l.steps << ",\"lane_steps\":" << l.lane_steps
        << ",\"shared_static\":" << l.shared_static << ",\"shared_dynamic\":" << l.shared_dynamic << "}";
    comma = ",";
  }
  out << "]}";
  return out.str();
}

}  // namespace

}  // namespace trace
}  // namespace simt

using simt::trace::session;
using simt::trace::Session;
using simt::trace::Space;

// What Python calls (through ctypes), and the bridge to PyTorch's allocator.
extern "C" {
SIMT_API void simt_trace_begin(uint64_t seed, uint64_t max_blocks, uint64_t budget, bool (*ask)(uint64_t)) {
  session = std::make_unique<Session>();
  session->seed = seed;
  session->max_blocks = max_blocks;
  session->budget = budget;
  session->ask = ask;
}
// Memory that kernels may touch; it begins `into` bytes into its allocation.
SIMT_API void simt_trace_tensor(uint64_t start, uint64_t bytes, uint64_t into, const char* name) {
  if (session) session->regions.add(start, bytes, Space::global, 0, false, name, into);
}
// Memory that was just allocated and filled with a repeated 16-bit `poison`.
SIMT_API void simt_trace_fresh(uint64_t start, uint64_t bytes, uint16_t poison, const char* name) {
  if (session) session->regions.add(start, bytes, Space::global, poison, true, name, 0);
}
SIMT_API void simt_trace_forget(uint64_t start) {
  if (session) session->regions.remove(start);
}
SIMT_API int simt_trace_known(uint64_t address) {  // 0: unknown, 1: a tensor, 2: fresh memory
  simt::trace::Region* region = session ? session->regions.find(address) : nullptr;
  return region ? 1 + region->fresh : 0;
}
SIMT_API void simt_trace_forget_tensors() {  // except fresh ones
  if (session) session->regions.remove_ordinary();
}
SIMT_API const char* simt_trace_end() {  // only after simt_trace_begin
  simt::trace::last_report = simt::trace::as_json(*Session::active());
  session.reset();
  return simt::trace::last_report.c_str();
}
}
