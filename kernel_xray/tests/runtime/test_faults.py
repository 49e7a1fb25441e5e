"""runtime/faults.py: the bridge between simulator and PyTorch, which a process can load only once."""

import time
from concurrent.futures import ThreadPoolExecutor
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
    with ThreadPoolExecutor(max_workers=4) as pool:
        found = list(pool.map(lambda _: faults.install(), range(4)))
    assert len(loaded) == 1 and found == loaded * 4
