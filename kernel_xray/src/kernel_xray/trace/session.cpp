// session.cpp: begins and ends an X-ray, and hands what it found to Python as JSON.
#include "trace/session.h"

#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>

#include "trace/heap.h"

namespace simt::trace {

namespace {
std::unique_ptr<Session> session;
std::string last_report;

double thread_seconds() {  // of processor time
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}
}  // namespace

Session* Session::active() { return session.get(); }

void forget_kernel_before() {
  if (session) session->before = nullptr;
}

int told_sms(int own) {
  if (!session) return own;
  const int sms = session->sms ? session->sms : own;
  session->sms_told = static_cast<uint64_t>(sms);
  return sms;
}

uint64_t Session::random() {  // splitmix64
  uint64_t z = (seed += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

void Session::launch_begins() { began_ = thread_seconds(); }
void Session::launch_ends() {
  Heap::instance().launch_ends();
  spent_ += thread_seconds() - began_;
  if (told_) std::fprintf(stderr, "\r\033[K");  // erases the line
  told_ = false;
}
bool Session::has_time() const { return spent_ + thread_seconds() - began_ < seconds; }

void Session::tell(const std::string& kernel, uint64_t block, uint64_t steps) {
  if (!isatty(STDERR_FILENO)) return;
  const auto number = static_cast<unsigned long long>(block),
             millions = static_cast<unsigned long long>(steps / 1000000);
  std::fprintf(stderr, "\rX-raying %s: block %llu, %llu million steps ", kernel.c_str(), number, millions);
  told_ = true;
}

Finding* Session::place(const char* kind, const std::string& kernel, uint64_t pc, uint64_t other_pc, uint64_t position,
                        bool remark) {
  Finding* found = nullptr;
  for (Finding& f : findings)
    if (f.pc == pc && f.other_pc == other_pc && f.kind == kind && f.kernel == kernel && f.remark == remark) found = &f;
  if (found && found->position <= position) return nullptr;
  if (!found) found = &findings.emplace_back();
  found->kind = kind;
  found->remark = remark;
  found->kernel = kernel;
  found->pc = pc;
  found->other_pc = other_pc;
  found->position = position;
  return found;
}

namespace {

struct Json {
  std::string text;
};

std::string json(const std::string& text) {
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
std::string json(const Json& ready) { return ready.text; }
std::string json(uint64_t number) { return std::to_string(number); }
std::string json(uint3 v) { return "[" + json(v.x) + "," + json(v.y) + "," + json(v.z) + "]"; }

template <typename Value, typename... Rest>
std::string fields(const char* name, const Value& value, const Rest&... rest) {
  const std::string field = json(name) + ":" + json(value);
  if constexpr (sizeof...(rest) > 0) return field + "," + fields(rest...);
  return field;
}
template <typename... Fields>
std::string object(const Fields&... names_and_values) {
  return "{" + fields(names_and_values...) + "}";
}
template <typename List, typename Text>
Json list(const List& items, Text text) {
  std::string all;
  for (const auto& item : items) all += (all.empty() ? "" : ",") + text(item);
  return {"[" + all + "]"};
}

constexpr const char* kKinds[] = {"load", "store", "atomic", "step", "tile load", "tile store", "fence"};
constexpr const char* kSpaces[] = {"global", "shared", "other"};

uint64_t rounded(double value) { return static_cast<uint64_t>(value + 0.5); }

std::string as_json(const Counts& c, const std::string& kernel, uint64_t pc, Kind kind) {
  const Json picture =
      list(c.picture, [](const auto& at) { return "[" + json(at.first) + "," + json(at.second) + "]"; });
  return object("kernel", kernel, "pc", pc, "kind", kKinds[int(kind)], "space", kSpaces[int(c.space)], "requests",
                c.requests, "sectors", c.sectors, "ideal_sectors", c.ideal_sectors, "wavefronts", c.wavefronts,
                "ideal_wavefronts", c.ideal_wavefronts, "received", c.received, "passes", c.passes, "lanes", c.lanes,
                "size", c.size, "all_blocks", rounded(c.estimate.total), "error", rounded(c.estimate.error), "picture",
                picture);
}
constexpr const char* kManner[kManners] = {"in 4",         "in 8",          "in 16",         "once",
                                           "once in 4",    "once in 8",     "once in 16",    "guarded",
                                           "guarded in 4", "guarded in 8",  "guarded in 16", "joined",
                                           "copied",       "in steps of 2", "in steps of 4", "in steps of 16"};

std::string as_json(const Finding& f) {
  return object("kind", f.kind, "remark", uint64_t{f.remark}, "kernel", f.kernel, "message", f.message, "pc", f.pc,
                "other_pc", f.other_pc, "position", f.position, "rank", f.rank, "block", f.block, "thread", f.thread,
                "file", f.file, "line", f.line);
}
Json numbers(const uint64_t (&of)[kTensorTypes]) {
  return list(of, [](uint64_t number) { return json(number); });
}
std::string as_json(const LaunchInfo& l) {
  return object("kernel", l.kernel, "file", l.file, "line", l.line, "grid", l.grid, "block", l.block, "blocks",
                l.blocks, "traced_blocks", l.traced_blocks, "cut_blocks", l.cut_blocks, "pcs",
                list(l.pcs, [](uint64_t pc) { return json(pc); }), "entry", l.entry, "steps", l.steps, "lane_steps",
                l.lane_steps, "shared_static", l.shared_static, "shared_dynamic", l.shared_dynamic, "loading",
                l.loading, "storing", l.storing, "most_loads", l.most_loads, "most_stores", l.most_stores,
                "sectors_read", l.sectors_read, "sectors_written", l.sectors_written, "sectors_readable",
                l.sectors_readable, "products", numbers(l.products), "least_products", numbers(l.least_products),
                "sms_told", l.sms_told, "special", l.special, "most_updates", l.most_updates, "least_read",
                l.least_read, "even", uint64_t{l.even}, "cost", rounded(l.cost), "all_cost", rounded(l.all_cost));
}
constexpr const char* kWhat[] = {"request", "step", "block barrier", "warp operation", "tile"};

std::string hexadecimal(const Frame& f) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  if (!f.whole) return out;
  for (const Value& value : f.values)
    for (unsigned i = 0; i < f.size; ++i) {
      const auto byte = static_cast<unsigned>(value.words[i / 8] >> i % 8 * 8 & 0xff);
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  return out;
}

std::string as_json(const Frame& f) {
  const std::string where = fields("what", kWhat[int(f.what)], "launch", f.launch, "block", f.block, "warp",
                                   uint64_t{f.warp}, "mask", uint64_t{f.mask}, "pc", f.pc);
  if (f.what != Frame::What::request && f.what != Frame::What::tile) return "{" + where + "}";
  const Json addresses = list(f.addresses, [](uint64_t address) { return json(address); });
  return "{" + where + "," +
         fields("kind", kKinds[int(f.kind)], "space", kSpaces[int(f.space)], "size", uint64_t{f.size}, "region",
                f.region, "start", f.start, "sectors", f.sectors, "addresses", addresses, "values", hexadecimal(f)) +
         "}";
}

std::string as_json(const Session& s) {
  return object(
      "accesses",
      list(s.counts,
           [](const auto& entry) {
             const auto& [kernel, pc, kind] = entry.first;
             return as_json(entry.second, kernel, pc, kind);
           }),
      "what_if",
      list(s.what_if,
           [](const auto& entry) {
             const auto& [kernel, pc, kind, manner, size] = entry.first;
             return object("manner", kManner[int(manner)], "counts", Json{as_json(entry.second, kernel, pc, kind)});
           }),
      "links",
      list(s.links,
           [](const auto& link) {
             const auto& [pc, other, manner] = link;
             return object("manner", kManner[int(manner)], "pc", pc, "other", other);
           }),
      "frames", list(s.film.frames, [](const Frame& f) { return as_json(f); }), "left_out", s.film.left_out, "findings",
      list(s.findings, [](const Finding& f) { return as_json(f); }), "launches",
      list(s.launches, [](const LaunchInfo& l) { return as_json(l); }), "writers",
      list(s.writers, [](const auto& entry) {
        const auto& [place, by] = entry;
        return object("name", place.first, "offset", place.second, "size", by.size, "kernel", by.kernel, "block",
                      by.block, "thread", by.thread);
      }));
}

}  // namespace
}  // namespace simt::trace

using simt::trace::session;
using simt::trace::Session;
using simt::trace::Space;

// What Python calls (through ctypes), and the bridge to PyTorch's allocator.
extern "C" {
SIMT_API void simt_trace_begin(uint64_t seed, uint64_t max_blocks, uint64_t budget, double seconds,
                               bool (*ask)(uint64_t)) {
  session = std::make_unique<Session>();
  session->seed = seed;
  session->max_blocks = max_blocks;
  session->budget = budget;
  session->seconds = seconds;
  session->ask = ask;
}
SIMT_API void simt_trace_ask_what_if() { session->asks_what_if = true; }  // only after simt_trace_begin
SIMT_API void simt_trace_sms(int sms) { session->sms = sms; }             // likewise
SIMT_API void simt_trace_only_sample() { session->only_sample = true; }   // likewise
// Films these blocks of each launch, up to so many frames; only after simt_trace_begin.
SIMT_API void simt_trace_film(const uint64_t* blocks, uint64_t count, uint64_t frames) {
  session->film.ask(blocks, count, frames);
}
SIMT_API void simt_trace_ask_who_wrote() { session->asks_who_wrote = true; }  // likewise
// Memory that kernels may touch; it begins `into` bytes into its allocation.
SIMT_API void simt_trace_tensor(uint64_t start, uint64_t bytes, uint64_t into, const char* name) {
  if (session) session->regions.add(start, bytes, Space::global, 0, false, name, into);
}
// Memory that was just allocated and filled with a repeated 64-bit `poison`.
SIMT_API void simt_trace_fresh(uint64_t start, uint64_t bytes, uint64_t poison, const char* name) {
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
SIMT_API const char* simt_trace_so_far() {  // only after simt_trace_begin
  simt::trace::last_report = simt::trace::as_json(*Session::active());
  return simt::trace::last_report.c_str();
}
SIMT_API const char* simt_trace_end() {  // the same, and ends the session
  const char* report = simt_trace_so_far();
  session.reset();
  return report;
}
}
