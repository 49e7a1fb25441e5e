// ptx.cu: what the quick suite builds of inline PTX, as one source.
#include "ptx_memory.cu"
#include "ptx_units.cu"
#include "ptx_warp.cu"
