"""Between the answer's process and the judge go tensors and text; whatever else arrives is refused and runs nothing."""

import ctypes
import gc
import json
import os
import pickle
import random
import resource
import signal
import socket
import struct
import threading
import time
import typing
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest
import torch

from helpers.practice import allowance, answering, isolated, messages, quoted, remote, trial
from helpers.practice.cases import Case, Check, Refusal
from kernel_xray.report import facts, film_data
from kernel_xray.report.html import as_html
from kernel_xray.runtime.kernel_fault import KernelFault

CASE = Case("a case", (torch.ones(3),))
TWICE = Check(lambda x: 2 * x, lambda: [CASE], further=False)


@pytest.fixture
def check(monkeypatch, tmp_path):
    """Checks a Python function as an answer, in the process and over the connection of a built one."""
    if isolated.METHOD != "fork":
        pytest.skip("a function of a test reaches the answer's process by a fork, which cannot use a GPU")

    def run(function, what=TWICE):
        def build(self, name, source):
            self._name, self._source, self._function, self._traced = name, source, function, None
            return {"problem": "", "traced": False}

        monkeypatch.setattr(answering.Answer, "_build", build)
        for module in (answering, trial):
            monkeypatch.setitem(module.CHECKS, "made_up", what)
        source = tmp_path / "made_up.py"  # Python code is not traced
        source.touch()
        return trial.run("made_up", source)

    return run


def held(kind, condition):
    """An object of this process: nothing that the process holds is hidden from the code that runs in it."""
    return next(thing for thing in gc.get_objects() if type(thing) is kind and condition(thing))


def connection():
    """In the answer's process: its connection to the judge."""
    return held(messages.Channel, lambda channel: channel._socket.fileno() >= 0)._socket


# -- Results are compared by the judge ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        (lambda x: 2 * x, "accepted", "1 case is right"),
        (lambda x: x, "rejected", "a case: 3 of 3 elements are wrong"),
        (lambda x: 2 * x.double(), "rejected", "a case: wrong dtype: expected torch.float32, got torch.float64"),
        (lambda x: [2 * x, x], "rejected", "a case: expected 1 output tensor, got 2"),
        (lambda x: (2 * x).to("meta"), "rejected", "a case: wrong device: expected cpu"),
        (lambda x: (2 * x).to_sparse(), "rejected", "a case: expected a tensor, got torchsparse_cooof"),
        (lambda x: "text", "rejected", "a case: expected a tensor, got str"),
        (lambda x: None, "rejected", "a case: expected 1 output tensor, got 0"),
        (lambda x: x.mul_(2), "rejected", "a case: it changed its input 0"),
        (lambda x: x.new_empty(3), "rejected", "a case: 3 of 3 elements are wrong"),
        (lambda x: 1 / 0, "fault", "division by zero"),
        (lambda x: os._exit(3), "fault", "a case: it ended the process (exit status 3)"),
        (lambda x: os.abort(), "fault", "a case: it ended the process (SIGABRT)"),
        (lambda x: os.kill(os.getpid(), signal.SIGKILL), "fault", "a case: it ended the process (SIGKILL)"),
    ],
)
def test_a_call_has_the_verdict_that_it_deserves(check, function, kind, message):
    outcome = check(function)
    assert (outcome.kind, outcome.message[: len(message)]) == (kind, message)
    assert outcome.killed == ("SIGKILL" in message)


def test_views_fences_and_other_values_arrive_as_they_are(check):
    x = torch.rand(3, 2).half()
    case = Case("x", (x, 2**40, 2.0**-41), {"y": x, "z": x[:, 0]}, {"rtol": 1e-3})
    what = Check(lambda x, n, f: (n * f * x, x.sum(1)), lambda: [case], further=False)

    def right(x, n, f, y, z):
        assert (x.shape, x.data_ptr() % 64, n, f, y.isnan().all().item()) == ((3, 2), 0, 2**40, 2.0**-41, True)
        y.copy_(n * f * x.double())
        z.copy_(x.double().sum(1))

    def outside(x, n, f, y, z):
        right(x, n, f, y, z)
        z.as_strided((1,), (1,), z.storage_offset() + 3).fill_(1)

    assert check(right, what).kind == "accepted"
    assert "it wrote outside z: z[3] changed" in check(outside, what).message


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (RuntimeError("x must be flat"), "accepted", "1 case is right"),
        (RuntimeError("no"), "rejected", "x: refused, but the message does not name x:\n  no"),
        (KernelFault("x"), "fault", "x: not refused; the kernel ran: x"),
        (NotImplementedError("x"), "fault", "x: not refused; the kernel ran: x"),
        (None, "rejected", "x: accepted, and misread"),
    ],
)
def test_errors_arrive_with_what_a_refusal_is_judged_by(check, error, kind, said):
    def refuse(x):
        if error:
            raise error

    refusal = Refusal("x", (CASE.inputs[0],), {"name x": "x"})
    outcome = check(refuse, Check(lambda: None, list, lambda device: [refusal]))
    assert (outcome.kind, outcome.message[: len(said)]) == (kind, said)


