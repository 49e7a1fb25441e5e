"""Starts the kernels of tested notebooks as forks of one process that has imported PyTorch.

Each lesson has a kernel of its own, and in each of them `import torch` takes seconds. A fork has the modules below
loaded and nothing of the course; all else is as when Jupyter starts a kernel: arguments, environment, folder, group.

`start` begins that process, for this one and those that it starts; `launch` asks it for a kernel.
"""

import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

# None of them asks for a GPU, as torch.utils.cpp_extension does: that would leave the forks without one.
PRELOADED = ["numpy", "torch", "torch._inductor.utils", "matplotlib.figure"]
PRELOADED += ["ipykernel.ipkernel", "ipykernel.zmqshell", "ipykernel.debugger"]
RUN = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"  # -m would import `helpers`
ADDRESS = "KERNEL_LADDER_FORKS"  # the socket's path


def start() -> Callable[[], object]:
    """Starts the process, unless one serves already; returns what ends it, and its kernels with it.

    On Linux alone: elsewhere the system's own libraries may not survive a fork.
    """
    if ADDRESS in os.environ or sys.platform != "linux":
        return lambda: None
    from kernel_xray.machine import toolchain  # not above: the kernels would have it too

    # PyTorch imports Triton where it is installed, which asks then whether its functions are interpreted.
    interpreted = {"TRITON_INTERPRET": "1"} if toolchain.of_programs() == "simulator" else {}
    folder = tempfile.mkdtemp(prefix="kernels_", dir="/tmp")  # a socket's path has 107 characters at most
    os.environ[ADDRESS] = os.path.join(folder, "socket")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.environ[ADDRESS])
        server.listen()
        process = subprocess.Popen(
            [sys.executable, "-c", RUN, __file__, str(server.fileno())],
            stdin=subprocess.PIPE,  # it ends with its input, so also if this process dies
            stdout=subprocess.DEVNULL,
            pass_fds=[server.fileno()],
            env={
                "MPLBACKEND": "module://matplotlib_inline.backend_inline",  # ipykernel sets it later
                "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # no warning of its debugger
                **interpreted,
                **os.environ,
            },
        )

    def end() -> None:
        process.communicate()
        shutil.rmtree(folder)
        del os.environ[ADDRESS]

    return end


class Forked:
    """The part of subprocess.Popen that jupyter_client uses, for a process that is not a child of this one."""

    stdin = stdout = stderr = returncode = None

    def __init__(self, pid: int):
        self.pid = pid

    def poll(self) -> int | None:
        if self.returncode is None:
            try:
                os.kill(self.pid, 0)
            except ProcessLookupError:
                self.returncode = 0  # the true one only its parent could say
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        end = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if end is not None and time.monotonic() > end:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            time.sleep(0.02)
        return status

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def launch(command: list[str], env: dict[str, str], cwd: str | None = None, **unused) -> Forked:
    """Starts `command`, [PYTHON, ..., "-m", MODULE, ARGUMENT, ...], as jupyter_client.launcher.launch_kernel does."""
    module, *arguments = command[command.index("-m") + 1 :]
    request = {"module": module, "arguments": arguments, "env": env, "cwd": os.fspath(cwd or os.getcwd())}
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(os.environ[ADDRESS])
        with client.makefile("rw") as stream:
            print(json.dumps(request), file=stream, flush=True)
            answer = stream.readline()
    if not answer:
        raise RuntimeError("the process that forks kernels has ended; what it printed last says why")
    return Forked(int(answer))


def serve(server: socket.socket) -> None:
    """Answers each request with the ID of its process, until this one's input ends."""
    for module in PRELOADED:
        importlib.import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that the system forgets a kernel that has ended
    while sys.stdin not in select.select([server, sys.stdin], [], [])[0]:
        with server.accept()[0] as client, client.makefile("rw") as stream:
            request = json.loads(stream.readline())
            if pid := os.fork():
                os.setpgid(pid, pid)  # before anybody asks for its group, which is what jupyter_client signals
                print(pid, file=stream, flush=True)
                continue
        server.close()
        become(**request)


def become(module: str, arguments: list[str], env: dict[str, str], cwd: str) -> None:
    """Runs the module as `python -m` does, in this process."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env, JPY_PARENT_PID=str(os.getppid()))  # with this parent the kernel ends
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[2])))
