"""runtime/faults.py: the bridge between simulator and PyTorch, which a process can load only once."""

import threading
import time
from functools import lru_cache
from types import ModuleType

from kernel_xray.runtime import faults


def test_threads_that_install_at_once_load_the_bridge_once(monkeypatch):
    loaded = []

    @lru_cache(maxsize=1)
    def load():
        loaded.append(ModuleType("bridge"))
        time.sleep(0.05)  # as a build takes: the other thread arrives meanwhile
        return loaded[0]

    monkeypatch.setattr(faults, "_installed", load)
    found: list[ModuleType] = []
    threads = [threading.Thread(target=lambda: found.append(faults.install())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loaded) == 1 and found == loaded * 4
