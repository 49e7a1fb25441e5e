"""The exceptions of a failed build."""


class BuildError(RuntimeError):
    """A kernel did not build. The message is the compiler's first error; `output` is all that it printed."""

    def __init__(self, message: str, output: str = ""):
        super().__init__(message)
        self.output = output

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the compiler's message, without the Python calls that led to the compiler."""
        return [f"{type(self).__name__}: {self}"]


class UnsupportedError(BuildError):
    """The source uses something that the simulator refuses."""
