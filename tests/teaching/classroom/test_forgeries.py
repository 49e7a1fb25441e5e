"""Answers that speak for the tracer, hide code from it, read what is not theirs, or do harm by what they leave.

Each row is a wrong answer to an exercise with an attack in it, or a right one that does harm: what it tries, and the
part of the message by which it is seen to fail. `before` is what it got from the grader at commit 898ff39: "accepted",
"leaked" (a file's text in the verdict), "stopped the worker" (it ended, or waited without end), or "failed".
"""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from helpers.practice import registry
from helpers.teaching.classroom import answer_worker, sandbox
from helpers.teaching.classroom.submissions import Answer

pytestmark = [
    pytest.mark.slow,  # builds and checks an answer each
    pytest.mark.skipif(bool(sandbox.problem()), reason=f"this machine cannot confine: {sandbox.problem()}"),
]


class Attack(NamedTuple):
    text: str
    said: str
    before: str = "accepted"

    @property
    def exercise(self) -> str:
        return "compact_registered" if self.text.startswith("# ") else "roll"


def edited(text, *changes):
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


RIGHT = registry.find("roll").solution.read_text(encoding="utf-8")
PYTHON = registry.find("compact_registered").solution.read_text(encoding="utf-8")
STORE, KERNEL, LAUNCHER = "  out[i] = x[from];\n", "__global__ void roll_kernel", "  int64_t n = x.numel();\n"
# All threads write one element, the same value: the result is right, and only the tracer sees the race.
RACES = edited(RIGHT, (STORE, STORE + "  if (n > 4) out[0] = x[(n - shift % n) % n];\n"))
# Reads past the end, without an effect on the result.
STRAYS = edited(RIGHT, (STORE, STORE + "  if (x[n] == 1e30f) out[i] = 0.0f;\n"))
OUTSIDE = edited(RIGHT, (STORE, "  out[i] = x[from + n];\n"))
UNUSED, DLSYM, UNTRACED, ASM = (
    "a kernel and its launcher do not need",
    "calls or names dlsym",
    "no_sanitize",
    "asm state",
)
SECRET = "/etc/passwd"

THROUGH_DLSYM = """
#include <dlfcn.h>
static void through_python() {{
  auto ensure = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Ensure"));
  auto release = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "PyGILState_Release"));
  auto run = reinterpret_cast<int (*)(const char*, void*)>(dlsym(RTLD_DEFAULT, "PyRun_SimpleStringFlags"));
  int state = ensure();
  run(R"python({code})python", nullptr);
  release(state);
}}
"""
LOADED = "static int attack = (through_python(), 0);\n"
SENDS = """
from helpers.practice import answering
real = answering.Answer.do
def do(self, header, body):
    reply, parts = real(self, header, body)
    if header["do"] == "{job}":
        {change}
    return reply, parts
answering.Answer.do = do
"""
FAULT = '{"kind": "race", "kernel": "k", "block": [0] * 3, "thread": [0] * 3, "message": "m", "others": [], '


def replies(change, text=RACES, job="xray", when=LOADED):
    """The answer, which changes what its process replies."""
    return text + THROUGH_DLSYM.format(code=SENDS.format(job=job, change=change)) + when


def in_kernel(code, text=RIGHT):
    return edited(text, (STORE, STORE + code + "\n"))


def in_launcher(code, text=RACES, before=""):
    return edited(text, (LAUNCHER, f"{LAUNCHER}  {code}\n"), ("#include", f"{before}\n#include"))


def untraced(attribute, before=""):
    """The racing store is in a function without hooks; the other accesses are seen."""
    put = "__attribute__((noinline)) __device__ void put(float* at, float value) { *at = value; }"
    race = "out[0] = x[(n - shift % n) % n];"
    return edited(
        RACES,
        (KERNEL, f"{before}\n{attribute} {put}\n{KERNEL}"),
        (race, race.replace("out[0] =", "put(out,").replace("];", "]);")),
    )


def in_python(code, text=PYTHON):
    """A Python answer that runs code before all else."""
    return edited(text, ("import torch\n", f"import torch\n{code}\n"))


