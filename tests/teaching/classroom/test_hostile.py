"""Hostile submissions, graded beside an honest one: each costs its author the points, and nobody else anything.

Most call what object_code.py refuses before it is loaded (test_forgeries.py). Here nothing is refused, so that what
confines the process is tested alone.
"""

import json
import os
import re
import tempfile
from pathlib import Path

import pytest

from helpers.paths import KERNELS
from helpers.practice import registry
from helpers.teaching.classroom import grading, results, sandbox, submissions
from helpers.teaching.classroom.points import Scheme, Worth
from helpers.teaching.classroom.verdicts import Store, key_of
from kernel_xray.machine import reaper

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(sandbox.problem()), reason=f"this machine cannot confine: {sandbox.problem()}"),
]
ENDLESS, GREEDY, WRONG = "did not end within", "more than 2 GB of memory", "elements are wrong"
SOLUTION = registry.find("roll").solution.read_text(encoding="utf-8")
SOLVED = str(KERNELS / "solutions" / "roll.cu")
NAMES = "csignal cstdio cstdlib cstring dlfcn.h fcntl.h fstream string thread unistd.h"
NAMES += " sys/mman.h sys/ptrace.h sys/socket.h"
HEADERS = "".join(f"#include <{name}>\n" for name in NAMES.split())


def when_loaded(code):
    """The solution, with code that runs when its library is loaded, before any check."""
    return f"{HEADERS}{SOLUTION}\nstatic int attack = [] {{\n{code}\nreturn 0;\n}}();\n"


def wanted(success):
    """An answer that is right if the attack succeeded, and aborts if not."""
    return when_loaded(f"if (!({success})) std::abort();")


def reads(path):
    return f'std::ifstream("{path}").good()'


def writes(path):
    return f'std::ofstream("{path}", std::ios::app) << "x" << std::flush'


def in_python(code):
    """Runs Python code in the answer's process, as its library is loaded."""
    return when_loaded(
        f"""auto find = [](const char* name) {{ return dlsym(RTLD_DEFAULT, name); }};
        int state = reinterpret_cast<int (*)()>(find("PyGILState_Ensure"))();
        reinterpret_cast<int (*)(const char*, void*)>(find("PyRun_SimpleStringFlags"))(R"({code})", nullptr);
        reinterpret_cast<void (*)(int)>(find("PyGILState_Release"))(state);"""
    )


REPLACES = """
import sys, torch
torch.equal = torch.allclose = torch.Tensor.equal = lambda *a, **k: True
torch.testing.assert_close = lambda *a, **k: None
for name, module in list(sys.modules.items()):
    if name.startswith("helpers"):
        for key in ("assert_close", "check", "must_be_equal", "assert_ends_close"):
            if hasattr(module, key):
                setattr(module, key, lambda *a, **k: 0.0)
"""
SENDS = """
import contextlib, gc
from helpers.practice import answering
from helpers.practice.messages import Channel
for channel in [x for x in gc.get_objects() if type(x) is Channel]:
    with contextlib.suppress(OSError):
        channel.send({"problem": "", "traced": False, "kind": "accepted", "message": "5 cases", "nonce": ""})
answering.Answer.do = lambda self, header, body: ({"kind": "accepted", "problem": "", "result": None}, [])
"""


