// asynchronous.cu: what the quick suite traces of Hopper's units and early launches, as one source.
#include "early_launch.cu"
#include "ptx_pipeline.cu"