def becomes(how):
    """A Python answer that replaces its own source once it has been read."""
    return in_python(SENDS.format(job="registration", change=f"import os; os.unlink(self._source); {how}"))


JOIN = "#define JOIN(a, b) a##b"
EMPTY = 'reply["faults"] = reply["remarks"] = []'
IDEAL = 'reply["lines"] = [dict(line, sectors=line["ideal_sectors"]) for line in reply["lines"]]'
ONE_THREAD = edited(
    RIGHT,
    ("  if (i >= n) return;\n", "  if (i) return;\n  for (; i < n; ++i) {\n"),
    (STORE, STORE + "  }\n"),
)
WASTES = edited(RIGHT, (STORE, "  for (int k = 0; k < 8; ++k) out[i] = x[from];\n"))
TELLS = """
from helpers.practice import messages
send = messages.Channel.send
def tells(self, header, *more):
    send(self, {{**header, "traced": {traced}}} if "names" in header else header, *more)
messages.Channel.send = tells
"""
REPORTS = f"""
from helpers.practice import answering
real = answering.Answer.do
def do(self, header, body):
    if header["do"] != "xray":
        return real(self, header, body)
    fault = dict({FAULT} "callers": []}}, file="{SECRET}", line=1)
    empty = dict.fromkeys(("lines", "launches", "remarks", "writers"), [])
    return {{**empty, "faults": [fault], "result": None}}, [bytes(body)]
answering.Answer.do = do
"""
NESTS = """
import os
here = os.getcwd()
os.chdir(os.environ["TMPDIR"])
for _ in range(6000):
    os.mkdir("n")
    os.chdir("n")
os.chdir(here)
"""
ATTACKS = {
    # -- reads by a path in a fact
    "a #line names a secret": Attack(edited(OUTSIDE, (KERNEL, f'#line 1 "{SECRET}"\n{KERNEL}')), "#line", "leaked"),
    "a numbered line names a secret": Attack(
        edited(OUTSIDE, (KERNEL, f'# 1 "{SECRET}"\n{KERNEL}')), "#line", "leaked"
    ),
    "a spliced #line names a secret": Attack(
        edited(OUTSIDE, (KERNEL, f'#li\\\nne 1 "{SECRET}"\n{KERNEL}')), "#line", "leaked"
    ),
    "a #line by a macro names a secret": Attack(
        edited(OUTSIDE, (KERNEL, f'#define PLACE 1 "{SECRET}"\n#line PLACE\n{KERNEL}')), "#line", "leaked"
    ),
    "a fault names a secret": Attack(
        replies(f'reply["faults"] = [dict({FAULT} "callers": []}}, file="{SECRET}", line=1)]'), DLSYM, "leaked"
    ),
    "a caller names a secret": Attack(
        replies(f'reply["faults"] = [dict({FAULT} "callers": [["{SECRET}", 1]]}}, file="", line=1)]'), DLSYM, "leaked"
    ),
    "a wasteful line names a secret": Attack(
        replies(
            'reply["lines"] = [dict(reply["lines"][0], line=1, requests=9, sectors=9000, ideal_sectors=9, '
            f'file="{SECRET}")] if reply["lines"] else []', RIGHT
        ), DLSYM, "leaked"
    ),
    # -- facts forged through the interpreter
    "faults and remarks emptied": Attack(replies(EMPTY), DLSYM),
    "counts made ideal": Attack(replies(f"{IDEAL}; {EMPTY}", WASTES), DLSYM),
    "launches forged": Attack(replies(
        'reply["launches"] = [dict(one, grid=[99, 1, 1], block=[256, 1, 1], blocks=99, loading=9999, storing=9999, '
        'most_loads=1, most_stores=1) for one in reply["launches"]]', ONE_THREAD), DLSYM
    ),
    "says that it is not traced": Attack(
        RACES + THROUGH_DLSYM.format(code=TELLS.format(traced=False)) + LOADED, DLSYM
    ),
    "the tracer replaced": Attack(
        RACES + THROUGH_DLSYM.format(code="from helpers.practice import answering\nreal = answering.xray\n"
        "def xray(*a, **k):\n    r = real(*a, **k)\n    r.faults.clear(); r.remarks.clear()\n    return r\n"
        "answering.xray = xray") + LOADED, DLSYM
    ),
    "from a constructor's attribute": Attack(
        replies(EMPTY, when="__attribute__((constructor)) static void attack() { through_python(); }"), DLSYM
    ),
    "from a global object": Attack(
        replies(EMPTY, when="struct Attack { Attack() { through_python(); } } attack;"), DLSYM
    ),
    "from the registration": Attack(
        edited(replies(EMPTY, when=""), ("STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {",
        "static void through_python();\nSTABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {\n  through_python();")), DLSYM
    ),
    "from the launcher": Attack(
        edited(replies(EMPTY, when=""), ("void roll(", "static void through_python();\nvoid roll("),
        (LAUNCHER, LAUNCHER + "  static int attack = (through_python(), 0);\n")), DLSYM
    ),
    "the interpreter by its name": Attack(
        in_launcher('PyRun_SimpleString("x = 3");', before='extern "C" int PyRun_SimpleString(const char*);'),
        UNUSED, "failed"
    ),
    "another library loaded": Attack(
        in_launcher("dlopen(\"libpython3.so\", 2);", before="#include <dlfcn.h>"), UNUSED, "failed"
    ),
    # -- code that the tracer does not see
    "the simulator's own attribute": Attack(untraced("SIMT_NOT_TRACED"), UNTRACED),
    "no_sanitize": Attack(untraced('__attribute__((no_sanitize("thread")))'), UNTRACED),
    "no_sanitize_thread": Attack(untraced("__attribute__((no_sanitize_thread))"), UNTRACED),
    "no_sanitize in C++": Attack(untraced("[[gnu::no_sanitize_thread]]"), UNTRACED),
    "no_sanitize pasted": Attack(untraced('__attribute__((JOIN(no_, sanitize)("thread")))', JOIN), UNTRACED),
    "no_sanitize spliced": Attack(untraced('__attribute__((no_sani\\\ntize("thread")))'), UNTRACED),
    "no_sanitize by a header's macro": Attack(
        untraced("__attribute__((__CONCAT(no_, sanitize_thread)))", "#include <sys/cdefs.h>"), UNTRACED
    ),
    "a hook of its own": Attack(STRAYS + 'extern "C" void __tsan_read4(void*) {}\n', "it defines __tsan_read4"),
    "all hooks of its own": Attack(
        STRAYS + "".join(f'extern "C" void __tsan_{verb}{size}(void*) {{}}\n' for verb in ("read", "unaligned_read")
        for size in (1, 2, 4, 8)), "it defines __tsan_"
    ),
    "a hidden hook": Attack(
        STRAYS + 'extern "C" __attribute__((visibility("hidden"))) void __tsan_read4(void*) {}\n', "__tsan_read4"
    ),
    "a hook by an alias": Attack(
        STRAYS + 'extern "C" {\nvoid quiet(void*) {}\nvoid __tsan_read4(void*) __attribute__((alias("quiet")));\n}\n',
        "it defines __tsan_read4"
    ),
    "a function of the simulator": Attack(
        RACES + "namespace simt { void fault(const char*, const char*) {} }",
        "it defines simt::fault", "failed"
    ),
    "ends the trace": Attack(
        in_launcher("simt_trace_end();", before='extern "C" const char* simt_trace_end();'), UNUSED, "failed"
    ),
    "forgets the tensors": Attack(
        in_launcher("simt_trace_forget_tensors();", OUTSIDE, 'extern "C" void simt_trace_forget_tensors();'), UNUSED,
        "failed"
    ),
    "throws in its first call": Attack(
        in_launcher("static int calls = 0;\n  if (n && calls++ == 0) throw std::runtime_error(\"no\");"),
        "X-ray of it failed"
    ),
    "throws in all calls of small sizes once": Attack(
        in_launcher("static int last = -1;\n  if (n && n < 9000 && last != n) {\n    last = n;\n"
                    "    throw std::runtime_error(\"no\");\n  }"), "shift = 2: no", "failed"
    ),
    "a store by the processor's own function": Attack(
        edited(RACES, ("out[0] = x[(n - shift % n) % n];", "__builtin_ia32_movnti(reinterpret_cast<int*>(out), "
        "__float_as_int(x[(n - shift % n) % n]));")), "movnti"
    ),
    "a load by the C library": Attack(
        in_kernel("  if (memcmp(x + n, x, 4) == 12345) out[i] = 0.0f;"), "a kernel calls memcmp"
    ),
    "a race of blocks that no sample holds": Attack(
        edited(RIGHT, (STORE, STORE + "  if (i == 1 && n > 200) out[0] = x[(n - shift % n) % n];\n"),
               ("kThreads = 256", "kThreads = 1")), "race"
    ),
    # -- inline assembly that is not PTX
    "a store in assembly": Attack(
        in_kernel('  asm volatile("movl $0, (%0)" :: "r"(out) : "memory");', RIGHT), "not supported|PTX", "failed"
    ),
    "a store in spliced assembly": Attack(
        in_kernel('  if (n > 4 && i == 1) __as\\\nm__ volatile("movl %1, (%0)" :: "r"(out), "r"(__float_as_int('
                  "x[(n - shift % n) % n])));"), ASM
    ),
    "a store in pasted assembly": Attack(
        edited(in_kernel('  if (n > 4 && i == 1) JOIN(__as, m__) volatile("movl %1, (%0)" :: "r"(out), "r"('
                         "__float_as_int(x[(n - shift % n) % n])));"), (KERNEL, f"{JOIN}\n{KERNEL}")), ASM
    ),
    "a system call in assembly": Attack(
        in_launcher('long r;\n  __as\\\nm__ volatile("syscall" : "=a"(r) : "a"(39) : "rcx", "r11", "memory");'),
        ASM, "failed"
    ),
    "a name by assembly": Attack(
        in_launcher('harmless("true");', before='extern "C" int harmless(const char*) __as\\\nm__("system");'), ASM,
        "failed"
    ),
    "assembly of the whole file": Attack(RIGHT + '__as\\\nm__(".section .init_array\\n.quad 0");\n', ASM, "failed"),
    # -- what is loaded
    "a pointer in .init_array": Attack(
        RIGHT + 'int all[9];\nstatic void attack() { all[3] = 4; }\n'
        '__attribute__((section(".init_array"), used)) static void (*kept)() = attack;\n', "when the answer is loaded"
    ),
    "a constructor that only stores": Attack(
        RIGHT + "volatile int all[9];\n__attribute__((constructor)) static void attack() { all[3] = 4; }\n",
        "when the answer is loaded"
    ),
    "a destructor": Attack(
        RIGHT + "int all[9];\n__attribute__((destructor)) static void attack() { all[3] = 4; }\n", "section of its own"
    ),
    "a section of its own": Attack(RIGHT + '__attribute__((section(".mine"))) int mine = 3;\n', "section of its own"),
    "a function that the loader chooses": Attack(
        RIGHT + 'extern "C" {\nint one() { return 1; }\nint (*choose())() { return one; }\n'
        'int chosen() __attribute__((ifunc("choose")));\n}\n', "the loader would call"
    ),
    # -- the operating system, from the launcher
    "starts a program": Attack(in_launcher('if (system("true")) abort();', RIGHT), UNUSED),
    "forks": Attack(in_launcher("fork();", RIGHT, "#include <unistd.h>"), UNUSED, "failed"),
    "calls by number": Attack(in_launcher("syscall(39);", RIGHT, "#include <unistd.h>"), UNUSED),
    "reads a file": Attack(in_launcher(f'fopen("{SECRET}", "r");', RIGHT, "#include <cstdio>"), UNUSED),
    "writes a file": Attack(in_launcher('std::ofstream("x") << 1;', RIGHT, "#include <fstream>"), UNUSED),
    "starts a thread": Attack(in_launcher("std::thread([] {}).join();", RIGHT, "#include <thread>"), UNUSED),
    "maps memory": Attack(
        in_launcher("mmap(nullptr, 4096, 7, 34, -1, 0);", RIGHT, "#include <sys/mman.h>"), UNUSED
    ),
    "makes code writable": Attack(
        in_launcher("mprotect((void*)((size_t)&roll & -4096), 4096, 7);", RIGHT, "#include <sys/mman.h>"), UNUSED
    ),
    "handles signals": Attack(in_launcher("signal(11, SIG_IGN);", RIGHT, "#include <csignal>"), UNUSED),
    "reads the environment": Attack(in_launcher('getenv("PATH");', RIGHT, "#include <cstdlib>"), UNUSED),
    "walks the loaded libraries": Attack(
        in_launcher("dl_iterate_phdr([](dl_phdr_info*, size_t, void*) { return 0; }, nullptr);", RIGHT,
                    "#include <link.h>"), UNUSED
    ),
    # -- a kernel's own accesses, and PTX
    "reads outside": Attack(OUTSIDE, "out-of-bounds", "failed"),
    "stores by PTX outside": Attack(
        in_kernel('  asm volatile("st.global.f32 [%0], %1;" :: "l"(out + n + i), "f"(1.0f) : "memory");'),
        "out-of-bounds", "failed"
    ),
    "races by PTX": Attack(
        in_kernel('  if (n > 4) asm volatile("st.global.f32 [%0], %1;" :: "l"(out), "f"(x[(n - shift % n) % n]));'),
        "race", "failed"
    ),
    # -- answers in Python
    "says of Python code that it is traced": Attack(
        in_python(TELLS.format(traced=True) + REPORTS), "", "leaked"
    ),
    "folders in folders": Attack(in_python(NESTS), "deeper than a path", "stopped the worker"),
    "many files": Attack(
        in_python('import os\nfor i in range(25_000):\n    os.symlink("x", os.environ["TMPDIR"] + f"/{i}")'),
        "more than 20,000 files", "accepted"
    ),
    "its source becomes endless": Attack(becomes('os.symlink("/dev/zero", self._source)'), "", "stopped the worker"),
    "its source becomes a pipe": Attack(becomes("os.mkfifo(self._source)"), "", "stopped the worker"),
    "its source becomes a secret": Attack(becomes(f'os.symlink("{SECRET}", self._source)'), "", "failed"),
    "a folder that cannot be opened": Attack(
        in_python('import os\nshut = os.environ["TMPDIR"] + "/shut"\nos.makedirs(shut + "/x")\nos.chmod(shut, 0)'),
        "", "failed"
    ),
}  # fmt: skip
# These are right answers, and end as such: what they do must not matter to anybody.
HARMLESS = {name for name, attack in ATTACKS.items() if not attack.said}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_seen_and_reads_nothing(name, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    attack = ATTACKS[name]
    verdict = answer_worker.check(Answer(attack.exercise, attack.text, "answer"), confined=True)
    assert (verdict["kind"] == "accepted") == (name in HARMLESS), verdict
    assert re.search(attack.said, verdict["message"]), verdict
    shown = verdict["message"] + verdict.get("table", "")
    assert not [line for line in Path(SECRET).read_text().splitlines() if line and line in shown]
    assert list(tmp_path.glob("answer_*")) == []


def test_the_answers_without_an_attack_get_what_they_deserve():
    def verdict(exercise, text):
        return answer_worker.check(Answer(exercise, f"{text}\n", "answer"), confined=True)

    assert verdict("roll", RIGHT)["kind"] == verdict("compact_registered", PYTHON)["kind"] == "accepted"
    assert "race" in verdict("roll", RACES)["message"]
    assert ONE_THREAD != RIGHT and verdict("roll", ONE_THREAD)["kind"] == "rejected"


def test_the_table_has_attacks_of_all_kinds():
    assert len(ATTACKS) >= 60
    assert {attack.before for attack in ATTACKS.values()} == {"accepted", "leaked", "stopped the worker", "failed"}