# -- Attacks -----------------------------------------------------------------------------------------------------------


class Attack:
    """Unpickling it makes a file."""

    def __init__(self, file):
        self.file = str(file)

    def __reduce__(self):
        return os.mkdir, (self.file,)


def framed(header, body=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("!4sIQ", b"KL1\n", len(text), len(body)) + text + body


PICKLED = "the answer's process sent a message that the check does not accept"
RESULT = {"result": {"dtype": "float32", "shape": [3], "device": "cpu"}}


@pytest.mark.parametrize(
    "payload",
    [
        lambda pickled: struct.pack("!i", len(pickled)) + pickled,  # as multiprocessing's connections send objects
        lambda pickled: framed(pickled),
        lambda pickled: framed({"nonce": "0", **RESULT}, pickled),
        lambda pickled: framed({"nonce": "0", "kind": "accepted", "message": "all cases"}),
        lambda pickled: framed(b"[" * 100_000),
        lambda pickled: framed(b"9" * 100_000),
        lambda pickled: struct.pack("!4sIQ", b"KL1\n", 2**32 - 1, 2**60),
    ],
)
def test_an_answer_that_writes_to_the_connection_runs_nothing_and_is_not_accepted(check, tmp_path, payload):
    made = tmp_path / "made"

    def forge(x):
        connection().sendall(payload(pickle.dumps(Attack(made))))
        return 2 * x

    outcome = check(forge)
    assert (outcome.kind, outcome.message[: len(PICKLED)]) == ("fault", PICKLED)
    assert not made.exists()
    pickle.loads(pickle.dumps(Attack(made)))  # the attack works where somebody unpickles it
    assert made.is_dir()


@pytest.mark.parametrize(("factor", "kind"), [(1.0, "rejected"), (2.0, "accepted")])
def test_a_forged_reply_is_worth_as_much_as_its_tensors(check, factor, kind):
    def forge(x):
        nonce = held(dict, lambda thing: thing.get("do") == "run" and "nonce" in thing)["nonce"]
        same, result = messages.as_bytes(x), messages.as_bytes(factor * x)
        storage = messages.Storages([x]).parts()[0]
        assert same in storage
        connection().sendall(framed({"nonce": nonce, "kind": "accepted", **RESULT}, storage + result))
        time.sleep(60)

    assert check(forge).kind == kind


@pytest.mark.parametrize(
    ("described", "body"),
    [
        ({"dtype": "float32", "shape": [3], "device": "cpu"}, b"short"),
        ({"dtype": "float32", "shape": [1], "device": "cpu"}, b"too long"),
        ({"dtype": "float32", "shape": [-1], "device": "cpu"}, b""),
        ({"dtype": "float32", "shape": [2**40], "device": "cpu"}, b""),
        ({"dtype": "float32", "shape": [2**30, 2**30], "device": "meta", "more": 1}, b"x"),
        ({"dtype": "object", "shape": [1], "device": "cpu"}, b"12345678"),
        ({"dtype": "float32", "shape": [True], "device": "cpu"}, b"1234"),
        ({"dtype": "float32", "shape": [1], "device": "cuda:99"}, b"1234"),
        ({"dtype": ["float32"], "shape": [1], "device": "cpu"}, b"1234"),
        ({"dtype": "float32", "shape": None, "device": "cpu"}, b"1234"),
        ([[[[]]]] * 17, b""),
        ("tensor", b""),
        (3, b""),
    ],
)
def test_a_result_that_is_not_as_described_is_malformed(described, body):
    with pytest.raises(messages.Malformed):
        messages.result_from(described, memoryview(body))


def report(**changes):
    line = {"file": "", "line": 1, "kernel": "k", "space": "global", "kind": "load", "requests": 1, "sectors": 8}
    line |= {"ideal_sectors": 4, "wavefronts": 0, "ideal_wavefronts": 0, "active_lanes": 32, "size": 4, "received": 0}
    line |= {"passes": 1, "all_blocks": 8, "error": 0, "complete": True, "nvcc": ""}
    line |= {"lanes": [[0, 0], [1, 4]]} | changes
    return {"lines": [line], "launches": [], "faults": [], "remarks": [], "writers": [], "result": None}


def xray_of(reply):
    answer = remote.Remote(lambda header, parts: (reply, memoryview(bytearray(b"".join(parts)))))
    return answer.xray(torch.ones(3), seed=0)


def test_a_report_arrives_as_records_of_checked_types():
    (line,) = xray_of(report()).lines
    assert (line.efficiency, line.lanes, line.active_lanes) == (0.5, ((0, 0), (1, 4)), 32.0)
    assert "<script>" not in xray_of(report(kernel="<script>", file="<script>"))._repr_html_()


def made(kind):
    """A value of a record's field of this type, or a record."""
    if is_dataclass(kind):
        return kind(**{field.name: made(field.type) for field in fields(kind)})
    parts = typing.get_args(kind)
    if parts:
        return tuple(made(part) for part in parts if part is not ...)
    return "load" if kind is str else kind(1)


@pytest.mark.parametrize("kind", [facts.Line, facts.Launch, facts.FaultRecord, facts.Writer, film_data.Frame])
def test_every_field_of_a_record_arrives(kind):
    sent, (ours, theirs) = made(kind), socket.socketpair()
    with ours, theirs:
        messages.Channel(theirs).send({"records": [vars(sent)]})
        header, _ = messages.Channel(ours).receive()
    assert remote._records(kind, header, "records") == [sent]


def test_a_verdict_quotes_the_text_that_was_read_and_opens_no_file_of_a_message(tmp_path):
    endless, secret, source = (str(tmp_path / name) for name in ("endless", "secret", "answer.cu"))
    os.mkfifo(endless)
    for path in (secret, source):
        Path(path).write_text("one\ntwo\n")
    fault = {"kind": "race", "line": 2, "kernel": "k", "block": [0] * 3, "thread": [0] * 3, "message": "m"}
    fault |= {"file": source, "others": [[secret, 2]], "callers": [[secret, 2]]}
    with facts.sources_given({source: "first\nsecond"}):
        sent = xray_of({**report(file=endless), "faults": [fault]})
        assert sent.lines[0].source == ""
        assert "> second" in str(sent.faults[0]) and "two" not in str(sent.faults[0]) + as_html(sent)
    assert "two" in str(sent.faults[0]), "a caller's file is read where nothing is given"


def test_a_source_is_read_if_it_is_a_small_file(tmp_path):
    source = tmp_path / "answer.cu"
    source.write_bytes(b"text\xff")
    assert quoted.contents(source) == b"text\xff"
    (tmp_path / "link").symlink_to(source)
    with pytest.raises(OSError, match="symbolic link"):
        quoted.contents(tmp_path / "link")
    os.mkfifo(tmp_path / "pipe")
    for path, said in ((tmp_path / "pipe", "regular"), (Path("/dev/zero"), "regular"), (source, "larger than 4 MB")):
        if path == source:
            os.truncate(source, quoted.BYTES + 1)
        with pytest.raises(quoted.Unreadable, match=said):
            quoted.contents(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "<script>"},
        {"space": 1},
        {"line": "1"},
        {"line": True},
        {"lanes": [[0]]},
        {"lanes": 0},
        {"size": None},
        {"complete": 1},
        {"complete": None},
    ],
)
def test_a_report_of_other_types_is_malformed(changes):
    with pytest.raises(messages.Malformed):
        xray_of(report(**changes))


