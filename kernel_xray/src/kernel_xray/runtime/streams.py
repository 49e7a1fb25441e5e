"""Do launches go to PyTorch's current stream? In the simulator, where all work is done when a call returns."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kernel_xray.runtime import faults
from kernel_xray.translate import origins


@dataclass
class Watched:
    """What `side_stream` gives, known after it."""

    stray: list[str] = field(default_factory=list)  # the places of launches in other streams: "kernel, at FILE:LINE"
    waits: list[str] = field(default_factory=list)  # the functions in which the host waited, such as a stream's

    @property
    def problem(self) -> str:
        """What is wrong, and how to fix it; "" if nothing is."""
        if not self.stray:
            return ""
        return (
            f"{self.stray[0]}, is not launched in PyTorch's current stream, so it does not wait for the work that "
            "makes its inputs; pass that stream: <<<blocks, threads, 0, stream>>>"
        )


@contextmanager
def side_stream() -> Iterator[Watched]:
    """Inside the context, this thread's current stream in the simulator is one of PyTorch's pool, not the default one.

    Launches after a call that waits for a stream, an event or the device are not looked at: they may be in order.
    """
    module, watched = faults.install(), Watched()
    module.watch_streams()
    try:
        yield watched
    finally:
        watched.stray = origins.restored(module.stray_launches()).splitlines()
        watched.waits = module.host_waits().splitlines()
