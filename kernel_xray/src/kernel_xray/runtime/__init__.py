"""The simulator's run-time library: built once for all kernels, and how Python talks to it.

`threads/` runs grids of fibres, `api/` is the CUDA runtime, `program/` what a program adds, `bridge/` the connection to
PyTorch. `libsimt` compiles the library; `faults`, `streams` and `far` reach it through the bridge.
"""
