"""The SIMT simulator: runs the text of a `.cu` file on the CPU.

`rewriter` makes it C++ for the host's compiler, `include/` holds the headers that stand in for CUDA's, `runtime/` the
library that runs grids of threads, `build` compiles that library once for all kernels.
"""
