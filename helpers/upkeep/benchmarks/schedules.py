"""`python -m helpers bench --schedules`: what each part of the schedule of Hopper's attention brings.

A row is attention_hopper.cu or attention_hopper_backward.cu without one part: a copy in which a line or two are
exchanged. Copies compute the same results, which is checked, and are timed in turns, in bfloat16.
results/attention_schedules.json holds the recorded times.
"""

import contextlib
import functools
import shutil
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from helpers.ladder.catalogue.attention import ATTENTION_HOPPER
from helpers.paths import KERNELS
from helpers.upkeep.benchmarks.timer import in_turns, refusal
from helpers.upkeep.benchmarks.tools import Benchmark
from kernel_xray.build import flags, loader

FORWARD, BACKWARD = "attention_hopper.cu", "attention_hopper_backward.cu"
ROUNDS = 30
WHOLE = "nothing left out"


@dataclass(frozen=True)
class Part:
    """A part of a kernel's schedule: what to exchange in its source and headers for the kernel without it."""

    source: str
    name: str
    exchanges: tuple[tuple[str, str, str], ...]  # file, text, other text
    d: int = 128


_CONSUMER, _KEY_CONSUMER = "attention_consumer.h", "attention_key_consumer.h"
_GRAD_V = "      begin_sum<d>(grad_v, p, advanced(grad, from * kRowBytes));\n"

PARTS = (
    Part(
        FORWARD,
        "products during exponentials",
        ((FORWARD, "    cap_and_mask(key);\n", "    hopper::wgmma_wait_for<0>(out);\n    cap_and_mask(key);\n"),),
    ),
    Part(
        FORWARD,
        "the wait held behind them",
        ((FORWARD, "if (leader && !(state.sum[0] + state.sum[1] < 0))", "if (leader)"),),
    ),
    Part(
        FORWARD,
        "consumers in turns",
        (
            (FORWARD, "    turn.wait();\n", ""),
            (FORWARD, "    turn.pass_on();\n", ""),
            (FORWARD, "  if (consumer == S::consumers - 1) turn.pass_on();  // the first one begins\n", ""),
        ),
    ),
    Part(FORWARD, "q in registers", ((FORWARD, "Shape<128, 2, scaled>()", "Shape<128, 2, false>()"),)),
    Part(
        FORWARD,
        "some exponentials before the wait",
        ((_CONSUMER, "early = consumers == 3 ? 0 : d == 64 ? 4 : 16;", "early = 0;"),),
    ),
    Part(FORWARD, "three consumers", ((FORWARD, "if (size.d == 64 &&", "if (false &&"),), d=64),
    Part(
        BACKWARD,
        "consumers in turns",
        (
            (_KEY_CONSUMER, "      turn.wait();\n", ""),
            (_KEY_CONSUMER, "      turn.pass_on();\n", ""),
            (BACKWARD, "    if (turn.consumer == kConsumers - 1) turn.pass_on();  // the first one begins\n", ""),
        ),
    ),
    Part(
        BACKWARD,
        "dS beside the exponentials",
        (
            (_KEY_CONSUMER, _GRAD_V, ""),
            (_KEY_CONSUMER, "      turn.pass_on();\n", f"      turn.pass_on();\n{_GRAD_V}"),
            (_KEY_CONSUMER, "      hopper::wgmma_wait_for<0>(dp);\n", "      hopper::wgmma_wait_for<1>(dp);\n"),
        ),
    ),
    Part(
        BACKWARD, "dP's sums begin with delta", ((_KEY_CONSUMER, "from_delta = d == 64;", "from_delta = false;"),), d=64
    ),
)


def without(part: Part, folder: Path) -> Path:
    """The source without the part, with all headers, in `folder`.

    Raises RuntimeError if a text that is to be exchanged is not there exactly once.
    """
    for file in (KERNELS / part.source, *(KERNELS / "include").glob("*.h")):
        shutil.copy(file, folder)
    for name, text, other in part.exchanges:
        before = (folder / name).read_text(encoding="utf-8")
        if before.count(text) != 1:
            raise RuntimeError(f"{part.name}: {name} must have {text!r} once, got {before.count(text)} times")
        (folder / name).write_text(before.replace(text, other), encoding="utf-8")
    return folder / part.source


