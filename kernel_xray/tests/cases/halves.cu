// halves.cu: those of these features that need the flags for 16-bit types.
#include "atomics.cu"
#include "warp.cu"
