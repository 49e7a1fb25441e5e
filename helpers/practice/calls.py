"""Calls that differ in their sizes alone: the cases of an exercise and its far case, from one signature.

    PRODUCT = Calls("a[m, k], b[k, n] -> c[m, n]", "m n k", sums="k")
    PRODUCT.at((1, 1, 1), (17, 15, 33))      # two cases: a is 1 x 1, and 17 x 33
    PRODUCT.far(3, 2**33 + 9, 5)             # one with tensors of which only the shape is known

Names with brackets are tensors; the others are sizes, or arguments whose values are given. An extent, like `sums`, is
an expression of sizes. The sizes are taken in the order of their names, or else in that of the signature.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch

from helpers.practice.case_inputs import LEAST, SIZES, counted, far, normal, short
from helpers.practice.cases import Case, Check, Far


class Calls:
    """Calls of one signature.

    label      a format of the sizes; by default 'm = 3, n = 4'. '{rows:row}' is '1 row', or '3 rows'
    tolerance  of the cases; `sums` adds how many terms a result has
    demand     a function of the sizes that returns a case's demand
    dtype      of all tensors that `dtypes` has not; named in the label
    values     by name of an input, a function of its normally distributed values; the i-th tensor has the i-th seed
    arguments  values that are neither tensors nor sizes, or functions of the sizes
    """

    def __init__(
        self,
        signature: str,
        sizes: str = "",
        *,
        label: str = "",
        tolerance: dict | None = None,
        sums: str = "",
        demand: Callable[..., Callable | None] = lambda *sizes: None,
        dtype: torch.dtype | None = None,
        dtypes: Mapping[str, torch.dtype] | None = None,
        values: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] | None = None,
        **arguments: Any,
    ):
        taken, _, written = signature.partition("->")
        self._inputs, self._outputs = _parsed(taken), _parsed(written)
        bare = [name for name in re.findall(r"[A-Za-z_]\w*(?![\w\[])", taken) if name not in arguments]
        self._sizes = sizes.split() or list(dict.fromkeys(bare))
        self._label = label or ", ".join(f"{name} = {{{name}:,}}" for name in self._sizes)
        self._tolerance, self._sums, self._demand = tolerance or {}, sums, demand
        self._dtype, self._dtypes, self._values, self._arguments = dtype, dtypes or {}, values or {}, arguments

    def at(self, *sizes: int | tuple[int, ...]) -> Iterator[Case]:
        """A case for each entry: the sizes, or the only size."""
        for one in sizes:
            yield self._case(one if isinstance(one, tuple) else (one,), "cpu")

    def far(self, *sizes: int, **ends: Any) -> Case:
        """A far case. `ends` are added to its tolerance: see Far."""
        case = self._case(sizes, "meta")
        kept = {name: value for name, value in case.tolerance.items() if name != "dtype"}  # of the outputs, as they are
        return replace(case, tolerance=kept | ends, demand=None)

    def given(self, label: str, *inputs: Any, **tolerance: Any) -> Case:
        """A case with these inputs, from which the sizes follow."""
        sizes: dict[str, int] = {}
        for (_, extents), value in zip(self._inputs, inputs, strict=True):
            if extents:
                sizes |= dict(zip(extents, value.shape, strict=True))
        case = self._case(tuple(sizes[name] for name in self._sizes), "cpu")
        label, tolerance = self._named(label), case.tolerance | tolerance
        return replace(case, label=label, inputs=inputs, tolerance=tolerance, demand=None)

    def _case(self, sizes: tuple[int, ...], device: str) -> Case:
        known = {name: _Count(size) for name, size in zip(self._sizes, sizes, strict=True)}
        inputs: list[Any] = []
        for name, extents in self._inputs:
            if not extents:
                given = self._arguments[name] if name in self._arguments else int(known[name])
                inputs.append(given(*sizes) if callable(given) else given)
                continue
            shape, dtype = _shape(extents, known), self._dtype_of(name)
            if device == "meta":
                inputs.append(far(*shape, dtype=dtype))
            else:
                drawn = normal(*shape, seed=sum(isinstance(x, torch.Tensor) for x in inputs))
                inputs.append(self._values.get(name, torch.clone)(drawn).to(dtype))
        outputs = {
            name: torch.zeros(_shape(extents, known), dtype=self._dtype_of(name), device=device)
            for name, extents in self._outputs
        }
        sums = {"accumulation": max(1, eval(self._sums, {}, known))} if self._sums else {}
        label, demand = self._named(self._label.format(**known)), self._demand(*sizes)
        return Case(label, tuple(inputs), outputs, self._tolerance | sums, demand=demand)

    def _dtype_of(self, name: str) -> torch.dtype:
        return self._dtypes.get(name, self._dtype or torch.float32)

    def _named(self, label: str) -> str:
        return f"{short(self._dtype)}, {label}" if self._dtype else label


class _Count(int):
    """A size: '{rows:row}' formats it with its noun."""

    def __format__(self, how: str) -> str:
        return counted(self, how) if how.isalpha() else format(int(self), how)


def _parsed(side: str) -> list[tuple[str, list[str]]]:
    """The names on one side of a signature with their extents; those of an argument that is not a tensor are []."""
    found = re.findall(r"(\w+)(?:\[(.*?)\])?", side)
    return [(name, [extent.strip() for extent in extents.split(",")] if extents else []) for name, extents in found]


def _shape(extents: list[str], sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(int(eval(extent, {}, sizes)) for extent in extents)


def on_vectors(reference: Callable, calls: Calls, *special: Case, **more: Any) -> Check:
    """A check of calls whose only size is n: at SIZES, then the cases `special`, and far. `more` goes to the Check."""
    more = {"far": Far(calls.far, least=LEAST)} | more
    return Check(reference, lambda: [*calls.at(*SIZES), *special], **more)
