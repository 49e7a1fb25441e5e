"""From sources to a loaded extension, `loader.load` and `loader.load_inline`, or to a process, `programs.program`."""

# Before any part imports PyTorch's builder: it drops a remark that the builder logs when it is imported.
from kernel_xray.machine import toolchain  # noqa: F401
