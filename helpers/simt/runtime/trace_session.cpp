// trace_session.cpp: one X-ray, from begin to end: what memory there is, what was found, and how Python gets it.
#include <cstring>
#include <sstream>

#include "trace.h"

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

void Session::report(Finding finding) {
  for (const Finding& f : findings)
    if (f.kind == finding.kind && f.pc == finding.pc && f.kernel == finding.kernel) return;
  findings.push_back(std::move(finding));
}

void Regions::add(uint64_t start, uint64_t bytes, Space space, bool fresh, std::string name, uint64_t offset) {
  Region region;
  region.start = start, region.end = start + bytes, region.space = space, region.fresh = fresh;
  region.name = std::move(name);
  region.virtual_start = space == Space::shared ? offset : next_virtual_;
  if (space != Space::shared) next_virtual_ += (bytes + 512 + 511) / 512 * 512;
  if (fresh) region.written.assign(bytes, false);
  map_[start] = std::move(region);
  last_ = nullptr;
}

void Regions::remove(uint64_t start) { map_.erase(start), last_ = nullptr; }

Region* Regions::find(uint64_t address) {
  if (last_ && address >= last_->start && address < last_->end) return last_;
  auto it = map_.upper_bound(address);
  if (it == map_.begin()) return nullptr;
  Region& region = std::prev(it)->second;
  if (address >= region.end) return nullptr;
  last_ = &region;
  return last_;
}

std::string Regions::describe(uint64_t address) {
  auto above = map_.upper_bound(address);
  std::ostringstream text;
  uint64_t nearest = 1 << 16;
  std::string where = "at an address that belongs to no tensor and no allocation";
  if (above != map_.end() && above->second.start - address < nearest) {
    nearest = above->second.start - address;
    text << nearest << (nearest == 1 ? " byte" : " bytes") << " before the start of " << above->second.name;
    where = text.str();
  }
  if (above != map_.begin()) {
    const Region& below = std::prev(above)->second;
    if (address - below.end < nearest) {
      text.str("");
      if (address == below.end)
        text << "just past the end of " << below.name;
      else
        text << address - below.end << (address - below.end == 1 ? " byte" : " bytes") << " past the end of "
             << below.name;
      where = text.str();
    }
  }
  return where;
}

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + "\"";
}

const char* name(Kind kind) {
  return kind == Kind::load ? "load" : kind == Kind::store ? "store" : "atomic";
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
        << ",\"ideal_wavefronts\":" << c.ideal_wavefronts << ",\"lanes\":" << c.lanes;
    const Picture& picture = s.pictures[{kernel, pc}];
    out << ",\"size\":" << picture.size << ",\"picture\":[";
    for (size_t i = 0; i < picture.lanes.size(); ++i)
      out << (i ? "," : "") << "[" << picture.lanes[i].first << "," << picture.lanes[i].second << "]";
    out << "]}";
    comma = ",";
  }
  out << "],\"findings\":[";
  comma = "";
  for (const Finding& f : s.findings) {
    out << comma << "{\"kind\":" << quoted(f.kind) << ",\"kernel\":" << quoted(f.kernel)
        << ",\"message\":" << quoted(f.message) << ",\"pc\":" << f.pc << ",\"other_pc\":" << f.other_pc
        << ",\"block\":" << triple(f.block) << ",\"thread\":" << triple(f.thread) << "}";
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

// What Python calls (through ctypes).
extern "C" {
SIMT_API void simt_trace_begin(uint64_t seed, uint64_t max_blocks, uint64_t budget) {
  session = std::make_unique<Session>();
  session->seed = seed, session->max_blocks = max_blocks, session->budget = budget;
}
SIMT_API void simt_trace_region(uint64_t start, uint64_t bytes, int fresh, const char* name) {
  if (session) session->regions.add(start, bytes, Space::global, fresh != 0, name);
}
SIMT_API void simt_trace_forget(uint64_t start) {
  if (session) session->regions.remove(start);
}
SIMT_API const char* simt_trace_end() {  // only after simt_trace_begin
  simt::trace::last_report = simt::trace::as_json(*Session::active());
  session.reset();
  return simt::trace::last_report.c_str();
}
}
