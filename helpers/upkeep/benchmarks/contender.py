"""Contenders: a function to time, its inputs, and the check that it must pass before and after.

A contender is checked against a reference in float64. Its outputs are poisoned first: memory in which an earlier run
left the right result must not pass for a result.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from helpers.ladder.checking.checker import CheckFailed, assert_close, check
from helpers.upkeep.benchmarks.timer import Prepared


@dataclass
class Contender:
    """One way to compute something."""

    name: str  # as it appears in tables and records
    call: Callable  # call(*inputs) returns the output tensors, or writes to those inputs whose positions are in `out`
    inputs: tuple  # tensors on the device, and whatever else the call takes
    reference: Callable  # the same in PyTorch, given the inputs except those of `out`, floating-point ones as float64
    out: Sequence[int] = ()
    accumulation: int = 1  # this, rtol and atol: the tolerance, as in helpers.check
    rtol: float | None = None
    atol: float | None = None
    dtype: torch.dtype | None = None  # of the results; by default the inputs'
    # Check with fresh memory filled by PyTorch itself. Not for a compiled function: that switch would compile it again.
    # By default, decided by looking at `call`.
    thorough: bool | None = None

    def outputs(self, inputs: tuple) -> list[torch.Tensor]:
        """The outputs of one call."""
        returned = self.call(*inputs)
        if self.out:
            return [inputs[i] for i in self.out]
        outputs = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        if not all(isinstance(t, torch.Tensor) for t in outputs):
            kinds = ", ".join(type(t).__name__ for t in outputs)
            raise CheckFailed(
                f"{self.name} returned {kinds}, not tensors; if it writes to an argument, name it in `out`"
            )
        return outputs

    def poison(self, outputs: Sequence[torch.Tensor], inputs: tuple) -> None:
        """Fills outputs with NaN (integers: the largest value), except inputs that `out` does not name."""
        kept = {t.data_ptr() for i, t in enumerate(inputs) if isinstance(t, torch.Tensor) and i not in self.out}
        with torch.no_grad():
            for t in outputs:
                if t.data_ptr() not in kept:
                    t.fill_(float("nan") if t.is_floating_point() else torch.iinfo(t.dtype).max)

    def expected(self) -> list[torch.Tensor]:
        """The reference's outputs, in float64."""
        wide = [
            t.detach().double() if isinstance(t, torch.Tensor) and t.is_floating_point() else t
            for i, t in enumerate(self.inputs)
            if i not in self.out
        ]
        expected = self.reference(*wide)
        return list(expected) if isinstance(expected, (tuple, list)) else [expected]

    def check_before(self) -> float:
        """The largest error on the inputs. Raises CheckFailed if it is more than the tolerance allows."""
        thorough = self.thorough
        if thorough is None:
            thorough = not hasattr(self.call, "_torchdynamo_orig_callable")
        if thorough:
            return check(
                self.call,
                *self.inputs,
                reference=self.reference,
                out=self.out,
                name=self.name,
                dtype=self.dtype,
                **self._tolerance(),
            ).worst_error
        self.poison(self.outputs(self.inputs), self.inputs)
        return self._compare(self.outputs(self.inputs), self.expected())

    def check_after(self, prepared: Prepared) -> None:
        """Runs what was timed once more, with poisoned outputs. Raises CheckFailed if the result is wrong."""
        expected = self.expected()
        for outputs in prepared.outputs_again():
            self._compare(outputs, expected)

    def _compare(self, outputs: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> float:
        if len(outputs) != len(expected):
            raise CheckFailed(f"{self.name}: expected {len(expected)} output tensors, got {len(outputs)}")
        pairs = zip(outputs, expected, strict=True)
        results = [assert_close(o, e, name=self.name, **self._tolerance()) for o, e in pairs]
        return max(r.worst_error for r in results)

    def _tolerance(self) -> dict:
        return {"accumulation": self.accumulation, "rtol": self.rtol, "atol": self.atol}


def copy_contender(bytes_moved: int, dtype: torch.dtype, device: torch.device | str) -> Contender:
    """`Tensor.copy_` that moves about `bytes_moved` bytes: half of them read, half written, in random data.

    The contenders move the same number of bytes, so fixed costs (the launch, the first and last wave of blocks) weigh
    the same on both.
    """
    elements = max(1, round(bytes_moved / 2 / dtype.itemsize))
    source = torch.randn(elements, dtype=torch.float32, device=device).to(dtype)
    return Contender(
        "copy",
        lambda target, source: target.copy_(source),
        (torch.empty_like(source), source),
        reference=lambda source: source,
        out=(0,),
        thorough=False,
    )


def copy_bytes(copy: Contender) -> int:
    """Bytes that a copy contender moves, read and written."""
    return 2 * copy.inputs[1].nbytes