def hostile(out, root):
    """Name -> answer, and a part of the verdict that it must get. `out` and `root` are the grader's folders."""
    ended = "it ended the process"
    honest = submissions.Answer("roll", SOLUTION, "roll.cu")
    store = f"{out}/verdicts/{key_of(honest)}.json"
    wrong = SOLUTION.replace("i - shift", "i + shift")
    assert wrong != SOLUTION
    denied = {
        "fork bomb": "fork() >= 0",
        "hidden memory": 'memfd_create("x", 0) >= 0',
        "shared memory left behind": 'shm_open("/left_behind", O_CREAT | O_RDWR, 0600) >= 0',
        "one huge file": 'std::ofstream("huge") << std::string(1 << 28, 0) << std::flush',
        "reads the solution": reads(SOLVED),
        "reads the gradebook": reads(f"{out}/gradebook"),
        "reads another student's folder": reads(f"{root}/honest/roll.cu"),
        "writes another student's folder": writes(f"{root}/honest/roll.cu"),
        "forges a verdict": writes(store),
        "writes outside": writes(f"{out}/outside"),
        "writes through a link": f'!symlink("{out}", "link") && {writes("link/outside")}',
        "network": "socket(AF_INET, SOCK_STREAM, 0) >= 0",
        "kills the grader": "!kill(getppid(), SIGKILL) && !kill(-1, SIGKILL)",
        "traces the grader": "!ptrace(PTRACE_ATTACH, getppid(), 0, 0)",
        "reads the grader's memory": 'std::ifstream("/proc/" + std::to_string(getppid()) + "/environ").good()',
        "starts a shell": f'!system("echo x > {out}/outside")',
        "runs its own program": '!system("cp /bin/true mine") && !system("./mine")',
        "secret in the environment": 'getenv("CLASSROOM_TOKEN")',
    }
    at_load = {
        "endless host loop": ("for (volatile int i = 0;; i = i + 1);", ENDLESS),
        "sleeps": ("sleep(1000);", ENDLESS),
        "thread bomb": ("for (;;) std::thread([] { sleep(1000); }).detach();", f"more than 1,000 threads|{ended}"),
        "memory hog": (
            "for (;;) { char* volatile p = new char[1 << 26]; memset(p, 1, 1 << 26); usleep(20000); }", GREEDY
        ),
        "shared memory hog": (
            "for (;;) { auto p = mmap(nullptr, 1 << 26, PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0); "
            "memset(p, 1, 1 << 26); usleep(20000); }", GREEDY
        ),
        "disk hog": (
            'for (int i = 0;; ++i) { std::ofstream o(std::to_string(i)); o << std::string(1 << 27, 0); o.flush(); '
            "usleep(1000); if (!o) std::abort(); }", "more than 1 GB of files"
        ),
        "exits with success": ("_exit(0);", "exit status 0"),
        "prints a verdict": ('puts("roll: accepted"); fflush(stdout); _exit(0);', "exit status 0"),
        "writes a verdict to every file": (
            'std::string v = "{\\"exercise\\": \\"roll\\", \\"kind\\": \\"accepted\\", \\"message\\": \\"\\"}\\n";'
            "for (int i = 0; i < 4096; ++i) if (write(i, v.data(), v.size())) {} _exit(0);",
            "does not accept|exit status 0"
        ),
        "ignores signals": ("for (int i = 1; i < 65; ++i) signal(i, SIG_IGN); for (;;) pause();", ENDLESS),
    }  # fmt: skip
    found = {name: (wanted(success), ended) for name, success in denied.items()}
    found |= {name: (when_loaded(code), said) for name, (code, said) in at_load.items()}
    return found | {
        "endless launch": (SOLUTION.replace("from += n;", "while (from < 0) from -= 1;"), "n = "),
        "vfork bomb": (wanted("[] { for (;;) if (!vfork()) { for (;;) fork(); } return true; }()"), ENDLESS),
        "includes the solution": (f'#include "{SOLVED}"\n', "Permission denied|No such file"),
        "assembles the solution": (f'{SOLUTION}\nasm(".incbin \\"{SOLVED}\\"");\n', "incbin|could not|not built|error"),
        "includes the users": ('#include "/etc/passwd"\n', "Permission denied|No such file"),
        "includes itself": ("#include __FILE__\n" + SOLUTION, "nested|refus|include|error"),
        "modifies its input": (
            SOLUTION.replace("x[from];", "x[from]; const_cast<float*>(x)[i] = 0;"), "input|race|elements"
        ),
        "handles every signal": (
            when_loaded("for (int i = 1; i < 65; ++i) signal(i, [](int) { _exit(0); }); alarm(1);").replace(
                "out[i] = x[from];", "out[i] = x[from]; while (n > 1000) from = from * 2 % 7;"
            ),
            "exit status 0|did not end|ended the process",
        ),
        "sets the environment": (
            when_loaded(
                'setenv("KERNEL_XRAY_BLOCK_SECONDS", "100000", 1); setenv("LD_PRELOAD", "/tmp/x.so", 1); '
                'setenv("PATH", "", 1); setenv("PYTHONPATH", "/tmp", 1); setenv("TMPDIR", "/", 1);'
            ).replace(SOLUTION, wrong), WRONG
        ),
        "replaces torch's functions": (in_python(REPLACES).replace(SOLUTION, wrong), WRONG),
        "sends a verdict itself": (in_python(SENDS).replace(SOLUTION, wrong), "does not accept"),
        "returns a captured output": (
            SOLUTION.replace(
                "  roll_kernel<<<",
                "  static float* kept = new float[1 << 20]();\n  static int64_t count = 0;\n  if (n == count) {\n"
                "    memcpy(out.mutable_data_ptr<float>(), kept, 4 * n);\n    return;\n  }\n  roll_kernel<<<",
            ).replace(
                "  STD_CUDA_KERNEL_LAUNCH_CHECK();",
                "  STD_CUDA_KERNEL_LAUNCH_CHECK();\n  count = n;\n"
                "  memcpy(kept, out.mutable_data_ptr<float>(), 4 * n);",
            ).replace("#include", "#include <cstring>\n#include", 1),
            "wrong|written",
        ),
        "works only once": (
            SOLUTION.replace("  roll_kernel<<<", "  static int calls = 0;\n  if (calls++) return;\n  roll_kernel<<<"),
            "wrong|written",
        ),
        "threads left behind": (
            when_loaded("std::thread([] { for (;;) pause(); }).detach();").replace(SOLUTION, wrong), WRONG
        ),
    }  # fmt: skip


