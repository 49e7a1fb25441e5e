"""Several processes of this machine that know each other, as torchrun starts them, called from a notebook or a test."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.multiprocessing import ProcessExitedException, ProcessRaisedException
from torch.multiprocessing.spawn import start_processes

Work = Callable[[Sequence[str]], Any]

SECONDS = 600
# What takes long to import. Not the course's own modules: who edits one of these wants to see what it does.
_SLOW = ["torch.distributed.fsdp", "torch.distributed.tensor.experimental"]


def call(work: Work, processes: int, arguments: Sequence[str] = (), seconds: float = SECONDS) -> Any:
    """`work(arguments)` in each of the processes, which can join one group; returns what it returns in the first one.

    `work` is a function of a module. With fewer GPUs than processes, kernels run in the simulator. Raises RuntimeError
    with the traceback of the process that failed first and with what all printed; TimeoutError after `seconds`.
    """
    simulated = torch.cuda.device_count() < processes
    defaults = {"OMP_NUM_THREADS": "1", "KERNEL_LADDER_THREADS": "1"}
    environment = {**defaults, **os.environ, **({"KERNEL_LADDER_TARGET": "simulator"} if simulated else {})}
    # Forked from a process that has imported PyTorch and done nothing else, they begin at once. (They could not use a
    # GPU that such a process has looked at, and on macOS a fork may end badly.)
    method = "forkserver" if simulated and sys.platform == "linux" else "spawn"
    multiprocessing.set_forkserver_preload(_SLOW)
    store = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    group = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(store.port), "WORLD_SIZE": str(processes)}
    # That the store is there already is what torchrun tells its processes with these two.
    group |= {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "0"}
    with tempfile.TemporaryDirectory() as folder:
        begin = (work, arguments, environment | group, Path(folder))
        before = dict(os.environ)
        os.environ.update(environment)  # for what is read when modules are imported
        try:
            started = start_processes(_begin, begin, processes, join=False, start_method=method)
        finally:
            os.environ.clear()
            os.environ.update(before)
        end = time.monotonic() + seconds
        try:
            while not started.join(timeout=max(0, end - time.monotonic()), grace_period=10):
                if time.monotonic() > end:
                    raise TimeoutError(f"{work.__module__}.{work.__name__} takes longer than {seconds} s")
        except (ProcessRaisedException, ProcessExitedException) as error:
            printed = "".join(file.read_text(errors="replace")[-2000:] for file in sorted(Path(folder).glob("*.log")))
            raise RuntimeError(f"{work.__module__}.{work.__name__} failed:{error}\n{printed}") from None
        finally:
            for process in started.processes:
                process.kill()  # nothing, if it has ended
        return pickle.loads((Path(folder) / "found").read_bytes())


def _begin(rank: int, work: Work, arguments: Sequence[str], environment: dict, folder: Path) -> None:
    """In each process: torchrun's variables, and what is printed into a file; then the work."""
    with open(folder / f"{rank}.log", "w") as printed:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            os.dup2(printed.fileno(), stream.fileno())
    os.environ.update(environment | {"RANK": str(rank), "LOCAL_RANK": str(rank)})
    found = work(arguments)
    if rank == 0:
        (folder / "found").write_bytes(pickle.dumps(found))
