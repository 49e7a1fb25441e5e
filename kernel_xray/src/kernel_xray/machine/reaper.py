"""Ends processes whose reason is gone. Runs in a process of its own, which outlives the one that it works for.

    main("watch", LIFELINE, MEMORY, SECONDS, TOKEN, FOLDER)         a build's processes
    main("run", LIFELINE, PROGRAM, NAME, *ARGUMENTS)                a program with all of its descendants

LIFELINE is the reading end of a pipe whose other end the process to work for holds. Once that end is closed, by intent
or because the process is dead, all processes in the reaper's care are killed. guard.py starts reapers; this file
imports nothing of the course and little else, since one starts for each build.

`watch` knows a build's processes by the variable KERNEL_XRAY_BUILD in their environment, which holds TOKEN, and, if
FOLDER is not empty, by their working folder. It also kills them if one uses more than MEMORY bytes or SECONDS of
processor time, and then prints why. `run` is a subreaper on Linux: a descendant whose parent has ended becomes
its child, also from another session, so none is lost.
"""

from __future__ import annotations

import os
import resource
import select
import sys
import time

TYPE_CHECKING = False  # the modules contextlib, signal and typing would double the time of the start
if TYPE_CHECKING:
    from collections.abc import Callable

VARIABLE = "KERNEL_XRAY_BUILD"
GB = 2**30
_LINUX = sys.platform.startswith("linux")
_POLL_SECONDS = 0.2
_IDLE = 10  # times the limit of processor time is the limit of time: a busy machine must not end a build
_PATIENCE_SECONDS = 10.0  # with a process that the system cannot kill, such as one that waits for a dead disk
_SIGKILL = 9
_PARENT_DEATH_SIGNAL, _CHILD_SUBREAPER = 1, 36  # of prctl(2)


def control(option: int, value: int) -> None:
    """prctl(2), where there is one."""
    if _LINUX:
        import ctypes  # `watch` does without

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def end_with_parent() -> None:
    """From now on this process is killed when its parent ends."""
    control(_PARENT_DEATH_SIGNAL, _SIGKILL)


# -- what runs on this machine -----------------------------------------------------------------------------------------


def marked(token: str, folder: str) -> dict[int, tuple[int, float]]:
    """The processes with `token` in their environment and, unless it is empty, `folder` as their working folder.

    For each, its resident bytes and the seconds of processor time that it has used.
    """
    found = {}
    if not _LINUX:  # ps cannot show folders; processes of builds that run at the same time count as one build's
        for line in os.popen("ps -Awwx -E -o pid=,rss=,time=,command=").read().splitlines():
            if f"{VARIABLE}={token}" in line:
                pid, kilobytes, minutes, _ = line.split(None, 3)
                seconds = sum(60**i * float(part) for i, part in enumerate(reversed(minutes.split(":"))))
                found[int(pid)] = 1024 * int(kilobytes), seconds
        return found
    wanted = f"{VARIABLE}={token}".encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if wanted not in file.read().split(b"\0"):
                    continue
            if not folder or os.readlink(f"/proc/{pid}/cwd") == folder:
                fields = _status(pid)
                ticks = int(fields[11]) + int(fields[12])
                found[int(pid)] = int(fields[21]) * resource.getpagesize(), ticks / os.sysconf("SC_CLK_TCK")
        except OSError:  # it has ended, or is another user's
            continue
    return found


def _status(pid: str) -> list[bytes]:
    """The fields of /proc/PID/stat from the third on: state, parent, ...; the name before them may hold anything."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()


def descendants(root: int) -> list[int]:
    """The processes below `root` that have not ended."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    found, waiting = [], [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _parents() -> list[tuple[int, int]]:
    """Process and parent, of all processes that have not ended."""
    if not _LINUX:
        rows = (line.split() for line in os.popen("ps -Ao pid=,ppid=,stat=").read().splitlines())
        return [(int(pid), int(parent)) for pid, parent, state in rows if "Z" not in state]
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, parent, *_ = _status(pid)
        except OSError:  # it has ended
            continue
        if state not in (b"Z", b"X"):
            found.append((int(pid), int(parent)))
    return found


def _name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip()
    except OSError:
        return "the compiler"


# -- the end -----------------------------------------------------------------------------------------------------------


