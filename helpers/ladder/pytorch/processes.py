"""Calls a function in several processes that can join one group, as under torchrun, from a notebook or a test."""

import multiprocessing
import os
import pickle
import socket
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
_HERE = "127.0.0.1"
# Slow imports. Not the course's own modules: after an edit, the next call must import them again.
_SLOW = ["torch.distributed.fsdp", "torch.distributed.tensor.experimental"]
_SLOW += ["torch._dynamo", "torch.utils.cpp_extension"]


def call(work: Work, processes: int, arguments: Sequence[str] = (), seconds: float = SECONDS) -> Any:
    """Calls `work(arguments)` in each of the processes, which can join one group; returns the first process's result.

    `work` is a function of a module. With fewer GPUs than processes, kernels run in the simulator. Raises RuntimeError
    with the traceback of the first process that failed and the output of all; TimeoutError after `seconds`.
    """
    simulated = torch.cuda.device_count() < processes
    defaults = {"OMP_NUM_THREADS": "1", "KERNEL_XRAY_THREADS": "1"}
    environment = {**defaults, **os.environ, **({"KERNEL_LADDER_TARGET": "simulator"} if simulated else {})}
    # Processes forked from one that has only imported PyTorch start at once. (They could not use a GPU that the parent
    # has initialised, and on macOS forking is unsafe.)
    method = "forkserver" if simulated and sys.platform == "linux" else "spawn"
    multiprocessing.set_forkserver_preload(_SLOW)
    store = _store()
    group = {"MASTER_ADDR": _HERE, "MASTER_PORT": str(store.port), "WORLD_SIZE": str(processes)}
    group |= {"GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo"}
    # These two tell the processes, as torchrun does, that the store already exists.
    group |= {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "0"}
    with tempfile.TemporaryDirectory() as folder:
        begin = (work, arguments, environment | group, Path(folder))
        before = dict(os.environ)
        os.environ.update(environment)  # for variables that modules read when imported
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
                process.kill()  # does nothing if it has ended
        return pickle.loads((Path(folder) / "found").read_bytes())


def _store() -> dist.TCPStore:
    """A store that only processes of this machine can reach: TCPStore itself would listen on all of its networks."""
    listening = socket.create_server((_HERE, 0))
    port = listening.getsockname()[1]
    return dist.TCPStore(_HERE, port, is_master=True, wait_for_workers=False, master_listen_fd=listening.detach())


def _begin(rank: int, work: Work, arguments: Sequence[str], environment: dict, folder: Path) -> None:
    """In each process: sets torchrun's variables, sends its output to a file, does the work."""
    with open(folder / f"{rank}.log", "w") as printed:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            os.dup2(printed.fileno(), stream.fileno())
    os.environ.update(environment | {"RANK": str(rank), "LOCAL_RANK": str(rank)})
    found = work(arguments)
    if rank == 0:
        (folder / "found").write_bytes(pickle.dumps(found))
