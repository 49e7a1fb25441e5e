// features.cu: features of the language that the quick suite builds, as one source.
#include "fp8.cu"
#include "launch.cu"
#include "memory.cu"
#include "ranges.cu"
#include "shared.cu"