@pytest.mark.parametrize(
    "reply", [{}, {"lines": 3}, {**report(), "faults": [3]}, {**report(), "remarks": [{}]}, {**report(), "writers": 3}]
)
def test_a_report_without_its_records_is_malformed(reply):
    with pytest.raises(messages.Malformed):
        xray_of(reply)


def test_text_cannot_command_a_terminal():
    assert remote.text_of({"message": "a\x1b[2Jb\n\tc"}, "message") == "a�[2Jb\n\tc"
    for other in (None, 3, "x" * 30_000, ["x"]):
        with pytest.raises(messages.Malformed):
            remote.text_of({"message": other}, "message")


def test_damaged_messages_are_read_or_malformed_and_nothing_else():
    rng = random.Random(0)
    good = framed({"nonce": "1", **RESULT}, b"0123456789ab")
    outcomes = set()
    for _ in range(300):
        bad = bytearray(good)
        for _ in range(rng.randint(1, 6)):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.sendall(bad[: rng.choice((len(bad), rng.randrange(len(bad))))])
            theirs.close()
            try:
                header, body = messages.Channel(ours).receive()
                messages.result_from(header.get("result"), body)
                outcomes.add("read")
            except (messages.Malformed, EOFError) as error:
                outcomes.add(type(error).__name__)
    assert outcomes == {"read", "Malformed", "EOFError"}