@contextlib.contextmanager
def kernels(source: str, d: int) -> Iterator[dict[str, Callable]]:
    """Name -> the operator: the whole one, and one without each part of those that count at `d`."""
    whole = Part(source, WHOLE, (), d)
    built: dict[str, Callable] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for part in (whole, *(p for p in PARTS if (p.source, p.d) == (source, d))):
            folder = Path(temporary) / f"{d}_{len(built)}"
            folder.mkdir()
            name = f"schedule_{Path(source).stem}_{folder.name}"
            copy = without(part, folder)
            module = loader.load(name, [copy], is_python_module=False, extra_cuda_cflags=flags.SM_90A)
            built[part.name] = getattr(module, copy.stem)
        yield built


def arguments(source: str, shape: tuple[int, int, int], device: torch.device | str) -> tuple[torch.Tensor, ...]:
    """The operator's tensors for heads, tokens and d."""
    torch.manual_seed(0)
    q, k, v, grad = (torch.randn(1, *shape, device=device, dtype=torch.bfloat16) for _ in range(4))
    if source == FORWARD:
        return q, k, v
    from helpers.ladder.pytorch import operators

    out, logsumexp = operators.attention_hopper()(q, k, v)
    return grad, torch.zeros_like(logsumexp), q, k, v, out, logsumexp


def check(ways: Mapping[str, Callable[[], tuple]]) -> None:
    """Raises RuntimeError if one computes something else than the first, but for the order of additions."""
    first, *others = ways
    wanted = ways[first]()
    for name in others:
        for got, want in zip(ways[name](), wanted, strict=True):
            if not torch.allclose(got.float(), want.float(), rtol=2**-6, atol=2**-8):
                raise RuntimeError(f"without {name}: the results differ")


def measure(
    ways: Mapping[str, Callable[[], object]],
    wait: Callable[[], None],
    *,
    rounds: int = ROUNDS,
    clock: Callable[[], float] = time.perf_counter,
) -> list[dict]:
    """Times each, round-robin: a record has milliseconds, and the first one's share of them."""

    def milliseconds(call: Callable[[], object]) -> float:
        wait()
        start = clock()
        call()
        wait()
        return (clock() - start) * 1e3

    stats = in_turns(ways, milliseconds, rounds)
    whole = next(iter(stats.values())).median_ms
    return [
        {"without": name, "ms": round(s.median_ms, 4), "speed": round(whole / s.median_ms, 3)}
        for name, s in stats.items()
    ]


def records(
    shape: tuple[int, int] = (16, 16384),
    device: torch.device | str = "cuda",
    wait: Callable[[], None] = torch.cuda.synchronize,
    rounds: int = ROUNDS,
) -> list[dict]:
    """What was found for heads and tokens. wait, rounds: as in `measure`."""
    found: list[dict] = []
    for source, d in dict.fromkeys((part.source, part.d) for part in PARTS):
        given = arguments(source, (*shape, d), device)
        with kernels(source, d) as built:
            ways = {name: functools.partial(f, *given) for name, f in built.items()}
            check(ways)
            found += [{"kernel": source, "shape": [*shape, d], **r} for r in measure(ways, wait, rounds=rounds)]
    return found


def table(document: Mapping) -> str:
    """The records as text, with GPU and date."""
    machine, lines, last = document["machine"], [], None
    width = max(len(r["without"]) for r in document["records"])
    for r in document["records"]:
        heads, tokens, d = r["shape"]
        if (r["kernel"], d) != last:
            title = f"{r['kernel']}, d = {d}, without"
            lines += ["", title, f"{'':{width}}        ms  speed"]
        last = r["kernel"], d
        lines.append(f"{r['without']:{width}} {r['ms']:9.3f} {r['speed']:5.0%}")
    place = f"recorded on {machine['gpu']}, PyTorch {machine['torch']}, {machine['date']}"
    return "\n".join([*lines[1:], f"{place}; {heads} heads of {tokens:,} tokens, bfloat16"])


def _refusal(_options: Namespace) -> str | None:
    reason = refusal()
    if reason or ATTENTION_HOPPER.runs_here:
        return reason
    return "this GPU has no wgmma, which needs compute capability 9.0"


BENCHMARK = Benchmark(
    "--schedules",
    __doc__,
    lambda options: records(),
    table,
    file="attention_schedules.json",
    where="on an H100 or H200",
    refusal=_refusal,
)
recorded = BENCHMARK.recorded
