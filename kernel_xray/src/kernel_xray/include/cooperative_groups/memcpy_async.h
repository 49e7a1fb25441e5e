// memcpy_async.h: cooperative_groups::memcpy_async and wait. The copy is done at once, shared among the group's
// threads; as on a GPU, a thread may read what others have copied only after wait().
#pragma once

#include "../cooperative_groups.h"

namespace cooperative_groups {

template <typename Group, typename T>
void memcpy_async(const Group& group, T* to, const T* from, size_t bytes) {
  auto* target = reinterpret_cast<char*>(to);
  const auto* source = reinterpret_cast<const char*>(from);
  const size_t threads = group.num_threads();
  for (size_t at = 4 * group.thread_rank(); at < bytes; at += 4 * threads) {
    if (bytes - at >= 4)
      __builtin_memcpy(target + at, source + at, 4);
    else  // bytes: for a copy of unknown size the compiler may leave out the hooks of the traced mode
      for (; at < bytes; ++at) target[at] = source[at];
  }
}

template <typename Group>
void wait(const Group& group) {
  group.sync();
}

}  // namespace cooperative_groups
