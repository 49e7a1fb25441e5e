// children.cpp: keeps and runs the kernels that a kernel launches.
#include "threads/children.h"

#include <algorithm>

#include "api/handles.h"
#include "threads/block.h"
#include "trace/lane.h"

namespace simt {

namespace {

constexpr unsigned kMaxDepth = 24;

thread_local const volatile void* private_pointer = nullptr;  // to memory that a child cannot see

bool is_device_stream(cudaStream_t stream) {
  return stream == cudaStreamTailLaunch || stream == cudaStreamFireAndForget || stream == kStreamInKernel;
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
    if (const int code = child.launch.run(depth_ + 1)) set_last_error(code);
}

void check_kept_pointer(const volatile void* pointer) {
  const Worker* worker = current_worker;
  if (!worker || !worker->running) return;  // the host keeps the launch
  auto* address = const_cast<const char*>(static_cast<const volatile char*>(pointer));
  const bool shared = static_cast<size_t>(address - worker->shared) < kSharedBytes;
  if (shared || worker->stacks.contains(address)) private_pointer = pointer;
}

void launch_from_kernel(const Site& site, const Config& config, const Closure& closure) {
  const Geometry& geometry = *current_thread->geometry;
  const uint3 b = geometry.block_index;
  const uint64_t block = (uint64_t{b.z} * geometry.grid_dim.y + b.y) * geometry.grid_dim.x + b.x;
  std::string why;
  {
    const trace::Silence silence;
    private_pointer = nullptr;
    why = current_worker->job->children->add(site, config, closure, block);
    if (why.empty() && private_pointer)
      why = "the kernel's launch of '" + std::string(site.kernel) + "' at " + site.file + ":" +
            std::to_string(site.line) +
            " passes a pointer to a local variable or to shared memory, which another kernel cannot use";
  }
  if (!why.empty()) fault("launch", why);
}

}  // namespace simt
