"""`KernelFault`: what a kernel in the simulator raises."""

from kernel_xray.translate import origins


class KernelFault(RuntimeError):
    """A simulated kernel did something that is an error on a GPU, or never ended.

    The message names the kernel, the block and the thread; `kind` is a word such as "illegal-access", "assert",
    "deadlock", "time-limit", "stack-overflow".
    """

    def __init__(self, message: str, kind: str = "fault"):
        super().__init__(origins.restored(message))
        self.kind = kind