@pytest.mark.timeout(3600)  # two and a half minutes on a machine that does nothing else
def test_hostile_submissions_cost_their_authors_the_points(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("CLASSROOM_TOKEN", "secret")
    root, out, temporary = tmp_path / "class", tmp_path / "out", tmp_path / "temporary"
    out.mkdir()
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)  # asks TMPDIR again
    (out / "gradebook").write_text("secret")
    attacks = hostile(out, root)
    assert len(attacks) >= 40
    folder({"honest/roll.cu": SOLUTION, **{f"{name}/roll.cu": text for name, (text, _) in attacks.items()}})
    found = submissions.find(root)
    assert len(found) == 1 + len(attacks)
    store, scheme = Store(out / "verdicts"), Scheme("", {"roll": Worth(1.0)})
    endless = [one for one in found if attacks.get(one.name, ("", ""))[1] == ENDLESS]
    assert len(endless) == 4
    grading.grade(endless, scheme, store, 2, unasked(grading.worker(True, seconds=20, memory=2)))
    grading.grade(found, scheme, store, 2, unasked(grading.worker(True, memory=2)))
    whole = results.collect(found, scheme, store)
    verdicts = {one.name: one.results[0] for one in whole.submissions}
    report = {name: (r.kind, r.message) for name, r in verdicts.items()}
    (tmp_path / "report.json").write_text(json.dumps(report, indent=1))
    assert verdicts.pop("honest").points == 1, report["honest"]
    assert {name: r.points for name, r in verdicts.items()} == dict.fromkeys(attacks, 0), report
    for name, (_, said) in attacks.items():
        assert re.search(said, verdicts[name].message), (name, report[name])
    assert sorted(path.name for path in out.iterdir()) == ["gradebook", "verdicts"]
    assert (root / "honest" / "roll.cu").read_text() == SOLUTION
    assert len(list((out / "verdicts").iterdir())) == 1 + len(attacks)
    assert answers_left(temporary) == ([], [])
    assert not Path("/dev/shm/left_behind").exists()
    assert reaper.descendants(os.getpid()) == []


def unasked(command):
    """A worker that loads whatever has been built."""
    python, _, _, *limits = command
    start = "import sys; from helpers.practice import answering; answering._problem = lambda *given: ''; "
    start += "from helpers.teaching.classroom import answer_worker; answer_worker.main(*sys.argv[1:])"
    return [python, "-c", start, *limits]


def answers_left(temporary):
    """Folders of answers, and processes that work in one."""
    folders = [path.name for path in temporary.glob("answer_*")]
    processes = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            where = os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            continue
        processes += [where] if where.startswith(f"{temporary}/answer_") else []
    return folders, processes