def kill(find: Callable[[], list[int]]) -> None:
    """Kills the processes that `find` names until it names none twice in a row: one may be starting another."""
    patience, quiet = time.monotonic() + _PATIENCE_SECONDS, 0
    while quiet < 2 and time.monotonic() < patience:
        found = find()
        for pid in found:
            _kill(pid)
        quiet = 0 if found else quiet + 1
        time.sleep(0.01)


def _kill(pid: int) -> None:
    try:  # noqa: SIM105 - without contextlib
        os.kill(pid, _SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def watch(lifeline: int, memory: float, seconds: float, token: str, folder: str) -> str:
    """Watches a build until it is over. Returns the limit that it exceeded in words, or "".

    A line on the lifeline means that the build has ended by itself.
    """
    parent, start, interval = os.getppid(), time.monotonic(), _POLL_SECONDS
    poll, reason = select.poll(), ""
    poll.register(lifeline, select.POLLIN | select.POLLHUP)
    while not poll.poll(1000 * interval) and os.getppid() == parent and not reason:
        began = time.monotonic()
        used = marked(token, folder)
        interval = max(_POLL_SECONDS, 20 * (time.monotonic() - began))  # at most 5% of a core
        for pid, (size, busy) in used.items():
            if size > memory:
                reason = f"{_name(pid)} used {size / GB:.3g} GB of memory, and the limit is {memory / GB:g} GB"
            elif busy > seconds:
                reason = f"{_name(pid)} used {busy:.0f} s of processor time, and the limit is {seconds:g} s"
        if began - start > _IDLE * seconds:
            reason = reason or f"it took {began - start:.0f} s, {_IDLE} times the limit of processor time"
        if reason:
            print(reason, flush=True)
    if reason or os.getppid() != parent or not os.read(lifeline, 1):
        kill(lambda: list(marked(token, folder)))
    return reason


def follow(child: int, lifeline: int, woken: int) -> int:
    """Waits until `child` or the lifeline ends, kills all descendants, and returns the child's exit status.

    woken: a file that can be read after SIGCHLD
    """
    parent, poll, status = os.getppid(), select.poll(), None
    for file in (lifeline, woken):
        poll.register(file, select.POLLIN | select.POLLHUP)

    def bury() -> bool:
        """Whether children are left, once those that have ended are waited for."""
        nonlocal status
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                status = ended[1] if ended[0] == child else status
        except ChildProcessError:
            return False
        return True

    def left() -> list[int]:
        return descendants(os.getpid()) if bury() else []

    while status is None:
        files = [file for file, _ in poll.poll(1000)]
        bury()
        if lifeline in files or os.getppid() != parent:
            break
        if woken in files:
            os.read(woken, 512)
    if bury():
        kill(left)
        end = time.monotonic() + _PATIENCE_SECONDS
        while bury() and time.monotonic() < end:  # of a process that is dead, threads may still be ending
            time.sleep(0.005)
    return _SIGKILL if status is None else status


def supervise(start: Callable[[], object], lifeline: int) -> None:
    """Makes this process a reaper, whose child calls `start`. Ends as the child does, and never returns."""
    import signal

    ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in ending:  # for the reaper, the lifeline decides
        signal.signal(number, signal.SIG_IGN)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    control(_CHILD_SUBREAPER, 1)
    child = os.fork()
    if not child:
        try:
            end_with_parent()
            signal.set_wakeup_fd(-1)
            for number in (*ending, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            for file in (lifeline, woken, wake):
                os.close(file)
            os.setsid()  # its own group: what it sends to its group does not reach the reaper
            start()
            os._exit(0)
        finally:
            os._exit(1)
    status = follow(child, lifeline, woken)
    if os.WIFSIGNALED(status):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        if os.WTERMSIG(status) != signal.SIGKILL:
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status))


def _execute(program: str, arguments: list[str]) -> None:
    import signal

    if "KERNEL_XRAY_PARENT" in os.environ:  # see simt/program/start.cpp
        os.environ["KERNEL_XRAY_PARENT"] = str(os.getppid())
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and an ignored signal stays so
    os.execv(program, arguments)


def main(mode: str, lifeline: str, *arguments: str) -> None:
    if mode == "watch":
        memory, seconds, token, folder = arguments
        watch(int(lifeline), float(memory), float(seconds), token, folder)
    else:
        supervise(lambda: _execute(arguments[0], list(arguments[1:])), int(lifeline))
