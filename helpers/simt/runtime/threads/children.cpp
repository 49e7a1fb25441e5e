// children.cpp: keeps and runs the kernels that a kernel launches.
#include "threads/children.h"

#include <algorithm>

#include "../../include/simt/runtime_types.h"
#include "threads/block.h"
#include "trace/lane.h"

namespace simt {

void run_launch(const Site& site, const Config& config, const Closure& closure, unsigned depth);  // launch.cpp

namespace {

constexpr unsigned kMaxDepth = 24;

bool is_device_stream(cudaStream_t stream) {
  return stream == cudaStreamTailLaunch || stream == cudaStreamFireAndForget;
}

}  // namespace

std::string Children::add(const Site& site, const Config& config, const Closure& closure, uint64_t block) {
  const auto text = [](dim3 d) {
    return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")";
  };
  const auto invalid = [&](const std::string& why) {
    return "the kernel's launch of '" + std::string(site.kernel) + "' at " + site.file + ":" +
           std::to_string(site.line) + " fails: " + why + ". On a GPU only cudaGetLastError() in the kernel tells";
  };
  if (depth_ == kMaxDepth) return invalid("launches are nested deeper than 24 levels");
  Config checked = config;
  if (is_device_stream(config.stream)) checked.stream = nullptr;
  if (const int code = configuration_error(site, checked))
    return invalid("cudaError_t " + std::to_string(code) + ", grid " + text(config.grid) + ", block " +
                   text(config.block) + ", " + std::to_string(config.shared_bytes) + " bytes of shared memory");
  const std::lock_guard<std::mutex> lock(mutex_);
  (config.stream == cudaStreamTailLaunch ? tail_ : children_).push_back({block, {site, checked, closure}});
  return "";
}

void Children::run() {
  run(children_);
  run(tail_);
}

void Children::run(std::vector<Child>& children) {
  std::stable_sort(children.begin(), children.end(), [](const Child& a, const Child& b) { return a.block < b.block; });
  for (const Child& child : children)
    run_launch(child.launch.site(), child.launch.config(), child.launch.closure(), depth_ + 1);
}

void launch_from_kernel(const Site& site, const Config& config, const Closure& closure) {
  const Geometry& geometry = *current_thread->geometry;
  const uint3 b = geometry.block_index;
  const uint64_t block = (uint64_t{b.z} * geometry.grid_dim.y + b.y) * geometry.grid_dim.x + b.x;
  std::string why;
  {
    const trace::Silence silence;
    why = current_worker->job->children->add(site, config, closure, block);
  }
  if (!why.empty()) fault("launch", why);
}

}  // namespace simt
