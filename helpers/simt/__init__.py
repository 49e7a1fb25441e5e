"""The SIMT simulator: runs the text of a `.cu` file on the CPU.

`rewriter` turns it into C++ for the host's compiler, `include/` holds the headers that replace CUDA's, `runtime/` holds
the library that runs grids of threads, and `libsimt` compiles that library once for all kernels.
"""
