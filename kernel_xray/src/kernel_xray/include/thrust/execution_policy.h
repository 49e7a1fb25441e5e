// execution_policy.h: Thrust's own, and its policies for CUDA, thrust::cuda::par and par_nosync. Streams and allocators
// given to them have no effect: an algorithm is done when it returns, and uses the host's memory meanwhile.
#pragma once

#include_next <thrust/execution_policy.h>

#include "../simt/core.h"

THRUST_NAMESPACE_BEGIN
namespace cuda {

struct simt_policy : thrust::system::cpp::detail::execution_policy<simt_policy> {
  simt_policy on(cudaStream_t) const { return *this; }
  template <typename Allocator>
  simt_policy operator()(Allocator&&) const {
    return *this;
  }
};
inline constexpr simt_policy par{}, par_nosync{};

}  // namespace cuda
namespace system {
namespace cuda {
using thrust::cuda::par;
using thrust::cuda::par_nosync;
}  // namespace cuda
}  // namespace system
THRUST_NAMESPACE_END