# -- Limits ------------------------------------------------------------------------------------------------------------


def test_a_flood_of_output_is_counted_and_the_memory_of_the_judge_stays_bounded(check):
    def flood(x):
        for _ in range(200):
            os.write(1, b"0123456789\n" * 100_000)
        return 2 * x

    check(flood)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = check(flood)
    assert outcome.kind == "accepted"
    assert outcome.printed.splitlines()[:40] == ["0123456789"] * 40
    assert outcome.printed.splitlines()[40:] == [f"... and {200 * 100_000 - 40:,} more lines"]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # kilobytes; the flood has 220,000


def test_one_endless_line_is_cut(check):
    outcome = check(lambda x: (os.write(1, b"x" * 1_000_000), 2 * x)[1])
    shown, more = outcome.printed.splitlines()
    assert (len(shown), more) == (64_000, "... and 936,000 more bytes")


def spins(x):
    began = time.process_time()
    while time.process_time() < began + 60:
        pass


@pytest.mark.parametrize(
    ("function", "waiting", "kind", "message"),
    [
        (lambda x: (time.sleep(1), 2 * x)[1], 100, "accepted", "1 case is right"),
        (spins, 100, "fault", "a case: it did not end within 0.5 s: does every loop end?"),
        (
            lambda x: time.sleep(60),
            2,
            "fault",
            "a case: it did not end within 1 s, of which it computed for 0 s: does it",
        ),
    ],
    ids=["is given little time", "spins", "waits"],
)
def test_a_call_is_limited_in_processor_time_and_less_in_time(check, monkeypatch, function, waiting, kind, message):
    """A process that sleeps is to the judge what one is that a busy machine leaves aside."""
    monkeypatch.setattr(isolated, "RUN_SECONDS", 0.5)
    monkeypatch.setattr(allowance, "WAITING", waiting)
    outcome = check(function)
    assert (outcome.kind, outcome.message[: len(message)]) == (kind, message)


@pytest.mark.slow  # waits for its limit; one case has one above
def test_all_cases_together_have_a_limit(check, monkeypatch):
    monkeypatch.setattr(isolated, "CHECK_SECONDS", 3.0)

    def slow(x):
        time.sleep(0.5)
        return 2 * x

    outcome = check(slow, Check(lambda x: 2 * x, lambda: [CASE] * 100))
    assert (outcome.kind, outcome.message) == ("fault", "a case: the check did not end within 3 s")


def test_what_an_answer_leaves_behind_ends_with_the_check(check, tmp_path):
    pids = tmp_path / "pids"

    def leave(x):
        if not os.fork():
            os.setsid()
            if not os.fork():
                pids.write_text(str(os.getpid()))
                time.sleep(300)
            os._exit(0)
        while not pids.exists() or not pids.read_text():
            time.sleep(0.01)
        return 2 * x

    assert check(leave).kind == "accepted"
    assert not Path(f"/proc/{pids.read_text()}").exists()


@pytest.mark.skipif(isolated.METHOD != "fork", reason="nothing is forked here")
@pytest.mark.parametrize(("name", "forked"), [(b"pt_autograd_0", False), (b"another", True)])
def test_a_process_with_threads_of_backward_is_not_forked(name, forked):
    named, ended = threading.Event(), threading.Event()

    def wait():
        ctypes.CDLL(None).prctl(15, name)  # PR_SET_NAME, of this thread
        named.set()
        ended.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    named.wait()
    try:
        worker = isolated.Process()
        worker.end()
    finally:
        ended.set()
        thread.join()
    assert worker.forked == forked
