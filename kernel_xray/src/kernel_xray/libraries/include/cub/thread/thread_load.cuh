// thread_load.cuh: loads with cache hints, which do nothing here.
#pragma once

#include "../util_type.cuh"

namespace cub {

enum CacheLoadModifier { LOAD_DEFAULT, LOAD_CA, LOAD_CG, LOAD_CS, LOAD_CV, LOAD_LDG, LOAD_VOLATILE };

template <CacheLoadModifier, typename Iterator>
auto ThreadLoad(Iterator from) {
  return *from;
}

}  // namespace cub
