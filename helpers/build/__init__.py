"""From sources to a loaded extension: `loader.load` and `loader.load_inline`, and their parts."""

# Before any part imports PyTorch's builder: it drops a remark that the builder logs when it is imported.
from helpers.machine import toolchain  # noqa: F401
