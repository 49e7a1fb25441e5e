"""What kernels print, kept up to a limit while it comes."""

import os
import select
import threading

KEPT_BYTES = 64_000  # from the beginning; the rest is only counted
_STEP = 1 << 16


class Printed:
    """A pipe, `writing`, that takes everything and never fills: a thread reads it between `begin` and `end`."""

    def __init__(self) -> None:
        self._reading, self.writing = os.pipe()
        os.set_blocking(self._reading, False)
        self._poll = select.poll()
        self._poll.register(self._reading, select.POLLIN)
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        self.kept, self._bytes, self._lines = bytearray(), 0, 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Reads what is left in the pipe, and no more."""
        self._over.set()
        if self._thread:
            self._thread.join()

    def close(self) -> None:
        for file in (self._reading, self.writing):
            os.close(file)

    def text(self, lines: int) -> str:
        """The first lines, and how much more there was."""
        text = self.kept.decode(errors="replace")
        shown = text.splitlines()[:lines]
        more, dropped = self._lines - len(shown), self._bytes - len(self.kept)
        if more > 0:
            shown.append(f"... and {more:,} more line{'s' if more > 1 else ''}")
        elif dropped:
            shown.append(f"... and {dropped:,} more bytes")
        return "\n".join(shown)

    def _read(self) -> None:
        left = 16 * _STEP  # after the end: a pipe's capacity, in case something still writes
        while left > 0:
            if not self._poll.poll(20):
                if self._over.is_set():
                    return
                continue
            try:
                chunk = os.read(self._reading, _STEP)
            except BlockingIOError:
                continue
            self._bytes += len(chunk)
            self._lines += chunk.count(b"\n")
            self.kept += chunk[: KEPT_BYTES - len(self.kept)]
            left -= len(chunk) if self._over.is_set() else 0
